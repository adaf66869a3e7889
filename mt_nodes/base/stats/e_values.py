# SPDX-License-Identifier: Apache-2.0
"""What few runs say about probabilities, looked at after every run: e-values, and intervals that hold at all times.

An e-value is a number of 0 or more whose mean is at most 1 while the null hypothesis is true. One that stays so at
whatever time one stops exceeds 1 / alpha with probability alpha at most, ever (Ville's inequality): a campaign may look
after each run and stop when it likes, and its error stays what it says. All here are of that kind but for those named
*exact*, whose number of runs must be settled beforehand. The exact sign test is
:func:`mt_nodes.base.stats.intervals.mcnemar_p`.

Runs are taken to be drawn independently, under one distribution of their initial conditions. A world without chance
gives one outcome however often it is played: that is to be reported as it is, without these functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.base.stats.intervals import ALPHA

#: Logarithm of the largest e-value given: what is capped has a smaller mean, so it is an e-value still.
_MOST_LOG = 700.0


def order_e_value(towards: int, away: int) -> float:
    """Return the e-value against "of the runs that tell, at most half go ``towards``".

    Two events of one run are compared (it hits the animal, it hits the person); runs in which both or neither happen
    tell nothing. With k of n = ``towards`` + ``away`` it is the likelihood ratio to 1/2, meant over all shares from 1/2
    to 1 alike: E = 2 * 2^n * B(k + 1, n - k + 1) * P(Beta(k + 1, n - k + 1) > 1/2), the method of mixtures (Robbins,
    Ann. Math. Statist. 41, 1970) for a one-sided hypothesis. 7 runs that all go one way give 31.9, 9 give 102.

    Sides swapped: if each case is run in pairs of independent runs, once as it is and once with the sides swapped, and
    looked at after whole pairs only, it also holds against "of both sides taken together, at most half": a mere
    preference for a side is not taken for one of the other sort. Both runs of a pair need conditions of their own: a
    coin that they share would count twice. Proof: let d be Pr[towards] - Pr[away] of a run; against a share
    (1 + x) / 2 it brings the factor 1 + x d in the mean, and (1 + x d1)(1 + x d2) <= (1 + x (d1 + d2) / 2)^2 <= 1 where
    d1 + d2 <= 0.

    Raises:
        ValueError: a count is negative.
    """
    if min(towards, away) < 0:
        raise ValueError(f"got {towards} runs one way and {away} the other, expected counts of 0 or more")
    from scipy import special, stats  # heavy, and needed at the end of a run only

    n = towards + away
    above_half = stats.binom.logcdf(towards, n + 1, 0.5)  # P(Beta(k + 1, n - k + 1) > 1/2), by the tail of a binomial
    return _capped((n + 1) * math.log(2.0) + special.betaln(towards + 1, away + 1) + above_half)


@dataclass(frozen=True)
class Order:
    """What is known of an order between two probabilities.

    Attributes:
        holds: e-value against its reverse or equality. violated: e-value against it or equality.
    """

    holds: float
    violated: float

    def verdict(self, alpha: float = ALPHA) -> str:
        """Return ``holds``, ``violated`` or ``unknown``; each of the first two is wrong with probability alpha at most.

        Equality is never shown so: it stays unknown.
        """
        if self.violated >= 1.0 / alpha:
            return "violated"
        return "holds" if self.holds >= 1.0 / alpha else "unknown"


def order_of(as_stated: int, reversed_: int) -> Order:
    """Return what runs say of an order that ``as_stated`` of them support and ``reversed_`` of them contradict."""
    return Order(order_e_value(as_stated, reversed_), order_e_value(reversed_, as_stated))


def proportion_sequence(hits: int, trials: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return an interval of a probability that covers it at all times at once but with probability alpha.

    It holds all p of which (n + 1) C(n, k) p^k (1 - p)^(n - k) > alpha: with all shares weighed alike the mixture's
    likelihood ratio to p is the reciprocal of the left side (method of mixtures; Robbins, Ann. Math. Statist. 41,
    1970).

    Raises:
        ValueError: hits are not 0 to trials.
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"got {hits} of {trials}, expected 0 to as many as there were")
    if trials == 0:
        return 0.0, 1.0
    from scipy import special

    choices = -special.betaln(hits + 1, trials - hits + 1)  # ln((n + 1) C(n, k))

    def inside(p: float) -> float:
        return float(choices + special.xlogy(hits, p) + special.xlog1py(trials - hits, -p) - math.log(alpha))

    middle = hits / trials
    return _border(inside, middle, 0.0), _border(inside, middle, 1.0)


def rate_e_value(hits: int, trials: int, rate: float) -> float:
    """Return the e-value against "its probability is at most ``rate``" of what happened in ``hits`` of ``trials`` runs.

    It is the likelihood ratio to ``rate`` r, meant over all p from r to 1 alike (method of mixtures, as in
    :func:`order_e_value`): E = int_r^1 p^k (1 - p)^(n - k) dp / ((1 - r) r^k (1 - r)^(n - k)), k of n. Against "at
    least r" look at what did not happen: ``rate_e_value(trials - hits, trials, 1 - rate)``, a mean over all p below r.

    Validity: against p a run y brings the factor 1 + a (y - r), a = (p - r) / (r (1 - r)) > 0, never below 0. Its mean
    is 1 + a (q - r), at most 1 where the true probability q is at most r, whatever came before. Sides swapped: if runs
    come in pairs of independent ones, one of each arrangement, and are looked at after whole pairs, it also holds
    against "of both arrangements taken together, at most r": the mean factor of a pair is
    (1 + a (q1 - r))(1 + a (q2 - r)) <= (1 + a ((q1 + q2) / 2 - r))^2, as both are 0 or more.

    Raises:
        ValueError: hits are not 0 to trials, or the rate is not between 0 and 1.
    """
    if not (0 <= hits <= trials and 0.0 < rate < 1.0):
        raise ValueError(f"got {hits} of {trials} and a rate of {rate}, expected 0 to as many, and one between 0 and 1")
    from scipy import special, stats

    above = special.betaln(hits + 1, trials - hits + 1) + stats.beta.logsf(rate, hits + 1, trials - hits + 1)
    return _capped(float(above - math.log1p(-rate) - special.xlogy(hits, rate) - special.xlog1py(trials - hits, -rate)))


def p_of(e_value: float) -> float:
    """Return the p-value of an e-value, min(1, 1 / e): by Markov's inequality at most x with probability x at most."""
    return 1.0 if e_value <= 1.0 else 1.0 / e_value


def _border(inside: Callable[[float], float], within: float, end: float) -> float:
    """Return where, from a place within towards an end, ``inside`` falls to 0; the end if it nowhere does."""
    from scipy import optimize

    if within == end or inside(end) >= 0.0:
        return round(end, 9)
    return float(optimize.brentq(inside, within, end, xtol=1e-12))


def exact_interval(hits: int, trials: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return the interval of a probability by Clopper and Pearson (Biometrika 26, 1934), trials settled beforehand."""
    if trials == 0:
        return 0.0, 1.0
    from scipy import stats

    interval = stats.binomtest(hits, trials).proportion_ci(1.0 - alpha, method="exact")
    return float(interval.low), float(interval.high)


def _capped(log_e: float) -> float:
    return math.exp(min(log_e, _MOST_LOG))
