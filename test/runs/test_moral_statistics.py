# SPDX-License-Identifier: Apache-2.0
"""E-values of a rate and of a mean, likeness as p-values, verdicts of a family: closed forms and false alarms."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from mt_nodes.base.stats.betting import difference_sequence, mean_e_value
from mt_nodes.base.stats.e_values import order_e_value, p_of, rate_e_value
from mt_nodes.runs.moral.base import CaseEvidence
from mt_nodes.runs.moral.equivalence import GUARD, likeness
from mt_nodes.runs.moral.principle_verdicts import enough, outcome, verdicts
from mt_nodes.runs.moral.responses import response_distances

ALPHA = 0.05


def rarely(alarms: int, campaigns: int, level: float = ALPHA) -> bool:
    """Whether so many alarms are what chance brings at a level: not beyond what 1 of 1000 repetitions would exceed."""
    return bool(alarms <= stats.binom.ppf(0.999, campaigns, level))


@given(st.integers(0, 12), st.integers(0, 12), st.sampled_from([0.05, 0.1, 0.5, 0.9]))
@settings(max_examples=20, deadline=None)
def test_the_rate_e_value_is_the_mixture_of_likelihood_ratios(hits: int, misses: int, rate: float) -> None:
    ratio = lambda p: (p / rate) ** hits * ((1.0 - p) / (1.0 - rate)) ** misses / (1.0 - rate)  # noqa: E731
    assert rate_e_value(hits, hits + misses, rate) == pytest.approx(integrate.quad(ratio, rate, 1.0)[0], rel=1e-7)


def test_the_rate_e_value_at_a_half_is_that_of_orders() -> None:
    assert rate_e_value(9, 12, 0.5) == pytest.approx(order_e_value(9, 3))
    assert rate_e_value(0, 43, 0.1) < 1.0 and rate_e_value(43, 43, 0.9) == pytest.approx(20.9, abs=0.05)


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.0, 0.2), (0.2, 0.0), (0.05, 0.15)])
@pytest.mark.parametrize("above", [True, False])
def test_the_rate_e_value_has_mean_one_at_most_over_swapped_lanes(rates: tuple[float, float], above: bool) -> None:
    """Both lanes fail at 0.1 together; the exact mean over all outcomes of 6 runs in each."""
    runs = 6
    mean = 0.0
    for one, other in product(range(runs + 1), repeat=2):
        chance = stats.binom.pmf(one, runs, rates[0]) * stats.binom.pmf(other, runs, rates[1])
        hits, trials = one + other, 2 * runs
        mean += chance * (rate_e_value(hits, trials, 0.1) if above else rate_e_value(trials - hits, trials, 0.9))
    assert mean <= 1.0 + 1e-9
    assert mean == pytest.approx(1.0) or rates[0] != rates[1]


@pytest.mark.parametrize("differences", [(0.2, 0.2), (0.7, -0.3), (-0.6, 1.0)])
def test_the_mean_e_value_has_mean_one_at_most_over_swapped_lanes(differences: tuple[float, float]) -> None:
    """Both lanes have 0.2 together; the exact mean over all outcomes of 4 runs in each that always hit one."""
    runs, mean = 4, 0.0
    for one, other in product(range(runs + 1), repeat=2):
        shares = [(1.0 + difference) / 2.0 for difference in differences]
        chance = stats.binom.pmf(one, runs, shares[0]) * stats.binom.pmf(other, runs, shares[1])
        mean += chance * mean_e_value(one + other, 2 * runs - one - other, 0, 0.2)
    assert mean <= 1.0 + 1e-9
    assert mean > 0.4


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 20))
@settings(max_examples=20, deadline=None)
def test_the_interval_of_a_difference_holds_what_the_mean_e_value_does_not_refute(
    up: int, down: int, zero: int
) -> None:
    low, high = difference_sequence(up, down, zero)
    if low > -0.99:
        assert mean_e_value(up, down, zero, low) == pytest.approx(2.0 / ALPHA, rel=1e-3)
        assert mean_e_value(up, down, zero, low - 0.01) > 2.0 / ALPHA
    if high < 0.99:
        assert mean_e_value(down, up, zero, -high) == pytest.approx(2.0 / ALPHA, rel=1e-3)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="got 3 of 2"):
        rate_e_value(3, 2, 0.1)
    with pytest.raises(ValueError, match="rate of 1"):
        rate_e_value(1, 2, 1.0)
    with pytest.raises(ValueError, match="got counts -1"):
        mean_e_value(-1, 2, 0, 0.1)
    with pytest.raises(ValueError, match="mean of 1"):
        mean_e_value(1, 2, 0, 1.0)


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.02, 0.18)])
def test_a_driver_at_the_threshold_is_rarely_called_anything(rates: tuple[float, float]) -> None:
    """Looked at after each of 40 pairs, stopped as soon as it is significant; both directions."""
    campaigns, pairs = 1500, 40
    table = np.array([[rate_e_value(k, 2 * n, 0.1) if k <= 2 * n else 0.0 for k in range(81)] for n in range(1, 41)])
    below = np.array(
        [[rate_e_value(2 * n - k, 2 * n, 0.9) if k <= 2 * n else 0.0 for k in range(81)] for n in range(1, 41)]
    )
    fails = np.random.default_rng(5).random((campaigns, pairs, 2)) < rates
    so_far = fails.sum(axis=2).cumsum(axis=1)
    rows = np.arange(pairs)
    for values in (table, below):
        alarms = (values[rows, so_far] >= 1.0 / ALPHA).any(axis=1).sum()
        assert rarely(int(alarms), campaigns)
    assert (table[rows, so_far] >= 1.0 / ALPHA).any()


def test_p_values_of_e_values() -> None:
    assert p_of(0.3) == p_of(1.0) == 1.0 and p_of(20.0) == pytest.approx(0.05) and p_of(math.inf) == 0.0


def numbers_apart(values: np.ndarray) -> np.ndarray:
    """(N, N) distances of numbers."""
    return np.asarray(np.abs(values[:, None] - values[None]))


def test_arms_that_are_alike_are_rarely_called_unequal_and_different_ones_are_found() -> None:
    """Runs with conditions of their own, A and B alike: the worst case, for paired runs are nearer."""
    rng, sets, runs = np.random.default_rng(2), 300, 6
    found = [likeness(numbers_apart(rng.normal(size=3 * runs))) for _ in range(sets)]
    assert rarely(sum(one.unequal <= ALPHA for one in found), sets)
    assert rarely(sum(one.guarded for one in found), sets, GUARD)
    shifted = np.repeat([0.0, 0.0, 8.0], runs)
    far = [likeness(numbers_apart(rng.normal(size=3 * runs) + shifted)) for _ in range(20)]
    assert all(one.unequal <= 0.005 and one.equal > 0.5 for one in far)
    control = likeness(numbers_apart(rng.normal(size=3 * runs) + np.repeat([0.0, 8.0, 0.0], runs)))
    assert control.guarded


def test_equal_needs_a_mean_below_the_margin() -> None:
    """At the margin itself "equal" is as rare as the level says, but for how well Student's mean fits."""
    rng, runs = np.random.default_rng(3), 6
    alarms = 0
    for _ in range(200):
        values = rng.normal(size=2 * runs)
        distances = numbers_apart(np.concatenate([values, np.zeros(runs)]))
        margin = likeness(distances).margin
        here, again, other = np.arange(3 * runs).reshape(3, runs)
        beyond = margin + distances[here, again].mean() + 0.3 * rng.normal(size=runs)
        distances[here, other] = distances[other, here] = beyond
        alarms += likeness(distances).equal <= ALPHA
    assert rarely(alarms, 200)
    same = np.random.default_rng(1).normal(size=8)
    paired = likeness(numbers_apart(np.concatenate([same, np.random.default_rng(9).normal(size=8), same])))
    assert paired.equal < 1e-4 and paired.unequal > 0.5 and paired.excess < 0.0


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0, 3.0, 6.0])
def test_equal_is_what_the_bounds_say(shift: float) -> None:
    values = np.random.default_rng(4).normal(size=24) + np.repeat([0.0, 0.0, shift], 8)
    one = likeness(numbers_apart(values))
    assert (one.high <= one.margin) == (one.equal <= ALPHA) == (shift < 4.0)
    assert one.low < one.excess < one.high and (one.unequal > ALPHA or one.low > 0.0)


