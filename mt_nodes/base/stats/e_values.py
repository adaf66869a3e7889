# SPDX-License-Identifier: Apache-2.0
"""Sequential inference about probabilities from few runs: e-values and confidence sequences.

An e-value is a number of 0 or more whose mean is at most 1 while the null hypothesis is true. If that holds for any
stopping time, the e-value ever exceeds 1 / alpha with probability at most alpha (Ville's inequality): a campaign may
look after each run and stop at any time, and its error probability stays alpha. All functions here are of that kind
except those named *exact*, which need a number of runs fixed in advance. The exact sign test is
:func:`mt_nodes.base.stats.intervals.mcnemar_p`.

Runs are assumed independent, with one distribution of initial conditions. A deterministic world gives the same outcome
each time: report that as it is, without these functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.base.stats.intervals import ALPHA

#: Logarithm of the largest e-value returned: a capped one has a smaller mean, so it is still an e-value.
_MOST_LOG = 700.0


def order_e_value(towards: int, away: int) -> float:
    """Return the e-value against "of the informative runs, at most half go ``towards``".

    Two events of one run are compared (it hits the animal, it hits the person); runs with both or neither are not
    informative. With k of n = ``towards`` + ``away`` it is the likelihood ratio to 1/2, averaged uniformly over all
    shares from 1/2 to 1: E = 2 * 2^n * B(k + 1, n - k + 1) * P(Beta(k + 1, n - k + 1) > 1/2), the method of mixtures
    (Robbins, Ann. Math. Statist. 41, 1970) for a one-sided hypothesis. 7 runs that all go one way give 31.9, 9 give
    102.

    With sides swapped: if each case runs in pairs of independent runs, once as it is and once with the sides swapped,
    and is evaluated after whole pairs only, it also holds against "of both sides together, at most half", so that a
    preference for one side is not taken for a preference of another kind. The two runs of a pair need independent
    conditions: a shared coin would count twice. Proof: let d be Pr[towards] - Pr[away] of a run; against a share (1 +
    x) / 2 it contributes the factor 1 + x d in the mean, and (1 + x d1)(1 + x d2) <= (1 + x (d1 + d2) / 2)^2 <= 1 where
    d1 + d2 <= 0.
    Raises ValueError: a count is negative.
    """
    if min(towards, away) < 0:
        raise ValueError(f"got {towards} runs one way and {away} the other, expected counts of 0 or more")
    from scipy import special, stats  # heavy, and needed at the end of a run only

    n = towards + away
    above_half = stats.binom.logcdf(towards, n + 1, 0.5)  # P(Beta(k + 1, n - k + 1) > 1/2), by the tail of a binomial
    return _capped((n + 1) * math.log(2.0) + special.betaln(towards + 1, away + 1) + above_half)


@dataclass(frozen=True)
class Order:
    """Evidence about an order between two probabilities.

    ``holds``: e-value against its reverse or equality. ``violated``: e-value against it or equality.
    """

    holds: float
    violated: float

    def verdict(self, alpha: float = ALPHA) -> str:
        """Return ``holds``, ``violated`` or ``unknown``; each of the first two is wrong with probability at most alpha.

        Equality cannot be shown: it stays unknown.
        """
        if self.violated >= 1.0 / alpha:
            return "violated"
        return "holds" if self.holds >= 1.0 / alpha else "unknown"


def order_of(as_stated: int, reversed_: int) -> Order:
    """Return the evidence for an order, from the runs that support it and those that contradict it."""
    return Order(order_e_value(as_stated, reversed_), order_e_value(reversed_, as_stated))


def proportion_sequence(hits: int, trials: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return a confidence sequence for a probability, with error probability alpha at all times at once.

    It consists of all p with (n + 1) C(n, k) p^k (1 - p)^(n - k) > alpha: with uniform weights the mixture's likelihood
    ratio to p is the reciprocal of the left side (method of mixtures; Robbins, Ann. Math. Statist. 41, 1970).
    Raises ValueError: hits are not 0 to trials.
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
    """Return the e-value against "its probability is at most ``rate``" for an event in ``hits`` of ``trials`` runs.

    It is the likelihood ratio to ``rate`` r, averaged uniformly over all p from r to 1 (method of mixtures, as in
    :func:`order_e_value`): E = int_r^1 p^k (1 - p)^(n - k) dp / ((1 - r) r^k (1 - r)^(n - k)), k of n. Against "at
    least r" use the complement: ``rate_e_value(trials - hits, trials, 1 - rate)``, an average over all p below r.

    Validity: against p a run y contributes the factor 1 + a (y - r), a = (p - r) / (r (1 - r)) > 0, never below 0. Its
    mean is 1 + a (q - r), at most 1 if the true probability q is at most r, whatever came before. With sides swapped:
    for pairs of independent runs, one of each arrangement, evaluated after whole pairs, it also holds against "of both
    arrangements together, at most r": the mean factor of a pair is (1 + a (q1 - r))(1 + a (q2 - r)) <= (1 + a ((q1 +
    q2) / 2 - r))^2, as both are 0 or more.
    Raises ValueError: hits are not 0 to trials, or the rate is not between 0 and 1.
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
    """Return the place between ``within`` and ``end`` at which ``inside`` falls to 0, or the end if it nowhere does."""
    from scipy import optimize

    if within == end or inside(end) >= 0.0:
        return round(end, 9)
    return float(optimize.brentq(inside, within, end, xtol=1e-12))


def exact_interval(hits: int, trials: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a probability (Biometrika 26, 1934); the number of trials is fixed."""
    if trials == 0:
        return 0.0, 1.0
    from scipy import stats

    interval = stats.binomtest(hits, trials).proportion_ci(1.0 - alpha, method="exact")
    return float(interval.low), float(interval.high)


def _capped(log_e: float) -> float:
    return math.exp(min(log_e, _MOST_LOG))
