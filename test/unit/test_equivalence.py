# SPDX-License-Identifier: Apache-2.0
"""The permutation test against enumeration."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from mt_nodes.runs.moral.equivalence import energy_p, likeness


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


def test_no_p_value_is_below_the_least_and_arms_far_apart_reach_it() -> None:
    for runs, p in {4: 0.029, 5: 0.008, 6: 0.0022, 8: 1.6e-4}.items():
        apart = between(np.concatenate([np.arange(runs), 100.0 + np.arange(runs)]))
        assert energy_p(apart, runs) == pytest.approx(2 / math.comb(2 * runs, runs)) == pytest.approx(p, rel=0.05)


def test_many_arrangements_are_drawn_and_the_same_ones_again() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=30)
    values[15:] += 0.5
    p = energy_p(between(values), 15, seed=1)
    assert p == energy_p(between(values), 15, seed=1)
    assert p == pytest.approx(energy_p(between(values), 15, seed=2), abs=0.02)
    assert 1 / 16384 <= p < 1.0


def test_what_is_no_two_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="samples of 0 and 4"):
        energy_p(np.zeros((4, 4)), 0)
    with pytest.raises(ValueError, match="finite"):
        energy_p(np.full((4, 4), math.inf), 2)
    for runs in (3, 7):
        with pytest.raises(ValueError, match=f"distances of {runs} runs"):
            likeness(np.zeros((runs, runs)))
