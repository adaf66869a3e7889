# SPDX-License-Identifier: Apache-2.0
"""What an interlock may grant, said over all that it was ever told: nothing here remembers, and nothing is the code's.

Input may be changed at an instant where there is a let-go of the switch such that

1. it came fresh and in order, and meant no;
2. nothing else stood against a change at any look since it was published;
3. every permit was known to mean yes, without a gap, from when it came until now;
4. the switch was known to mean yes or no, without a gap, from when it came until now, and means yes now.

A signal is *known* where its last message came fresh, is fresh still, and was not published before another that came
earlier. All instants are ticks of ``TICK_S``, which floating-point numbers hold exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mt_nodes.runs.vehicle.interlock import SafetySignal

TICK_S = 1.0 / 64.0
#: Ticks for which the permits and the switch are fresh.
PERMIT_TICKS, SWITCH_TICKS = 32, 16
PERMITS = (
    SafetySignal("/speed", "std_msgs/msg/Float32", within=(-0.05, 0.05), fresh_s=PERMIT_TICKS * TICK_S),
    SafetySignal("/engaged", "std_msgs/msg/Bool", equals=False, fresh_s=PERMIT_TICKS * TICK_S),
)
SWITCH = SafetySignal("/dead_man", "std_msgs/msg/Bool", equals=True, fresh_s=SWITCH_TICKS * TICK_S)
#: What each signal may say, and what that means: yes, no, or nothing.
SPEED = [(0.0, True), (0.05, True), (9.0, False), (float("nan"), None), (False, None)]
ENGAGED = [(False, True), (True, False), (0, None), (None, None)]
PRESSED = [(True, True), (False, False), (1, None), (None, None)]


@dataclass(frozen=True)
class Message:
    """One message: of which signal (the last is the switch), what it means, when it was published by its own clock."""

    number: int
    means: bool | None
    published: int


@dataclass(frozen=True)
class Look:
    """An instant at which the interlock was told something, or asked."""

    at: int
    message: Message | None = None
    #: Something that is no signal stood against a change.
    against: bool = False


def may_change(looks: Sequence[Look], permits: int) -> bool:
    """Whether input may be changed at the last of all looks."""
    if _known(looks, len(looks) - 1, permits, permits) is not True:
        return False
    return any(_has_held_since(looks, number, permits) for number in range(len(looks)))


def _has_held_since(looks: Sequence[Look], number: int, permits: int) -> bool:
    look = looks[number]
    let_go = look.message
    if let_go is None or let_go.number != permits or let_go.means is not False:
        return False
    since = min(look.at, let_go.published)
    since_let_go = range(number, len(looks))
    return (
        all(_others_hold(looks, n, permits) for n in range(len(looks)) if looks[n].at > since or n >= number)
        and all(_known(looks, n, permits, permits) is not None for n in since_let_go)
        and all(_known(looks, n, permits, permits, later=True) is not None for n in since_let_go[:-1])
    )


def _others_hold(looks: Sequence[Look], at: int, permits: int) -> bool:
    """Whether nothing but the switch stands against a change at a look, before and after what it brings."""
    known = [_known(looks, at, n, permits) for n in range(permits)]
    before = [_known(looks, at - 1, n, permits, later=True) for n in range(permits)] if at else [None]
    return not looks[at].against and all(known) and all(before)


def _known(looks: Sequence[Look], at: int, number: int, permits: int, later: bool = False) -> bool | None:
    """What a signal is known to mean after a look, or (``later``) still at the instant of the next one."""
    now = looks[at + later].at
    came = list(_of(looks[: at + 1], number))
    if not came:
        return None
    arrived, last = came[-1]
    ticks = SWITCH_TICKS if number == permits else PERMIT_TICKS
    fresh = abs(arrived - last.published) <= ticks and now - min(arrived, last.published) <= ticks
    in_order = all(message.published <= last.published for _, message in came)
    return last.means if fresh and in_order else None


def _of(looks: Sequence[Look], number: int) -> Iterator[tuple[int, Message]]:
    yield from ((look.at, look.message) for look in looks if look.message and look.message.number == number)
