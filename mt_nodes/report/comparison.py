# SPDX-License-Identifier: Apache-2.0
"""Compares two runs: what is newly, no longer and still failing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.stats.intervals import ALPHA, fisher_p, holm, sign_test_p
from mt_nodes.data.verdict import SCHEMA, Outcome, Pair, RelationOutcome
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.waivers import Waiver, apply_waivers

FAIL, PASS = RelationOutcome.FAIL.value, RelationOutcome.PASS.value
DECIDED = (PASS, FAIL)
NEWLY_FAILING, NO_LONGER_DECIDED = "newly failing", "no longer decided"
#: Exit codes of complete runs.
COMPLETE = (ExitCode.PASS, ExitCode.FAIL, ExitCode.UNDECIDED)
#: Settings whose differences are noted.
SETTINGS = ("stack", "faults", "bags", "seed", "mode", "pace", "transport", "limit")


@dataclass(frozen=True)
class ComparedRun:
    """Results of a run: its summary, the settings of its journal, and the pairs of its relations.

    ``offered`` has (pair, stamp in ns) of all pairs by relation, ``violated`` whether each decided pair was violated.
    """

    path: Path
    summary: Mapping[str, Any]
    condition: Mapping[str, Any]
    offered: Mapping[str, frozenset[tuple[str, int]]]
    violated: Mapping[str, Mapping[str, bool]]

    @classmethod
    def load(cls, path: Path, waivers: Sequence[Waiver] | None = None) -> ComparedRun:
        """Read a results directory. Raises MtError: it is no results directory, or is damaged."""
        lines, summary = list(read_journal(path / "result.jsonl")), read_summary(path)
        if waivers is not None:
            summary = apply_waivers(summary, lines, waivers)
        own = [line for line in lines if line["type"] == "verdict" and "@" not in Pair.parse(line["pair"]).draw]
        offered: dict[str, set[tuple[str, int]]] = {name: set() for name in summary["relations"]}
        violated: dict[str, dict[str, bool]] = {name: {} for name in summary["relations"]}
        for line in own:
            offered[line["relation"]].add((line["pair"], line["stamp_ns"]))
            if Outcome(line["outcome"]).decided:
                violated[line["relation"]][line["pair"]] = line["outcome"] == Outcome.VIOLATED.value
        condition = next((line for line in lines if line["type"] == "condition"), {})
        return cls(path, summary, condition, {n: frozenset(p) for n, p in offered.items()}, violated)


@dataclass(frozen=True)
class Step:
    """Outcomes of one relation, None in a run that does not have it, and whether it is waived now."""

    name: str
    was: str | None
    now: str | None
    waived: bool = False

    @classmethod
    def of(cls, name: str, was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> Step:
        """Make it from the relation's entries in both summaries."""
        before, after = (None if relation is None else str(relation["outcome"]) for relation in (was, now))
        return cls(name, before, after, bool(now and now.get("waived")))

    @property
    def change(self) -> str:
        """The change in words; see :func:`change_of`."""
        return change_of(self.was, self.now)

    @property
    def both(self) -> str:
        """Both outcomes, in words."""
        return f"{self.was or 'missing'} before, {self.now or 'missing'} after"


def compare(before: ComparedRun, after: ComparedRun) -> dict[str, Any]:
    """Return the change of every relation and pair from one run to the other, and the exit code.

    :func:`exit_of` has the rules of the exit code. Pairs are compared one by one where both runs offered the same
    (identity and instant) of a relation: the exact McNemar test, two-sided, over those decided in both. Otherwise
    Fisher's exact test of the two rates. Holm's correction over the relations.
    Raises UsageError: the runs have no relation in common.
    """
    names = [name for name in after.summary["relations"] if name in before.summary["relations"]]
    if not names:
        had = [", ".join(run.summary["relations"]) or "(none)" for run in (before, after)]
        raise UsageError(f"nothing to compare: {before.path} has relations {had[0]}; {after.path} has {had[1]}")
    rows = {name: _relation(name, before, after) for name in names}
    tested = [name for name in names if rows[name]["p"] is not None]
    for name, p in zip(tested, holm([rows[name]["p"] for name in tested]), strict=True):
        rows[name]["p_adjusted"] = p
        rows[name]["differs"] = p < ALPHA
    code, why = exit_of(_steps(before, after), _reason_undecided(rows, after))
    return {
        "schema": SCHEMA,
        "before": str(before.path),
        "after": str(after.path),
        "relations": rows,
        "only_before": [n for n in before.summary["relations"] if n not in rows],
        "only_after": [n for n in after.summary["relations"] if n not in rows],
        "changes": dict(Counter(row["change"] for row in rows.values())),
        "notes": _notes(before, after),
        "exit_code": int(code),
        "exit_why": why,
    }


def exit_of(
    steps: Sequence[Step], undecided_reason: str = "", where: str = "", what: str = "relation"
) -> tuple[ExitCode, str]:
    """Return the exit code of a comparison, and why: the first that applies.

    1. A relation fails newly, and is not waived: 1. So does one that FAILs and is not in the run before.
    2. A relation that was decided (PASS or FAIL) is decided no longer, or is missing: 3.
    3. Something else keeps the comparison from showing that nothing got worse (``undecided_reason``): 3.
    4. No relation is decided in the run after: 3.
    5. Otherwise 0.

    ``where`` names the run after, as `` in v3``, where there are more than two; ``what`` is compared.
    """
    newly = [step for step in steps if step.change == NEWLY_FAILING]
    unwaived = [step.name for step in newly if not step.waived]
    lost = [f"{step.name} ({step.both})" for step in steps if step.change == NO_LONGER_DECIDED]
    nothing = not any(step.now in DECIDED for step in steps)
    waived = f"newly failing{where}, but waived: {', '.join(step.name for step in newly)}"
    cases: tuple[tuple[bool, ExitCode, str], ...] = (
        (bool(unwaived), ExitCode.FAIL, f"newly failing{where}: {', '.join(unwaived)}"),
        (bool(lost), ExitCode.UNDECIDED, f"no longer decided{where}: {', '.join(lost)}"),
        (bool(undecided_reason), ExitCode.UNDECIDED, undecided_reason),
        (nothing, ExitCode.UNDECIDED, f"no {what} is decided{where or ' in the run after'}"),
        (bool(newly), ExitCode.PASS, waived),
    )
    fine = (ExitCode.PASS, f"no {what} fails newly{where}")
    return next(((code, why) for applies, code, why in cases if applies), fine)


