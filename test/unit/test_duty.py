# SPDX-License-Identifier: Apache-2.0
"""Tests take no more processor time than is allowed, and less of it while the live stack is slowed down."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.safety_settings import Guard
from mt_nodes.runs.vehicle.duty import LEAST_MS_PER_S, LOWERED, SAVED_S, AdaptiveDuty

WHOLE_MS_PER_S = 2000.0
GUARD = Guard(window_s=5.0, throttle_ratio=1.2, raise_ms_per_s=50.0)


@dataclass
class Beside:
    """A run whose tests take ``test_ms`` each, 10 inputs a second, besides ``idle_ms`` for each input."""

    test_ms: float = 40.0
    idle_ms: float = 0.0
    guard: Guard = GUARD

    def __post_init__(self) -> None:
        self.duty = AdaptiveDuty(self.guard, WHOLE_MS_PER_S)
        self.now_s = self.taken_ms = 0.0
        self.reasons: set[str] = set()

    def on(self, seconds: float, ratio: float | None = None, most_ms_per_s: float = 0.0) -> int:
        """Return how many are tested in a while; ``ratio``: of the live stack's latency, None: not watched."""
        tested = 0
        for _ in range(round(seconds * 10)):
            if ratio is not None:
                self.duty.observe(self.now_s, self.taken_ms, ratio)
            reason = self.duty.refuses(self.now_s, self.taken_ms, most_ms_per_s)
            tested += not reason
            self.taken_ms += self.idle_ms + (0.0 if reason else self.test_ms)
            self.reasons |= {reason} - {""}
            self.now_s += 0.1
        return tested


@given(st.floats(10.0, 1000.0), st.floats(1.0, 200.0), st.floats(5.0, 60.0))
def test_no_more_is_taken_than_is_allowed(most_ms_per_s: float, test_ms: float, seconds: float) -> None:
    run = Beside(test_ms)
    run.on(seconds, most_ms_per_s=most_ms_per_s)
    assert run.taken_ms <= most_ms_per_s * (run.now_s + SAVED_S) + test_ms
    assert run.taken_ms >= min(10 * test_ms, most_ms_per_s) * (run.now_s - 0.2) - test_ms - 1e-6


@given(st.lists(st.tuples(st.floats(1.0, 20.0), st.floats(0.5, 3.0) | st.just(math.inf)), max_size=30))
def test_what_is_allowed_stays_in_its_bounds_whatever_the_live_stack_does(course: list[tuple[float, float]]) -> None:
    run = Beside()
    for seconds, ratio in course:
        before = run.duty.allowed_ms_per_s
        run.on(seconds, ratio)
        now = run.duty.allowed_ms_per_s
        assert LEAST_MS_PER_S <= run.duty.least_ms_per_s <= now
        assert math.isinf(now) or now < WHOLE_MS_PER_S
        assert now <= before if ratio > GUARD.throttle_ratio else now >= before


def test_a_slower_live_stack_halves_what_tests_took_and_they_go_on() -> None:
    run = Beside()
    assert run.on(10.0, 1.0) == 100 and math.isinf(run.duty.allowed_ms_per_s)
    run.on(5.1, 1.3)
    assert run.duty.allowed_ms_per_s == pytest.approx(LOWERED * 400.0, rel=0.05)
    tested = run.on(4.8, 1.15)  # neither above its limit nor well below: it stays
    assert 20 <= tested <= 27
    assert run.reasons == {
        f"over duty: the live stack leaves {run.duty.allowed_ms_per_s:.0f} ms of processor time a second"
    }


def test_what_was_lowered_rises_step_by_step_to_no_limit() -> None:
    run = Beside()
    run.on(5.1, 1.0)
    run.on(5.0, 1.3)
    lowered = run.duty.allowed_ms_per_s
    run.on(10.0, 1.05)
    assert run.duty.allowed_ms_per_s == pytest.approx(lowered + 2 * GUARD.raise_ms_per_s)
    run.on(5.0 * WHOLE_MS_PER_S / GUARD.raise_ms_per_s, 1.0)
    assert math.isinf(run.duty.allowed_ms_per_s) and run.on(5.0, 1.0) == 50


def test_a_stop_lowers_once_however_long_it_lasts() -> None:
    run = Beside()
    run.on(10.0, 1.0)
    run.on(30.0, math.inf)
    assert len(run.duty.changes) == 1 and run.duty.changes[0].as_plain()["latency_ratio"] is None
    assert run.duty.allowed_ms_per_s == pytest.approx(LOWERED * 400.0, rel=0.1)


def test_the_tighter_of_two_limits_holds_and_is_named() -> None:
    run = Beside()
    run.on(5.1, 1.0)
    run.on(5.0, 1.3)
    run.reasons.clear()
    run.on(3.0, 1.15, most_ms_per_s=50.0)
    assert run.reasons == {"over duty: limits.duty_ms_per_s is 50"}
    assert run.duty.as_plain(50.0) == {"duty_ms_per_s": 50.0, "duty_ms_per_s_least": 50.0}


def test_what_is_taken_without_tests_counts_too() -> None:
    """Where an instance alone takes more than is allowed, nothing is tested."""
    assert Beside(idle_ms=30.0).on(60.0, most_ms_per_s=200.0) <= 1


def test_no_limit_is_null_and_a_ratio_of_0_turns_it_off() -> None:
    run = Beside(guard=Guard(throttle_ratio=0.0))
    assert run.on(60.0, 5.0) == 600
    assert run.duty.as_plain(0.0) == {"duty_ms_per_s": None, "duty_ms_per_s_least": None}
