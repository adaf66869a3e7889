# SPDX-License-Identifier: Apache-2.0
"""How far raters agree beyond chance: Fleiss' kappa, and its interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats

Counts = npt.NDArray[np.int64]
RESAMPLES = 2000
#: Ends of the interval.
_ENDS = (2.5, 97.5)


def fleiss_kappa(counts: Counts) -> float | None:
    """Return Fleiss' kappa (Psychological Bulletin 76, 1971), None where it is not defined.

    Cases may have different numbers of ratings, as Gwet generalises it (Handbook of Inter-Rater Reliability, 4th
    edition, 2014, chapter 2): the agreement found is the mean over cases with two ratings or more, the share of a
    category the mean of its shares over all rated cases. With equal numbers both are Fleiss's. It is not defined where
    no case has two ratings, nor where all are of one category, which chance would agree on, too.
    ``counts``: (N, K) how often case n was given category k; cases without a rating do not count.
    """
    agreed, paired, shares, rated = _parts(counts)
    return _none(_kappa(agreed.sum(), paired.sum(), shares.sum(axis=0), rated.sum()))


def kappa_interval(counts: Counts, seed: int = 0) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of kappa over cases drawn anew (Efron, Ann. Statist. 7, 1979).

    None where kappa is not defined. Samples in which it is not defined are left out.
    """
    if fleiss_kappa(counts) is None:
        return None
    agreed, paired, shares, rated = _parts(counts)
    cases = len(agreed)
    times = np.random.default_rng(seed).multinomial(cases, np.full(cases, 1 / cases), size=RESAMPLES)
    kappas = _kappa(times @ agreed, times @ paired, times @ shares, times @ rated)
    low, high = np.nanpercentile(kappas, _ENDS)
    return float(low), float(high)


def _parts(counts: Counts) -> tuple[Floats, ...]:
    """Return of each case its agreement (N,), whether it has one (N,), shares of categories (N, K), if rated (N,)."""
    ratings = counts.sum(axis=1)
    rated, paired = ratings >= 1, ratings >= 2
    alike = (counts * (counts - 1)).sum(axis=1)
    agreed = np.where(paired, alike / np.maximum(ratings * (ratings - 1), 1), 0.0)
    shares = counts / np.maximum(ratings, 1)[:, None]
    return agreed, paired.astype(np.float64), shares, rated.astype(np.float64)


def _kappa(agreed: Floats, paired: Floats, shares: Floats, rated: Floats) -> Floats:
    """Return kappa of sums over cases, not-a-number where it is not defined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        by_chance = ((shares / np.asarray(rated)[..., None]) ** 2).sum(axis=-1)
        room = np.where(by_chance < 1.0 - 1e-12, 1.0 - by_chance, np.nan)
        return np.asarray((agreed / paired - by_chance) / room)


def _none(value: Floats) -> float | None:
    return float(value) if np.isfinite(value) else None