def _steps(before: ComparedRun, after: ComparedRun) -> list[Step]:
    """Return the outcomes of every relation and claim that either run has."""
    was, now = before.summary["relations"], after.summary["relations"]
    relations = [Step.of(name, was.get(name), now.get(name)) for name in dict.fromkeys((*was, *now))]
    return [*relations, *claim_steps(before.summary, after.summary)]


def claim_steps(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Step]:
    """Return the outcomes of every claim that either summary has."""
    was, now = (summary.get("claims", {}) for summary in (before, after))
    return [Step.of(f"claim {name}", was.get(name), now.get(name)) for name in dict.fromkeys((*was, *now))]


def _reason_undecided(rows: Mapping[str, Mapping[str, Any]], after: ComparedRun) -> str:
    """Return what keeps the run after from showing that nothing got worse; empty where nothing does."""
    if after.summary["exit_code"] not in COMPLETE:
        return f"the run after is incomplete: {after.summary['exit_why']}"
    undecided = {name: row for name, row in rows.items() if row["after"]["outcome"] not in DECIDED}
    worse = [name for name, row in undecided.items() if row["differs"] and _worse(row)]
    return f"not decided, and violated more often than before: {', '.join(worse)}" if worse else ""


def _worse(row: Mapping[str, Any]) -> bool:
    if row["pairs"]:
        return len(row["pairs"]["newly_failing"]) > len(row["pairs"]["newly_passing"])
    return bool(row["after"]["rate"] > row["before"]["rate"])


def _relation(name: str, before: ComparedRun, after: ComparedRun) -> dict[str, Any]:
    was, now = (run.summary["relations"][name] for run in (before, after))
    same = before.offered[name] == after.offered[name] and bool(before.offered[name])
    pairs = _pairs(before.violated[name], after.violated[name]) if same else None
    p, test = _paired(pairs) if pairs else _unpaired(was, now)
    return {
        "before": _side(was),
        "after": _side(now),
        "change": change_of(was["outcome"], now["outcome"]),
        "waived": now.get("waived"),
        "requirement": now["requirement"],
        "test": test,
        "p": p,
        "p_adjusted": None,
        "differs": None,
        "pairs": pairs,
    }


def _side(relation: Mapping[str, Any]) -> dict[str, Any]:
    return {key: relation[key] for key in ("outcome", "violated", "decided", "rate")}


def change_of(was: str | None, now: str | None) -> str:
    """Return the change of a relation in words, from its outcomes in two runs; None: the run does not have it."""
    if now == FAIL:
        return "still failing" if was == FAIL else NEWLY_FAILING
    if was in DECIDED and now not in DECIDED:
        return NO_LONGER_DECIDED
    if was == FAIL:
        return "newly passing"
    return "as before" if was == now else "changed"


def _pairs(was: Mapping[str, bool], now: Mapping[str, bool]) -> dict[str, Any]:
    """Sort pairs by their change; pairs that are not decided in both runs are only counted."""
    both = sorted((pair for pair in was if pair in now), key=Pair.parse)
    return {
        "decided_in_both": len(both),
        "decided_in_one": len({*was, *now}) - len(both),
        "newly_failing": [pair for pair in both if now[pair] and not was[pair]],
        "newly_passing": [pair for pair in both if was[pair] and not now[pair]],
        "still_failing": [pair for pair in both if was[pair] and now[pair]],
    }


def _paired(pairs: Mapping[str, Any]) -> tuple[float | None, str]:
    if not pairs["decided_in_both"]:
        return None, "no pair decided in both runs"
    p = sign_test_p(len(pairs["newly_failing"]), len(pairs["newly_passing"]))
    return p, f"exact McNemar test over {pairs['decided_in_both']} pairs"


def _unpaired(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[float | None, str]:
    if not (was["decided"] and now["decided"]):
        return None, "nothing decided in one of the runs"
    p = fisher_p((was["violated"], was["decided"]), (now["violated"], now["decided"]))
    return p, f"Fisher's exact test, other pairs ({was['decided']} and {now['decided']})"


def _notes(before: ComparedRun, after: ComparedRun) -> list[str]:
    """Return which settings differ between the runs, and which run is incomplete."""
    pairs = [(key, before.condition.get(key), after.condition.get(key)) for key in SETTINGS]
    notes = [f"{key}: {setting_text(was)} before, {setting_text(now)} after" for key, was, now in pairs if was != now]
    for when, run in (("before", before), ("after", after)):
        if run.summary["exit_code"] not in COMPLETE:
            notes.append(f"the run {when} is incomplete: {run.summary['exit_why']}")
    return notes + [str(note) for note in after.summary.get("waivers", ())]


def setting_text(setting: Any) -> str:
    """Return a setting of a run as text."""
    if isinstance(setting, (list, tuple)):
        return ", ".join(map(str, setting)) or "(none)"
    return "(none)" if setting is None else str(setting)
