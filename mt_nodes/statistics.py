# SPDX-License-Identifier: Apache-2.0
"""Intervals and exact tests. Deterministic: nothing is sampled, so equal journals have equal p-values."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.wording import counted

ALPHA = 0.05
#: Consecutive bundles that count as one observation (one second at 10 Hz): neighbours see the same scene.
BLOCK_BUNDLES = 10
#: Below this a sign-flip test over clusters cannot reach ALPHA whatever the data (2**-5 = 0.03, two-sided 0.06).
MIN_CLUSTERS = 6

#: Where fewer clusters than this have a hit (or a miss), the interval takes each cluster for one observation at most:
#: so few do not show how alike the pairs of a cluster are.
MIN_STRUCK = 4

Unit = tuple[int, int | None]
"""One source case: (drive, bundle); bundle is None when a whole episode is judged. Repeated draws share it."""


class Interval(NamedTuple):
    """A 95 % interval of a proportion, and how it was made, for people."""

    low: float
    high: float
    method: str


def wilson_interval(hits: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % score interval of a proportion (Wilson, JASA 22, 1927), None without trials."""
    if trials == 0:
        return None
    z, share = _normal_quantile(), hits / trials
    spread = 2 * (trials + z**2)
    middle = (2 * trials * share + z**2) / spread
    half = z / spread * math.sqrt(4 * trials * share * (1 - share) + z**2)
    return 0.0 if hits == 0 else middle - half, 1.0 if hits == trials else middle + half


class ClusterSums:
    """Sums of whole numbers by unit, kept by the coarsest clusters that are numerous enough; single units if none are.

    Tried in turn: drives, blocks of consecutive bundles. Where whole episodes are judged a unit is a drive. What is
    added is kept no finer than that, so that memory goes by drives, not by bundles.
    """

    def __init__(self, needed: int) -> None:
        """Begin without any unit; ``needed``: how many clusters are enough."""
        self._needed = needed
        self._level = 0
        self._sums: dict[Hashable, list[int]] = {}
        #: Clusters of the coarser levels, as long as they are too few.
        self._coarser: list[set[Hashable]] = [set() for _ in _LEVELS[1:]]
        self._whole = True

    def add(self, unit: Unit, *numbers: int) -> None:
        """Add numbers, each time as many, to those of the unit's cluster."""
        key = _LEVELS[self._level](unit)
        known = self._sums.get(key)
        if known is None:
            self._sums[key] = list(numbers)
            self._take(unit)
            return
        for at, number in enumerate(numbers):
            known[at] += number

    def __len__(self) -> int:
        """How many clusters there are."""
        return len(self._sums)

    @property
    def rows(self) -> list[list[int]]:
        """The sums of each cluster, in the order in which they came."""
        return list(self._sums.values())

    @property
    def single(self) -> bool:
        """Whether each cluster is one unit."""
        return self._level == 0

    @property
    def told(self) -> str:
        """How many of what, for people."""
        names = ("drive" if self._whole and self._sums else "frame", f"blocks of {BLOCK_BUNDLES} frame", "drive")
        return counted(len(self), names[self._level])

    def _take(self, unit: Unit) -> None:
        """Count the clusters of a unit that was not there before, and go over to those that are enough now."""
        self._whole = self._whole and unit[1] is None
        for level in range(len(_LEVELS) - 1, self._level, -1):
            found = self._coarser[level - 1]
            found.add(_LEVELS[level](unit))
            if len(found) >= self._needed:
                self._coarsen(level)
                return

    def _coarsen(self, level: int) -> None:
        fine, self._sums, self._level = self._sums, {}, level
        for key, numbers in fine.items():
            known = self._sums.setdefault(_LEVELS[level](key), [0] * len(numbers))
            for at, number in enumerate(numbers):
                known[at] += number


def proportion_interval(pairs: Mapping[Unit, tuple[int, int]]) -> Interval | None:
    """Return the 95 % interval of a proportion over units (hits, trials), None without trials."""
    sums = ClusterSums(MIN_CLUSTERS)
    for unit, (hits, trials) in pairs.items():
        sums.add(unit, hits, trials)
    return interval_of(sums)


def interval_of(sums: ClusterSums) -> Interval | None:
    """Return the 95 % interval of a proportion from sums of hits and trials, None without trials.

    Wilson's when each unit is one trial and no coarser clusters are numerous enough; else Wilson's with the effective
    number of trials that the spread between clusters leaves, and Student's t for their number (Kott and Carr,
    J. Off. Statist. 13, 1997; Franco et al., J. Surv. Stat. Methodol. 7, 2019).
    """
    hits, trials = (sum(row[i] for row in sums.rows) for i in (0, 1))
    if trials == 0:
        return None
    if sums.single and trials == len(sums):
        low, high = wilson_interval(hits, trials) or (0.0, 1.0)
        return Interval(low, high, f"Wilson, {sums.told} taken as independent")
    low, high = _clustered_interval(np.array(sums.rows, dtype=np.float64))
    return Interval(low, high, f"Wilson, cluster-robust over {sums.told}")


