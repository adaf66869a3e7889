# SPDX-License-Identifier: Apache-2.0
"""Rates of events, with a confidence sequence: an interval that holds at every moment at once, however often one looks.

Whether an event begins is decided once a frame. Let p(i) be the probability that one begins in frame i, given all
before, L = p(1) + … + p(n) the number of events to be expected, and N that of events so far. For any r >= 0,
r^N exp(-(r - 1) L) is a nonnegative supermartingale that begins at 1, for 1 + (r - 1) p <= exp((r - 1) p). So is its
mean over r with a gamma distribution of shape and rate A,

    exp(L) A^A / Γ(A) · Γ(A + N) / (A + L)^(A + N),

which ever exceeds 1 / error with a probability of at most ``error`` (J. Ville, Étude critique de la notion de
collectif, 1939). The values of L at which it does not are the interval: the gamma-Poisson mixture of S. R. Howard, A.
Ramdas, J. McAuliffe, J. Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Ann. Statist. 49, 2021
(after H. Robbins, Statistical methods related to the law of the iterated logarithm, Ann. Math. Statist. 41, 1970).
Nothing is assumed of the events: neither that they are independent, nor that their rate is constant. The interval is
that of the mean rate over what was watched so far.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from mt_nodes.base.stats.intervals import ALPHA

#: Shape and rate of the mixture: with a half each, ten clean hours bound the rate by 0.44 an hour.
_A = 0.5
_HALVINGS = 60
_S_PER_H = 3600.0


class EventRate(NamedTuple):
    """Events for each hour that was watched, and the confidence sequence of it; all None where nothing was."""

    per_h: float | None
    low: float | None
    high: float | None


def event_rate(events: int, watched_s: float) -> EventRate:
    """Return the rate of events over a time, and its confidence sequence of level 1 - ALPHA."""
    if watched_s <= 0.0:
        return EventRate(None, None, None)
    hours = watched_s / _S_PER_H
    low, high = expected_events(events)
    return EventRate(events / hours, low / hours, high / hours)


def expected_events(events: int, error: float = ALPHA) -> tuple[float, float]:
    """Return between which numbers of events were to be expected; see the module."""
    # The logarithm is convex in L with its least value, below 0, where L is the number of events.
    high = events + 1.0
    while log_capital(events, high) <= -math.log(error):
        high *= 2.0
    low = 0.0 if log_capital(events, 0.0) <= -math.log(error) else _crossing(events, 0.0, float(events), error)
    return low, _crossing(events, high, float(events), error)


def clean_s(tolerated_per_h: float, events: int = 0) -> float:
    """Return how long must be watched, with so many events in all, to show that a rate is tolerated."""
    return expected_events(events)[1] / tolerated_per_h * _S_PER_H


def log_capital(events: int, expected: float) -> float:
    """Return the logarithm of the mixture against "so many events were to be expected"."""
    gammas = math.lgamma(_A + events) - math.lgamma(_A)
    return expected + _A * math.log(_A) + gammas - (_A + events) * math.log(_A + expected)


def _crossing(events: int, outside: float, inside: float, error: float) -> float:
    """Return where the mixture reaches 1 / error between a place outside of the interval and one inside."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (outside + inside)
        if log_capital(events, middle) > -math.log(error):
            outside = middle
        else:
            inside = middle
    return outside
