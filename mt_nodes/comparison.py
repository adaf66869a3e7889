# SPDX-License-Identifier: Apache-2.0
"""Two finished runs against each other: what fails newly, no longer, still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.errors import ExitCode, UsageError
from mt_nodes.journal import read_journal
from mt_nodes.report.files import read_summary
from mt_nodes.statistics import ALPHA, fisher_p, holm, sign_test_p
from mt_nodes.verdict import SCHEMA, Outcome, Pair, RelationOutcome
from mt_nodes.waivers import Waiver, marked

FAIL, PASS = RelationOutcome.FAIL.value, RelationOutcome.PASS.value
#: Settings of a run that, when they differ, say what a comparison compares.
TOLD = ("stack", "faults", "bags", "seed", "mode", "pace", "transport", "limit")


@dataclass(frozen=True)
class Finished:
    """What a run left: its summary, the settings of its journal, and the decided pairs of its relations.

    ``violated`` says of each decided pair, by relation, whether it was violated; ``stamps`` which instant it was.
    """

    path: Path
    summary: Mapping[str, Any]
    condition: Mapping[str, Any]
    offered: Mapping[str, frozenset[tuple[str, int]]]
    violated: Mapping[str, Mapping[str, bool]]

    @classmethod
    def load(cls, path: Path, waivers: Sequence[Waiver] | None = None) -> Finished:
        """Read a results directory.

        Raises:
            MtError: it is none, or damaged.
        """
        lines, summary = list(read_journal(path / "result.jsonl")), read_summary(path)
        if waivers is not None:
            summary = marked(summary, lines, waivers)
        own = [line for line in lines if line["type"] == "verdict" and "@" not in Pair.parse(line["pair"]).draw]
        offered: dict[str, set[tuple[str, int]]] = {name: set() for name in summary["relations"]}
        violated: dict[str, dict[str, bool]] = {name: {} for name in summary["relations"]}
        for line in own:
            offered[line["relation"]].add((line["pair"], line["stamp_ns"]))
            if Outcome(line["outcome"]).decided:
                violated[line["relation"]][line["pair"]] = line["outcome"] == Outcome.VIOLATED.value
        condition = next((line for line in lines if line["type"] == "condition"), {})
        return cls(path, summary, condition, {n: frozenset(p) for n, p in offered.items()}, violated)


def compare(before: Finished, after: Finished) -> dict[str, Any]:
    """Return what became of every relation and pair from one run to the other, with its exit code.

    The exit code is 1 when a relation fails newly (a waived FAIL does not count), else 0. Pairs are compared one by
    one where both runs offered the same (identity and instant) of a relation: the exact McNemar test, two-sided, over
    those decided in both. Otherwise Fisher's exact test of the two rates. Holm's correction over the relations.

    Raises:
        UsageError: the runs have no relation in common.
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
    newly = [name for name in names if rows[name]["change"] == "newly failing"]
    counting = [name for name in newly if not rows[name]["waived"]]
    return {
        "schema": SCHEMA,
        "before": str(before.path),
        "after": str(after.path),
        "relations": rows,
        "only_before": [n for n in before.summary["relations"] if n not in rows],
        "only_after": [n for n in after.summary["relations"] if n not in rows],
        "changes": dict(Counter(row["change"] for row in rows.values())),
        "notes": _notes(before, after),
        "exit_code": int(ExitCode.FAIL if counting else ExitCode.PASS),
        "exit_why": _why(newly, counting),
    }


def _relation(name: str, before: Finished, after: Finished) -> dict[str, Any]:
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


def change_of(was: str, now: str) -> str:
    """Return in words what became of a relation, from its outcomes in two runs."""
    if now == FAIL:
        return "still failing" if was == FAIL else "newly failing"
    if was == FAIL:
        return "newly passing" if now == PASS else "no longer failing"
    return "as before" if was == now else "changed"


def _pairs(was: Mapping[str, bool], now: Mapping[str, bool]) -> dict[str, Any]:
    """Sort pairs by what became of them; those not decided in both are only counted."""
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
        return None, "no pair decided in both"
    p = sign_test_p(len(pairs["newly_failing"]), len(pairs["newly_passing"]))
    return p, f"exact McNemar test over {pairs['decided_in_both']} pairs"


def _unpaired(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[float | None, str]:
    if not (was["decided"] and now["decided"]):
        return None, "nothing decided in one of the runs"
    p = fisher_p((was["violated"], was["decided"]), (now["violated"], now["decided"]))
    return p, f"Fisher's exact test, other pairs ({was['decided']} and {now['decided']})"


def _notes(before: Finished, after: Finished) -> list[str]:
    """Say what else differs between the runs, and which of them did not come to its end."""
    pairs = [(key, before.condition.get(key), after.condition.get(key)) for key in TOLD]
    notes = [f"{key}: {told(was)} before, {told(now)} after" for key, was, now in pairs if was != now]
    for when, run in (("before", before), ("after", after)):
        if run.summary["exit_code"] >= ExitCode.INFRASTRUCTURE:
            notes.append(f"the run {when} did not come to its end: {run.summary['exit_why']}")
    return notes + [str(note) for note in after.summary.get("waivers", ())]


def told(setting: Any) -> str:
    """Return a setting of a run in words."""
    if isinstance(setting, (list, tuple)):
        return ", ".join(map(str, setting)) or "(none)"
    return "(none)" if setting is None else str(setting)


def _why(newly: Sequence[str], counting: Sequence[str]) -> str:
    if counting:
        return f"newly failing: {', '.join(counting)}"
    return f"newly failing, but waived: {', '.join(newly)}" if newly else "no relation fails newly"
