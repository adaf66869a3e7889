# SPDX-License-Identifier: Apache-2.0
"""Input of the live stack is changed only while everything that must hold is known to."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.vehicle.interlock import NOT_YET, Interlock, SafetySignal, checked

STANDS = SafetySignal("/speed", "std_msgs/msg/Float32", within=(-0.05, 0.05), fresh_s=0.5)
OFF = SafetySignal("/engaged", "std_msgs/msg/Bool", equals=False, fresh_s=0.5)
SWITCH = SafetySignal("/dead_man", "std_msgs/msg/Bool", equals=True, fresh_s=0.3)


def lock(armed: bool = True) -> Interlock:
    return Interlock(armed, (STANDS, OFF), SWITCH)


def say(one: Interlock, now_s: float, speed: Any = 0.0, engaged: Any = False, switch: Any = True) -> None:
    for number, value in enumerate((speed, engaged, switch)):
        one.receive(number, value, now_s)


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
                one.receive(number, value, now_s)
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
            one.receive(number, value, now_s)
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
    one.receive(number, value, 0.1, age_s)
    assert says in one.permission(0.1).why
    one.receive(number, value, 0.15)
    assert "let the switch go" in one.permission(0.15).why


def test_what_is_said_is_as_old_as_its_publication() -> None:
    one = pressed()
    one.receive(2, True, 0.1, age_s=0.2)
    assert not granted_at(one, 0.25), "0.35 s after it was published"


def test_a_switch_that_was_let_go_long_ago_is_not_pressed_anew() -> None:
    one = lock()
    say(one, 0.0)
    one.receive(2, False, 0.1, age_s=5.0)
    one.receive(2, True, 0.11)
    assert "let the switch go" in one.permission(0.12).why


def test_what_was_never_heard_does_not_hold() -> None:
    one = lock()
    one.receive(0, 0.0, 0.0)
    assert one.permission(0.0).why == "/engaged: nothing was heard yet"


def test_a_let_go_from_before_the_switch_fell_silent_is_none_when_it_is_heard_again() -> None:
    one = lock()
    say(one, 0.0, switch=False)
    for now_s in (0.2, 0.4):
        one.receive(0, 0.0, now_s)
        one.receive(1, False, now_s)
    one.receive(2, True, 0.5)
    assert "let the switch go" in one.permission(0.5).why
    say(one, 0.6, switch=False)
    say(one, 0.7)
    assert granted_at(one, 0.7)


@pytest.mark.parametrize("lost", [{"engaged": True}, {"speed": 1.0}])
def test_a_let_go_from_before_all_else_held_is_none(lost: dict[str, Any]) -> None:
    """It is said so, until the switch has been heard let go once more."""
    one = lock()
    say(one, 0.0, **lost, switch=False)
    one.receive(0, 0.0, 0.1)
    one.receive(1, False, 0.1)
    assert one.permission(0.1).why == f"/dead_man: {NOT_YET}"
    one.receive(2, True, 0.2)
    assert "let the switch go" in one.permission(0.2).why


def test_a_let_go_while_something_else_stands_against_it_is_none() -> None:
    one = lock()
    say(one, 0.0)
    one.receive(2, False, 0.1, against="somebody else publishes")
    assert one.permission(0.1).why == f"/dead_man: {NOT_YET}"
    one.receive(2, True, 0.2)
    assert "let the switch go" in one.permission(0.2).why


def test_a_let_go_that_waited_since_before_all_else_held_is_none() -> None:
    one = lock()
    say(one, 0.0, speed=1.0)
    one.receive(0, 0.0, 0.2)
    one.receive(2, False, 0.25, age_s=0.1)
    assert one.permission(0.25).why == f"/dead_man: {NOT_YET}"
    one.receive(2, False, 0.35, age_s=0.1)
    assert one.permission(0.35).why == "/dead_man: data is False"
    one.receive(2, True, 0.4)
    assert granted_at(one, 0.4)


@pytest.mark.parametrize("nonsense", [None, 0, "False", math.nan])
def test_what_is_neither_yes_nor_no_is_no_let_go(nonsense: Any) -> None:
    one = lock()
    say(one, 0.0)
    one.receive(2, nonsense, 0.1)
    assert one.permission(0.1).why == f"/dead_man: data is {nonsense}"
    one.receive(2, True, 0.2)
    assert "let the switch go" in one.permission(0.2).why


def test_a_number_may_be_a_switch() -> None:
    axis = SafetySignal("/dead_man", "std_msgs/msg/Float32", within=(0.9, 1.0))
    assert axis.denies(0.0) and not axis.denies(0.95)
    assert not any(map(axis.denies, (math.nan, math.inf, None, False, "0")))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_comes_after_a_message_that_was_published_later_says_nothing(number: int) -> None:
    """A let-go and the press before it may change places on their way."""
    one, values = lock(), (0.0, False, True)
    for switch, now_s in ((False, 0.0), (True, 0.1)):
        for n, value in enumerate((0.0, False, switch)):
            one.receive(n, value, now_s, published_ns=round(1e9 * (10.0 + now_s)))
    assert granted_at(one, 0.1)
    one.receive(number, values[number], 0.15, age_s=0.1, published_ns=10_050_000_000)
    assert "came after a message that was published later" in one.permission(0.15).why
    one.receive(number, values[number], 0.2, published_ns=10_200_000_000)
    assert "let the switch go" in one.permission(0.2).why


def test_a_message_that_is_overtaken_is_told_by_it_also_where_the_publisher_is_ahead_by_all_that_it_may_be() -> None:
    one = pressed(1.0)
    one.receive(2, False, 1.0, age_s=-0.29, published_ns=1_290_000_000)
    say(one, 1.5)
    one.receive(2, True, 1.5, age_s=0.25, published_ns=1_250_000_000)
    assert "came after a message that was published later" in one.permission(1.5).why


def test_a_publisher_whose_clock_was_set_back_is_believed_when_what_was_on_its_way_is_too_old() -> None:
    one = pressed()
    at_s = 0.0
    whys = []
    while at_s < 1.5:
        at_s += 0.125
        for n, value in enumerate((0.0, False, True)):
            one.receive(n, value, at_s, published_ns=round(1e9 * (50.0 + at_s - 20.0 * (at_s > 0.125))))
        whys.append(one.permission(at_s).why)
    assert not whys[0] and "published later" in whys[1]
    assert "let the switch go" in whys[-1], "after twice what a signal is fresh for, at the longest"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (SafetySignal("", "a/msg/B", equals=True), "expected both"),
        (SafetySignal("/a", "a/msg/B"), "expected one of both"),
        (SafetySignal("/a", "a/msg/B", equals=True, within=(0.0, 1.0)), "expected one of both"),
        (SafetySignal("/a", "a/msg/B", within=(1.0, 0.0)), "lowest and the highest"),
        (SafetySignal("/a", "a/msg/B", within=(1.0,)), "lowest and the highest"),
    ],
)
def test_signals_that_say_nothing_are_refused(wrong: SafetySignal, says: str) -> None:
    with pytest.raises(UsageError, match=f"dead_man.*{says}"):
        checked(wrong, "dead_man")


def test_a_lock_without_permits_is_refused() -> None:
    with pytest.raises(UsageError, match="standstill"):
        Interlock(True, (), SWITCH)
