# SPDX-License-Identifier: Apache-2.0
"""Intervals and exact tests. Deterministic: nothing is sampled, so equal journals have equal p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mt_nodes.base.stats.cluster_sums import MIN_CLUSTERS, Clusters, ClusterSums, Unit

ALPHA = 0.05
#: With fewer clusters than this that have a hit (or a miss), the interval counts each cluster as one observation at
#: most: so few do not show how alike the pairs of a cluster are.
MIN_MIXED = 4
#: 97.5 % quantile of the standard normal distribution, ``scipy.special.ndtri(1 - ALPHA / 2)``.
_NORMAL_975 = 1.959963984540054
#: Up to so many coins their distribution is summed in whole numbers.
_MOST_COINS = 200


class Interval(NamedTuple):
    """A 95 % interval of a proportion, and its method, for people."""

    low: float
    high: float
    method: str


def wilson_interval(hits: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % score interval of a proportion (Wilson, JASA 22, 1927), None without trials."""
    if trials == 0:
        return None
    z, share = normal_quantile(), hits / trials
    spread = 2 * (trials + z**2)
    middle = (2 * trials * share + z**2) / spread
    half = z / spread * math.sqrt(4 * trials * share * (1 - share) + z**2)
    return 0.0 if hits == 0 else middle - half, 1.0 if hits == trials else middle + half


def proportion_interval(pairs: Mapping[Unit, tuple[int, int]]) -> Interval | None:
    """Return the 95 % interval of a proportion over units (hits, trials), None without trials."""
    sums = ClusterSums(MIN_CLUSTERS, 2)
    for unit, (hits, trials) in pairs.items():
        sums.add(unit, hits, trials)
    return interval_of(sums.finest)


def interval_of(clusters: Clusters) -> Interval | None:
    """Return the 95 % interval of a proportion from the hits and trials of clusters, None without trials.

    Wilson's when each cluster is one unit of one trial; else Wilson's with the effective number of trials that the
    spread between clusters leaves, and Student's t for their number (Kott and Carr, J. Off. Statist. 13, 1997; Franco
    et al., J. Surv. Stat. Methodol. 7, 2019).
    """
    count, (hits, trials) = len(clusters), clusters.sums[:, :2].sum(axis=0).tolist() if len(clusters) else (0, 0)
    if trials == 0:
        return None
    if clusters.single and trials == count:
        low, high = wilson_interval(hits, trials) or (0.0, 1.0)
        return Interval(low, high, f"Wilson, {clusters} taken as independent")
    from scipy import special  # here and below late: short runs need none of it, and its import takes long

    share, effective = hits / trials, effective_trials(clusters)
    z = float(special.stdtrit(count - 1, 1 - ALPHA / 2)) if count > 1 else normal_quantile()
    middle, spread = share + z * z / (2 * effective), 1 + z * z / effective
    half = z * math.sqrt(share * (1 - share) / effective + z * z / (4 * effective * effective))
    low, high = max(0.0, (middle - half) / spread), min(1.0, (middle + half) / spread)
    return Interval(low, high, f"Wilson, cluster-robust over {clusters}")


def more_for_upper(clusters: Clusters, limit: float, times: int = 40) -> int | None:
    """Return how many more clusters like these bring the upper end of the 95 % interval of a proportion to a limit.

    0 where it is there already; None where the proportion itself is no lower, or ``times`` as many do not suffice.
    """
    count, (hits, trials) = len(clusters), clusters.sums[:, :2].sum(axis=0).tolist()
    more = 0
    while hits < limit * trials and more <= times * count:
        rows = clusters.sums[np.arange(count + more) % count]
        interval = interval_of(replace(clusters, sums=rows))
        if interval is not None and interval.high <= limit:
            return more
        more += max(1, (count + more) // 50)  # to within 2 %, so that long runs take no longer than short ones
    return None


def effective_trials(clusters: Clusters) -> float:
    """Return how many independent trials are as informative about a proportion as clusters (M, 2), hits and trials."""
    count, (hits, trials) = len(clusters), clusters.sums[:, :2].sum(axis=0).tolist()
    share = hits / trials
    mixed = min(np.count_nonzero(clusters.sums[:, 0]), np.count_nonzero(clusters.sums[:, 0] < clusters.sums[:, 1]))
    if not mixed or count == 1:
        return float(count)
    residuals = clusters.sums[:, 0] - share * clusters.sums[:, 1]
    variance = count / (count - 1) * float(residuals @ residuals) / trials**2
    independent = share * (1.0 - share) / trials
    # By chance clusters spread less than independent pairs would; t allows for that, but not for no spread at all.
    effective = float(share * (1.0 - share) / max(variance, independent / 4))
    return effective if mixed >= MIN_MIXED else min(effective, float(count))


def sign_test_p(lost: int, gained: int) -> float:
    """Return the p-value of the two-sided exact sign test of two counts."""
    return 1.0 if lost == gained else min(1.0, 2 * _tail(max(lost, gained), lost + gained))


def fisher_p(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the p-value of the two-sided exact test of two proportions (hits, trials) (Fisher, JRSS 98, 1935)."""
    from scipy import stats

    return float(stats.fisher_exact([[hits, trials - hits] for hits, trials in (before, after)]).pvalue)


def mcnemar_p(relation_only: int, control_only: int) -> float:
    """Return the p-value of the one-sided exact McNemar test from the two discordant counts.

    Small if the relation is violated where the control holds more often than the reverse (McNemar, Psychometrika 12,
    1947, in its exact binomial form).
    """
    return _tail(relation_only, relation_only + control_only)


def _tail(least: int, count: int) -> float:
    """Return the probability that at least ``least`` of ``count`` fair coins show heads."""
    if count <= _MOST_COINS:
        return sum(math.comb(count, heads) for heads in range(least, count + 1)) / (1 << count)
    from scipy import special

    return float(special.betainc(least, count - least + 1, 0.5)) if least else 1.0


def normal_quantile(probability: float = 1 - ALPHA / 2) -> float:
    """Return the quantile of the standard normal distribution; by default that of a 95 % interval's upper end."""
    if probability == 1 - ALPHA / 2:
        return _NORMAL_975
    from scipy import special

    return float(special.ndtri(probability))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method (Holm, Scand. J. Statist. 6, 1979), in the given order."""
    adjusted, floor = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = floor
    return adjusted


def at_least(adjusted: float | None, alone: float | None) -> float | None:
    """Return an adjusted p-value, never below that of the test alone; None where nothing was tested."""
    return None if adjusted is None or alone is None else max(adjusted, alone)
