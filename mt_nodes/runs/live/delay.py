# SPDX-License-Identifier: Apache-2.0
"""Everything that our instances get goes out equally late: follow-ups are made meanwhile."""

from __future__ import annotations

import math
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.engine.realtime import Sending

#: How long the thread sleeps when nothing is to go out.
IDLE_S = 1.0


@dataclass(eq=False)
class DelayedInput:
    """What goes out for one input, once it is due; until then something else can be put in its place.

    Attributes:
        due_s: process time at which it goes out.
        sendings: what does, each when it is due itself.
        is_released: whether it has begun to go out, or never will.
        dropped: whether it never will, for nobody was there.
        left: what is still to go out of one that has begun to.
    """

    due_s: float
    sendings: Sequence[Sending] = ()
    is_released: bool = False
    dropped: bool = False
    left: deque[Sending] = field(default_factory=deque)


class DelayLine:
    """Slots in lanes: those of one lane go out one behind the other, as messages of a reliable topic do."""

    def __init__(self) -> None:
        self._lanes: dict[str, deque[DelayedInput]] = defaultdict(deque)
        self._changed = threading.Condition()
        #: Held while something goes out; taken before the other.
        self._sending = threading.Lock()
        self._held = self._closed = False
        self._thread: threading.Thread | None = None
        #: What ended the thread before its time.
        self.failure: Exception | None = None

    def put(self, lane: str, slot: DelayedInput) -> None:
        """Take a slot in, behind those of its lane."""
        with self._changed:
            self._lanes[lane].append(slot)
            self._changed.notify_all()

    def exchange(self, instead: Mapping[DelayedInput, Sequence[Sending]]) -> bool:
        """Put something else into slots, into all or, when one has begun to go out, into none; say which."""
        with self._changed:
            if any(slot.is_released for slot in instead):
                return False
            for slot, sendings in instead.items():
                slot.sendings = sendings
            return True

    def withdraw(self, slots: Sequence[DelayedInput]) -> None:
        """Drop slots, or none when one has begun to go out."""
        with self._changed:
            if not any(slot.is_released for slot in slots):
                for slot in slots:
                    slot.is_released = slot.dropped = True

    def send_due(self) -> float:
        """Send what is due, in its order; return when the next is, infinity when there is none."""
        while True:
            with self._sending:
                with self._changed:
                    lane = min(self._lanes.values(), key=_due_s, default=deque())
                    due_s = _due_s(lane)
                    if due_s > process_time_s():
                        return due_s
                    sending = self._taken(lane)
                if sending is not None:
                    sending.send()

    def hold(self) -> None:
        """Drop what waits, and what becomes due until :meth:`release`: our instances are not there.

        When it returns nothing is going out any more.
        """
        with self._sending, self._changed:
            self._held = True
            for lane in self._lanes.values():
                while lane:
                    _drop(lane)

    def release(self) -> None:
        """Send what is due from now on; what was due before is dropped."""
        with self._changed:
            now_s = process_time_s()
            for lane in self._lanes.values():
                while lane and lane[0].due_s <= now_s:
                    _drop(lane)
            self._held = False
            self._changed.notify_all()

    def start(self) -> None:
        """Send from a thread of its own until :meth:`close`."""
        self._thread = threading.Thread(target=self._run, name="mt-delay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; what still waits is not sent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _taken(self, lane: deque[DelayedInput]) -> Sending | None:
        """Take what is due next out of the first slot of a lane, and the slot when nothing is left in it."""
        slot = lane[0]
        if self._held or slot.dropped:
            _drop(lane)
            return None
        if not slot.is_released:
            slot.is_released = True
            slot.left.extend(slot.sendings)
        sending = slot.left.popleft() if slot.left and slot.left[0].due_s <= process_time_s() else None
        if not slot.left:
            lane.popleft()
        return sending

    def _run(self) -> None:
        try:
            while not self._closed:
                self.send_due()
                with self._changed:
                    due_s = min(map(_due_s, self._lanes.values()), default=math.inf)
                    if not self._closed:
                        self._changed.wait(min(IDLE_S, max(0.0, due_s - process_time_s())))
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to: who waits looks here
            self.failure = error


def _due_s(lane: deque[DelayedInput]) -> float:
    if not lane:
        return math.inf
    return lane[0].left[0].due_s if lane[0].left else lane[0].due_s


def _drop(lane: deque[DelayedInput]) -> None:
    slot = lane.popleft()
    slot.is_released = slot.dropped = True
