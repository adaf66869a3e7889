# SPDX-License-Identifier: Apache-2.0
"""What a search came to, and what the process says to its caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import SCHEMA, Outcome
from mt_nodes.engine.summary.deaths import describe_deaths
from mt_nodes.runs.campaign.search.search_run import CONFIRMED, RELATIONS, SearchRun
from mt_nodes.runs.campaign.search.search_strategy import SearchResult
from mt_nodes.runs.campaign.search.trial import UNDECIDED, Trial

if TYPE_CHECKING:
    from mt_nodes.runs.campaign.search.trial import Confirmation


def summed(
    run: SearchRun,
    trials: Sequence[Trial],
    sought: SearchResult | None,
    confirmations: Sequence[Confirmation],
    found: Trial | None,
    replayed: Mapping[str, Any] | None,
    **trouble: Any,
) -> dict[str, Any]:
    """Return what ``summary.json`` of a search holds.

    Args:
        run: which search. trials: all that were played, in order. sought: how it went, None: it was broken off.
        confirmations: of violations, in order. found: the weakest that was confirmed.
        replayed: summary of the ordinary replay of that. trouble: what ended it early.
    """
    errors = sum(trial.outcomes.get(Outcome.ERROR.value, 0) for trial in trials)
    code, why = _exit(run, trials, confirmations, found, replayed, errors, trouble)
    rated = [t for t in trials if t.robustness is not None and not t.violated]
    nearest = min(rated, key=lambda t: (t.robustness, t.number), default=None)
    return {
        "schema": SCHEMA,
        "relation": run.suite.relations[0].id,
        "kind": run.relation.kind,
        "searched": run.relation.id,
        "axes": [
            asdict(axis) | {"name": axis.name, "place": place} for axis, place in zip(run.axes, run.places, strict=True)
        ],
        "method": sought.method if sought else None,
        "note": sought.note if sought else "",
        "trials": len(trials),
        "trials_spent": bool(sought and sought.spent),
        "outcomes": dict(sorted(Counter(trial.outcome for trial in trials).items())),
        "found": None if found is None else {**asdict(found), **_files(run)},
        "confirmations": [{**asdict(one), "confirmed": one.confirmed} for one in confirmations],
        "replayed": replayed and {"exit_code": replayed["exit_code"], "exit_why": replayed["exit_why"]},
        "nearest": None if nearest is None else asdict(nearest),
        **{name: value for name, value in trouble.items() if value},
        "exit_code": int(code),
        "exit_why": why,
    }


def _files(run: SearchRun) -> dict[str, str]:
    return {"relation_file": f"{RELATIONS}/{run.relation.id}.yaml", "results": CONFIRMED}


def _exit(
    run: SearchRun,
    trials: Sequence[Trial],
    confirmations: Sequence[Confirmation],
    found: Trial | None,
    replayed: Mapping[str, Any] | None,
    errors: int,
    trouble: Mapping[str, Any],
) -> tuple[ExitCode, str]:
    """The first that applies."""
    played = counted(len(trials), "trial")
    decided = [t for t in trials if t.robustness is not None]
    flaky = [c for c in confirmations if c.control]
    interrupted = trouble.get("interrupted") or (replayed or {}).get("exit_code") == ExitCode.INTERRUPTED
    deaths = trouble.get("deaths")
    broken = trouble.get("infrastructure") or (describe_deaths(deaths) if deaths else _replay_trouble(replayed))
    cases: tuple[tuple[bool, ExitCode, str], ...] = (
        (bool(interrupted), ExitCode.INTERRUPTED, f"interrupted after {played}"),
        ("isolation" in trouble, ExitCode.ISOLATION, f"refused: {trouble.get('isolation')}"),
        ("usage" in trouble, ExitCode.USAGE, str(trouble.get("usage"))),
        (bool(broken), ExitCode.INFRASTRUCTURE, f"infrastructure: {broken}"),
        (errors > 0, ExitCode.INFRASTRUCTURE, f"{counted(errors, 'pair')} ended in ERROR"),
        (found is not None, ExitCode.FAIL, f"a violation was found and confirmed, in {played}"),
        (
            bool(flaky),
            ExitCode.UNDECIDED,
            f"unstable: the control, which changes nothing, is violated as well ({played})",
        ),
        (
            bool(confirmations),
            ExitCode.UNDECIDED,
            f"violations were seen and did not come again on the same input ({played})",
        ),
        (not decided, ExitCode.UNDECIDED, f"nothing was decided in {played}: {_why_undecided(trials)}"),
    )
    for applies, code, why in cases:
        if applies:
            return code, why
    return ExitCode.PASS, f"no violation found in {played}, which is no proof that there is none"


def _replay_trouble(replayed: Mapping[str, Any] | None) -> str:
    if replayed is None or replayed["exit_code"] not in (ExitCode.INFRASTRUCTURE, ExitCode.ISOLATION):
        return ""
    return f"replay of what was found: {replayed['exit_why']}"


def _why_undecided(trials: Sequence[Trial]) -> str:
    reasons = Counter(trial.reason for trial in trials if trial.outcome == UNDECIDED)
    return reasons.most_common(1)[0][0] if reasons else "the mutation refused all values"
