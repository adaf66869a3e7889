# SPDX-License-Identifier: Apache-2.0
"""Anytime-valid tools against closed forms, enumeration, known figures, and false alarms counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from mt_nodes.base.stats.betting import difference_sequence
from mt_nodes.base.stats.e_values import (
    Order,
    exact_interval,
    order_e_value,
    order_of,
    proportion_sequence,
)
from mt_nodes.base.stats.intervals import mcnemar_p

ALPHA = 0.05
CAP = 100
"""Runs at most of one simulated campaign, looked at after each of them."""


@lru_cache
def order_table(runs: int) -> np.ndarray:
    """(k, n - k) to e-value, so that thousands of campaigns need no more than look-ups."""
    return np.array([[order_e_value(k, m) for m in range(runs + 1)] for k in range(runs + 1)])


def rarely(alarms: int, campaigns: int, level: float) -> bool:
    """Whether so many alarms are what chance brings at a level: not beyond what 1 of 1000 campaigns would exceed."""
    return bool(alarms <= stats.binom.ppf(0.999, campaigns, level))


@given(st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_the_order_e_value_is_the_mixture_of_likelihood_ratios(k: int, m: int) -> None:
    ratio = lambda share: 2.0 * (2.0 * share) ** k * (2.0 * (1.0 - share)) ** m  # noqa: E731
    assert order_e_value(k, m) == pytest.approx(integrate.quad(ratio, 0.5, 1.0)[0], rel=1e-9)


def test_the_order_e_value_has_mean_one_at_a_half_and_less_below() -> None:
    def mean(share: float, runs: int) -> float:
        return sum(float(stats.binom.pmf(k, runs, share)) * order_e_value(k, runs - k) for k in range(runs + 1))

    assert mean(0.5, 9) == pytest.approx(1.0, abs=1e-12)
    assert mean(0.4, 9) < 0.9


def test_seven_runs_one_way_decide_at_five_in_a_hundred_and_nine_at_one_in_eighty() -> None:
    assert order_e_value(6, 0) < 20.0 <= order_e_value(7, 0) == pytest.approx(31.875)
    assert order_e_value(8, 0) < 80.0 <= order_e_value(9, 0) == pytest.approx(102.3)
    assert [order_of(7, 0).verdict(), order_of(0, 7).verdict(), order_of(6, 0).verdict()] == [
        "holds",
        "violated",
        "unknown",
    ]
    assert Order(1.0, 19.9).verdict() == "unknown" and Order(1.0, 19.9).verdict(0.1) == "violated"


def test_order_e_values_grow_with_what_speaks_for_them_and_never_run_over() -> None:
    table = order_table(20)
    assert (np.diff(table, axis=0) > 0.0).all() and (np.diff(table, axis=1) < 0.0).all()
    assert order_e_value(0, 0) == 1.0
    assert math.isfinite(order_e_value(100_000, 0)) and 0.0 <= order_e_value(0, 100_000) < 1e-4
    with pytest.raises(ValueError, match="-1 runs one way"):
        order_e_value(-1, 3)


def campaigns(draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], count: int) -> int:
    """Count campaigns in which the e-value ever says that the first of two events is the more frequent.

    Args:
        draw: (count, runs) of 1, -1 and 0: the first only, the second only, both or neither.
    """
    told = draw(np.random.default_rng(20), (count, CAP))
    table = order_table(CAP)
    e_values = table[(told == 1).cumsum(axis=1), (told == -1).cumsum(axis=1)]
    return int((e_values.max(axis=1) >= 1.0 / ALPHA).sum())


def test_without_an_order_a_look_after_each_run_seldom_finds_one() -> None:
    assert rarely(campaigns(lambda rng, shape: rng.choice([-1, 1], shape), 4000), 4000, ALPHA)
    assert rarely(campaigns(lambda rng, shape: rng.choice([-1, 0, 1], shape, p=[0.2, 0.6, 0.2]), 4000), 4000, ALPHA)
    # So that the bound above is one that an error would break: 0.65 is no half.
    assert not rarely(campaigns(lambda rng, shape: rng.choice([-1, 1], shape, p=[0.35, 0.65]), 4000), 4000, ALPHA)


@pytest.mark.parametrize("right", [0.6, 0.9, 1.0])
def test_a_preference_for_a_side_is_no_order_if_whole_pairs_of_swapped_runs_are_looked_at(right: float) -> None:
    """The animal stands on the right in the first run of each pair and on the left in the second."""
    count, rng = 4000, np.random.default_rng(4)
    to_the_right = rng.random((count, CAP)) < right
    animal = to_the_right ^ (np.arange(CAP) % 2 == 1)
    table = order_table(CAP)
    e_values = table[animal.cumsum(axis=1), (~animal).cumsum(axis=1)][:, 1::2]
    assert rarely(int((e_values.max(axis=1) >= 1.0 / ALPHA).sum()), count, ALPHA)


@pytest.mark.parametrize(("share", "runs"), [(0.99, 7.3), (0.9, 10.9), (0.8, 19.2)])
def test_runs_that_an_order_needs_are_those_known(share: float, runs: float) -> None:
    rng, table = np.random.default_rng(1), order_table(CAP)
    told = rng.random((3000, CAP)) < share
    decided = table[told.cumsum(axis=1), (~told).cumsum(axis=1)] >= 20.0
    needed = np.where(decided.any(axis=1), decided.argmax(axis=1) + 1, CAP)
    assert needed.mean() == pytest.approx(runs, rel=0.06)


@cache
def covers(share: float, hits: int, trials: int) -> bool:
    low, high = proportion_sequence(hits, trials)
    return low <= share <= high


def test_the_sequence_for_a_probability_is_where_the_mixture_is_below_its_bound() -> None:
    for hits, trials in ((3, 10), (0, 29), (20, 20), (50, 200)):
        low, high = proportion_sequence(hits, trials)
        for p, inner in ((low, 1e-4), (high, -1e-4)):
            if 0.0 < p < 1.0:
                inside, outside = ((trials + 1) * stats.binom.pmf(hits, trials, p + shift) for shift in (inner, -inner))
                assert outside < ALPHA < inside
        assert low <= hits / trials <= high
    assert proportion_sequence(0, 29)[0] == 0.0 and proportion_sequence(20, 20)[1] == 1.0
    assert proportion_sequence(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="5 of 4"):
        proportion_sequence(5, 4)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_sequence_for_a_probability_covers_it_at_all_times_at_once(share: float) -> None:
    rng, count = np.random.default_rng(7), 1000
    hits = (rng.random((count, CAP)) < share).cumsum(axis=1)
    missed = sum(not all(covers(share, k, n) for n, k in enumerate(row, 1)) for row in hits.tolist())
    assert rarely(missed, count, ALPHA)


@pytest.mark.parametrize(
    "shares", [(0.02, 0.0), *(pytest.param(s, marks=pytest.mark.long) for s in ((0.3, 0.3), (0.5, 0.2)))]
)
def test_the_sequence_for_a_difference_covers_it_at_all_times_at_once(shares: tuple[float, float]) -> None:
    up, down = shares
    rng, count, runs = np.random.default_rng(8), 400, 60
    told = rng.choice([1, -1, 0], (count, runs), p=[up, down, 1.0 - up - down])
    missed = 0
    for row in told:
        for n in range(5, runs + 1, 5):
            ups, downs = int((row[:n] == 1).sum()), int((row[:n] == -1).sum())
            low, high = bounds(ups, downs, n - ups - downs)
            if not low <= up - down <= high:
                missed += 1
                break
    assert rarely(missed, count, ALPHA)


bounds = cache(difference_sequence)


def test_the_sequence_for_a_difference_turns_with_its_arguments_and_narrows() -> None:
    low, high = difference_sequence(12, 3, 25)
    assert difference_sequence(3, 12, 25) == pytest.approx((-high, -low), abs=1e-9)
    assert low < 9 / 40 < high
    wide, narrow = difference_sequence(6, 6, 8), difference_sequence(60, 60, 80)
    assert wide[0] < narrow[0] < 0.0 < narrow[1] < wide[1]
    assert difference_sequence(3, 0, 200)[1] < 0.12, "that nothing happened counts, too"
    assert difference_sequence(0, 0, 0) == (-1.0, 1.0)
    assert difference_sequence(0, 5, 0)[0] == -1.0 and difference_sequence(5, 0, 0)[1] == 1.0
    with pytest.raises(ValueError, match="-2"):
        difference_sequence(1, -2, 3)


def test_a_difference_is_above_nothing_as_soon_as_the_order_is_sure() -> None:
    """At a mean of 0 the bets are the order's likelihood ratios, so both agree but for the grid of stakes."""
    for alpha, runs in ((0.05, 7), (0.0125, 9)):
        assert difference_sequence(runs - 1, 0, 4, 2 * alpha)[0] < 0.0 < difference_sequence(runs, 0, 4, 2 * alpha)[0]


def test_the_exact_interval_is_that_of_clopper_and_pearson() -> None:
    low, high = exact_interval(3, 20)
    assert stats.binom.sf(2, 20, low) == pytest.approx(0.025) and stats.binom.cdf(3, 20, high) == pytest.approx(0.025)
    assert exact_interval(0, 29)[1] == pytest.approx(1.0 - 0.025 ** (1 / 29)) and exact_interval(0, 0) == (0.0, 1.0)


def test_discordant_runs_that_the_exact_sign_test_needs_are_those_known() -> None:
    least = [next(n for n in range(1, 20) if mcnemar_p(n, 0) <= alpha) for alpha in (0.05, 0.025, 0.0125, 0.01)]
    assert least == [5, 6, 7, 7]
