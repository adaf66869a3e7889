# SPDX-License-Identifier: Apache-2.0
"""Intervals and exact tests. Deterministic: nothing is sampled, so equal journals have equal p-values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

ALPHA = 0.05
#: Consecutive bundles that count as one observation (one second at 10 Hz): neighbours see the same scene.
BLOCK_BUNDLES = 10
#: Below this a sign-flip test over clusters cannot reach ALPHA whatever the data (2**-5 = 0.03, two-sided 0.06).
MIN_CLUSTERS = 6

Unit = tuple[int, int | None]
"""One source case: (episode, bundle); bundle is None when a whole episode is judged."""


def wilson_interval(hits: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % score interval of a proportion (Wilson, JASA 22, 1927), None without trials."""
    if trials == 0:
        return None
    from scipy import stats  # heavy, and needed at the end of a run only

    interval = stats.binomtest(hits, trials).proportion_ci(1 - ALPHA, method="wilson")
    return float(interval.low), float(interval.high)


def sign_test_p(lost: int, gained: int) -> float:
    """Return the two-sided exact sign test of two counts that chance would make alike."""
    from scipy import stats

    return float(stats.binomtest(lost, lost + gained, 0.5).pvalue) if lost + gained else 1.0


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

    Tried in turn: drives (episodes), blocks of consecutive bundles, single bundles. Enough means that a test over
    them could still reach ALPHA after Holm's correction over ``family`` relations.
    """
    needed = max(MIN_CLUSTERS, math.floor(math.log2(max(family, 1) / ALPHA)) + 1)
    levels: tuple[tuple[str, Callable[[Unit], Hashable]], ...] = (
        ("drives", lambda unit: unit[0]),
        (f"blocks of {BLOCK_BUNDLES} frames", _block),
    )
    for name, key in levels:
        sums: Counter[Hashable] = Counter()
        for unit, difference in differences.items():
            sums[key(unit)] += difference
        if len(sums) >= needed:
            return list(sums.values()), f"sign-flip test over {len(sums)} {name}"
    return list(differences.values()), f"exact McNemar test over {len(differences)} frames"


def _block(unit: Unit) -> Hashable:
    episode, bundle = unit
    return episode, None if bundle is None else bundle // BLOCK_BUNDLES
