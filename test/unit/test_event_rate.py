# SPDX-License-Identifier: Apache-2.0
"""Confidence sequences of rates: they hold at all times together, which an interval for one time does not."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from mt_nodes.base.stats.event_rate import clean_s, event_rate, expected_events, log_capital

RUNS, FRAMES = 1000, 3000


def garwood(events: int) -> tuple[float, float]:
    """The exact interval of a Poisson mean for one time (F. Garwood, Biometrika 28, 1936)."""
    return float(special.gammaincinv(events, 0.025)) if events else 0.0, float(special.gammaincinv(events + 1, 0.975))


@cache
def steady() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Events so far (runs, frames), and those to be expected, at a constant probability."""
    begun = np.random.default_rng(1).random((RUNS, FRAMES)) < 0.02
    return begun.cumsum(axis=1), np.broadcast_to(0.02 * np.arange(1, FRAMES + 1), begun.shape)


@cache
def bursts() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The same where each event makes the next one likelier for a while: no Poisson process."""
    rng = np.random.default_rng(2)
    excited, begun, expected = np.zeros(RUNS), np.zeros((RUNS, FRAMES), bool), np.zeros((RUNS, FRAMES))
    for frame in range(FRAMES):
        expected[:, frame] = probability = 0.004 + 0.3 * np.minimum(excited, 1.0)
        begun[:, frame] = rng.random(RUNS) < probability
        excited = 0.9 * excited + 0.2 * begun[:, frame]
    return begun.cumsum(axis=1), expected.cumsum(axis=1)


def ever_outside(made: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]], bounds: object) -> float:
    events, expected = made
    table = np.array([bounds(count) for count in range(int(events.max()) + 1)])  # type: ignore[operator]
    low, high = table[events].transpose(2, 0, 1)
    return float(((expected < low) | (expected > high)).any(axis=1).mean())


@pytest.mark.parametrize("made", [steady, bursts])
def test_the_truth_is_inside_at_all_times_together(made: object) -> None:
    # Three standard errors of the simulation above 5 %.
    assert ever_outside(made(), expected_events) <= 0.05 + 3 * (0.05 * 0.95 / RUNS) ** 0.5  # type: ignore[operator]


def test_an_interval_for_one_time_fails_that() -> None:
    """Were the interval too narrow, the test above would see it: it does of the usual exact one."""
    assert ever_outside(steady(), garwood) > 0.15


def test_the_sequence_is_no_wider_than_it_need_be() -> None:
    """Ten clean hours, and a hundred events: within 50 % of what an interval for one time has."""
    low, high = expected_events(0)
    assert low == 0.0 and 3.69 < high < 4.6
    (low, high), (least, most) = expected_events(100), garwood(100)
    assert low < least and high > most and high - low < 1.75 * (most - least)


@pytest.mark.parametrize("events", [0, 1, 7, 5000])
def test_bounds_are_where_the_mixture_reaches_its_level(events: int) -> None:
    low, high = expected_events(events, 0.1)
    assert low <= events <= high
    assert log_capital(events, high) == pytest.approx(np.log(10.0), abs=1e-6)
    assert low == 0.0 or log_capital(events, low) == pytest.approx(np.log(10.0), abs=1e-6)


def test_the_mixture_has_a_mean_of_at_most_one() -> None:
    events, expected = bursts()
    capital = np.exp([log_capital(int(n), float(mean)) for n, mean in zip(events[:, 20], expected[:, 20], strict=True)])
    assert capital.mean() <= 1.0 + 4 * capital.std() / RUNS**0.5


def test_nothing_watched_has_no_rate() -> None:
    assert event_rate(0, 0.0) == (None, None, None)
    rate = event_rate(3, 7200.0)
    assert rate.per_h == 1.5 and rate.low is not None and rate.high is not None and rate.low < 1.5 < rate.high


def test_how_long_must_be_watched() -> None:
    enough_s = clean_s(0.5)
    assert event_rate(0, enough_s).high == pytest.approx(0.5)
