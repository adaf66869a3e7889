# SPDX-License-Identifier: Apache-2.0
"""What a relation comes to, added up pair by pair: of drives that are settled nothing is kept but sums."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mt_nodes.base.stats.cluster_sums import MIN_CLUSTERS, Clusters, ClusterSums, Unit
from mt_nodes.base.stats.exceedance import Exceedance, exceedance, excess_over, needed_in, sign_flip_p, upper_bound
from mt_nodes.base.stats.intervals import interval_of, more_for_upper
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import SCORE_FALLS, Outcome
from mt_nodes.engine.summary.noise_floor import Numbers
from mt_nodes.engine.summary.oracle_sums import OracleSums
from mt_nodes.engine.summary.outcomes import PairTally
from mt_nodes.engine.summary.recall import Recall
from mt_nodes.engine.summary.score_range import ScoreFalls
from mt_nodes.engine.summary.undecided_reasons import UndecidedReasons
from mt_nodes.engine.summary.verdict_rows import VerdictRow, in_order


class ArmSums:
    """One arm: the relation's own pairs, or what its check said of control or of sham."""

    def __init__(self, needed: int) -> None:
        """Begin without any pair; ``needed``: how many clusters are enough."""
        self.outcomes: Counter[str] = Counter()
        self.undecided = UndecidedReasons()
        self.numbers, self.recall, self.oracle = Numbers(), Recall(), OracleSums()
        #: Of the cases of drives that are not settled: violated and decided pairs.
        self.cases: dict[Unit, list[int]] = {}
        #: Of those cases that show a scene which began earlier: the first frame of it.
        self.scenes: dict[Unit, Unit] = {}
        #: Whether pairs are compared by rounds of live input; pairs that rest on answers found by their arrival.
        self.in_rounds, self.by_arrival = False, 0
        self._by_arrival = [0, 0]
        self._lost = self._gained = 0
        self._directions: Counter[int] = Counter()
        #: Of what was lost: by how much its score fell.
        self._falls = ScoreFalls()
        #: Violated and decided pairs, direction of losses and gains, direction of counts.
        self._sums = ClusterSums(needed, 4)
        self._counts: dict[str, dict[str, int]] = {}
        #: Decided frames of drives that are not settled; how many others had.
        self._unsettled: set[Unit] = set()
        self._frames, self._drives = 0, set[int]()

    def take(self, row: VerdictRow) -> None:
        """Count a pair."""
        self.outcomes[row.outcome.value] += 1
        self.by_arrival += row.by_arrival
        self.in_rounds = self.in_rounds or row.case != row.frame
        if row.outcome.decided:
            self._take_decided(row)
        else:
            self.undecided.take(row.outcome, row.reason)

    def settle(self) -> None:
        """Nothing more comes of the drives so far."""
        self._frames += len(self._unsettled)
        for each in (self._unsettled, self.cases, self.scenes):
            each.clear()

    @property
    def tally(self) -> PairTally:
        """Decided and violated pairs."""
        violated = self.outcomes[Outcome.VIOLATED.value]
        return PairTally(violated + self.outcomes[Outcome.HOLDS.value], violated)

    @property
    def frames(self) -> int:
        """Frames in which a pair was decided, once all is settled."""
        return self._frames

    @property
    def upper(self) -> float | None:
        """Upper end of the 95 % interval of the share of violated pairs, None where none was decided."""
        return upper_bound(self._sums) if len(self._sums) else None

    @property
    def unit(self) -> str:
        """Name of one case: ``frame``, ``scene`` or ``drive``."""
        return self._sums.unit

    def more_for_upper(self, limit: float) -> str:
        """Return how much more input like this brings the upper end of the interval to a limit; empty if none would."""
        clusters = self._sums.enough(MIN_CLUSTERS)
        more = more_for_upper(clusters, limit) if len(clusters) else None
        return counted(more, f"more {clusters.one}") if more else ""

    def excess_over(self, rate: float, family: int) -> Exceedance:
        """Test whether the share of violated pairs exceeds a rate."""
        return excess_over(self._sums, rate, family)

    def plain(self, least_score: float = 0.0) -> dict[str, Any]:
        """Return what a summary tells of it, once all is settled; ``least_score`` is the lowest the stack publishes."""
        tally, clusters = self.tally, self._sums.enough(MIN_CLUSTERS)
        interval = interval_of(clusters)
        violated, decided = self._by_arrival
        return {
            "decided": tally.decided,
            "violated": tally.violated,
            "rate": digits(tally.violated / tally.decided) if tally.decided else None,
            "ci95": [digits(interval.low), digits(interval.high)] if interval else None,
            "ci95_method": interval.method if interval else None,
            "lost": self._lost,
            "gained": self._gained,
            "pairs_lost": self._directions[1],
            "pairs_gained": self._directions[-1],
            "p_sign": digits(_p_two_sided(clusters, 2)),
            "p_counts": digits(_p_two_sided(clusters, 3)) if self._counts else None,
            "frames": self._frames,
            "drives": len(self._drives),
            "outcomes": in_order(self.outcomes),
            "counts": dict(sorted(self._counts.items())),
            **({"by_arrival": {"decided": decided, "violated": violated}} if decided else {}),
            **({SCORE_FALLS: falls} if (falls := self._falls.plain(least_score)) else {}),
        }

    def _take_decided(self, row: VerdictRow) -> None:
        violated = int(row.outcome is Outcome.VIOLATED)
        for counts in (self.cases.setdefault(row.case, [0, 0]), *([self._by_arrival] if row.by_arrival else [])):
            counts[0] += violated
            counts[1] += 1
        direction = _sign(row.lost, row.gained)
        self._lost, self._gained = self._lost + row.lost, self._gained + row.gained
        self._directions[direction] += 1
        self._sums.add(row.unit, violated, 1, direction, _sign(*row.counts.get("all", (0, 0))))
        if row.unit != row.frame:
            self.scenes[row.frame] = row.unit
            self._sums.one = "scene"
        self._unsettled.add(row.frame)
        self._drives.add(row.unit[0])
        if row.measured is not None:
            self.numbers.take(row.measured)
        self.recall.take(row.unit, row.objects)
        self.oracle.take(row.unit, row.outcome, row.truth)
        self._falls.take(row.falls)
        for category, (source, followup) in row.counts.items():
            cells = self._counts.setdefault(category, {">": 0, "=": 0, "<": 0})
            cells["<=>"[1 + _sign(source, followup)]] += 1


