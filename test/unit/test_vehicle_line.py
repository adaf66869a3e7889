# SPDX-License-Identifier: Apache-2.0
"""A relay's line: nothing is lost, doubled or reordered, whatever the mutator does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.runs.vehicle.line import Line

HOLD_S = 0.02


class Topic:
    """A line and what went out of it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.came_s: list[float] = []
        self.permitted = True
        self.line = Line(HOLD_S, self._send, lambda: self.permitted)

    def _send(self, data: bytes | memoryview, came_s: float) -> None:
        self.sent.append(bytes(data))
        self.came_s.append(came_s)


def original(n: int) -> bytes:
    return b"original %d" % n


def other(n: int) -> bytes:
    return b"other %d" % n


def test_what_may_not_be_replaced_goes_out_at_once() -> None:
    topic = Topic()
    topic.line.original(1, original(1), 0.0, replaceable=False)
    topic.line.replacement(1, other(1), 0.001)
    assert topic.sent == [original(1)]


def test_a_replacement_in_time_takes_the_place_of_its_original() -> None:
    topic = Topic()
    topic.line.original(1, original(1), 0.0, replaceable=True)
    assert topic.sent == [] and topic.line.release_due(0.01) == HOLD_S
    topic.line.replacement(1, other(1), 0.015)
    assert topic.sent == [other(1)] and topic.line.release_due(1.0) is None
    assert (topic.line.counts.originals, topic.line.counts.replaced) == (0, 1)


def test_without_one_the_original_goes_out_when_its_time_is_up() -> None:
    topic = Topic()
    topic.line.original(1, original(1), 0.0, replaceable=True)
    topic.line.release_due(HOLD_S)
    topic.line.replacement(1, other(1), 0.03)
    assert topic.sent == [original(1)]
    assert topic.line.counts.late == 1


def test_a_replacement_that_comes_when_time_is_up_is_late_even_if_nobody_looked() -> None:
    topic = Topic()
    topic.line.original(1, original(1), 0.0, replaceable=True)
    topic.line.replacement(1, other(1), HOLD_S)
    assert topic.sent == [original(1)]


def test_a_replacement_may_come_before_its_original() -> None:
    topic = Topic()
    topic.line.replacement(1, other(1), 0.0)
    topic.line.original(1, original(1), 0.001, replaceable=True)
    assert topic.sent == [other(1)]


def test_what_was_held_goes_out_first_when_nothing_may_be_replaced_any_more() -> None:
    topic = Topic()
    topic.line.original(1, original(1), 0.0, replaceable=True)
    topic.line.original(2, original(2), 0.001, replaceable=False)
    assert topic.sent == [original(1), original(2)]
    topic.line.replacement(2, other(2), 0.002)
    assert topic.sent == [original(1), original(2)]


def test_a_replacement_sends_what_came_before_as_it_is() -> None:
    topic = Topic()
    for n in (1, 2):
        topic.line.original(n, original(n), 0.001 * n, replaceable=True)
    topic.line.replacement(2, other(2), 0.005)
    topic.line.replacement(1, other(1), 0.006)
    assert topic.sent == [original(1), other(2)] and topic.came_s == [0.001, 0.002]
    assert list(topic.line.replaced_ns) == [2]
    assert topic.line.counts.late == 1


def test_replacements_of_what_never_comes_are_forgotten() -> None:
    topic = Topic()
    for n in range(1, 11):
        topic.line.replacement(n, other(n), 0.0)
    topic.line.original(1, original(1), 0.001, replaceable=True)
    topic.line.release_due(1.0)
    assert topic.sent == [original(1)]


def test_nothing_that_came_before_an_original_that_was_not_to_be_replaced_goes_out_after_it() -> None:
    """Permission was lost in between, and the mutator may have made it of what was there before."""
    topic = Topic()
    topic.line.replacement(2, other(2), 0.0)
    topic.line.original(1, original(1), 0.001, replaceable=False)
    topic.line.original(2, original(2), 0.002, replaceable=True)
    topic.line.release_due(1.0)
    assert topic.sent == [original(1), original(2)]
    assert topic.line.counts.unasked == 1


@pytest.mark.parametrize(("early_s", "sent"), [(0.9 * HOLD_S, other(1)), (1.1 * HOLD_S, original(1))])
def test_a_replacement_waits_for_its_original_no_longer_than_that_for_it(early_s: float, sent: bytes) -> None:
    """A simulation that begins anew gives the same stamps once more."""
    topic = Topic()
    topic.line.replacement(1, other(1), 1.0)
    topic.line.original(1, original(1), 1.0 + early_s, replaceable=True)
    topic.line.release_due(9.0)
    assert topic.sent == [sent]
    assert topic.line.counts.unasked == (sent == original(1))


@pytest.mark.parametrize("early", [True, False])
def test_whether_input_may_be_changed_is_asked_when_it_would_be(early: bool) -> None:
    """Whoever publishes may hold up the others for a while, the operator's message among them."""
    topic = Topic()
    if early:
        topic.line.replacement(1, other(1), 0.0)
    topic.permitted = False
    topic.line.original(1, original(1), 0.001, replaceable=True)
    if not early:
        topic.line.replacement(1, other(1), 0.002)
    assert not topic.sent
    topic.line.release_due(1.0)
    assert topic.sent == [original(1)] and topic.line.counts.unasked == 1


@pytest.mark.parametrize("stamp_ns", [0, 7])
def test_what_its_stamp_does_not_tell_from_others_is_not_replaced(stamp_ns: int) -> None:
    """A late replacement of one would take the place of the next."""
    topic = Topic()
    topic.line.original(stamp_ns, original(1), 0.0, replaceable=True)
    topic.line.release_due(HOLD_S)
    topic.line.original(stamp_ns, original(2), 0.1, replaceable=True)
    topic.line.replacement(stamp_ns, other(1), 0.101)
    topic.line.release_due(1.0)
    assert topic.sent == [original(1), original(2)]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["original", "replacement", "due"]), st.integers(-2, 2), st.booleans(), st.floats(0.0, 0.03)
    ),
    max_size=60,
)


@given(EVENTS)
@settings(max_examples=300, deadline=None)
def test_every_original_goes_out_once_in_its_order_and_in_time(events: list[tuple[str, int, bool, float]]) -> None:
    topic, now_s, came, due_s = Topic(), 0.0, 0, {}
    for what, which, replaceable, pause_s in events:
        now_s += pause_s
        if what == "original":
            due_s[came] = now_s + (HOLD_S if replaceable else 0.0)
            topic.line.original(came + 1, original(came), now_s, replaceable)
            came += 1
        elif what == "replacement":
            topic.line.replacement(max(0, came + which) + 1, other(max(0, came + which)), now_s)
        else:
            topic.line.release_due(now_s)
            waiting = [n for n in range(len(topic.sent), came) if due_s[n] <= now_s]
            assert not waiting
        numbers = [int(data.split()[1]) for data in topic.sent]
        assert numbers == list(range(len(numbers))) and len(numbers) <= came
    topic.line.release_due(now_s + HOLD_S)
    assert len(topic.sent) == came
    counts = topic.line.counts
    assert counts.originals + counts.replaced == came
    assert counts.replaced == sum(data.startswith(b"other") for data in topic.sent)


def test_what_bears_no_stamp_or_that_of_another_is_counted_where_it_might_be_replaced() -> None:
    topic = Topic()
    for stamp_ns, replaceable in ((0, False), (1, False), (1, False), (2, True), (2, True), (0, True), (3, True)):
        topic.line.original(stamp_ns, original(stamp_ns), 0.0, replaceable)
    assert topic.line.counts.ambiguous == 2
