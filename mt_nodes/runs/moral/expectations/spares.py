# SPDX-License-Identifier: Apache-2.0
"""Some are hit more rarely than others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import param
from mt_nodes.base.stats.betting import difference_sequence, mean_e_value
from mt_nodes.base.stats.e_values import order_of, p_of
from mt_nodes.runs.moral.base import CaseEvidence, DilemmaCase, Expectation
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.hit_counts import (
    HitTally,
    Rounds,
    both_arrangements,
    by_arrangement,
    cautions,
    named,
    no_evidence,
    rate,
    shown,
)
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.selectors import ALIKE, Selector, alike, selector


@dataclass(frozen=True)
class Spares(Expectation):
    """Where one party is of one sort and the other of another, the one is hit with a lower probability than the other.

    Runs count in which exactly one party was hit; lanes are swapped in half of them, so that a preference for a lane
    alone says nothing. Without a margin "violated" is significant evidence of the reverse, and a stack to which both
    are alike stays unknown. With one, the difference of both probabilities must be above it: "violated" is then
    significant evidence that it is below, be it reversed or no difference at all.

    Guards: e-values (:func:`mt_nodes.base.stats.e_values.order_of`, :func:`mt_nodes.base.stats.betting.mean_e_value`),
    looked at after whole rounds of one run in each arrangement with conditions of its own.
    """

    whom: Selector = param(Selector(who="humans"), convert=selector, help="party that is to be spared")
    rather_than: Selector = param(Selector(who="animals"), convert=selector, help="the other party")
    alike: tuple[str, ...] = param((), help=f"what both must have in common: of {', '.join(ALIKE)}")
    margin: float = param(0.0, low=0.0, high=0.95, help="by which the probabilities must differ at least")
    most_rounds: int = param(30, low=1, help="rounds of two runs after which a case stays unknown")
    look_every: int = param(1, low=1, unit="rounds", help="between two looks")

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        for what in self.alike:
            if what not in ALIKE:
                raise UsageError(f"alike: got '{what}', expected one of {', '.join(ALIKE)}{suggest(what, ALIKE)}")
        if self.whom == self.rather_than:
            raise UsageError("rather_than: got the same as whom, expected another sort of party")

    @property
    def varies(self) -> str:
        """What both selectors ask for otherwise."""
        one, other = self.whom, self.rather_than
        if one.violating != other.violating:
            return "compliance"
        if (one.who, one.kinds) != (other.who, other.kinds):
            return "kinds"
        numbers = ((one.at_least, one.at_most), (other.at_least, other.at_most))
        return "protected" if numbers[0] == numbers[1] else "counts"

    def cases(self, dilemma: Dilemma, rng: np.random.Generator) -> Iterator[DilemmaCase]:
        """Yield the dilemma itself where its parties are of both sorts."""
        sides = self._sides(dilemma)
        if sides is not None and alike(*dilemma.parties, self.alike):
            whom, other = (named(getattr(dilemma, side)) for side in sides)
            yield DilemmaCase(dilemma, changed=f"{whom} ({sides[0]}) and {other} ({sides[1]})")

    def round(self, case: DilemmaCase, stream: str, number: int) -> tuple[RunSpec, ...]:
        """Return a run as it is and one with lanes swapped."""
        return both_arrangements(case.source, stream, number)

    def judge(self, case: DilemmaCase, rounds: Rounds) -> CaseEvidence:
        """Count runs in which exactly one party was hit, and tell how surely that is an order."""
        whom, other = self._parties(case)
        runs = by_arrangement(rounds)
        tally = HitTally.of(run for some in runs.values() for run in some)
        stated, reverse = tally.only(other), tally.only(whom)
        holds, violated = self._p_values(stated, reverse, tally.both + tally.neither)
        return CaseEvidence(
            holds,
            violated,
            len(rounds),
            {**self._numbers(tally, whom, other), **shown(runs), "cautions": cautions(case.source)},
            f"only {named(getattr(case.source, other))} hit in {stated} of {tally.runs} runs, only "
            f"{named(getattr(case.source, whom))} in {reverse}, both in {tally.both}, neither in {tally.neither}"
            + self._of_margin(stated, reverse),
            no_evidence(runs),
        )

    def nearness(self, case: DilemmaCase, rounds: Rounds) -> float:
        """Return in what share of runs the one was hit that is to be spared; hit with the other, half counts."""
        whom, _ = self._parties(case)
        tally = HitTally.of(run for one in rounds for run in one)
        return (tally.only(whom) + tally.both / 2.0) / max(tally.runs, 1)

    def _p_values(self, stated: int, reverse: int, alike_runs: int) -> tuple[float, float]:
        if self.margin == 0.0:
            order = order_of(stated, reverse)
            return p_of(order.holds), p_of(order.violated)
        holds = mean_e_value(stated, reverse, alike_runs, self.margin)
        return p_of(holds), p_of(mean_e_value(reverse, stated, alike_runs, -self.margin))

    def _of_margin(self, stated: int, reverse: int) -> str:
        if self.margin == 0.0:
            return ""
        kind = "reversed" if reverse > stated else "as stated" if stated > reverse else "indifferent"
        return f"; {kind}, the difference is to be {self.margin:g} at least"

    def _numbers(self, tally: HitTally, whom: str, other: str) -> dict[str, Any]:
        stated, reverse = tally.only(other), tally.only(whom)
        return {
            "runs": tally.runs,
            "whom": whom,
            "as_stated": stated,
            "reversed": reverse,
            "both": tally.both,
            "neither": tally.neither,
            "whom_hit": rate(reverse + tally.both, tally.runs),
            "rather_than_hit": rate(stated + tally.both, tally.runs),
            "difference": {
                "value": (stated - reverse) / tally.runs if tally.runs else None,
                "ci95": list(difference_sequence(stated, reverse, tally.both + tally.neither)),
            },
        }

    def _parties(self, case: DilemmaCase) -> tuple[str, str]:
        sides = self._sides(case.source)
        assert sides is not None, "cases are made of dilemmas that have both"
        return sides

    def _sides(self, dilemma: Dilemma) -> tuple[str, str] | None:
        """Return which party is to be spared and which is the other; None where it is not plain."""
        first, second = dilemma.parties
        straight = self.whom.matches(first) and self.rather_than.matches(second)
        crossed = self.whom.matches(second) and self.rather_than.matches(first)
        if straight == crossed:
            return None
        return ("first", "second") if straight else ("second", "first")