class RelationSums:
    """A relation and its background: pairs of its own, of control, and of sham."""

    def __init__(self, family: int) -> None:
        """Begin without any pair; ``family``: relations that are tested together."""
        needed = needed_in(family)
        self.relation, self.control, self.sham = (ArmSums(needed) for _ in range(3))
        self._exceeds = tuple(ClusterSums(needed) for _ in range(2))

    @property
    def arms(self) -> tuple[ArmSums, ArmSums, ArmSums]:
        """Of the relation, of control, of sham."""
        return self.relation, self.control, self.sham

    def settle(self) -> None:
        """Nothing more comes of the drives so far: compare their cases with what control and sham did there.

        By case decided in both: violated here less violated there, weighed for unequal numbers of draws. The frames of
        a scene are summed up.
        """
        scenes = self.relation.scenes
        for sums, background in zip(self._exceeds, (self.control, self.sham), strict=True):
            sums.one = "scene" if scenes else sums.one
            for case, (violated, decided) in self.relation.cases.items():
                if (background_case := background.cases.get(case)) is not None:
                    sums.add(scenes.get(case, case), violated * background_case[1] - background_case[0] * decided)
        for arm in self.arms:
            arm.settle()

    def exceedance(self, family: int) -> Exceedance | None:
        """Test whether violations exceed control and sham both: the larger p-value counts (an intersection-union test).

        None where neither was decided in a case of the relation. ``family``: how many relations are tested together.
        """
        rounds = self.relation.in_rounds
        tests = [exceedance(sums, family, "round" if rounds else "") for sums in self._exceeds if len(sums)]
        found = max(tests, key=lambda finding: finding.p) if tests else None
        # Another lap over the same frames is no further round.
        return found._replace(more=f"{found.more} over new frames") if found and found.more and rounds else found


def digits(value: float | None) -> float | None:
    """Four significant digits: what people read and diffs can bear."""
    return None if value is None else float(f"{value:.4g}")


def _sign(some: int, others: int) -> int:
    """1 where there are more of some than of others, -1 for the opposite, 0 for neither."""
    return (some > others) - (some < others)


def _p_two_sided(clusters: Clusters, column: int) -> float | None:
    return sign_flip_p(clusters.sums[:, column], two_sided=True) if len(clusters) else None
