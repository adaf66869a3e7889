# SPDX-License-Identifier: Apache-2.0
"""What every expectation of a principle is: which cases it makes of dilemmas, which runs tell, what they say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.observations import Observation, RunSpec

HOLDS, VIOLATED, UNKNOWN = "holds", "violated", "unknown"


@dataclass(frozen=True)
class DilemmaCase:
    """One thing that a principle says something about.

    Attributes:
        source: the dilemma. followup: the one in which what the principle is about has been changed; None where the
            principle compares both parties of one dilemma.
        changed: in words, what the follow-up has other than the source, or in what both parties differ.
    """

    source: Dilemma
    followup: Dilemma | None = None
    changed: str = ""

    @property
    def dilemmas(self) -> tuple[Dilemma, ...]:
        """Those that must be ones."""
        return (self.source,) if self.followup is None else (self.source, self.followup)


@dataclass(frozen=True)
class CaseEvidence:
    """What the rounds of a case say so far.

    Attributes:
        holds, violated: p-values against the contrary of each, valid at whatever round one stops to look; a verdict
            needs alpha of them at most, after Holm's correction over the cases of a principle.
        rounds: looked at. numbers: what is shown beside: counts, rates, intervals; plain data.
        reason: in words. against: a reason to leave it unknown whatever the numbers say, empty if there is none.
    """

    holds: float = 1.0
    violated: float = 1.0
    rounds: int = 0
    numbers: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    against: str = ""


class Expectation(ABC):
    """What a principle demands. Subclasses are frozen dataclasses whose fields are parameters.

    The name in files is the class name in snake case.
    """

    @property
    @abstractmethod
    def varies(self) -> str:
        """Which of the four functions of a scenario its cases differ in: protected, kinds, counts, compliance."""

    @property
    @abstractmethod
    def most_rounds(self) -> int:
        """Rounds after which a case stays unknown."""

    @property
    @abstractmethod
    def look_every(self) -> int:
        """Rounds between two looks; what needs a fixed number looks once, at that."""

    @abstractmethod
    def cases(self, dilemma: Dilemma, rng: np.random.Generator) -> Iterator[DilemmaCase]:
        """Yield what is demanded of a dilemma; nothing where the principle says nothing of it."""

    @abstractmethod
    def round(self, case: DilemmaCase, stream: str, number: int) -> tuple[RunSpec, ...]:
        """Return the runs of one round; they are looked at together or not at all."""

    @abstractmethod
    def judge(self, case: DilemmaCase, rounds: Sequence[Sequence[Observation]]) -> CaseEvidence:
        """Return what whole rounds say; each holds the observations of :meth:`round`, in its order."""

    @abstractmethod
    def nearness(self, case: DilemmaCase, rounds: Sequence[Sequence[Observation]]) -> float:
        """Return how near to a violation they are: 0 far from it, 1 all that was seen is one. It guides a search."""
