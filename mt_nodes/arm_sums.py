# SPDX-License-Identifier: Apache-2.0
"""What a relation comes to, added up pair by pair: of drives that are settled nothing is kept but sums."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mt_nodes.measured import Numbers
from mt_nodes.outcomes import Tally
from mt_nodes.recall import Recall
from mt_nodes.statistics import MIN_CLUSTERS, ClusterSums, Unit, interval_of, needed_in, sign_flip_p, tested
from mt_nodes.undecided import Undecided
from mt_nodes.verdict import Outcome
from mt_nodes.verdict_rows import Row, in_order


class ArmSums:
    """One arm: the relation's own pairs, or what its check said of control or of sham."""

    def __init__(self, family: int) -> None:
        """Begin without any pair; ``family``: relations that are tested together."""
        self.outcomes: Counter[str] = Counter()
        self.undecided = Undecided()
        self.numbers, self.recall = Numbers(), Recall()
        #: Of the cases of drives that are not settled: violated and decided pairs.
        self.cases: dict[Unit, list[int]] = {}
        #: Whether pairs are compared by rounds of live input; pairs that rest on answers found by their arrival.
        self.in_rounds, self.by_arrival = False, 0
        self._by_arrival = [0, 0]
        self._lost = self._gained = 0
        self._directions: Counter[int] = Counter()
        self._violated = ClusterSums(MIN_CLUSTERS)
        #: The directions of pairs, for a test among others and for one by itself; those of what was counted.
        self._signs, self._own_signs, self._count_signs = map(ClusterSums, (needed_in(family), *2 * [needed_in(1)]))
        self._counts: dict[str, dict[str, int]] = {}
        #: Decided bundles of drives that are not settled; how many others had.
        self._units: set[Unit] = set()
        self._frames, self._drives = 0, set[int]()

    def take(self, row: Row) -> None:
        """Count a pair."""
        self.outcomes[row.outcome.value] += 1
        self.by_arrival += row.by_arrival
        self.in_rounds = self.in_rounds or row.case != row.unit
        if row.outcome.decided:
            self._take_decided(row)
        else:
            self.undecided.take(row.outcome, row.reason)

    def settle(self) -> None:
        """Nothing more comes of the drives so far."""
        self._frames += len(self._units)
        self._units.clear()
        self.cases.clear()

    @property
    def tally(self) -> Tally:
        """Decided and violated pairs."""
        violated = self.outcomes[Outcome.VIOLATED.value]
        return Tally(violated + self.outcomes[Outcome.HOLDS.value], violated)

    @property
    def p_directions(self) -> float | None:
        """That one direction prevails, among others (the sign test, where no two pairs share a cluster)."""
        return _p_two_sided(self._signs)

    def plain(self) -> dict[str, Any]:
        """Return what a summary tells of it, once all is settled."""
        tally, interval = self.tally, interval_of(self._violated)
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
            "p_sign": digits(_p_two_sided(self._own_signs)),
            "p_counts": digits(_p_two_sided(self._count_signs)) if self._counts else None,
            "frames": self._frames,
            "drives": len(self._drives),
            "outcomes": in_order(self.outcomes),
            "counts": dict(sorted(self._counts.items())),
            **({"by_arrival": {"decided": decided, "violated": violated}} if decided else {}),
        }

    def _take_decided(self, row: Row) -> None:
        violated = int(row.outcome is Outcome.VIOLATED)
        for counts in (self.cases.setdefault(row.case, [0, 0]), *([self._by_arrival] if row.by_arrival else [])):
            counts[0] += violated
            counts[1] += 1
        direction = _sign(row.lost, row.gained)
        self._lost, self._gained = self._lost + row.lost, self._gained + row.gained
        self._directions[direction] += 1
        self._violated.add(row.unit, violated, 1)
        for signs in (self._signs, self._own_signs):
            signs.add(row.unit, direction)
        self._count_signs.add(row.unit, _sign(*row.counts.get("all", (0, 0))))
        self._units.add(row.unit)
        self._drives.add(row.unit[0])
        if row.measured is not None:
            self.numbers.take(row.measured)
        self.recall.take(row.unit, row.objects)
        for category, (source, followup) in row.counts.items():
            cells = self._counts.setdefault(category, {">": 0, "=": 0, "<": 0})
            cells["<=>"[1 + _sign(source, followup)]] += 1


class RelationSums:
    """A relation and its background: pairs of its own, of control, and of sham."""

    def __init__(self, family: int) -> None:
        """Begin without any pair; ``family``: relations that are tested together."""
        self.relation, self.control, self.sham = (ArmSums(family) for _ in range(3))
        self._exceeds = tuple(ClusterSums(needed_in(family)) for _ in range(2))
        self._compared = [0, 0]

    @property
    def arms(self) -> tuple[ArmSums, ArmSums, ArmSums]:
        """Of the relation, of control, of sham."""
        return self.relation, self.control, self.sham

    def settle(self) -> None:
        """Nothing more comes of the drives so far: compare their cases with what control and sham did there.

        By case decided in both: violated here less violated there, weighed for unequal numbers of draws.
        """
        for at, background in enumerate((self.control, self.sham)):
            for case, (violated, decided) in self.relation.cases.items():
                if (there := background.cases.get(case)) is not None:
                    self._exceeds[at].add(case, violated * there[1] - there[0] * decided)
                    self._compared[at] += 1
        for arm in self.arms:
            arm.settle()

    def p_violations(self) -> tuple[float | None, str]:
        """To stand out is to exceed control and sham both: the larger p-value counts (an intersection-union test)."""
        tests = []
        for sums, compared in zip(self._exceeds, self._compared, strict=True):
            if compared:
                differences, test = tested(sums)
                if self.relation.in_rounds:
                    test = f"sign-flip test over {compared} rounds"
                tests.append((sign_flip_p(differences), test))
        return max(tests, key=lambda t: t[0]) if tests else (None, "no frame decided in both")


def digits(value: float | None) -> float | None:
    """Four significant digits: what people read and diffs can bear."""
    return None if value is None else float(f"{value:.4g}")


def _sign(some: int, others: int) -> int:
    """1 where there are more of some than of others, -1 for the opposite, 0 for neither."""
    return (some > others) - (some < others)


def _p_two_sided(signs: ClusterSums) -> float | None:
    return sign_flip_p(tested(signs)[0], two_sided=True) if len(signs) else None
