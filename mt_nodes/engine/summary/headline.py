# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run in one plain sentence, from its summary alone.

It never says anything better than the verdict: it begins with the exit code, and counts only what was decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.wording import capitalised, counted
from mt_nodes.data.verdict import RelationOutcome
from mt_nodes.engine.summary.deaths import describe_deaths
from mt_nodes.engine.summary.undecided_reasons import why_never_decided

Summary = Mapping[str, Any]
Row = Mapping[str, Any]

PASS, FAIL, INCONCLUSIVE, UNSTABLE = (outcome.value for outcome in RelationOutcome)
#: Exit codes that say more than the outcomes of relations do: what a run is called that ended so.
CALLED = {
    ExitCode.USAGE: "USAGE",
    ExitCode.INFRASTRUCTURE: "ERROR",
    ExitCode.ISOLATION: "REFUSED",
    ExitCode.INTERRUPTED: "INTERRUPTED",
}
#: Relations that a sentence names.
_NAMED = 3


@dataclass(frozen=True)
class Headline:
    """What a run comes to.

    Attributes:
        verdict: ``PASS``, ``FAIL``, ``INCONCLUSIVE``, ``UNSTABLE``, ``ERROR``, ``REFUSED``, ``USAGE`` or
            ``INTERRUPTED``.
        sentence: the most important finding, in plain words, with its full stop.
        rest: what is to be known beside it, in sentences; empty where there is nothing.
        relation: the relation that the sentence is about; empty where it is about none.
        pair: its worst violated pair; empty where none is violated.
    """

    verdict: str
    sentence: str
    rest: str = ""
    relation: str = ""
    pair: str = ""

    def __str__(self) -> str:
        """Sentence and rest."""
        return f"{self.sentence} {self.rest}".rstrip()


def headline(summary: Summary) -> Headline:
    """Return the outcome of a run in plain words, from its summary (also one of another version)."""
    relations, verdict = summary["relations"], _verdict(summary)
    relation = _foremost(relations)
    row = relations.get(relation, {})
    if row.get("outcome") == FAIL and verdict != PASS:
        rest = [_trouble(summary, verdict), _others(relations), _claimed(summary, FAIL)]
        return Headline(verdict, _violation(relation, row), _joined(rest), relation, _worst(row))
    if verdict in CALLED.values():
        return Headline(verdict, _trouble(summary, verdict), _so_far(relations))
    if verdict != PASS and (claimed := _claimed(summary, verdict)):
        return Headline(verdict, claimed, _others(relations))
    if verdict == PASS:
        return Headline(verdict, _passed(relations), _joined([_certainty(relations), _claimed(summary, PASS)]))
    if row.get("outcome") == PASS:  # what passes so far may not count, as where time ran out
        return Headline(verdict, f"{capitalised(summary['exit_why'])}.", _so_far(relations), relation)
    return _undecided(verdict, relations, relation)


def _verdict(summary: Summary) -> str:
    code, relations = ExitCode(summary["exit_code"]), summary["relations"]
    if code in CALLED:
        return CALLED[code]
    counting = {r["outcome"] for r in relations.values() if not r.get("waived")}
    if code == ExitCode.FAIL or FAIL in counting or (relations and not counting):
        return FAIL
    tested = any(r["decided"] for r in relations.values() if r["outcome"] == PASS)
    if code == ExitCode.PASS and tested and counting == {PASS}:
        return PASS
    return UNSTABLE if UNSTABLE in counting else INCONCLUSIVE


def _foremost(relations: Mapping[str, Row]) -> str:
    """Return the relation to speak of first: not waived, the worst outcome, the highest rate, the most lost."""
    order = [FAIL, UNSTABLE, INCONCLUSIVE, PASS]

    def place(name: str) -> tuple[bool, int, float, int]:
        row = relations[name]
        return bool(row.get("waived")), order.index(row["outcome"]), -(row["rate"] or 0.0), -row["lost"]

    return min(relations, key=place, default="")


def _violation(name: str, row: Row) -> str:
    """Say what a relation that fails does to the stack, how often, and how often the stack does it by itself."""
    share = f"{row['violated']:,} of {cases(row, row['decided'])}"
    lost = lost_words(row)
    if lost:
        verb = "loses or gains" if row["gained"] else "loses"
        found = f"the stack {verb} obstacles in {share}, at worst {'losing ' if row['gained'] else ''}{lost} at once"
    else:
        reason = row.get("worst", {}).get("reason", "")
        found = f"the stack violates the relation in {share}" + (f" (the worst: {reason})" if reason else "")
    return f"With {_named(name, row)}, {found}; {own_flicker(row)}."


def lost_words(row: Row) -> str:
    """Return what the worst pair of a relation loses, empty where the relation is not about obstacles.

    With classes, where the check says which obstacles it demands: ``4 of 11 cars and 1 of 2 cyclists``.
    """
    worst = row.get("worst", {})
    by_class = worst.get("lost_of", {})
    if not by_class:
        return str(worst["lost"]) if worst.get("lost") and worst.get("unit") == "obstacles" else ""
    first = [f"{lost} of {_of_class(total, name)}" for name, (lost, total) in list(by_class.items())[:2]]
    more = sum(lost for lost, _ in list(by_class.values())[2:])
    return f"{', '.join(first)} and {more} more" if more else " and ".join(first)


def own_flicker(row: Row) -> str:
    """Say how often control and sham are violated: how much the stack differs from itself without the change."""
    decided = row["control"]["decided"] + row["sham"]["decided"]
    violated = row["control"]["violated"] + row["sham"]["violated"]
    if not decided:
        return "the stack's own flicker was not measured"
    return f"the stack's own flicker is {violated:,} (of {decided:,} comparisons without the change)"


