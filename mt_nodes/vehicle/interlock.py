# SPDX-License-Identifier: Apache-2.0
"""Whether a test may change what the vehicle's own stack is given: only while every condition is known to hold."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.errors import UsageError
from mt_nodes.params import param

#: What is measured has a decimal point, or is an exponent's.
_MEASURED = re.compile(r"-?\b\d+(\.\d+)?(e[+-]?\d+)\b|-?\b\d+\.\d+\b")


@dataclass(frozen=True)
class Signal:
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
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return number and math.isfinite(value) and low <= value <= high
        return type(value) is type(self.equals) and value == self.equals


def cause(why: str) -> str:
    """Return a reason without what was measured, which is another number each time it is told."""
    return _MEASURED.sub("…", why)


def checked(signal: Signal, where: str) -> Signal:
    """Refuse a signal that says nothing, or anything.

    Raises:
        UsageError: naming what was got and what was expected.
    """
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
class _Said:
    """A value, and the monotonic instant at which it was published; ``age_s`` old when it was heard."""

    value: Any
    at_s: float
    age_s: float

    def too_old_for(self, signal: Signal) -> bool:
        """Whether it meant nothing any more when it came, or its publisher's clock is another one."""
        return abs(self.age_s) > signal.fresh_s


@dataclass(frozen=True)
class Permission:
    """Whether input may be changed now, and what stands against it."""

    granted: bool
    why: str = ""


class Interlock:
    """Grants permission while armed, all permits hold and the dead-man switch is held.

    The switch must be pressed while all else holds: whatever was missing or is lost, it must be let go and pressed
    again. Nobody is surprised by a test that begins or goes on by itself.

    Args:
        armed: whether the user said so on the command line.
        permits: what must hold: standstill, or that the vehicle is disengaged. dead_man: what the operator holds.

    Raises:
        UsageError: no permit is named.
    """

    def __init__(self, armed: bool, permits: Sequence[Signal], dead_man: Signal) -> None:
        if not permits:
            raise UsageError("permits: got none, expected a signal of standstill or of disengagement")
        self._armed = armed
        self.signals = (*permits, dead_man)
        self._said: list[_Said | None] = [None] * len(self.signals)
        #: The switch was seen let go since something stood against permission.
        self._let_go = False
        self._granted = False

    def heard(self, number: int, value: Any, now_s: float, age_s: float = 0.0) -> None:
        """Take in what one of :attr:`signals` says at a monotonic instant.

        Args:
            age_s: how long ago it was published, by the clock of its publisher. What waited in a queue while this
                process stood still is as old as that; below zero the clocks differ.
        """
        self._notice(now_s)  # what stood against permission until now, though nobody asked
        self._said[number] = _Said(value, now_s - max(0.0, age_s), age_s)

    def permission(self, now_s: float, against: str = "") -> Permission:
        """Return what is granted at a monotonic instant; to be asked before each change of input.

        Args:
            against: what else stands against it; the switch must be pressed anew after that, too.
        """
        if against := self._notice(now_s, against):
            return Permission(False, against)
        if not self._granted and not self._let_go:
            return Permission(False, f"{self.signals[-1].topic}: let the switch go and press it again")
        self._granted, self._let_go = True, False
        return Permission(True)

    def _notice(self, now_s: float, against: str = "") -> str:
        """Take permission away while something stands against it, and return what does."""
        against = self._against(now_s) or against
        if against:
            self._granted, self._let_go = False, self._switch_is_let_go()
        return against

    def _switch_is_let_go(self) -> bool:
        switch, said = self.signals[-1], self._said[-1]
        return said is not None and not said.too_old_for(switch) and not switch.holds(said.value)

    def _against(self, now_s: float) -> str:
        if not self._armed:
            return "not armed; type --arm"
        for signal, said in zip(self.signals, self._said, strict=True):
            if said is None:
                return f"{signal.topic}: nothing was heard yet"
            if said.too_old_for(signal):
                when = f"{abs(said.age_s):.2f} s {'before' if said.age_s > 0.0 else 'after'}"
                return f"{signal.topic}: was published {when} it came, by its publisher's clock"
            if now_s - said.at_s > signal.fresh_s:
                return f"{signal.topic}: nothing was heard for {now_s - said.at_s:.2f} s"
            if not signal.holds(said.value):
                return f"{signal.topic}: {signal.field} is {said.value}"
        return ""
