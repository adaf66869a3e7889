# SPDX-License-Identifier: Apache-2.0
"""Tests stop when the live stack suffers, and go on only when it is well for a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mt_nodes.base.safety_settings import Guard
from mt_nodes.runs.vehicle.live_guard import ComputerGuard, Health, LiveGuard, hottest_c, load_per_core

SETTINGS = Guard(baseline_s=10.0, window_s=5.0, recover_s=3.0, latency_ratio=1.5, rate_ratio=0.9)


class Drive:
    """A live stack that answers at a rate with a latency, and whether tests may go on at each instant."""

    def __init__(self, settings: Guard = SETTINGS) -> None:
        self.guard, self.now_s = LiveGuard(settings), 0.0

    def on(self, seconds: float, rate_hz: float = 10.0, latency_s: float = 0.020) -> list[bool]:
        return [health.well for _, health in self._looks(seconds, rate_hz, latency_s)]

    def _looks(self, seconds: float, rate_hz: float, latency_s: float) -> Iterator[tuple[float, Health]]:
        end_s, due_s = self.now_s + seconds, self.now_s
        while self.now_s < end_s - 1e-9:
            if rate_hz and self.now_s >= due_s - 1e-9:
                self.guard.answered(self.now_s, latency_s)
                due_s += 1.0 / rate_hz
            yield self.now_s, self.guard.health(self.now_s)
            self.now_s += 0.05

    @property
    def why(self) -> str:
        return self.guard.health(self.now_s).why


def after_baseline(settings: Guard = SETTINGS) -> Drive:
    drive = Drive(settings)
    assert not any(drive.on(10.0))
    return drive


def test_nothing_is_tested_while_the_live_stack_alone_is_measured() -> None:
    drive = after_baseline()
    assert all(drive.on(20.0))
    assert drive.guard.baseline == pytest.approx((10.0, 0.020), rel=0.02)


def test_a_stack_as_it_was_before_stays_well() -> None:
    assert all(after_baseline().on(30.0, 9.5, 0.028))


def test_nothing_is_tested_before_a_window_that_is_longer_than_the_baseline_is_full() -> None:
    """Until then nobody knows how the live stack is."""
    drive = Drive(Guard(baseline_s=5.0, window_s=20.0, recover_s=3.0))
    assert not any(drive.on(20.0))
    assert all(drive.on(10.0))


def test_a_stack_that_is_silent_is_not_taken_for_a_quick_one() -> None:
    drive = after_baseline(replace(SETTINGS, rate_ratio=0.0))
    assert all(drive.on(10.0, 5.0)), "its rate is not watched"
    assert not any(drive.on(20.0, 0.0)[-200:]) and "latency" in drive.why


@pytest.mark.parametrize(("rate_hz", "latency_s", "says"), [(10.0, 0.040, "latency"), (5.0, 0.020, "times a second")])
def test_a_stack_that_is_slower_stops_tests_until_it_is_well_for_a_while(
    rate_hz: float, latency_s: float, says: str
) -> None:
    drive = after_baseline()
    drive.on(10.0)
    ill = drive.on(10.0, rate_hz, latency_s)
    first = ill.index(False)
    assert 0 < first * 0.05 <= SETTINGS.window_s and not any(ill[first:])
    assert says in drive.why
    well = drive.on(15.0)
    again_s = well.index(True) * 0.05
    assert SETTINGS.recover_s <= again_s <= SETTINGS.window_s + SETTINGS.recover_s + 0.5
    assert all(well[well.index(True) :])


def test_a_stack_that_falls_silent_stops_tests() -> None:
    drive = after_baseline()
    assert drive.on(SETTINGS.window_s + 0.2, rate_hz=0.0)[-1] is False


def test_one_slow_answer_of_many_does_not() -> None:
    drive = after_baseline()
    for _ in range(5):
        assert all(drive.on(4.9))
        drive.guard.answered(drive.now_s, 1.0)


def test_what_answers_too_seldom_to_be_watched_is_not_tested() -> None:
    drive = Drive()
    assert not any(drive.on(30.0, rate_hz=0.5))
    assert "too seldom" in drive.why


def test_a_ratio_of_zero_is_not_watched() -> None:
    drive = after_baseline(Guard(baseline_s=10.0, latency_ratio=0.0, rate_ratio=0.0))
    assert all(drive.on(20.0, rate_hz=1.0, latency_s=5.0))


@pytest.mark.parametrize(
    ("settings", "hottest", "load", "says"),
    [
        (Guard(temperature_c=90.0), 91.0, 0.0, "91.0 °C"),
        (Guard(temperature_c=90.0), 89.0, 0.0, ""),
        (Guard(temperature_c=90.0), None, 0.0, "tells no temperature"),
        (Guard(), None, 99.0, ""),
        (Guard(load=1.5), None, 1.6, "1.60 processes"),
        (Guard(load=1.5), None, 1.4, ""),
    ],
)
def test_heat_and_load_stop_tests(settings: Guard, hottest: float | None, load: float, says: str) -> None:
    health = ComputerGuard(settings, lambda: hottest, lambda: load).health()
    assert health.well is not bool(says) and says in health.why


def test_the_hottest_zone_counts_and_a_zone_without_a_reading_does_not(tmp_path: Path) -> None:
    assert hottest_c(tmp_path) is None
    for number, text in enumerate(("41000\n", "63500\n", "")):
        (tmp_path / f"thermal_zone{number}").mkdir()
        (tmp_path / f"thermal_zone{number}" / "temp").write_text(text)
    assert hottest_c(tmp_path) == 63.5
    assert load_per_core() >= 0.0