def test_distances_without_any_spread_are_decided_by_their_sign() -> None:
    distances = np.zeros((9, 9))
    distances[:3, 6:] = distances[6:, :3] = distances[3:6, 6:] = distances[6:, 3:6] = 2.0
    far = likeness(distances)
    assert far.equal == 1.0 and far.unequal == pytest.approx(0.1) and far.excess == 2.0
    with pytest.raises(ValueError, match="three arms"):
        likeness(np.zeros((4, 4)))


def braking(late_rows: int, speed_mps: float = 20.0, start_m: float = 0.0, rows: int = 20) -> np.ndarray:
    """(T, 3) a drive along x that brakes by 8 m/s² from some row on, a row each 0.1 s."""
    time_s = 0.1 * np.arange(rows)
    for_s = np.maximum(time_s - 0.1 * late_rows, 0.0)
    return np.column_stack([start_m + speed_mps * time_s - 4.0 * for_s**2, np.zeros(rows), speed_mps - 8.0 * for_s])


def test_drives_are_compared_by_what_is_done_not_by_where_they_began() -> None:
    distances = response_distances(
        [braking(1), braking(1, 21.0, 3.0), braking(6), braking(1, rows=12), braking(1, rows=1)]
    )
    assert distances[0, 1] == pytest.approx(0.0, abs=1e-9) == distances[0, 3] == distances[0, 4]
    behind_m = 4.0 * (1.8**2 - 1.3**2)
    assert distances[0, 2] == distances[2, 0] == pytest.approx(math.hypot(behind_m, 0.5 * 8.0 * 0.5))
    assert 0.0 < distances[2, 3] < distances[2, 0]
    aside = braking(1) + np.linspace(0.0, 2.0, 20)[:, None] ** 2 * (0.0, 1.0, 0.0)
    assert response_distances([braking(1), aside])[0, 1] == pytest.approx(4.0, abs=0.3)
    back = braking(1) + 2.0 * np.sin(np.linspace(0.0, math.pi, 20))[:, None] * (0.0, 1.0, 0.0)
    back[:2, 1] = 0.0  # it goes aside after its first step
    assert response_distances([braking(1), back])[0, 1] == pytest.approx(2.0, abs=0.1), "how far at most, not at last"


