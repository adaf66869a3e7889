# SPDX-License-Identifier: Apache-2.0
"""A sequential test of a rate: it repeats what may fail until one of two hypotheses is refuted, and no longer."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RateTest:
    """Tests whether something fails at most at ``good_rate`` of its plays, or at least at ``bad_rate``.

    The sequential probability ratio test (A. Wald, Sequential tests of statistical hypotheses, Ann. Math. Statist. 16,
    1945) with the bounds 1 / ``error`` and ``error``. With them the probability of a wrong decision is at most
    ``error``, without Wald's approximation: the likelihood ratio is a nonnegative supermartingale while each play,
    given those before, fails with a probability of at most ``good_rate``, and so is its inverse while that is at least
    ``bad_rate`` (J. Ville, Étude critique de la notion de collectif, 1939). Between both rates nothing is promised.

    Attributes:
        good_rate, bad_rate: shares of plays, 0 < good_rate < bad_rate < 1.
        error: probability of a wrong decision, 0 < error < 1.
    """

    good_rate: float
    bad_rate: float
    error: float

    def log_ratio(self, held: int, violated: int) -> float:
        """Return the logarithm of the likelihood ratio of bad to good."""
        per_violation = math.log(self.bad_rate / self.good_rate)
        per_hold = math.log((1.0 - self.bad_rate) / (1.0 - self.good_rate))
        return violated * per_violation + held * per_hold

    def decision(self, held: int, violated: int) -> bool | None:
        """Return True for bad, False for good, None while nothing is decided."""
        bound, ratio = -math.log(self.error), self.log_ratio(held, violated)
        return None if abs(ratio) < bound else ratio > 0.0


def least_rate(violated: int, plays: int, error: float) -> float:
    """Return a lower bound of a failure rate, which is wrong with a probability of at most ``error``.

    Clopper and Pearson (Biometrika 26, 1934); it holds for a fixed number of plays and for plays until a fixed number
    of violations, because both order the outcomes alike. 0 without a violation.
    """
    if not violated:
        return 0.0
    from scipy import special  # late: its import takes long

    return float(special.betaincinv(violated, plays - violated + 1, error))


def step_error(step: int, expected: int, total: float) -> float:
    """Return the error that the ``step``-th test (from 1) may have so that all tests together have ``total`` at most.

    The ``expected`` first ones share nine tenths of it equally; those beyond, which are needed where versions cannot be
    tested, share the rest in the series 1 / (k (k + 1)). It is a union bound, whatever the number of steps.
    """
    if step <= expected:
        return 0.9 * total / expected
    beyond = step - expected
    return 0.1 * total / (beyond * (beyond + 1))
