# SPDX-License-Identifier: Apache-2.0
"""Whether violations exceed those of control and sham, or a rate, tested over clusters of cases.

Deterministic: nothing is sampled, so equal journals have equal p-values.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.stats.cluster_sums import MIN_CLUSTERS, Clusters, ClusterSums
from mt_nodes.base.stats.intervals import ALPHA, effective_trials, interval_of, mcnemar_p, normal_quantile, sign_test_p
from mt_nodes.base.wording import counted

#: Limits of the search for how much more input would decide about a rate: multiples of the input, and clusters.
_MOST_TIMES, _MOST_CLUSTERS = 40, 100_000
#: Up to so many additions the distribution of a sign-flip test is convolved cluster by cluster.
_MOST_SUMS = 20_000_000

Whole = npt.NDArray[np.int64]


def needed_in(family: int) -> int:
    """Return how many clusters a test needs to reach ALPHA after Holm's correction over ``family`` relations."""
    return max(MIN_CLUSTERS, math.floor(math.log2(max(family, 1) / ALPHA)) + 1)


class Exceedance(NamedTuple):
    """Result of a test over clusters.

    ``p``: its p-value. ``test``: the method, for people. ``more``: how many more clusters like those found would
    decide, for people; empty if no number would.
    """

    p: float
    test: str
    more: str = ""


def exceedance(sums: ClusterSums, family: int = 1, cluster: str = "") -> Exceedance:
    """Test whether differences exceed zero, by sign flips of the coarsest clusters that are numerous enough.

    Where coarser clusters are too few, finer ones are tested, and in addition the coarser ones, each repeated until
    they are enough: what stands out by the frames of a few drives must still stand out once enough drives of the same
    sort are there to test by drives. So more clusters of the same sort never undo what few have shown.
    ``sums``: of differences. ``family``: how many relations are tested together. ``cluster``: name of a cluster that is
    neither a drive nor a frame.
    """
    found = [_sign_flips(*level, family, cluster) for level in _levels(sums, needed_in(family))]
    return max(found, key=lambda finding: finding.p)


def excess_over(sums: ClusterSums, rate: float, family: int = 1) -> Exceedance:
    """Test whether a proportion (columns hits and trials) exceeds ``rate``: exact binomial, over effective trials.

    It uses the same clusters as :func:`exceedance`.
    """
    found = [
        Exceedance(_binomial_p(clusters.repeated(times), rate), f"exact binomial test against {rate:g} over {clusters}")
        for clusters, times in _levels(sums, needed_in(family))
    ]
    return max(found, key=lambda finding: finding.p)._replace(more=_more_for_rate(sums, rate, family))


