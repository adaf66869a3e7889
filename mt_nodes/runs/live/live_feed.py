# SPDX-License-Identifier: Apache-2.0
"""How live input reaches the arms, by mode: the source to all of them, a follow-up in its place when there is one."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import NO_MESSAGES, Bundle, Wire
from mt_nodes.engine.arm import Arm
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.realtime import Sending, sendings
from mt_nodes.engine.send_order import NOT_SENT, Part, split_followup
from mt_nodes.engine.series import FinalDiagnostics
from mt_nodes.runs.live.delay import DelayedInput, DelayLine
from mt_nodes.runs.live.live_episodes import EpisodePlace
from mt_nodes.runs.live.segments import Turn

#: When so many later inputs were answered by both arms, an earlier one will not be.
OVERTAKEN = 5


@dataclass(eq=False)
class Instant:
    """One instant of live input on its way.

    Attributes:
        bundle: what came. arrived_s: when, process time. place: where it belongs.
        slots: what goes to each arm.
        turn: what it is used for, None: for nothing, before the run begins. prepared: its follow-up, if it is tested.
        in_making: whether another process makes its follow-up, or is to.
        ended: whether its lines are written. swapped: whether the arms have changed their roles.
        behind: whether what goes to the second arm waits for the answer of the first.
        wrong: why it cannot be read, empty if it can.
        lost: why whoever was given it will not answer, empty if nobody went.
    """

    bundle: Bundle
    arrived_s: float
    place: EpisodePlace
    slots: tuple[DelayedInput, DelayedInput]
    turn: Turn | None = None
    prepared: FollowupPlan | None = None
    in_making: bool = False
    ended: bool = False
    swapped: bool = False
    behind: bool = False
    wrong: str = ""
    lost: str = ""

    @property
    def roles(self) -> tuple[DelayedInput, DelayedInput]:
        """What goes to the source arm, and to the follow-up arm."""
        first, second = self.slots
        return (second, first) if self.swapped else (first, second)

    @property
    def dropped(self) -> bool:
        """Whether it never reached an arm of ours."""
        return any(slot.dropped for slot in self.slots)

    @property
    def gone_out(self) -> bool:
        """Whether all of it has gone out, or never will."""
        return self.dropped or all(sending.sent for slot in self.slots for sending in slot.sendings)

    def free(self) -> None:
        """Let go of what came, but for its stamp: nothing of it is sent or judged any more."""
        self.bundle = replace(self.bundle, wires=(), loose=(), **NO_MESSAGES)
        for sending in (sending for slot in self.slots for sending in slot.sendings):
            sending.part = Part(self.bundle, frozenset(), self.bundle.stamp_ns, 0)

    @property
    def late_s(self) -> float:
        """By how much a follow-up that is made now is too late; it is not where the arms wait for it."""
        return -math.inf if self.behind else process_time_s() - self.slots[1].due_s

    def answers(self) -> tuple[Answer, list[Answer]]:
        """Return what the source arm said, and what the follow-up arm said to each part."""
        source, followups = ([s.answer for s in slot.sendings if s.answer is not None] for slot in self.roles)
        nothing = Answer.nothing(AnswerStatus.SKIPPED, NOT_SENT)
        return next(iter(source), nothing), followups or [nothing]


class Feeding:
    """Gives the arms what comes, equally late; in the modes ``shadow``, ``twin`` and ``alternate``.

    ``arms``: the first and the second one; the same twice in ``alternate``. ``line``: where what goes to our arms
    waits. ``delay_s``: for how long; in ``alternate`` nothing waits.
    """

    def __init__(self, mode: str, arms: tuple[Arm, Arm], line: DelayLine, delay_s: float) -> None:
        self._mode, self._arms, self._line = mode, arms, line
        self._delay_s = 0.0 if mode == "alternate" else delay_s
        self._over: deque[Instant] = deque()

    @property
    def own(self) -> tuple[Arm, ...]:
        """The arms that hold instances of ours."""
        return self._arms[1:] if self._mode == "shadow" else tuple(dict.fromkeys(self._arms))

    def begin_episode(self) -> None:
        """Say that time starts anew."""
        for arm in self.own:
            arm.begin_episode()

    def feed(self, bundle: Bundle, arrived_s: float, place: EpisodePlace) -> Instant:
        """Put the source of an instant on its way to every arm that can take it at once."""
        due_s = arrived_s + self._delay_s
        whole = Part(bundle, frozenset(), bundle.stamp_ns, 0)
        first, second = (DelayedInput(due_s, [Sending(arm, whole, due_s)]) for arm in self._arms)
        if self._mode == "twin":
            self._fill(first, (whole,), due_s)
        if self._mode != "alternate":
            self._fill(second, (whole,), due_s)
        instant = Instant(bundle, arrived_s, place, (first, second))
        if self._mode == "shadow":
            # The live stack has it already: that its answer is awaited is all there is to do.
            first.sendings[0].send()
            first.is_released = True
        elif self._mode == "twin":
            self._line.put("first", first)
        else:
            instant.behind = True
            return instant
        self._line.put("second", second)
        return instant

    def begin(self, instant: Instant) -> None:
        """Send what waited for its follow-up to be made: in ``alternate`` the source."""
        if instant.behind:
            self._send_now(instant.slots[0])

    def leave_out(self, instant: Instant) -> None:
        """Send nothing of an instant that waits for its follow-up: in ``alternate`` the instance is busy."""
        if instant.behind:
            self.give_up(instant)

    def withhold(self, instant: Instant) -> None:
        """Send nothing of an instant that is not tested to our instances, unless some of it went out."""
        if instant.behind:
            self.give_up(instant)
        else:
            self._line.withdraw(instant.slots[1:] if self._mode == "shadow" else instant.slots)

    def end(self, instant: Instant) -> None:
        """Free an instant that is not judged once it has gone out; its answers are awaited to keep the order alone.

        A stack that is silent for half a minute would fill memory with clouds. What a sequence is judged by stays.
        """
        if instant.turn is None or not instant.turn.offer.sequences:
            self._over.append(instant)
        while self._over and self._over[0].gone_out:
            self._over.popleft().free()

    def give_up(self, instant: Instant) -> None:
        """Expect nothing more of an instant: whoever was given it is not there any more."""
        for slot in instant.slots:
            slot.is_released = slot.dropped = True

    def reached(self, instant: Instant) -> bool:
        """Tell whether an instance of ours was given an instant, or a part of it."""
        slots = instant.slots[1:] if self._mode == "shadow" else instant.slots
        return any(sending.sent for slot in slots for sending in slot.sendings)

    def forward(self, wire: Wire, arrived_s: float) -> None:
        """Put a message that is no sensor's on its way to our arms."""
        due_s = arrived_s + self._delay_s
        alone = Part(Bundle(0, 0, wire.stamp_ns, wires=(wire,)), frozenset(), wire.stamp_ns, 0)
        for arm in self.own:
            self._line.put(f"beside {arm.name}", DelayedInput(due_s, [Sending(arm, alone, due_s, late=True)]))

    def exchange(self, instant: Instant, prepared: FollowupPlan) -> bool:
        """Put a follow-up (and a baseline) in the source's place; say whether there was still time to."""
        assert prepared.derived is not None, "only what was made can be sent"
        source, followup = instant.roles
        _, parts = split_followup(prepared.derived.followup, instant.bundle)
        due_s = followup.due_s + (0.0 if self._mode == "alternate" else lead_s(instant.bundle))
        instead = {followup: self._sendings(followup, parts, due_s)}
        if prepared.baseline is not None:
            instead[source] = self._sendings(source, (prepared.for_source(instant.bundle),), due_s)
        return self._line.exchange(instead)

    def give_up_answers(self, instant: Instant, reason: str) -> None:
        """Take what is not answered for silence, and wait no longer."""
        now_s = process_time_s()
        for sending in (s for slot in instant.slots for s in slot.sendings):
            if not sending.answered(now_s):
                sending.answer = Answer.nothing(AnswerStatus.SILENT, reason)
        instant.behind = False

    def overtaken(self, waiting: Sequence[Instant]) -> bool:
        """Tell whether so many later ones were answered that the first will not be, and wait for it no longer."""
        later = list(itertools.islice(waiting, 1, OVERTAKEN + 1))
        if waiting[0].in_making or len(later) < OVERTAKEN or not all(self.through(instant) for instant in later):
            return False
        self.give_up_answers(waiting[0], f"no answer, but {OVERTAKEN} later inputs were answered")
        return True

    def final_diagnostics(self) -> FinalDiagnostics:
        """Return what the first and the second arm have told of errors since their last answers."""
        # Of one instance the follow-up was the last that it was given.
        second = self._arms[1].final_diagnostics()
        return self._arms[0].final_diagnostics(), second

    def through(self, instant: Instant) -> bool:
        """Tell whether every arm has answered an instant, or will not; send what waited for the first answer.

        None has while it is not known what becomes of the follow-up.
        """
        now_s = process_time_s()
        if instant.dropped:
            return True
        if instant.in_making or not _answered(instant.slots[0], now_s):
            return False
        if instant.behind:
            self._second(instant, now_s)
        return _answered(instant.slots[1], now_s)

    def _second(self, instant: Instant, now_s: float) -> None:
        instant.behind = False
        first, second = instant.slots
        answer = first.sendings[0].answer
        if answer is None or answer.status is not AnswerStatus.ANSWERED:
            # What is answered late would be taken for the answer to the next input of that stamp.
            second.sendings, second.is_released = (), True
            return
        for sending in second.sendings:
            sending.due_s += now_s - second.due_s
        self._send_now(second)

    def _send_now(self, slot: DelayedInput) -> None:
        slot.due_s = process_time_s()
        self._line.put("second", slot)
        self._line.send_due()

    def _fill(self, slot: DelayedInput, parts: Sequence[Part], due_s: float) -> None:
        """Have an input go out so that the last of it to come is due at ``due_s``."""
        slot.sendings = self._sendings(slot, parts, due_s)
        slot.due_s = due_s - lead_s(parts[0].bundle)

    def _sendings(self, slot: DelayedInput, parts: Sequence[Part], due_s: float) -> list[Sending]:
        """Return what goes out; a frame of no instant by itself, as long after it came as the instant's messages."""
        arm, first = slot.sendings[-1].arm, parts[0] if parts else None
        if first is None or self._mode == "alternate" or not first.bundle.loose:
            return sendings(arm, parts, lambda part: due_s + part.delay_ns / 1e9)
        rest, loose = first.bundle.apart
        early = [
            Sending(arm, Part(frame, frozenset(), frame.stamp_ns, 0), due_s - _age_s(first.bundle, frame), late=True)
            for frame in loose
        ]
        parts = (replace(first, bundle=rest), *parts[1:])
        return early + sendings(arm, parts, lambda part: due_s + part.delay_ns / 1e9)


def lead_s(bundle: Bundle) -> float:
    """Return how long before the last of an instant the first frame came that belongs to none."""
    return max((_age_s(bundle, frame) for frame in bundle.apart[1]), default=0.0)


def _age_s(bundle: Bundle, frame: Bundle) -> float:
    """Return how long before the last message of a bundle a frame of no instant came."""
    came_s, own_s = [w.came_s for w in bundle.wires if w.came_s is not None], frame.wires[0].came_s
    return 0.0 if own_s is None else max(came_s) - own_s


def _answered(slot: DelayedInput, now_s: float) -> bool:
    return slot.is_released and all(sending.answered(now_s) for sending in slot.sendings)
