# SPDX-License-Identifier: Apache-2.0
"""Sequential inference about the mean of bounded observations by betting: e-values and confidence sequences.

A bet against "the mean of X is at most m" stakes a share c of the capital on each observation, which multiplies the
capital by 1 + c (X - m) / (m - low), where low is the least value of X. The factor is never below 0, and its mean is at
most 1 under the hypothesis, whatever came before. So the capital is an e-value at all times: it ever reaches 1 / alpha
with probability at most alpha (Ville's inequality; Waudby-Smith and Ramdas, Estimating means of bounded random
variables by betting, JRSS B 86, 2024). Beyond its bounds, nothing is assumed about the distribution of X.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.stats.intervals import ALPHA


@dataclass(frozen=True, eq=False)
class Stakes:
    """Shares of the capital that are staked in parallel.

    ``shares``: (S,), in (0, 1]. ``log_weights``: (S,), logarithms of the initial capital of each.
    """

    shares: Floats
    log_weights: Floats

    def log_factors(self, observed: Floats, mean: float, low: float) -> Floats:
        """Return (..., S) logarithms of the factor by which an observation multiplies each stake's capital."""
        with np.errstate(divide="ignore"):  # all was staked and lost
            factors: Floats = np.log1p(self.shares * ((observed - mean) / (mean - low))[..., None])
        return factors

    def log_capital(self, logs: Floats) -> Floats:
        """Return (...) the logarithm of the total capital, from the (..., S) logarithms of the stakes."""
        capital: Floats = np.logaddexp.reduce(logs + self.log_weights, axis=-1)
        return capital


_MIDDLES: Floats = np.linspace(0.5, 39.5, 40) / 40.0
#: Equal weights; the shares cover (0, 1) evenly.
EVEN = Stakes(_MIDDLES, np.log(np.full(40, 1.0 / 40.0)))
#: Half of the capital bets all, which is best while nothing supports the hypothesis (a clean background, no violation
#: at all) and costs a factor of 2 otherwise; the rest covers (0, 1).
BOLD = Stakes(np.append(_MIDDLES, 1.0), np.log(np.append(np.full(40, 0.5 / 40.0), 0.5)))
#: Logarithm of the largest e-value returned: a capped one has a smaller mean, so it is still an e-value.
_MOST_LOG = 700.0
#: Values of a difference between the two events of one run.
_SIGNS: Floats = np.array([1.0, -1.0, 0.0])
#: Bisection steps for a bound of an interval.
_HALVINGS = 50


class Bet:
    """A bet against "the mean is at most ``mean``" for observations of at least ``low``.

    ``mean``: above ``low``. ``low``: the least value of an observation. ``shape``: of the observations, for many
    independent bets in parallel.
    """

    def __init__(self, mean: float, low: float, shape: tuple[int, ...] = ()) -> None:
        if not low < mean:
            raise ValueError(f"got a mean of {mean} and {low} as the least value, expected it to be above")
        self._mean, self._low = mean, low
        self._logs: Floats = np.zeros((*shape, len(BOLD.shares)))

    def add(self, observed: npt.ArrayLike) -> None:
        """Add one observation of each bet, ``shape``."""
        self._logs += BOLD.log_factors(np.asarray(observed, dtype=np.float64), self._mean, self._low)

    @property
    def e_value(self) -> Any:
        """The current e-value, ``shape``: a float, or an array."""
        capital = np.exp(np.minimum(BOLD.log_capital(self._logs), _MOST_LOG))
        return capital if capital.ndim else float(capital)


def mean_sequence(observed: Sequence[float] | Floats, alpha: float = ALPHA) -> tuple[float, float]:
    """Return a confidence sequence for the mean of observations in [0, 1]: it covers the mean at all times at once.

    The error probability is at most ``alpha`` for any number of looks and any stopping rule; each bound has half.
    ``observed``: (N,).
    Raises ValueError: an observation is not in [0, 1].
    """
    values, counts = np.unique(np.asarray(observed, dtype=np.float64), return_counts=True)
    if not len(values):
        return 0.0, 1.0
    if not (values[0] >= 0.0 and values[-1] <= 1.0):
        raise ValueError(f"got {values[0]} to {values[-1]}, expected observations from 0 to 1")
    return _lower(values, counts, 0.0, alpha / 2.0), 1.0 - _lower(1.0 - values, counts, 0.0, alpha / 2.0)


def mean_e_value(up: int, down: int, zero: int, mean: float) -> float:
    """Return the e-value against "the mean of X is at most ``mean``", from the counts of X = 1, -1 and 0.

    With sides swapped: for pairs of independent runs, one of each arrangement, evaluated after whole pairs, it also
    holds against "the means of both arrangements are at most that on average", by the inequality of
    :func:`mt_nodes.base.stats.e_values.rate_e_value`: its factors are affine in X and never below 0.
    Raises ValueError: a count is negative, or the mean is not between -1 and 1.
    """
    if min(up, down, zero) < 0 or not -1.0 < mean < 1.0:
        raise ValueError(f"got counts {up}, {down}, {zero} and a mean of {mean}, expected 0 or more, one in (-1, 1)")
    log_e = EVEN.log_capital(np.array([up, down, zero]) @ EVEN.log_factors(_SIGNS, mean, -1.0))
    return math.exp(min(float(log_e), _MOST_LOG))


def difference_sequence(
    first_only: int, second_only: int, equal_pairs: int, alpha: float = ALPHA
) -> tuple[float, float]:
    """Return a confidence sequence for Pr[first] - Pr[second] with error probability alpha.

    Both events are observed in each run, or each in one of two runs that form a pair and may depend on each other. Per
    run (or pair) X = 1, -1 or 0; the bets are on its mean. Each bound has alpha / 2.
    Raises ValueError: a count is negative.
    """
    if min(first_only, second_only, equal_pairs) < 0:
        raise ValueError(f"got counts {first_only}, {second_only}, {equal_pairs}, expected 0 or more")
    if not first_only + second_only + equal_pairs:
        return -1.0, 1.0
    counts = np.array([first_only, second_only, equal_pairs])
    low, high = (_lower(signs, counts, -1.0, alpha / 2.0, EVEN) for signs in (_SIGNS, -_SIGNS))
    return low, -high


def _lower(values: Floats, counts: npt.NDArray[np.intp], low: float, alpha: float, stakes: Stakes = BOLD) -> float:
    """Return the largest mean below which all means are refuted; the capital falls as the mean grows."""
    refuted, plausible = low, float(np.average(values, weights=counts))
    for _ in range(_HALVINGS):
        middle = 0.5 * (refuted + plausible)
        if middle <= low:
            break
        if stakes.log_capital(counts @ stakes.log_factors(values, middle, low)) >= -math.log(alpha):
            refuted = middle
        else:
            plausible = middle
    return refuted
