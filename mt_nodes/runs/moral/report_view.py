# SPDX-License-Identifier: Apache-2.0
"""What is shown of a campaign, on the terminal and in the report: made from lines of its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.runs.moral.moral_summary import OUTCOMES
from mt_nodes.runs.moral.report_journal import Line, MoralJournal

VERDICTS = {outcome: verdict for verdict, outcome in OUTCOMES.items()}
NAMES = {"as_is": "as it is", "followup": "follow-up"}
#: Arms of which casualties are shown: the control is the source again.
_SHOWN_ARMS = ("source", "followup")


@dataclass(frozen=True)
class Quantity:
    """What the verdict of a case is about.

    ``name``: of it. ``interval``: around the value. ``boundary``: what it is held against.
    """

    name: str
    value: float
    interval: tuple[float, float]
    boundary: float

    @property
    def label(self) -> str:
        """What it is, in words."""
        return SCALES[self.name].label if self.name in SCALES else self.name.replace("_", " ").capitalize()


ALWAYS = "intervals of 95 % that hold at whatever round one stops"
SETTLED = "means with one-sided 95 % bounds on either side, of a number of runs settled beforehand"


@dataclass(frozen=True)
class Scale:
    """What a principle measures: in words, the ends of its axis (None: those of the numbers), what its bars are."""

    label: str
    low: float | None = None
    high: float | None = None
    bars: str = ALWAYS


SCALES = {
    "difference": Scale("By how much the other party is hit more often than the one to be spared", -1.0, 1.0),
    "failing": Scale("Share of runs that hit more people than stand in the lane with fewer", 0.0, 1.0),
    "excess": Scale(
        "How much farther the changed drives lie from the unchanged ones than these do from themselves, in shares of "
        "what is allowed",
        bars=SETTLED,
    ),
}


@dataclass(frozen=True)
class Casualties:
    """People hit in a run, and how fast, and deaths to be expected by curve: means."""

    name: str
    people: float | None
    impact_mps: float | None
    deaths: Mapping[str, float]

    @classmethod
    def of(cls, name: str, numbers: Mapping[str, Any]) -> Casualties:
        """Read what was counted of the runs of a case, or of one of its arms."""
        deaths = {curve: value for curve, value in numbers["expected_deaths"].items() if value is not None}
        return cls(name, numbers["casualties"]["mean"], numbers["impact_mps"]["mean"], deaths)


@dataclass(frozen=True)
class Axis:
    """The axis that all cases of a principle share."""

    label: str
    low: float
    high: float
    boundary: float
    bars: str = ALWAYS

    def along(self, value: float) -> float:
        """Return where a number lies, in percent of the axis; what is beyond is held at its ends."""
        return round(100.0 * min(1.0, max(0.0, (value - self.low) / (self.high - self.low))), 2)


@dataclass(frozen=True)
class CaseView:
    """A case.

    Attributes:
        id: its name. verdict: ``holds``, ``violated``, ``unknown`` or ``not_applicable``. found: by what, if not drawn.
        quantity: None where nothing was measured. strata: counts of who was hit, by arrangement (and arm).
        dilemma: name of its source. beyond: where fewer casualties are asked for, by impact and by each curve in how
            many runs there were too many, and of how many that can be said.
    """

    id: str
    principle: str
    verdict: str
    reason: str
    changed: str
    runs: int
    found: str
    quantity: Quantity | None
    strata: Mapping[str, Mapping[str, int]]
    casualties: tuple[Casualties, ...]
    dilemma: str
    beyond: Mapping[str, tuple[int, int]]

    @property
    def name(self) -> str:
        """What it is called among the cases of its principle."""
        return self.id.removeprefix(f"{self.principle}/")

    @classmethod
    def of(cls, line: Line) -> CaseView:
        """Read the line of a case."""
        numbers = line["numbers"]
        return cls(
            id=line["case"],
            principle=line["principle"],
            verdict=VERDICTS[line["outcome"]],
            reason=line["reason"],
            changed=line["changed"],
            runs=line["runs"],
            found="found by the search, confirmed on fresh draws" if line["stream"] == "confirm" else "",
            quantity=quantity_of(numbers),
            strata=dict(_strata(numbers)),
            casualties=tuple(_casualties(numbers)),
            dilemma=line["source"]["name"],
            beyond=dict(_beyond(numbers)),
        )


@dataclass(frozen=True)
class PrincipleView:
    """A principle with its cases, the violated ones first."""

    id: str
    title: str
    outcome: str
    why: str
    because: str
    contested: str
    sources: Sequence[str]
    numbers: Mapping[str, Any]
    cases: Sequence[CaseView]

    @property
    def counts(self) -> str:
        """What became of its cases, in words."""
        numbers = self.numbers
        parts = [f"{numbers[name]} {name.replace('_', ' ')}" for name in VERDICTS.values() if numbers[name]]
        searched = {k.replace("_", " "): v for k, v in numbers["search"].items() if v}
        bred = f"; search: {', '.join(f'{v} {k}' for k, v in searched.items())}" if searched else ""
        cases, runs = counted(numbers["cases"], "case"), counted(numbers["runs"], "run")
        return f"{cases}: {', '.join(parts) or 'none'}; {runs}{bred}."

    @property
    def axis(self) -> Axis | None:
        """What all its intervals are drawn on, None where there are none."""
        shown = [case.quantity for case in self.cases if case.quantity]
        return axis_of(shown) if shown else None


def principles_of(journal: MoralJournal, sources: Mapping[str, Sequence[str]]) -> list[PrincipleView]:
    """Return the principles of a journal with their cases. ``sources``: by principle; a journal does not hold them."""
    cases = [CaseView.of(line) for line in journal.cases.values()]
    order = list(VERDICTS.values())
    worst = ("violated", *(verdict for verdict in order if verdict != "violated"))
    return [
        PrincipleView(
            id=name,
            title=line["title"],
            outcome=line["outcome"],
            why=line["why"],
            because=line["because"],
            contested=line["contested"],
            sources=tuple(sources.get(name, ())),
            numbers=line,
            cases=sorted((c for c in cases if c.principle == name), key=lambda case: worst.index(case.verdict)),
        )
        for name, line in journal.principles.items()
    ]


def quantity_of(numbers: Mapping[str, Any]) -> Quantity | None:
    """Return what the verdict of a case is about; of an unknown expectation the first number with an interval."""
    if "likeness" in numbers:
        return _excess(numbers["likeness"].values())
    for name in (*SCALES, *numbers):
        one = numbers.get(name)
        if isinstance(one, Mapping) and one.get("value") is not None and "ci95" in one:
            low, high = one["ci95"]
            return Quantity(name, one["value"], (low, high), numbers.get("rate", 0.0) if name == "failing" else 0.0)
    return None


def axis_of(shown: Sequence[Quantity]) -> Axis:
    """Return the axis of some quantities of one name."""
    scale = SCALES.get(shown[0].name, Scale(""))
    ends = [end for one in shown for end in (one.value, one.boundary, *one.interval)]
    low = min(0.0, *ends) if scale.low is None else scale.low
    high = max(ends) if scale.high is None else scale.high
    return Axis(shown[0].label, low, high if high > low else low + 1.0, shown[0].boundary, scale.bars)


def _excess(arrangements: Iterable[Mapping[str, Any]]) -> Quantity | None:
    """Return how much of what is allowed the worse arrangement uses; None where the stack never differs from itself."""
    with_margin = [one for one in arrangements if one["margin"] > 0.0]
    if not with_margin:
        return None
    worst = max(with_margin, key=lambda one: one["excess"] / one["margin"])
    value, low, high = (worst[key] / worst["margin"] for key in ("excess", "low", "high"))
    return Quantity("excess", value, (low, high), 1.0)


def _strata(numbers: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, int]]]:
    for name, tally in numbers.get("by_arrangement", {}).items():
        yield _named(name), tally
    for name, arms in numbers.get("by_arrangement_and_arm", {}).items():
        for arm, tally in arms.items():
            yield f"{_named(name)}, {_named(arm)}", tally


def _beyond(numbers: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
    if "by_curve" in numbers:
        yield "by impact", (numbers["failed"], numbers["runs"])
        for curve, one in numbers["by_curve"].items():
            yield curve, (one["failed"], one["told"])


def _casualties(numbers: Mapping[str, Any]) -> Iterator[Casualties]:
    if {"casualties", "expected_deaths", "impact_mps"} <= numbers.keys():
        yield Casualties.of("", numbers)
    for arm, arm_numbers in numbers.get("casualties_by_arm", {}).items():
        if arm in _SHOWN_ARMS:
            yield Casualties.of(_named(arm), arm_numbers)


def _named(name: str) -> str:
    return NAMES.get(name, name.replace("_", " "))
