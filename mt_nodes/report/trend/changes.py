# SPDX-License-Identifier: Apache-2.0
"""Between which versions a rate changes: an exact test of each split, and the splits that stand out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats

Counts = npt.NDArray[np.int64]
#: Probabilities that differ by less count as equal: those of mirrored outcomes differ by rounding.
_ALIKE = 1e-9


class Split(NamedTuple):
    """A change: ``at`` is the first version after it, ``p`` its p-value, corrected for its possible positions."""

    at: int
    p: float


def change_p(hits: Counts, trials: Counts, at: int) -> float:
    """Return the p-value of the two-sided exact test that versions from ``at`` on have the same rate as those before.

    In each stratum the number of hits is given, and each trial is equally likely to be a hit, so the number of hits
    after the split is hypergeometric; these add up over strata (the exact form of Mantel and Haenszel, J. Natl. Cancer
    Inst. 22, 1959). Outcomes that are no more likely than the observed one count as extreme. With two versions and each
    pair a stratum it is McNemar's exact test, with one stratum Fisher's.
    ``hits``, ``trials``: (S, V) counts of each stratum in each version. ``at``: split, 1 … V - 1.
    """
    from scipy import stats

    before, after = trials[:, :at].sum(axis=1), trials[:, at:].sum(axis=1)
    totals, observed = hits.sum(axis=1), int(hits[:, at:].sum())
    chance, lowest = np.ones(1), 0
    sorts, counts = np.unique(np.column_stack([before, after, totals]), axis=0, return_counts=True)
    for (n_before, n_after, n_hit), count in zip(sorts.tolist(), counts.tolist(), strict=True):
        low, high = max(0, n_hit - n_before), min(n_after, n_hit)
        lowest += count * low
        if high > low:
            one = stats.hypergeom.pmf(np.arange(low, high + 1), n_before + n_after, n_hit, n_after)
            chance = np.convolve(chance, _repeated(one, count))
    return min(1.0, float(chance[chance <= chance[observed - lowest] * (1 + _ALIKE)].sum()))


def best_split(hits: Counts, trials: Counts) -> Split | None:
    """Return the most significant split, its p-value times the number of splits; None with nothing to compare."""
    splits = [at for at in range(1, hits.shape[1]) if trials[:, :at].any() and trials[:, at:].any()]
    if not splits:
        return None
    p, at = min((change_p(hits, trials, at), at) for at in splits)
    return Split(at, min(1.0, p * len(splits)))


def further_splits(hits: Counts, trials: Counts, first: int, family: int, alpha: float) -> list[Split]:
    """Return the significant splits on both sides of a first one, in order.

    Binary segmentation (Scott and Knott, Biometrics 30, 1974): each p-value is corrected for the splits of its part
    and, by Bonferroni, for ``family`` tests.
    """
    found: list[Split] = []
    for start, end in ((0, first), (first, hits.shape[1])):
        part = slice(start, end)
        split = best_split(hits[:, part], trials[:, part])
        if split is None or (p := min(1.0, split.p * family)) >= alpha:
            continue
        inner = further_splits(hits[:, part], trials[:, part], split.at, family, alpha)
        found += [Split(start + one.at, one.p) for one in (*inner, Split(split.at, p))]
    return sorted(found)


def _repeated(one: Floats, count: int) -> Floats:
    """Return the distribution of a sum of ``count`` independent draws from one."""
    total, power = np.ones(1), one
    while count:
        if count & 1:
            total = np.convolve(total, power)
        count >>= 1
        if count:
            power = np.convolve(power, power)
    return total