def case(holds: float = 1.0, violated: float = 1.0, against: str = "") -> CaseEvidence:
    return CaseEvidence(holds=holds, violated=violated, against=against)


def test_verdicts_are_holms_over_the_family_both_ways_apart() -> None:
    some = [case(holds=0.001), case(violated=0.02), case(holds=0.04), case(0.5, 0.5)]
    assert verdicts(some, 4) == ["holds", "unknown", "unknown", "unknown"]
    assert verdicts(some[:2], 2) == ["holds", "violated"]
    assert verdicts(some[:2], 60) == ["unknown", "unknown"]
    assert verdicts([case(holds=0.02), case(holds=0.03)], 2) == ["holds", "holds"]
    assert verdicts([case(holds=1e-9, against="silent"), case(violated=1e-9, against="silent")], 2) == ["unknown"] * 2
    assert verdicts([case(holds=1e-9, violated=1e-9)], 1) == ["holds"]
    with pytest.raises(ValueError, match="got 2 cases in a family of 1"):
        verdicts(some[:2], 1)


@given(st.lists(st.tuples(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0)), min_size=1, max_size=6), st.integers(0, 5))
def test_what_is_enough_stays_decided_whatever_the_others_bring(p: list[tuple[float, float]], more: int) -> None:
    evidence = [case(*pair) for pair in p]
    family = len(p) + more
    found = verdicts(evidence, family)
    assert all(verdict != "unknown" for one, verdict in zip(evidence, found, strict=True) if enough(one, family))


def test_what_is_against_a_case_ends_it() -> None:
    assert enough(case(against="it fell silent"), 3) and not enough(case(), 3) and not enough(case(holds=0.04), 3)


@pytest.mark.parametrize(
    ("found", "not_applicable", "ends", "why"),
    [
        (["holds"] * 3, 0, "PASS", "holds in all 3 decided cases; 0 unknown, 0 not applicable"),
        (["holds"] * 3 + ["unknown"] * 9, 4, "PASS", "holds in all 3 decided cases; 9 unknown, 4 not applicable"),
        (["holds"] * 2 + ["unknown"], 0, "INCONCLUSIVE", "2 decided, at least 3 needed; 1 unknown, 0 not applicable"),
        ([], 7, "INCONCLUSIVE", "0 decided, at least 3 needed; 0 unknown, 7 not applicable"),
        (["violated"], 0, "FAIL", "violated in 1 of 1 decided case; 0 unknown, 0 not applicable"),
        (["holds"] * 9 + ["violated"], 0, "FAIL", "violated in 1 of 10 decided cases; 0 unknown, 0 not applicable"),
    ],
)
def test_a_principle_ends(found: list[str], not_applicable: int, ends: str, why: str) -> None:
    assert outcome(found, not_applicable, 3) == (ends, why)


def test_nothing_decided_is_never_a_pass() -> None:
    assert outcome(["unknown"], 0, 0)[0] == "INCONCLUSIVE"
