# SPDX-License-Identifier: Apache-2.0
"""Input of the live stack is changed only while everything that must hold is known to."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.errors import UsageError
from mt_nodes.vehicle.interlock import Interlock, Signal, checked

STANDS = Signal("/speed", "std_msgs/msg/Float32", within=(-0.05, 0.05), fresh_s=0.5)
OFF = Signal("/engaged", "std_msgs/msg/Bool", equals=False, fresh_s=0.5)
SWITCH = Signal("/dead_man", "std_msgs/msg/Bool", equals=True, fresh_s=0.3)


def lock(armed: bool = True) -> Interlock:
    return Interlock(armed, (STANDS, OFF), SWITCH)


def say(one: Interlock, now_s: float, speed: Any = 0.0, engaged: Any = False, switch: Any = True) -> None:
    for number, value in enumerate((speed, engaged, switch)):
        one.heard(number, value, now_s)


def granted_at(one: Interlock, now_s: float) -> bool:
    return one.permission(now_s).granted


def pressed(now_s: float = 0.0, armed: bool = True) -> Interlock:
    """A lock whose switch was let go, then pressed."""
    one = lock(armed)
    say(one, now_s, switch=False)
    say(one, now_s)
    return one


def test_it_is_granted_when_all_hold_and_the_switch_was_pressed() -> None:
    assert granted_at(pressed(), 0.1)


def test_without_arm_nothing_is_granted() -> None:
    found = pressed(armed=False).permission(0.1)
    assert not found.granted and "--arm" in found.why


def test_a_switch_that_was_held_from_the_beginning_must_be_let_go_first() -> None:
    one = lock()
    say(one, 0.0)
    assert "let the switch go" in one.permission(0.1).why
    say(one, 0.2, switch=False)
    assert not granted_at(one, 0.25)
    say(one, 0.3)
    assert granted_at(one, 0.35)


@pytest.mark.parametrize(
    ("change", "topic"),
    [
        ({"speed": 0.06}, "/speed"),
        ({"speed": -0.06}, "/speed"),
        ({"speed": math.nan}, "/speed"),
        ({"speed": "0"}, "/speed"),
        ({"speed": False}, "/speed"),
        ({"engaged": True}, "/engaged"),
        ({"engaged": 0}, "/engaged"),
        ({"engaged": None}, "/engaged"),
        ({"switch": False}, "/dead_man"),
    ],
)
def test_whatever_does_not_hold_takes_it_away_until_the_switch_is_pressed_again(
    change: dict[str, Any], topic: str
) -> None:
    one = pressed()
    assert granted_at(one, 0.1)
    say(one, 0.2, **change)
    found = one.permission(0.2)
    assert not found.granted and found.why.startswith(f"{topic}: ")
    say(one, 0.3)
    # The switch that was let go was pressed again by now; otherwise it still has to be.
    assert granted_at(one, 0.3) is ("switch" in change)
    say(one, 0.4, switch=False)
    say(one, 0.5)
    assert granted_at(one, 0.5)


def test_a_switch_that_is_held_while_the_vehicle_comes_to_a_standstill_starts_nothing() -> None:
    one = lock()
    say(one, 0.0, speed=5.0, switch=False)
    say(one, 0.1, speed=3.0)
    assert not granted_at(one, 0.1)
    say(one, 0.2)
    assert "let the switch go" in one.permission(0.2).why


@pytest.mark.parametrize(("silent", "after_s"), [(0, 0.5), (1, 0.5), (2, 0.3)])
def test_what_is_not_said_any_more_does_not_hold_any_more(silent: int, after_s: float) -> None:
    one = pressed()
    now_s = 0.0
    while now_s < 2.0:
        for number, value in enumerate((0.0, False, True)):
            if number != silent:
                one.heard(number, value, now_s)
        assert granted_at(one, now_s) is (now_s <= after_s), now_s
        now_s = round(now_s + 0.05, 2)
    say(one, now_s)
    assert not granted_at(one, now_s), "it came back, and the switch was not let go"


@pytest.mark.parametrize("lost", ["said no for a moment", "was silent for a while"])
def test_what_was_lost_while_nobody_asked_is_noticed(lost: str) -> None:
    """Messages of a slow sensor are further apart than those of its permits."""
    one = pressed()
    assert granted_at(one, 0.1)
    if lost == "said no for a moment":
        say(one, 0.2, engaged=True)
        say(one, 0.21)
    else:
        for number, value, now_s in ((0, 0.0, 0.25), (1, False, 0.25), (2, True, 0.45)):
            one.heard(number, value, now_s)
    assert "let the switch go" in one.permission(0.46).why


def test_what_else_stands_against_it_needs_the_switch_anew_too() -> None:
    one = pressed()
    assert granted_at(one, 0.1)
    assert one.permission(0.15, "somebody else publishes").why == "somebody else publishes"
    say(one, 0.2)
    assert "let the switch go" in one.permission(0.2).why


@pytest.mark.parametrize(("number", "value"), [(0, 0.0), (1, False), (2, True)])
@pytest.mark.parametrize(("age_s", "says"), [(0.6, "0.60 s before it came"), (-0.6, "0.60 s after it came")])
def test_what_waited_in_a_queue_or_bears_another_clock_is_no_yes(
    number: int, value: Any, age_s: float, says: str
) -> None:
    one = pressed()
    assert granted_at(one, 0.1)
    one.heard(number, value, 0.1, age_s)
    assert says in one.permission(0.1).why
    one.heard(number, value, 0.15)
    assert "let the switch go" in one.permission(0.15).why


def test_what_is_said_is_as_old_as_its_publication() -> None:
    one = pressed()
    one.heard(2, True, 0.1, age_s=0.2)
    assert not granted_at(one, 0.25), "0.35 s after it was published"


def test_a_switch_that_was_let_go_long_ago_is_not_pressed_anew() -> None:
    one = lock()
    say(one, 0.0)
    one.heard(2, False, 0.1, age_s=5.0)
    one.heard(2, True, 0.11)
    assert "let the switch go" in one.permission(0.12).why


def test_what_was_never_heard_does_not_hold() -> None:
    one = lock()
    one.heard(0, 0.0, 0.0)
    assert one.permission(0.0).why == "/engaged: nothing was heard yet"


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.floats(0.0, 0.6)), max_size=40))
@settings(max_examples=200, deadline=None)
def test_it_is_never_granted_while_something_does_not_hold(events: list[tuple[int, bool, float]]) -> None:
    one, now_s = lock(), 0.0
    said: dict[int, tuple[bool, float]] = {}
    limits = {0: 0.5, 1: 0.5, 2: 0.3}
    let_go = granted = False
    for number, holds, pause_s in events:
        now_s += pause_s
        if not (len(said) == 3 and all(ok and now_s - at_s <= limits[n] for n, (ok, at_s) in said.items())):
            let_go, granted = 2 in said and not said[2][0], False
        one.heard(number, (0.0 if holds else 9.0) if number == 0 else holds == (number == 2), now_s)
        said[number] = (holds, now_s)
        all_hold = len(said) == 3 and all(ok and now_s - at_s <= limits[n] for n, (ok, at_s) in said.items())
        if not all_hold:
            let_go, granted = 2 in said and not said[2][0], False
        else:
            granted, let_go = granted or let_go, False
        assert granted_at(one, now_s) is granted


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Signal("", "a/msg/B", equals=True), "expected both"),
        (Signal("/a", "a/msg/B"), "expected one of both"),
        (Signal("/a", "a/msg/B", equals=True, within=(0.0, 1.0)), "expected one of both"),
        (Signal("/a", "a/msg/B", within=(1.0, 0.0)), "lowest and the highest"),
        (Signal("/a", "a/msg/B", within=(1.0,)), "lowest and the highest"),
    ],
)
def test_signals_that_say_nothing_are_refused(wrong: Signal, says: str) -> None:
    with pytest.raises(UsageError, match=f"dead_man.*{says}"):
        checked(wrong, "dead_man")


def test_a_lock_without_permits_is_refused() -> None:
    with pytest.raises(UsageError, match="standstill"):
        Interlock(True, (), SWITCH)
