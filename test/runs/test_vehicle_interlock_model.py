# SPDX-License-Identifier: Apache-2.0
"""Changed input goes out only while every condition has held since a let-go that was heard fresh."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from interlock_monitor import (
    ENGAGED,
    PERMITS,
    PRESSED,
    SPEED,
    SWITCH,
    SWITCH_TICKS,
    TICK_S,
    Look,
    Message,
    may_change,
)

from mt_nodes.runs.vehicle.interlock import Interlock

Event = tuple[int, Any, bool, int, bool] | None
#: Where a publisher's clock starts: below zero is no time.
EPOCH = 10_000


class Told:
    """An interlock, and all that it was told; asked, it has to grant what may be granted, and nothing else."""

    def __init__(self, permits: int = len(PERMITS), standing_by: bool = False) -> None:
        self.lock = Interlock(True, PERMITS[:permits], SWITCH)
        self.permits, self.standing_by = permits, standing_by
        self.looks: list[Look] = []

    def hear(self, now: int, message: Message, value: Any, against: bool) -> None:
        against = against or self.standing_by
        age_s, published_ns = (now - message.published) * TICK_S, EPOCH + message.published
        self.lock.receive(message.number, value, now * TICK_S, age_s, published_ns, "against" * against)
        self.looks.append(Look(now, message, against))

    def ask(self, now: int, against: bool, judged: bool = True) -> bool:
        against = against or self.standing_by
        self.looks.append(Look(now, None, against))
        permission = self.lock.permission(now * TICK_S, "against" * against)
        assert not judged or permission.granted is may_change(self.looks, self.permits), permission.why
        assert permission.granted is not bool(permission.why)
        return permission.granted


class Relays(RuleBasedStateMachine):
    """A relay and its standby; messages that wait, overtake each other, come twice or never; clocks that differ.

    An operator's computer that is frozen repeats what it said last. Nothing is asked between two clouds.
    """

    @initialize(skews=st.tuples(*[st.sampled_from([0, 0, 0, 5, -5, 12, -12, 20, -40])] * 3))
    def begin(self, skews: tuple[int, ...]) -> None:
        self.now, self.against, self.skews = 0, False, skews
        self.waiting: list[tuple[Message, Any]] = []
        self.said = [(0.0, True), (False, True), (True, True)]
        self.relay, self.standby = Told(), Told(standing_by=True)

    @rule(number=st.integers(0, 2), data=st.data())
    def say(self, number: int, data: Any) -> None:
        self.said[number] = data.draw(st.sampled_from((SPEED, ENGAGED, PRESSED)[number]))
        self._publish(number)

    @rule(ticks=st.integers(1, 12))
    def everybody_says_again(self, ticks: int) -> None:
        """As on a good day, and as a publisher does that is frozen."""
        self.now += ticks
        for number in range(3):
            self._publish(number)
        self._deliver_all()

    @rule(ticks=st.integers(1, 6))
    def the_operator_lets_go_and_presses(self, ticks: int) -> None:
        self.said[:2] = (0.0, True), (False, True)
        for value in (False, True):
            self.said[2] = (value, value)
            self.everybody_says_again(ticks)

    @rule(which=st.integers(0, 50), again=st.booleans(), by_standby=st.booleans())
    def hear_one(self, which: int, again: bool, by_standby: bool) -> None:
        """One of those that wait, whichever was published first; it may come a second time."""
        if self.waiting:
            at = which % len(self.waiting)
            self._deliver(*self.waiting[at], to_standby=by_standby)
            if not again:
                del self.waiting[at]

    @rule()
    def lose_all(self) -> None:
        self.waiting.clear()

    @rule(ticks=st.integers(1, 40))
    def time_passes(self, ticks: int) -> None:
        self.now += ticks

    @rule(against=st.booleans())
    def something_else_stands_against_it(self, against: bool) -> None:
        self.against = against

    @rule()
    def a_cloud_comes(self) -> None:
        self.relay.ask(self.now, self.against)
        assert not self.standby.ask(self.now, self.against)

    @rule()
    def the_relay_dies_and_its_standby_takes_over(self) -> None:
        self.standby.ask(self.now, self.against)
        self.relay, self.standby = self.standby, Told(standing_by=True)
        self.relay.standing_by = False

    @rule()
    def both_are_started_anew(self) -> None:
        self.relay, self.standby = Told(), Told(standing_by=True)

    def _publish(self, number: int) -> None:
        value, means = self.said[number]
        self.waiting.append((Message(number, means, self.now + self.skews[number]), value))

    def _deliver_all(self) -> None:
        for message, value in self.waiting:
            self._deliver(message, value)
        self.waiting.clear()

    def _deliver(self, message: Message, value: Any, to_standby: bool = True) -> None:
        self.relay.hear(self.now, message, value, self.against)
        if to_standby:
            self.standby.hear(self.now, message, value, self.against)


TestRelays = Relays.TestCase
TestRelays.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)

#: One permit and the switch: which says what, what that means, how old it is, and whether something else stands against
#: a change just then.
EVENTS = (
    (0, 0.0, True, 0, False),
    (0, 9.0, False, 0, False),
    (1, True, True, 0, False),
    (1, False, False, 0, False),
    (1, False, False, 3, False),
    (1, False, False, 0, True),
    None,  # a pause
)
#: All orders of so many events are tried, after a permit and a let-go, and after nothing.
LONGEST = 5


@pytest.mark.parametrize("beginning", [(), (EVENTS[0], EVENTS[3])], ids=["after nothing", "after a let-go"])
def test_all_orders_of_events_up_to_a_length_are_granted_what_they_may(beginning: tuple[Event, ...]) -> None:
    """A cloud comes after every event; what is granted to the last one is compared with what may be."""
    orders = (order for length in range(1, LONGEST + 1) for order in product(EVENTS, repeat=length))
    granted = sum(_granted_at_last((*beginning, *order)) for order in orders)
    assert granted > 10, "a lock that grants nothing is of no use"


def _granted_at_last(order: Sequence[Event]) -> bool:
    told, now, granted = Told(permits=1), 0, False
    for number, event in enumerate(order, start=1):
        now += 1 if event else SWITCH_TICKS + 1
        if event:
            signal, value, means, age, against = event
            told.hear(now, Message(signal, means, now - age), value, against)
        granted = told.ask(now, False, judged=number == len(order))
    return granted
