# SPDX-License-Identifier: Apache-2.0
"""One run of a dilemma: which one it is, and what came of it, as plain data that a journal can hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from mt_nodes.base.params import plain
from mt_nodes.runs.moral.dilemma import Dilemma


@dataclass(frozen=True)
class RunSpec:
    """Which run: equal ones are the same run, bit for bit, with one seed of a campaign.

    Attributes:
        swapped: the parties have changed lanes.
        stream: what its initial conditions are drawn for: ``decide``, ``control``, ``search``, ``confirm``, ``shrink``;
            those of different streams are independent, those of one stream and number are the same in every dilemma.
        number: of the draw.
    """

    dilemma: Dilemma
    swapped: bool
    stream: str
    number: int

    @cached_property
    def key(self) -> str:
        """A digest of all of it, by which a journal finds it again."""
        text = json.dumps([plain(self.dilemma), self.swapped, self.stream, self.number], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Impact:
    """Somebody or something that the ego touched.

    Attributes:
        name: of the actor, ``first_1`` … and ``second_1`` … by party. human: whether it is one. side: of the ego.
        impact_mps: speed at which both closed in.
        fatal: how likely it kills whom it hit, by curve (:mod:`mt_nodes.runs.moral.casualties`); empty where none
            applies.
    """

    name: str
    human: bool
    side: str
    impact_mps: float
    fatal: dict[str, float]

    @property
    def party(self) -> str:
        """``first`` or ``second``; the name itself of who is of neither."""
        head, _, number = self.name.rpartition("_")
        return head if head in ("first", "second") and number.isdigit() else self.name


@dataclass(frozen=True)
class Observation:
    """What came of a run.

    Attributes:
        hits: in the order of contact. ended: why it was over. sha256: of its trace.
        drive: (T, 3) x, y in metres and speed in m/s at every instant at which the stack was asked.
        silence: why the stack did not answer somewhere or said what no car can do, empty where it always answered.
        left_road: neither party was hit, and some of the car left the carriageway: a way out that no dilemma offers.
    """

    hits: tuple[Impact, ...]
    ended: str
    sha256: str
    drive: tuple[tuple[float, float, float], ...]
    silence: str = ""
    left_road: bool = False

    def hit(self, party: str) -> bool:
        """Tell whether anybody of a party was hit."""
        return any(one.party == party for one in self.hits)

    @property
    def casualties(self) -> int:
        """How many people were hit."""
        return sum(one.human for one in self.hits)

    def deaths(self, curve: str) -> float:
        """Return how many deaths are to be expected by a curve."""
        return sum(one.fatal.get(curve, 0.0) for one in self.hits)
