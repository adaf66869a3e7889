# SPDX-License-Identifier: Apache-2.0
"""Intervals and exact tests. Deterministic: nothing is sampled, so equal journals have equal p-values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

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
Cluster = Callable[[Unit], Hashable]


class Interval(NamedTuple):
    """A 95 % interval of a proportion, and how it was made, for people."""

    low: float
    high: float
    method: str


def wilson_interval(hits: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % score interval of a proportion (Wilson, JASA 22, 1927), None without trials."""
    if trials == 0:
        return None
    from scipy import stats  # heavy, and needed at the end of a run only

    interval = stats.binomtest(hits, trials).proportion_ci(1 - ALPHA, method="wilson")
    return float(interval.low), float(interval.high)


def proportion_interval(pairs: Mapping[Unit, tuple[int, int]]) -> Interval | None:
    """Return the 95 % interval of a proportion over units (hits, trials), None without trials.

    Wilson's when each unit is one trial and no coarser clusters are numerous enough; else Wilson's with the effective
    number of trials that the spread between clusters leaves, and Student's t for their number (Kott and Carr,
    J. Off. Statist. 13, 1997; Franco et al., J. Surv. Stat. Methodol. 7, 2019).
    """
    hits, trials = (sum(p[i] for p in pairs.values()) for i in (0, 1))
    if trials == 0:
        return None
    key, name = clusters_of(pairs, MIN_CLUSTERS)
    if key is _itself and trials == len(pairs):
        low, high = wilson_interval(hits, trials) or (0.0, 1.0)
        return Interval(low, high, f"Wilson, {_counted(trials, name)} taken as independent")
    sums: dict[Hashable, tuple[int, int]] = {}
    for unit, (x, n) in pairs.items():
        before = sums.get(key(unit), (0, 0))
        sums[key(unit)] = (before[0] + x, before[1] + n)
    low, high = _clustered_interval(np.array(list(sums.values()), dtype=np.float64))
    return Interval(low, high, f"Wilson, cluster-robust over {_counted(len(sums), name)}")


def _clustered_interval(clusters: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Wilson's interval from clusters (M, 2) of hits and trials."""
    from scipy import stats

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
    z = float(stats.t.ppf(1 - ALPHA / 2, count - 1) if count > 1 else stats.norm.ppf(1 - ALPHA / 2))
    middle, spread = share + z * z / (2 * effective), 1 + z * z / effective
    half = z * math.sqrt(share * (1 - share) / effective + z * z / (4 * effective * effective))
    return max(0.0, (middle - half) / spread), min(1.0, (middle + half) / spread)


def sign_test_p(lost: int, gained: int) -> float:
    """Return the two-sided exact sign test of two counts that chance would make alike."""
    from scipy import stats

    return float(stats.binomtest(lost, lost + gained, 0.5).pvalue) if lost + gained else 1.0


def fisher_p(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the two-sided exact test of two proportions, each as (hits, trials) (Fisher, JRSS 98, 1935)."""
    from scipy import stats

    return float(stats.fisher_exact([[hits, trials - hits] for hits, trials in (before, after)]).pvalue)


def mcnemar_p(relation_only: int, control_only: int) -> float:
    """Return the one-sided exact McNemar test from the two discordant counts.

    Small when the relation is violated where the control holds more often than the other way round
    (McNemar, Psychometrika 12, 1947, in its exact binomial form).
    """
    from scipy import stats

    return float(stats.binom.sf(relation_only - 1, relation_only + control_only, 0.5))


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
    """Sum differences over the coarsest clusters that are numerous enough, and say over what.

    Enough means that a test over them could still reach ALPHA after Holm's correction over ``family`` relations.
    """
    needed = max(MIN_CLUSTERS, math.floor(math.log2(max(family, 1) / ALPHA)) + 1)
    key, name = clusters_of(differences, needed)
    sums: Counter[Hashable] = Counter()
    for unit, difference in differences.items():
        sums[key(unit)] += difference
    found = list(sums.values())
    exact = key is _itself and len({abs(d) for d in found if d}) <= 1
    return found, f"{'exact McNemar' if exact else 'sign-flip'} test over {_counted(len(found), name)}"


def clusters_of(units: Collection[Unit], needed: int) -> tuple[Cluster, str]:
    """Return the coarsest clusters of which there are ``needed``, and their name; single units if there are none.

    Tried in turn: drives, blocks of consecutive bundles. Where whole episodes are judged a unit is a drive.
    """
    levels: tuple[tuple[str, Cluster], ...] = (
        ("drives", lambda unit: unit[0]),
        (f"blocks of {BLOCK_BUNDLES} frames", _block),
    )
    for name, key in levels:
        if len({key(unit) for unit in units}) >= needed:
            return key, name
    whole = bool(units) and all(bundle is None for _, bundle in units)
    return _itself, "drives" if whole else "frames"


def _counted(count: int, clusters: str) -> str:
    return counted(count, clusters.removesuffix("s"))


def _itself(unit: Unit) -> Hashable:
    return unit


def _block(unit: Unit) -> Hashable:
    episode, bundle = unit
    return episode, None if bundle is None else bundle // BLOCK_BUNDLES
