# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import pytest

from mt_nodes.base.process_clock import ProcessClock


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s, self.ahead_s = 100.0, 1e9

    def __call__(self) -> float:
        return self.now_s

    def wall(self) -> float:
        return self.now_s + self.ahead_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_looked_at_often_it_is_the_clock_itself(clock: Clock) -> None:
    own = ProcessClock(clock, clock.wall)
    own.start_watching()
    for _ in range(100):
        clock.now_s += 0.1
        assert own() == clock.now_s


def test_it_stands_still_while_nobody_could_look(clock: Clock) -> None:
    own = ProcessClock(clock, clock.wall)
    own.start_watching()
    before = own()
    clock.now_s += 3600.0
    assert own() == before and own.disturbed == 1
    clock.now_s += 0.25
    assert own() == before + 0.25


def test_before_somebody_keeps_looking_a_gap_says_nothing(clock: Clock) -> None:
    own = ProcessClock(clock, clock.wall)
    clock.now_s += 3600.0
    assert own() == clock.now_s
    own.start_watching()
    assert own() == clock.now_s


def test_it_never_goes_back(clock: Clock) -> None:
    own = ProcessClock(clock, clock.wall)
    own.start_watching()
    told = []
    for step_s in (0.1, 5.0, 0.4, 0.6, 0.0, 100.0, 0.2):
        clock.now_s += step_s
        told.append(own())
    assert all(a <= b for a, b in itertools.pairwise(told))


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_step_of_the_wall_clock_is_noticed_and_moves_nothing(clock: Clock, step_s: float) -> None:
    own = ProcessClock(clock, clock.wall)
    own.start_watching()
    clock.now_s += 0.1
    own()
    assert own.disturbed == 0
    clock.ahead_s += step_s
    assert own() == clock.now_s and own.disturbed == 1
    clock.now_s += 0.1
    assert own() == clock.now_s and own.disturbed == 1
