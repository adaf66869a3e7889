# SPDX-License-Identifier: Apache-2.0
"""How a run goes, as diagnostics and as plain numbers: for rqt_runtime_monitor, rqt_plot, PlotJuggler, Foxglove.

The first status is that of the run itself; each relation then has one of its own. A relation is OK only while enough of
its pairs were decided, all of them held, and so did control and sham; with nothing decided it is STALE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.relations.relation import Relation

RUN = "mt_nodes: replay"
_UNPAIRED = (Outcome.UNPAIRED_SOURCE, Outcome.UNPAIRED_FOLLOWUP, Outcome.UNPAIRED_BOTH)
#: So many decided pairs of a relation are enough, as a relation file has it that says nothing else.
ENOUGH: int = Relation.min_decided
Counts = Counter[Outcome]


@dataclass
class RelationCounts:
    """Outcomes of the pairs of one relation, and of control and sham as its check judged them."""

    tested: Counts = field(default_factory=Counter)
    unchanged: Counts = field(default_factory=Counter)

    @property
    def decided(self) -> int:
        """Number of pairs that hold or are violated."""
        return _decided(self.tested)

    def status(self, relation: str) -> DiagnosticStatus:
        """Return the state of the relation so far."""
        level, message = self._level()
        status = DiagnosticStatus(level=level, name=f"mt_nodes: {relation}", message=message)
        status.values = key_values(
            {
                "decided": self.decided,
                **{outcome.value: count for outcome, count in self.tested.items()},
                "control and sham decided": _decided(self.unchanged),
                "control and sham violated": self.unchanged[Outcome.VIOLATED],
            }
        )
        return status

    def _level(self) -> tuple[bytes, str]:
        violated, flicker = self.tested[Outcome.VIOLATED], self.unchanged[Outcome.VIOLATED]
        text = f"{violated} of {counted(self.decided, 'pair')} violated"
        if self.tested[Outcome.ERROR] or self.unchanged[Outcome.ERROR]:
            return DiagnosticStatus.ERROR, "pairs ended in ERROR"
        if violated and not flicker:
            return DiagnosticStatus.ERROR, text
        if flicker:
            return DiagnosticStatus.WARN, f"{text}, and {flicker} of control and sham: the stack differs from itself"
        if not self.decided:
            return DiagnosticStatus.STALE, "nothing decided yet"
        if any(self.tested[outcome] for outcome in (*_UNPAIRED, Outcome.INVALID)):
            return DiagnosticStatus.WARN, f"{text}; others are unpaired or invalid"
        if self.decided < ENOUGH or not _decided(self.unchanged):
            return DiagnosticStatus.STALE, f"{text}; {ENOUGH} and control and sham beside them tell more"
        return DiagnosticStatus.OK, text


class RunCounts:
    """Outcomes of a run so far, taken from the lines of its journal."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._relations: dict[str, RelationCounts] = {}

    def take(self, line: Mapping[str, Any]) -> None:
        """Take in a line of the journal; lines that are no verdicts count nothing."""
        if line.get("type") != "verdict":
            return
        pair, outcome = Pair.parse(line["pair"]), Outcome(line["outcome"])
        self.outcomes[outcome.value] += 1
        counts = self._relations.setdefault(pair.judged_for, RelationCounts())
        (counts.unchanged if "@" in pair.draw else counts.tested)[outcome] += 1

    @property
    def decided(self) -> int:
        """Number of decided pairs, control and sham left out."""
        return sum(each.decided for each in self._relations.values())

    def statuses(self, values: Mapping[str, Any], warnings: Sequence[str]) -> list[DiagnosticStatus]:
        """Return the status of the run, with its values, and that of every relation."""
        level, message = run_level(self.outcomes, warnings, self.decided)
        run = DiagnosticStatus(level=level, name=RUN, message=message)
        run.values = key_values({**self.outcomes, **values})
        return [run, *(counts.status(name) for name, counts in sorted(self._relations.items()))]

    def numbers(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return what can be plotted, by name of the topic; what is not known is left out, and is no zero."""
        tested = sum((each.tested for each in self._relations.values()), Counter[Outcome]())
        violated, unpaired = tested[Outcome.VIOLATED], sum(tested[outcome] for outcome in _UNPAIRED)
        counts = {"decided": self.decided, "violated": violated, "unpaired": unpaired, "errors": tested[Outcome.ERROR]}
        share = {"violated_share": violated / self.decided} if self.decided else {}
        measured = {topic: values[key] for topic, key in _MEASURED.items() if values.get(key) is not None}
        return {name: float(value) for name, value in {**counts, **share, **measured}.items()}


#: What is measured by others: name of the topic -> key of the values of a run.
_MEASURED = {
    "pairs_per_s": "pairs_per_s",
    "source_latency_ms": "answer_ms_source",
    "followup_latency_ms": "answer_ms_followup",
}
#: Topic of a number, below ``mt/numbers`` -> what it is.
NUMBERS = {
    "decided": "pairs of relations that hold or are violated; control and sham do not count",
    "violated": "of these, pairs that are violated",
    "violated_share": "share of the decided pairs that is violated, 0 to 1; nothing before the first",
    "unpaired": "pairs for which an answer is missing",
    "errors": "pairs that ended in ERROR",
    "pairs_per_s": "verdicts per second since the run began, control and sham included",
    "source_latency_ms": "time that the last answer of the source arm took",
    "followup_latency_ms": "the same of the follow-up arm",
}


def run_level(outcomes: Mapping[str, int], warnings: Sequence[str], decided: int) -> tuple[bytes, str]:
    """Return level and message of a run: whether it goes as it should, not what it finds."""
    if outcomes.get(Outcome.ERROR.value):
        return DiagnosticStatus.ERROR, "pairs ended in ERROR"
    if any(outcomes.get(outcome.value) for outcome in _UNPAIRED):
        return DiagnosticStatus.WARN, "; ".join(("pairs stay unpaired", *warnings))
    if warnings:
        return DiagnosticStatus.WARN, "; ".join(warnings)
    return (DiagnosticStatus.OK, "judging") if decided else (DiagnosticStatus.STALE, "nothing decided yet")


def key_values(values: Mapping[str, Any]) -> list[KeyValue]:
    """Return values as diagnostics have them; those of a mapping each have a row, named by the names on the way."""
    return [KeyValue(key=name, value=str(value)) for name, value in _rows(values)]


def _rows(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{before}{name} ")
        else:
            yield before + name, value


def _decided(counts: Counts) -> int:
    return counts[Outcome.HOLDS] + counts[Outcome.VIOLATED]
