# SPDX-License-Identifier: Apache-2.0
"""What bounded observations say of their mean, looked at after every one: bets against it, and an interval.

Who bets against "the mean of X is at most m" stakes a share c of the capital on each observation: it is multiplied by
1 + c (X - m) / (m - low), low being the least that X can be. That factor is never below 0, and its mean is 1 at most
while the hypothesis is true, whatever came before. So the capital is an e-value at all times: that it ever reaches
1 / alpha has probability alpha at most (Ville's inequality; Waudby-Smith and Ramdas, Estimating means of bounded random
variables by betting, JRSS B 86, 2024). Nothing is assumed of the distribution of X but its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.stats.intervals import ALPHA

Floats = npt.NDArray[np.float64]

#: Shares of the capital that are staked side by side. Half of it bets all, which is best while nothing speaks for the
#: hypothesis (a clean background, no violation at all) and costs a factor of 2 otherwise; the rest covers (0, 1).
STAKES: Floats = np.append((np.arange(40) + 0.5) / 40.0, 1.0)
_LOG_WEIGHTS: Floats = np.log(np.append(np.full(40, 0.5 / 40.0), 0.5))
#: Logarithm of the largest e-value given: what is capped has a smaller mean, so it is an e-value still.
_MOST_LOG = 700.0
#: Halvings of the span in which a bound of an interval is sought.
_HALVINGS = 50


class Bet:
    """A bet against "the mean is at most ``mean``" of observations of ``low`` or more.

    Args:
        mean: above ``low``.
        low: the least that an observation can be.
        shape: of the observations, when many independent bets are kept side by side.
    """

    def __init__(self, mean: float, low: float, shape: tuple[int, ...] = ()) -> None:
        if not low < mean:
            raise ValueError(f"got a mean of {mean} and {low} as the least value, expected it to be above")
        self._mean, self._low = mean, low
        self._logs: Floats = np.zeros((*shape, len(STAKES)))

    def add(self, observed: npt.ArrayLike) -> None:
        """Take in one observation of each bet, ``shape``."""
        self._logs += _log_factors(np.asarray(observed, dtype=np.float64), self._mean, self._low)

    @property
    def e_value(self) -> Any:
        """The e-value now, ``shape``: a float, or an array of them."""
        made = np.exp(np.minimum(_log_capital(self._logs), _MOST_LOG))
        return made if made.ndim else float(made)


def mean_sequence(observed: Sequence[float] | Floats, alpha: float = ALPHA) -> tuple[float, float]:
    """Return an interval of the mean of observations in [0, 1] that covers it at all times at once.

    It fails with probability ``alpha`` at most, however often one looks and whenever one stops; each bound has half.

    Args:
        observed: (N,).

    Raises:
        ValueError: an observation is not in [0, 1].
    """
    values, counts = np.unique(np.asarray(observed, dtype=np.float64), return_counts=True)
    if not len(values):
        return 0.0, 1.0
    if not (values[0] >= 0.0 and values[-1] <= 1.0):
        raise ValueError(f"got {values[0]} to {values[-1]}, expected observations from 0 to 1")
    return _lower(values, counts, alpha / 2.0), 1.0 - _lower(1.0 - values, counts, alpha / 2.0)


def _lower(values: Floats, counts: npt.NDArray[np.intp], alpha: float) -> float:
    """Return the largest mean below which all are refuted: capital falls as the mean grows."""
    refuted, kept = 0.0, float(np.average(values, weights=counts))
    for _ in range(_HALVINGS):
        middle = 0.5 * (refuted + kept)
        if middle <= 0.0:
            break
        if _log_capital(counts @ _log_factors(values, middle, 0.0)) >= -math.log(alpha):
            refuted = middle
        else:
            kept = middle
    return refuted


def _log_factors(observed: Floats, mean: float, low: float) -> Floats:
    """Return (..., stakes) logarithms of what an observation multiplies each stake's capital by."""
    with np.errstate(divide="ignore"):  # all was staked and lost
        made: Floats = np.log1p(STAKES * ((observed - mean) / (mean - low))[..., None])
    return made


def _log_capital(logs: Floats) -> Floats:
    """Return (...) the logarithm of the capital over all stakes."""
    made: Floats = np.logaddexp.reduce(logs + _LOG_WEIGHTS, axis=-1)
    return made