def _clustered_interval(clusters: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Wilson's interval from clusters (M, 2) of hits and trials."""
    from scipy import special  # scipy.stats has the same, slower, and its import takes as long as all else here

    count, (hits, trials) = len(clusters), clusters.sum(axis=0)
    share = hits / trials
    struck = min(np.count_nonzero(clusters[:, 0]), np.count_nonzero(clusters[:, 0] < clusters[:, 1]))
    effective = float(count)
    if struck and count > 1:
        residuals = clusters[:, 0] - share * clusters[:, 1]
        variance = count / (count - 1) * float(residuals @ residuals) / trials**2
        independent = share * (1.0 - share) / trials
        # By chance clusters spread less than independent pairs would; t allows for that, but not for no spread at all.
        shown = share * (1.0 - share) / max(variance, independent / 4)
        effective = shown if struck >= MIN_STRUCK else min(shown, effective)
    z = float(special.stdtrit(count - 1, 1 - ALPHA / 2)) if count > 1 else _normal_quantile()
    middle, spread = share + z * z / (2 * effective), 1 + z * z / effective
    half = z * math.sqrt(share * (1 - share) / effective + z * z / (4 * effective * effective))
    return max(0.0, (middle - half) / spread), min(1.0, (middle + half) / spread)


def sign_test_p(lost: int, gained: int) -> float:
    """Return the two-sided exact sign test of two counts that chance would make alike."""
    return 1.0 if lost == gained else min(1.0, 2 * _tail(max(lost, gained), lost + gained))


def fisher_p(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the two-sided exact test of two proportions, each as (hits, trials) (Fisher, JRSS 98, 1935)."""
    from scipy import stats

    return float(stats.fisher_exact([[hits, trials - hits] for hits, trials in (before, after)]).pvalue)


def mcnemar_p(relation_only: int, control_only: int) -> float:
    """Return the one-sided exact McNemar test from the two discordant counts.

    Small when the relation is violated where the control holds more often than the other way round
    (McNemar, Psychometrika 12, 1947, in its exact binomial form).
    """
    return _tail(relation_only, relation_only + control_only)


def _tail(least: int, count: int) -> float:
    """Return the probability that of ``count`` fair coins ``least`` or more show heads."""
    from scipy import special

    return float(special.betainc(least, count - least + 1, 0.5)) if least else 1.0


def _normal_quantile() -> float:
    """Return how many standard deviations to each side hold all but ALPHA of a normal distribution."""
    from scipy import special

    return float(special.ndtri(1 - ALPHA / 2))


def sign_flip_p(differences: Sequence[int], *, two_sided: bool = False) -> float:
    """Return the exact sign-flip permutation test of differences whose sign chance would decide.

    The distribution of the sum over all 2^n sign assignments is convolved, not sampled. Differences of one size
    make it the McNemar (two-sided: the sign) test. Alternative: the sum is above zero (two-sided: not zero).
    """
    unit = math.gcd(*differences) or 1  # repeated draws make differences multiples of their number
    differences = [d // unit for d in differences]
    sizes = [abs(d) for d in differences if d]
    observed, reach = sum(differences), sum(sizes)
    if not sizes:
        return 1.0
    if len(set(sizes)) == 1:
        up = sum(d > 0 for d in differences)
        return sign_test_p(up, len(sizes) - up) if two_sided else mcnemar_p(up, len(sizes) - up)
    chance = np.ones(1)
    for size in sizes:  # each assignment adds 0 or 2 * size to the lowest sum, -reach; the index is half of that
        chance = (np.pad(chance, (0, size)) + np.pad(chance, (size, 0))) / 2
    sums = 2 * np.arange(len(chance)) - reach
    extreme = np.abs(sums) >= abs(observed) if two_sided else sums >= observed
    return min(1.0, float(chance[extreme].sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, Scand. J. Statist. 6, 1979), in the order given."""
    adjusted, floor = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = floor
    return adjusted


def cluster_sums(differences: Mapping[Unit, int], family: int) -> tuple[list[int], str]:
    """Sum differences over the coarsest clusters that are numerous enough, and say over what."""
    sums = ClusterSums(needed_in(family))
    for unit, difference in differences.items():
        sums.add(unit, difference)
    return tested(sums)


def needed_in(family: int) -> int:
    """Return how many clusters a test needs to reach ALPHA after Holm's correction over ``family`` relations."""
    return max(MIN_CLUSTERS, math.floor(math.log2(max(family, 1) / ALPHA)) + 1)


def tested(sums: ClusterSums) -> tuple[list[int], str]:
    """Return sums of differences, and what a test of their signs is called."""
    found = [difference for (difference,) in sums.rows]
    exact = sums.single and len({abs(d) for d in found if d}) <= 1
    return found, f"{'exact McNemar' if exact else 'sign-flip'} test over {sums.told}"


def _itself(unit: Unit) -> Hashable:
    return unit


def _block(unit: Unit) -> Hashable:
    episode, bundle = unit
    return episode, None if bundle is None else bundle // BLOCK_BUNDLES


#: From single units to the coarsest clusters; a coarser key is made from any finer one.
_LEVELS: tuple[Callable[[Any], Hashable], ...] = (_itself, _block, lambda key: key[0])
