# SPDX-License-Identifier: Apache-2.0
"""Early stop: when what the drives so far say of a relation is clear, with errors that hold whenever one looks.

Each drive is one observation, however many pairs it gives: the share of its decided pairs that are violated. The
estimand is the mean of that share over drives, each drive alike in weight; drives without a decided pair tell nothing.
Drives are taken to be drawn independently from one population, in any order that does not depend on what they will
show; so the plan shuffles them (:func:`mt_nodes.runs.campaign.campaign_plan.in_order`). How alike the pairs of one
drive are does not matter.

clear fail   the mean share exceeds both that of control and that of sham: the bet on each drive's difference has won
             1 / alpha for the lesser of the two, alpha being divided by the number of hypotheses (relations × cells).
clear pass   the mean share is below the tolerated rate, by a bet at the same level, while control and sham are clean,
             and no pair is violated or the relation itself states the rate that it tolerates. So two errors are bounded
             by alpha, each for all relations and cells together: ever to fail one that is no worse than its background,
             and ever to pass one at or above the tolerated rate.

A p-value for a number of drives that was settled beforehand says nothing true after such a stop. Where early stop is
on, all relations are judged by the sequential evidence, those that ran to the end, too (:func:`sequential_evidence`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.params import param
from mt_nodes.base.stats.betting import Bet, mean_sequence
from mt_nodes.base.stats.e_values import p_of
from mt_nodes.base.stats.intervals import ALPHA
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import RelationOutcome
from mt_nodes.engine.summary.outcomes import PairTally as ArmTally
from mt_nodes.engine.summary.outcomes import RelationEvidence, relation_outcome
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.runs.campaign.item import ItemTally, PartResult

WHEN = ("clear", "first_violation")
ORDERS = ("shuffled", "listed")


@dataclass(frozen=True)
class StopEarly:
    """When relations of a campaign end before the last drive; settled before the first one."""

    when: str = param(
        "clear",
        choices=WHEN,
        help="clear: the evidence is enough either way; first_violation: also when a necessary relation has failed",
    )
    alpha: float = param(ALPHA, low=1e-9, high=0.5, help="probability of an error anywhere in the campaign, at most")
    tolerated_rate: float = param(0.01, low=1e-6, high=0.5, help="mean share of violated pairs that still passes")
    order: str = param(
        "shuffled",
        choices=ORDERS,
        help="of drives; shuffled: by the first seed and their content; listed: as the file has them, which must "
        "have nothing to do with what they show",
    )


class WatchedRelation:
    """One relation of one cell, drive after drive.

    ``relation``: what must be known of it. ``policy``: when it is clear. ``hypotheses``: relations × cells of the
    campaign; they share alpha evenly.
    """

    def __init__(self, relation: RelationInfo, policy: StopEarly, hypotheses: int) -> None:
        self._relation, self._policy, self._hypotheses = relation, policy, max(1, hypotheses)
        self._backgrounds = {"control": Bet(0.0, -1.0), "sham": Bet(0.0, -1.0)}
        self._compared = dict.fromkeys(self._backgrounds, 0)
        self._tolerated = policy.tolerated_rate if relation.tolerated_rate is None else relation.tolerated_rate
        self._below = Bet(-self._tolerated, -1.0)  # of the share, its sign changed
        self._frames = 0
        self._totals = {"own": ArmTally(), "control": ArmTally(), "sham": ArmTally()}
        self._shares: list[float] = []

    def add(self, part: PartResult) -> None:
        """Take in the next drive of the plan."""
        arms = {"own": part.own, "control": part.control, "sham": part.sham}
        self._frames += part.frames
        for name, tally in arms.items():
            before = self._totals[name]
            self._totals[name] = ArmTally(before.decided + tally.decided, before.violated + tally.violated)
        if not part.own.decided:
            return
        share = _share(part.own)
        self._shares.append(share)
        self._below.add(-share)
        for name, bet in self._backgrounds.items():
            if arms[name].decided:
                bet.add(share - _share(arms[name]))
                self._compared[name] += 1

    @property
    def e_value(self) -> float:
        """E-value against "no worse than control, or no worse than sham"; 1 while nothing was compared."""
        return min((bet.e_value for name, bet in self._backgrounds.items() if self._compared[name]), default=1.0)

    @property
    def clear(self) -> str:
        """``fail``, ``pass``, or empty: not yet."""
        outcome, _ = self._by_contract()
        if outcome is RelationOutcome.FAIL:
            return "fail" if self._p_adjusted < self._policy.alpha or self._policy.when == "first_violation" else ""
        return "pass" if outcome is RelationOutcome.PASS and self._below.e_value > self._needed else ""

    def evidence(self) -> dict[str, Any]:
        """Return what the drives so far come to, as :func:`sequential_evidence` tells it."""
        outcome, why = self._by_contract()
        clear = self.clear
        low, high = mean_sequence(self._shares, self._policy.alpha)
        below = self._below.e_value
        if clear == "pass":
            why = (
                f"{self._violated}, below the tolerated rate of {self._tolerated:g} per drive ({self._evidence(below)})"
            )
        return {
            "outcome": outcome.value,
            "why": why,
            "clear": clear,
            "drives": len(self._shares),
            "rate_of_drives": _digits(sum(self._shares) / len(self._shares)) if self._shares else None,
            "interval": [_digits(low), _digits(high)] if self._shares else None,
            "interval_method": f"{100 * (1 - self._policy.alpha):g} % confidence sequence of the mean share violated "
            f"in a drive, {counted(len(self._shares), 'drive')}",
            "e_value": _digits(self.e_value),
            "e_value_pass": _digits(below),
            "e_value_needed": _digits(self._needed),
        }

    @property
    def _needed(self) -> float:
        return self._hypotheses / self._policy.alpha

    @property
    def _p_adjusted(self) -> float:
        return min(1.0, self._hypotheses * p_of(self.e_value))

    @property
    def _violated(self) -> str:
        own = self._totals["own"]
        return f"{own.violated} of {own.decided} pairs violated in {counted(len(self._shares), 'drive')}"

    def _evidence(self, e_value: float) -> str:
        return f"e = {e_value:.3g}, {self._needed:.3g} needed"

    def _by_contract(self) -> tuple[RelationOutcome, str]:
        """The rules of every summary, with the p-value that an e-value is."""
        compared = any(self._compared.values())
        p = p_of(self.e_value) if compared else None
        rated = self._relation.tolerated_rate is not None and self._shares
        upper = mean_sequence(self._shares, self._policy.alpha)[1] if rated else None
        return relation_outcome(
            RelationEvidence(
                self._relation.kind,
                self._relation.min_decided,
                self._frames,
                self._totals["own"],
                self._totals["control"],
                self._totals["sham"],
                p_background=p,
                p=p,
                p_adjusted=self._p_adjusted if compared else None,
                test=f"{self._evidence(self.e_value)}, a bet on each of {counted(len(self._shares), 'drive')}",
                more=self._more if compared else "",
                demands_of_itself=self._relation.demands_of_itself,
                tolerated_rate=self._relation.tolerated_rate,
                upper=upper,
                alpha=self._policy.alpha,
            )
        )

    @property
    def _more(self) -> str:
        """How many more drives would win the bets if each won what those so far have won on average."""
        drives, won = len(self._shares), math.log(self.e_value) if self.e_value > 0.0 else 0.0
        if won <= 0.0:
            return ""
        return counted(max(1, math.ceil(drives * math.log(self._needed) / won) - drives), "more drive")


class SequentialStopper:
    """Says at which drive each relation of ONE cell ends. What it was shown of a drive never changes.

    ``relations``: by the id that parts bear. ``policy``: of the campaign. ``hypotheses``: relations × cells of the
    campaign.
    """

    def __init__(self, relations: Mapping[str, RelationInfo], policy: StopEarly, hypotheses: int) -> None:
        self._relations, self._policy, self._hypotheses = dict(relations), policy, hypotheses
        self._watched: dict[str, tuple[WatchedRelation, int]] = {}
        self._stops: dict[str, int] = {}

    def stopped_at(self, relation: str, drives: Sequence[PartResult | None]) -> int | None:
        """Return how many drives, in plan order, count for a relation; None while it goes on.

        ``drives``: what came of each drive, None where that is not known yet: only those before the first None are
        looked at, one after another, so that the answer is the same whoever had which one ready.
        """
        if relation in self._stops:
            return self._stops[relation]
        watched, at = self._watched.get(relation) or (self._begin(relation), 0)
        while at < len(drives) and (part := drives[at]) is not None:
            watched.add(part)
            at += 1
            if watched.clear:
                self._stops[relation] = at
                return at
        self._watched[relation] = watched, at
        return None

    def _begin(self, relation: str) -> WatchedRelation:
        return WatchedRelation(self._relations[relation], self._policy, self._hypotheses)


def sequential_evidence(
    parts: Iterable[PartResult], relation: RelationInfo, policy: StopEarly, hypotheses: int
) -> dict[str, Any]:
    """Return what the drives that count say of a relation of one cell.

    Args:
        parts: of the drives, in plan order, up to the one at which the relation stopped, or all.

    Returns:
        ``outcome`` and ``why`` by the rules of every summary; ``clear``: ``fail``, ``pass`` or empty; ``drives`` with a
        decided pair; ``rate_of_drives``: mean share violated, and its ``interval`` that holds at all times, with
        ``interval_method``; ``e_value`` that it exceeds control and sham, ``e_value_pass`` that it is below the
        tolerated rate, ``e_value_needed`` of either.
    """
    watched = WatchedRelation(relation, policy, hypotheses)
    for part in parts:
        watched.add(part)
    return watched.evidence()


def _share(tally: ItemTally) -> float:
    return tally.violated / tally.decided


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
