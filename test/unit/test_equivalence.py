# SPDX-License-Identifier: Apache-2.0
"""Distances of drives, the permutation test against enumeration, and how often verdicts are wrong."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from mt_nodes.runs.moral.equivalence import (
    energy_p,
    equality,
    least_p,
    trace_distance,
    trace_distances,
)
from mt_nodes.world.drive.trace import Trace

ALPHA = 0.05


def drive(rows: int, *, left_m: float = 0.0, speed_mps: float = 10.0, late_rows: int = 0) -> Trace:
    """A drive straight on, a row each 0.1 s."""
    time_s = 0.1 * np.arange(rows, dtype=np.float64)
    x = speed_mps * np.maximum(time_s - 0.1 * late_rows, 0.0)
    ego = np.column_stack([x, np.full(rows, left_m), *np.zeros((3, rows)), np.zeros(rows)])
    ego[:, 3] = speed_mps
    nothing = np.zeros((rows, 0, 4))
    return Trace("made", time_s, ego, nothing, (), np.full((rows, 3), np.nan), np.ones(rows, bool), (), "time")


def test_distances_of_drives_are_metres_and_half_seconds() -> None:
    assert trace_distance(drive(40), drive(40)) == 0.0
    assert trace_distance(drive(40), drive(40, left_m=1.5)) == pytest.approx(1.5)
    assert trace_distance(drive(40), drive(40, left_m=1.5), "frechet") == pytest.approx(1.5)
    assert trace_distance(drive(40), drive(40, late_rows=2)) < 0.5 < trace_distance(drive(40), drive(40, late_rows=15))
    standing, lying = drive(40, speed_mps=0.0), drive(40, speed_mps=0.0)
    lying.ego[:, 3] = 4.0
    assert trace_distance(standing, lying) == pytest.approx(2.0)


def test_who_ends_early_stays_there() -> None:
    """Of two that part only because one hits somebody, the distance is what the other drove on."""
    whole = drive(60)
    far = [trace_distance(whole, drive(rows)) for rows in (60, 50, 40, 20)]
    assert far[0] == 0.0 and far[1] < far[2] < far[3] and far[3] > 5.0
    assert trace_distance(drive(20), whole) == pytest.approx(far[3])
    early, late = (drive(rows, left_m=2.0, speed_mps=0.0) for rows in (40, 60))
    assert trace_distance(early, late) == 0.0


def test_all_distances_are_symmetric() -> None:
    traces = [drive(30), drive(30, left_m=1.0), drive(24)]
    distances = trace_distances(traces, "time")
    assert np.array_equal(distances, distances.T) and not distances.diagonal().any()
    assert distances[0, 1] == trace_distance(traces[0], traces[1], "time") == 1.0


def between(values: np.ndarray) -> np.ndarray:
    """(N, N) distances of numbers."""
    return np.asarray(np.abs(values[:, None] - values[None]))


def test_the_permutation_test_is_enumeration_with_the_energy_distance() -> None:
    values = np.random.default_rng(3).normal(size=9)
    values[4:] += 0.8
    energy = {
        chosen: stats.energy_distance(values[list(chosen)], np.delete(values, chosen))
        for chosen in combinations(range(9), 4)
    }
    expected = np.mean([e >= energy[0, 1, 2, 3] - 1e-9 for e in energy.values()])
    assert energy_p(between(values), 4) == pytest.approx(expected)
    assert 0.01 < expected < 0.9


def test_the_paired_permutation_test_is_enumeration_of_exchanges() -> None:
    values = np.random.default_rng(1).normal(size=10)
    values[5:] += 0.5
    energy = []
    for swaps in product((False, True), repeat=5):
        first, second = np.where(swaps, values[5:], values[:5]), np.where(swaps, values[:5], values[5:])
        energy.append(stats.energy_distance(first, second))
    assert energy_p(between(values), 5, paired=True) == pytest.approx(np.mean(np.array(energy) >= energy[0] - 1e-9))


def test_no_p_value_is_below_the_least_and_arms_far_apart_reach_it() -> None:
    known = {4: 0.029, 5: 0.008, 6: 0.0022, 8: 1.6e-4}
    for runs, p in known.items():
        apart = between(np.concatenate([np.arange(runs), 100.0 + np.arange(runs)]))
        assert energy_p(apart, runs) == pytest.approx(least_p(runs)) == pytest.approx(p, rel=0.05)
    for runs, p in {6: 0.031, 8: 0.008}.items():
        apart = between(np.concatenate([np.arange(runs), 100.0 + np.arange(runs)]))
        assert energy_p(apart, runs, paired=True) == pytest.approx(least_p(runs, paired=True))
        assert least_p(runs, paired=True) == pytest.approx(p, abs=5e-4)


@pytest.mark.parametrize("paired", [False, True])
def test_many_arrangements_are_drawn_and_the_same_ones_again(paired: bool) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=30)
    values[15:] += 0.5
    p = energy_p(between(values), 15, paired=paired, seed=1)
    assert p == energy_p(between(values), 15, paired=paired, seed=1)
    assert p == pytest.approx(energy_p(between(values), 15, paired=paired, seed=2), abs=0.02)
    assert 1 / 16384 <= p < 1.0


def test_what_is_no_two_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="samples of 0 and 4"):
        energy_p(np.zeros((4, 4)), 0)
    with pytest.raises(ValueError, match="samples of 1 and 3"):
        energy_p(np.zeros((4, 4)), 1, paired=True)
    with pytest.raises(ValueError, match="finite"):
        energy_p(np.full((4, 4), math.inf), 2)
    for runs in (3, 7):
        with pytest.raises(ValueError, match=f"distances of {runs} runs"):
            equality(np.zeros((runs, runs)))


def arms(rng: np.random.Generator, runs: int, *, other: float = 0.0, control: float = 0.0) -> np.ndarray:
    """(3 n, 3 n) distances of three normal arms, the last two shifted."""
    values = rng.normal(size=(3, runs)) + np.array([[0.0], [control], [other]])
    return between(values.reshape(-1))


def test_verdicts_by_what_there_is() -> None:
    rng = np.random.default_rng(6)
    alike = equality(arms(rng, 12))
    assert alike.verdict == "equal" and alike.high <= alike.margin and "allowed" in alike.reason
    apart = equality(arms(rng, 12, other=8.0))
    assert apart.verdict == "unequal" and apart.p < 0.001 and apart.low > 0.0
    broken = equality(arms(rng, 12, control=8.0))
    assert broken.verdict == "undecided" and "control arm" in broken.reason and broken.control_p < 0.01
    few = equality(arms(rng, 3, other=8.0))
    assert few.verdict == "undecided" and "3 runs an arm" in few.reason
    between_both = equality(arms(np.random.default_rng(1), 6, other=3.0), factor=0.1)
    assert between_both.low < between_both.excess < between_both.high


def test_without_chance_equal_is_equal_and_different_is_different() -> None:
    runs = 6
    same = equality(np.zeros((3 * runs, 3 * runs)), paired=True)
    assert (same.verdict, same.margin, same.excess, same.p) == ("equal", 0.0, 0.0, 1.0)
    values = np.zeros(3 * runs)
    values[2 * runs :] = 1.0
    other = equality(between(values), paired=True)
    assert (other.verdict, other.low) == ("unequal", 1.0) and other.p == pytest.approx(1 / 32)


def counted(verdict: str, campaigns: int, **shift: float) -> int:
    rng = np.random.default_rng(11)
    return sum(equality(arms(rng, 6, **shift)).verdict == verdict for _ in range(campaigns))


def test_wrong_verdicts_are_as_rare_as_the_level_says() -> None:
    campaigns = 150
    most = stats.binom.ppf(0.999, campaigns, ALPHA)
    assert counted("unequal", campaigns) <= most
    # |N(6, 2)| is 6 from the first arm in the mean: 4.9 more than the control, where the margin is about 4.2.
    assert counted("equal", campaigns, other=6.0) <= most
    # So that these bounds are no empty ones: what is there is found.
    assert counted("unequal", campaigns, other=8.0) > 140 and counted("equal", campaigns) > 100