def cases(row: Row, count: int) -> str:
    """Return a number of pairs as people count them: ``25 frames``, ``8 drives``, ``50 pairs`` of several draws."""
    unit = row.get("unit_of_input", "frame")
    return counted(count, unit if row["frames"] == row["decided"] else "pair").replace(str(count), f"{count:,}", 1)


def _passed(relations: Mapping[str, Row]) -> str:
    passed = {name: r for name, r in relations.items() if r["outcome"] == PASS}
    violated = sum(r["violated"] for r in passed.values())
    found = "no violation" if not violated else f"no more violations than tolerated ({violated:,})"
    frames = {cases(r, r["decided"]) for r in passed.values()}
    scope = f"{frames.pop()} each" if len(frames) == 1 else f"{sum(r['decided'] for r in passed.values()):,} pairs"
    changes = list(dict.fromkeys(_named(name, r) for name, r in passed.items()))
    waived = _except(len(relations) - len(passed))
    if len(passed) == 1:
        return f"With {changes[0]}, {found} in {scope.removesuffix(' each')}{waived}."
    list_text = f": {'; '.join(changes)}" if len(changes) <= _NAMED else ""
    return f"{capitalised(found)} of {len(passed)} relations in {scope}{list_text}{waived}."


def _except(waived: int) -> str:
    return f" (except {counted(waived, 'waived relation')} that {'fails' if waived == 1 else 'fail'})" if waived else ""


def _certainty(relations: Mapping[str, Row]) -> str:
    """Say how sure a PASS is: the upper end of the widest interval, and what would narrow it."""
    passed = [r for r in relations.values() if r["outcome"] == PASS and r["ci95"]]
    if not passed:
        return ""
    vague = max(passed, key=lambda r: r["ci95"][1])
    more = vague.get("more_until_20_percent", "")
    narrow = f": {more} like these would bring this down to 20 %" if more else ""
    return f"The true rate of violations may still be up to {100 * vague['ci95'][1]:.1f} % (95 % confidence){narrow}."


def _undecided(verdict: str, relations: Mapping[str, Row], relation: str) -> Headline:
    if not relations:
        return Headline(verdict, "Nothing was tested: no relation was offered.")
    row = relations[relation]
    rest = _others(relations)
    if row["outcome"] == UNSTABLE:
        background = own_flicker(row)
        sentence = (
            f"The stack differs from itself too much to tell: {row['violated']:,} of {cases(row, row['decided'])} are "
            f"violated with {_named(relation, row)}, and {background}."
        )
        return Headline(verdict, sentence, rest, relation, _worst(row))
    if not row["decided"]:
        why = why_never_decided(row)
        sentence = f"Nothing was decided with {_named(relation, row)}{f': {why}' if why else ''}."
    else:
        share = f"{row['violated']:,} of {cases(row, row['decided'])} violated"
        sentence = f"Not enough to decide: {share} with {_named(relation, row)}."
    needed = row.get("more", "")
    return Headline(verdict, sentence, _joined([_needs(needed), rest]), relation, _worst(row))


def _needs(more: str) -> str:
    return f"It needs {more} like these." if more else ""


def _trouble(summary: Summary, verdict: str) -> str:
    """Say what went wrong with a run itself; empty where nothing did."""
    if verdict not in CALLED.values():
        return ""
    if summary.get("deaths"):
        return f"{capitalised(describe_deaths(summary['deaths']))}."
    interrupted = verdict == CALLED[ExitCode.INTERRUPTED]
    return "The run was interrupted before its end." if interrupted else f"{capitalised(summary['exit_why'])}."


def _claimed(summary: Summary, outcome: str) -> str:
    """Say which claims of a scenario ended so; of PASS only how many. Empty where none did."""
    named = {name: row for name, row in summary.get("claims", {}).items() if row["outcome"] == outcome}
    if not named:
        return ""
    if outcome == PASS:
        return f"{capitalised(counted(len(named), 'claim'))} of the scenario {'holds' if len(named) == 1 else 'hold'}."
    name, row = next(iter(named.items()))
    more = f" (and {counted(len(named) - 1, 'more claim')})" if len(named) > 1 else ""
    return f"The claim {row['formula'] or name} is {row['why']}{more}."


def _so_far(relations: Mapping[str, Row]) -> str:
    decided, violated = (sum(r[key] for r in relations.values()) for key in ("decided", "violated"))
    return f"Until then, {violated:,} of {decided:,} pairs were violated." if decided else "Nothing was decided."


def _others(relations: Mapping[str, Row]) -> str:
    """Say how all relations ended, and which are waived; empty where there is nothing to add."""
    ended = Counter(row["outcome"] for row in relations.values())
    texts = [f"{ended[outcome]} {outcome}" for outcome in (FAIL, UNSTABLE, INCONCLUSIVE, PASS) if ended[outcome]]
    waived = [name for name, row in relations.items() if row.get("waived")]
    known = f"Waived: {_list(waived)}." if waived else ""
    return _joined([f"Of {len(relations)} relations: {', '.join(texts)}." if len(relations) > 1 else "", known])


def _list(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _named(name: str, row: Row) -> str:
    return row.get("change") or name


def _worst(row: Row) -> str:
    return str(row.get("worst", {}).get("pair", ""))


def _joined(parts: list[str]) -> str:
    return " ".join(part for part in parts if part)


def _of_class(count: int, name: str) -> str:
    return counted(count, "obstacle of unknown class" if name == "unknown" else name)