def _more_for_rate(sums: ClusterSums, rate: float, family: int) -> str:
    """Return how much more input of the same sort would show that a rate is exceeded, or that it is not."""
    finest = sums.finest
    hits, trials = finest.sums[:, :2].sum(axis=0).tolist() if len(finest) else (0, 0)
    exceeds = hits > rate * trials
    levels = _levels(sums, needed_in(family) if exceeds else MIN_CLUSTERS)

    def decides(clusters: Clusters) -> bool:
        if exceeds:
            return family * _binomial_p(clusters, rate) < ALPHA
        interval = interval_of(clusters)
        return interval is not None and interval.high <= rate

    first = levels[0][0]
    for times in range(1, min(_MOST_TIMES, _MOST_CLUSTERS // max(1, len(first))) + 1):
        if all(decides(clusters.repeated(max(times, least))) for clusters, least in levels):
            more = (times - 1) * len(first)
            return counted(more, f"more {first.one}") if more else ""
    return ""


def upper_bound(sums: ClusterSums) -> float:
    """Return the upper end of the 95 % interval of a proportion, over the clusters of :func:`exceedance`."""
    intervals = [interval_of(clusters.repeated(times)) for clusters, times in _levels(sums, MIN_CLUSTERS)]
    return max((interval.high for interval in intervals if interval), default=1.0)


def _levels(sums: ClusterSums, needed: int) -> list[tuple[Clusters, int]]:
    """Return the coarsest clusters that are enough, then the coarser ones, each with its number of repetitions."""
    levels = sums.levels
    first = max((i for i, clusters in enumerate(levels) if len(clusters) >= needed), default=0)
    return [(levels[first], 1), *((clusters, -(-needed // len(clusters))) for clusters in levels[first + 1 :])]


def _binomial_p(clusters: Clusters, rate: float) -> float:
    hits, trials = clusters.sums[:, :2].sum(axis=0).tolist() if len(clusters) else (0, 0)
    if not hits:
        return 1.0
    from scipy import special

    effective = min(float(trials), effective_trials(clusters))
    successes = effective * hits / trials
    return float(special.betainc(successes, effective - successes + 1.0, rate))


def _sign_flips(clusters: Clusters, times: int, family: int, cluster: str) -> Exceedance:
    differences = clusters.sums[:, 0]
    exact = clusters.single and len(np.unique(np.abs(differences[differences != 0]))) <= 1
    name = counted(len(clusters), cluster) if cluster else str(clusters)
    repeated = f",{' each' if len(clusters) > 1 else ''} counted {times} times" if times > 1 else ""
    more = _more(differences, family)
    return Exceedance(
        sign_flip_p(np.tile(differences, times)),
        f"{'exact McNemar' if exact else 'sign-flip'} test over {name}{repeated}",
        counted(more, f"more {cluster or clusters.one}") if more else "",
    )


def _more(differences: Whole, family: int) -> int:
    """Return how many more clusters like these would reach ALPHA in a family of tests, 0 if no number would."""
    count, up = len(differences), np.count_nonzero(differences > 0)
    if not up or differences.sum() <= 0:
        return 0
    if not (differences < 0).any():
        return max(0, -(-needed_in(family) * count // int(up)) - count)
    # By the normal approximation with a continuity correction: the sum of n of them is n m, plus or minus sqrt(n v).
    whole = differences // np.gcd.reduce(differences)
    quantile, mean, square = (
        -normal_quantile(ALPHA / max(1, family)),
        float(whole.mean()),
        float((whole * whole).mean()),
    )
    root = (quantile * math.sqrt(square) + math.sqrt(quantile**2 * square + 4.0 * mean)) / (2.0 * mean)
    return max(1, math.ceil(root * root) - count)


def sign_flip_p(differences: Sequence[int] | Whole, *, two_sided: bool = False) -> float:
    """Return the p-value of the exact sign-flip permutation test of differences with symmetric signs under the null.

    The distribution of the sum over all 2^n sign assignments is computed, not sampled. For differences of one size it
    is the McNemar (two-sided: the sign) test. Alternative: the sum is above zero (two-sided: not zero).
    """
    signed = np.asarray(differences, dtype=np.int64)
    signed = signed[signed != 0]
    if not len(signed):
        return 1.0
    signed = signed // np.gcd.reduce(signed)  # repeated draws make differences multiples of their number
    sizes, counts = np.unique(np.abs(signed), return_counts=True)
    if len(sizes) == 1:
        up = int(np.count_nonzero(signed > 0))
        return sign_test_p(up, len(signed) - up) if two_sided else mcnemar_p(up, len(signed) - up)
    observed, reach = int(signed.sum()), int(sizes @ counts)
    observed = abs(observed) if two_sided else observed
    if observed <= -reach:
        return 1.0
    tail = _tail_by_sums if len(signed) * reach <= _MOST_SUMS else _tail_by_frequencies
    p = (2.0 if two_sided and observed else 1.0) * tail(sizes, counts, observed)
    return 1.0 if two_sided and not observed else min(1.0, p)


def _tail_by_sums(sizes: Whole, counts: Whole, observed: int) -> float:
    """Return the probability that sizes with random signs sum to at least the observed sum, by convolution."""
    chance: Floats = np.ones(1)
    for size in np.repeat(
        sizes, counts
    ).tolist():  # adds 0 or 2 * size to the lowest sum, -reach; the index is half of that
        chance = (np.pad(chance, (0, size)) + np.pad(chance, (size, 0))) / 2
    reach = len(chance) - 1
    return float(chance[-(-(observed + reach) // 2) :].sum())


def _tail_by_frequencies(sizes: Whole, counts: Whole, observed: int) -> float:
    """Return the same for many sizes, from the Fourier transform of the distribution (Good, JRSS B 17, 1955).

    Only the middle of the distribution is resolved, which holds all but 1e-18 of it. Below 1e-9, where rounding
    matters, the result is Hoeffding's bound exp(-S^2 / (2 sum d^2)), which is never too small.
    """
    squares, reach = float((sizes * sizes) @ counts), int(sizes @ counts)
    bound = max(sys.float_info.min, math.exp(-(observed**2) / (2.0 * squares))) if observed > 0 else 1.0
    width = 2 ** math.ceil(math.log2(min(reach + 1.0, 9.0 * math.sqrt(squares) + 2.0)))
    frequency = np.arange(width)
    transform = np.exp(-1j * np.pi * (reach % (2 * width)) / width * frequency)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        transform *= np.cos(np.pi / width * ((size * frequency) % (2 * width))) ** count
    place = np.arange(width) + (reach - width) // 2 + 1  # (sum + reach) / 2, as many of them as are resolved
    chance = np.fft.ifft(transform).real[place % width]
    p = float(chance[2 * place >= observed + reach].sum())
    return min(1.0, p) if p >= 1e-9 else bound
