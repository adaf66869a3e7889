# SPDX-License-Identifier: Apache-2.0
"""Whether a test may change what the vehicle's own stack is given: only while every condition is known to hold."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param

#: What is measured has a decimal point, or is an exponent's.
_MEASURED = re.compile(r"-?\b\d+(\.\d+)?(e[+-]?\d+)\b|-?\b\d+\.\d+\b")

#: Of a switch: whoever presses it before it is heard again grants nothing.
NOT_YET = "was let go before all else held; hold it so until it is heard again"


@dataclass(frozen=True)
class SafetySignal:
    """A field of a topic that says that something is so, as long as it is said often enough.

    Either ``equals`` or ``within`` says which values mean yes.
    """

    topic: str = param("", help="topic of the live system")
    type: str = param("", help="its message type, such as std_msgs/msg/Bool")
    field: str = param("data", help="path of the field, such as twist.linear.x")
    equals: bool | int | str | None = param(None, help="the value that means yes")
    within: tuple[float, ...] = param((), help="lowest and highest number that means yes")
    fresh_s: float = param(0.5, low=0.01, high=10.0, unit="s", help="what was said longer ago means nothing")

    def holds(self, value: Any) -> bool:
        """Whether a value means yes; what is no number is never within anything."""
        if self.within:
            low, high = self.within
            return _is_number(value) and low <= value <= high
        return type(value) is type(self.equals) and value == self.equals

    def denies(self, value: Any) -> bool:
        """Whether a value means no; what is no number, or of another type, means neither yes nor no."""
        known = _is_number(value) if self.within else type(value) is type(self.equals)
        return known and not self.holds(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def cause(why: str) -> str:
    """Return a reason without what was measured, which is another number each time it is told."""
    return _MEASURED.sub("…", why)


def checked(signal: SafetySignal, where: str) -> SafetySignal:
    """Refuse a signal that says nothing, or anything. Raises UsageError: naming what was got and what was expected."""
    if not signal.topic or not signal.type:
        raise UsageError(f"{where}: got topic '{signal.topic}' and type '{signal.type}', expected both")
    if (signal.equals is None) == (not signal.within):
        raise UsageError(
            f"{where}: got equals: {signal.equals} and within: {list(signal.within)}, expected one of both"
        )
    if signal.within and not (len(signal.within) == 2 and signal.within[0] <= signal.within[1]):
        raise UsageError(f"{where}.within: got {list(signal.within)}, expected the lowest and the highest number")
    return signal


@dataclass(frozen=True)
class _Message:
    """What a signal said last.

    ``at_s``: monotonic instant of its publication. ``age_s``: how old it was when it came; below zero the clocks
    differ. ``in_order``: whether no message came before it that was published after it.
    """

    value: Any
    at_s: float
    age_s: float
    in_order: bool

    def fault(self, signal: SafetySignal, now_s: float) -> str:
        """Return why it means neither yes nor no at an instant, empty where it means one of them."""
        if abs(self.age_s) > signal.fresh_s:
            when = f"{abs(self.age_s):.2f} s {'before' if self.age_s > 0.0 else 'after'}"
            return f"{signal.topic}: was published {when} it came, by its publisher's clock"
        if not self.in_order:
            return f"{signal.topic}: came after a message that was published later, by its publisher's clock"
        if now_s - self.at_s > signal.fresh_s:
            return f"{signal.topic}: nothing was heard for {now_s - self.at_s:.2f} s"
        return ""


@dataclass(frozen=True)
class Permission:
    """Whether input may be changed now, and what stands against it."""

    granted: bool
    why: str = ""


class Interlock:
    """Grants permission while armed, all permits hold and the dead-man switch is held.

    The switch must be let go while all else holds, and then be pressed: whatever was missing or is lost, a let-go that
    was published before counts no more. Nobody is surprised by a test that begins or goes on by itself.

    All instants are of one clock that never goes back and counts a sleep of the computer, too.
    Raises UsageError: no permit is named.
    ``armed``: whether the user said so on the command line. ``permits``: what must hold: standstill, or that the
    vehicle is disengaged. ``dead_man``: what the operator holds.
    """

    def __init__(self, armed: bool, permits: Sequence[SafetySignal], dead_man: SafetySignal) -> None:
        if not permits:
            raise UsageError("permits: got none, expected a signal of standstill or of disengagement")
        self._armed = armed
        self.signals = (*permits, dead_man)
        self._last: list[_Message | None] = [None] * len(self.signals)
        #: Of each signal: latest publication by its publisher's clock, ns, and when that message came.
        self._latest: list[tuple[int, float]] = [(0, -math.inf)] * len(self.signals)
        #: When something other than the switch was last seen to stand against permission.
        self._hindered_s = -math.inf
        #: The switch was heard let go, and nothing has stood against permission since but that.
        self._let_go = False

    def receive(
        self, number: int, value: Any, now_s: float, age_s: float = 0.0, published_ns: int = 0, against: str = ""
    ) -> None:
        """Take in what one of :attr:`signals` says at an instant.

        Args:
            age_s: how long ago it was published, by the clock of its publisher. What waited in a queue while this
                process stood still is as old as that; below zero the clocks differ.
            published_ns: when it was published, by the clock of its publisher; 0: not known, and in order.
            against: what else stands against permission just now.
        """
        self._notice(now_s, against)  # what stood against permission until now, though nobody asked
        in_order = self._in_order(number, published_ns, now_s)
        self._last[number] = message = _Message(value, now_s - max(0.0, age_s), age_s, in_order)
        hindrance = self._notice(now_s, against)
        is_switch = number == len(self.signals) - 1
        if is_switch and not hindrance and self._denied(-1) and message.at_s >= self._hindered_s:
            self._let_go = True

    def permission(self, now_s: float, against: str = "") -> Permission:
        """Return what is granted at an instant; to be asked before each change of input.

        ``against``: what else stands against it; the switch must be let go and pressed anew after that, too.
        """
        if hindrance := self._notice(now_s, against):
            return Permission(False, hindrance)
        topic = self.signals[-1].topic
        if self._denied(-1):
            return Permission(False, self._value(-1) if self._let_go else f"{topic}: {NOT_YET}")
        if not self._let_go:
            return Permission(False, f"{topic}: let the switch go and press it again")
        return Permission(True)

    def _notice(self, now_s: float, against: str) -> str:
        """Forget the let-go where anything stands against permission but a switch that is let go; return what does."""
        others = self._others(now_s) or against
        if others:
            self._hindered_s = now_s
        if hindrance := others or self._fault(-1, now_s):
            self._let_go = False
        return hindrance

    def _others(self, now_s: float) -> str:
        """Return what stands against permission beside the switch."""
        if not self._armed:
            return "not armed; type --arm"
        for number in range(len(self.signals) - 1):
            if why := self._fault(number, now_s) or (self._value(number) if self._denied(number) else ""):
                return why
        return ""

    def _fault(self, number: int, now_s: float) -> str:
        """Return why a signal means neither yes nor no at an instant, empty where it means one of them."""
        signal, message = self.signals[number], self._last[number]
        if message is None:
            return f"{signal.topic}: nothing was heard yet"
        known = signal.holds(message.value) or signal.denies(message.value)
        return message.fault(signal, now_s) or ("" if known else self._value(number))

    def _denied(self, number: int) -> bool:
        message = self._last[number]
        return message is not None and self.signals[number].denies(message.value)

    def _value(self, number: int) -> str:
        signal, message = self.signals[number], self._last[number]
        return f"{signal.topic}: {signal.field} is {message.value if message else None}"

    def _in_order(self, number: int, published_ns: int, now_s: float) -> bool:
        """Whether no message that was published later came before; a clock that was set back is believed in the end."""
        latest_ns, came_s = self._latest[number]
        # By then all that was on its way is too old, also where the clocks differ as much as they may.
        if published_ns < latest_ns and now_s - came_s <= 2.0 * self.signals[number].fresh_s:
            return False
        self._latest[number] = (published_ns, now_s)
        return True
