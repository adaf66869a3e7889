# SPDX-License-Identifier: Apache-2.0
"""The offset between two clocks: the estimate, its bound, and what is said of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.nodes.clock_echo import EXCHANGES, PHI, TOLERATED_S, ClockOffset, Exchange, Offset

S = 1_000_000_000
OFFSETS_NS = st.integers(-3600 * S, 3600 * S)
WAYS_NS = st.integers(0, 2 * S)


def exchange(offset_ns: int, there_ns: int, back_ns: int, sent_ns: int = 10 * S, thinking_ns: int = 1000) -> Exchange:
    """What the two clocks show when a message goes there in ``there_ns`` and comes back in ``back_ns``."""
    arrived_ns = sent_ns + there_ns
    left_ns = arrived_ns + thinking_ns
    return Exchange(sent_ns, arrived_ns + offset_ns, left_ns + offset_ns, left_ns + back_ns)


def test_ways_of_one_length_tell_the_offset() -> None:
    one = exchange(-7 * S, 300_000, 300_000)
    assert (one.offset_s, one.ways_s) == (-7.0, 0.0006)


@given(OFFSETS_NS, st.lists(st.tuples(WAYS_NS, WAYS_NS), min_size=1, max_size=2 * EXCHANGES))
def test_the_offset_is_within_the_bound_whatever_the_ways_took(offset_ns: int, ways: list[tuple[int, int]]) -> None:
    clock, now_ns = ClockOffset(), 10 * S
    for there_ns, back_ns in ways:
        one = exchange(offset_ns, there_ns, back_ns, now_ns)
        assert clock.add(one)
        now_ns = one.back_ns
    found = clock.estimate(now_ns)
    assert found is not None
    assert abs(found.offset_s - offset_ns / 1e9) <= found.bound_s + 1e-9
    assert found.exchanges == min(len(ways), EXCHANGES)


@given(st.lists(st.tuples(WAYS_NS, WAYS_NS), min_size=1, max_size=EXCHANGES))
def test_the_exchange_that_took_least_is_believed(ways: list[tuple[int, int]]) -> None:
    clock = ClockOffset()
    for way in ways:
        clock.add(exchange(S, *way))
    least = min(sum(way) for way in ways)
    # All were sent at one time: those that came back later are younger by no more than 4 s.
    assert clock.estimate(10 * S).bound_s == pytest.approx(least / 2e9, abs=1e-9 + 4 * PHI)  # type: ignore[union-attr]


@given(st.floats(-PHI, PHI), st.integers(1, 3600))
def test_clocks_that_drift_stay_within_a_bound_that_grows(drift: float, later_s: int) -> None:
    clock, one = ClockOffset(), exchange(0, 200_000, 200_000)
    clock.add(one)
    at_once, later = clock.estimate(one.back_ns), clock.estimate(one.back_ns + later_s * S)
    assert at_once is not None and later is not None
    assert later.bound_s > at_once.bound_s
    assert abs(drift * later_s - later.offset_s) <= later.bound_s


def test_only_the_last_exchanges_count() -> None:
    clock = ClockOffset()
    clock.add(exchange(5 * S, 0, 0))
    for number in range(EXCHANGES):
        clock.add(exchange(0, S // 100, S // 100, (11 + number) * S))
    found = clock.estimate((11 + EXCHANGES) * S)
    assert found is not None and abs(found.offset_s) <= 0.01


@pytest.mark.parametrize("set_ns", [-S, S])
def test_a_clock_that_is_set_meanwhile_begins_anew(set_ns: int) -> None:
    clock = ClockOffset()
    clock.add(exchange(0, 1000, 1000))
    one = exchange(0, 1000, 1000)
    wrong = Exchange(one.sent_ns, one.received_ns, one.answered_ns, one.back_ns - 2 * S)
    if set_ns > 0:
        wrong = Exchange(one.sent_ns, one.received_ns, one.answered_ns + 2 * S, one.back_ns)
    assert not clock.add(wrong)
    assert clock.estimate(20 * S) is None


@pytest.mark.parametrize(("offset_s", "words"), [(0.1, "100.0 ms ahead of ours"), (-0.1, "100.0 ms behind ours")])
def test_a_large_offset_is_warned_of(offset_s: float, words: str) -> None:
    said = Offset(offset_s, 0.001, 8).warning("nuc")
    assert said is not None and f"the clock of nuc is {words} (give or take 1.0 ms)" in said
    assert "chronyc tracking" in said and "ptp4l" in said


@pytest.mark.parametrize(("offset_s", "bound_s"), list(itertools.product((0.0, 0.9 * TOLERATED_S), (0.0, 0.5))))
def test_what_may_be_nothing_is_not_warned_of(offset_s: float, bound_s: float) -> None:
    assert Offset(offset_s, bound_s, 1).warning("nuc") is None


def test_an_offset_is_told_in_ms() -> None:
    assert Offset(0.0123456, 0.00005, 3).as_plain() == {"offset_ms": 12.346, "bound_ms": 0.05, "exchanges": 3}
