# SPDX-License-Identifier: Apache-2.0
"""Pairs, their outcomes, and the outcomes of relations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mt_nodes.base.errors import UsageError

SCHEMA = 1
#: Optional keys of a line; see :attr:`Verdict.marks`.
MARKS = ("round", "paired_by", "scene", "truth")
#: Keys in the detail of a verdict: rows [number, found, class]; name, unit and bin of that number.
OBJECTS, OBJECTS_BY = "objects", "objects_by"
#: Key in the detail of a verdict: scores [before, after] of each lost object.
SCORE_FALLS = "score_falls"


class Outcome(str, Enum):
    """How one pair ended; every pair offered ends in exactly one."""

    HOLDS = "HOLDS"
    VIOLATED = "VIOLATED"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    INVALID = "INVALID"
    UNPAIRED_SOURCE = "UNPAIRED_SOURCE"
    UNPAIRED_FOLLOWUP = "UNPAIRED_FOLLOWUP"
    UNPAIRED_BOTH = "UNPAIRED_BOTH"
    SETTLING = "SETTLING"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"

    @property
    def decided(self) -> bool:
        """Whether the relation was judged on this pair."""
        return self in (Outcome.HOLDS, Outcome.VIOLATED)


class RelationOutcome(str, Enum):
    """How one relation ended over all its pairs."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    UNSTABLE = "UNSTABLE"


@dataclass(frozen=True, order=True)
class Pair:
    """Identity of a pair: ``<episode>/<bundle>/<relation>/<draw>``.

    ``bundle`` is None (written ``-``) when a whole episode is judged. ``draw`` is ``<n>``, for control and sham
    ``<n>@<relation>``: the relation whose check judged it.
    """

    episode: int
    bundle: int | None
    relation: str
    draw: str = "0"

    def __str__(self) -> str:
        return f"{self.episode}/{'-' if self.bundle is None else self.bundle}/{self.relation}/{self.draw}"

    @classmethod
    def parse(cls, text: str) -> Pair:
        """Read what ``str`` wrote.

        Raises:
            UsageError: the text is not a pair.
        """
        parts = text.split("/")
        if len(parts) != 4 or not parts[0].isdigit() or not (parts[1] == "-" or parts[1].isdigit()):
            raise UsageError(f"got pair '{text}', expected EPISODE/BUNDLE/RELATION/DRAW such as 0/17/identity/0")
        return cls(int(parts[0]), None if parts[1] == "-" else int(parts[1]), parts[2], parts[3])

    @property
    def followup(self) -> Pair:
        """Identity of the judged follow-up: control and sham share one for several checks."""
        return Pair(self.episode, self.bundle, self.relation, self.draw.split("@")[0])

    @property
    def judged_for(self) -> str:
        """The relation whose check judged this pair."""
        return self.draw.split("@", 1)[1] if "@" in self.draw else self.relation


@dataclass(frozen=True)
class Judgement:
    """The judgement of a check on one pair of outputs.

    ``margin`` is signed: ≥ 0 exactly when the relation holds. What was not measured is None.
    """

    outcome: Outcome
    measured: float | None = None
    bound: float | None = None
    margin: float | None = None
    unit: str = ""
    reason: str = ""
    lost: int = 0
    gained: int = 0
    detail: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A silent arm violates without anything to measure; whatever holds was measured.
        holds = self.margin is not None and self.margin >= 0
        if self.outcome.decided and holds != (self.outcome is Outcome.HOLDS):
            raise ValueError(f"{self.outcome.value} does not fit margin {self.margin}")


@dataclass(frozen=True)
class Verdict:
    """The outcome of one pair, as in the journal.

    Attributes:
        marks: ``round`` of the relations' turns of a live run, and ``paired_by`` where an answer was found not by its
            stamp; ``scene``, the bundle with which the scene began, where that is an earlier one
            (:mod:`mt_nodes.data.scenes`); ``truth``, what the labels say of both outputs, where there are any
            (:mod:`mt_nodes.engine.label_comparison`).
    """

    pair: Pair
    stamp_ns: int
    judgement: Judgement
    marks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """Shorthand for the judgement's outcome."""
        return self.judgement.outcome

    def as_plain(self) -> dict[str, Any]:
        """Return the journal line without its checksum."""
        j = self.judgement
        line: dict[str, Any] = {
            "schema": SCHEMA,
            "type": "verdict",
            "pair": str(self.pair),
            "relation": self.pair.relation,
            "stamp_ns": self.stamp_ns,
            "outcome": j.outcome.value,
            "measured": _number(j.measured),
            "bound": _number(j.bound),
            "margin": _number(j.margin),
            "unit": j.unit,
            "reason": j.reason,
            "lost": j.lost,
            "gained": j.gained,
        }
        return {**line, **self.marks, **({"detail": j.detail} if j.detail else {})}

    @classmethod
    def from_plain(cls, line: dict[str, Any]) -> Verdict:
        """Read what :meth:`as_plain` made."""
        names = ("measured", "bound", "margin", "unit", "reason", "lost", "gained")
        values = {name: line[name] for name in names if name in line}
        judgement = Judgement(Outcome(line["outcome"]), detail=line.get("detail", {}), **values)
        marks = {name: line[name] for name in MARKS if name in line}
        return cls(Pair.parse(line["pair"]), int(line["stamp_ns"]), judgement, marks)


def _number(value: float | None) -> float | int | None:
    """Return a finite number, else None: JSON has no NaN or infinity."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(value)
