# SPDX-License-Identifier: Apache-2.0
"""What was said on the topics of one arm, play by play and instant by instant."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import wait_until

#: A play is over when nothing has come for so long, and at most so long after the last answer.
QUIET_S, LONGEST_S = 0.15, 3.0
#: What all recordings of an arm may hold; equal messages count once.
MOST_BYTES = 1 << 30
StampOf = Callable[[str, bytes], int | None]


@dataclass(eq=False)
class TopicRecording:
    """One play.

    ``windows``: by number of the instant: topic -> serialised messages. ``truncated``: first instant that memory did
    not suffice for, None where it did.
    """

    windows: dict[int, dict[str, list[bytes]]] = field(default_factory=dict)
    truncated: int | None = None


class Tape:
    """Takes messages in, from the thread that spins, and sorts them by the input that they answer.

    A message belongs to the instant whose stamp it bears; one without, or with another stamp, to the instant that was
    sent last.
    ``stamp_of``: returns the stamp of a message of a topic, None for none.
    """

    def __init__(self, stamp_of: StampOf) -> None:
        self._stamp_of, self._lock = stamp_of, threading.Lock()
        self._recording = TopicRecording()
        self._stamps: dict[int, int] = {}
        self._now: int | None = None
        self._last_s = process_time_s()
        self._pool: dict[bytes, bytes] = {}
        self._size = 0

    def begin(self) -> None:
        """Begin a play."""
        with self._lock:
            self._recording, self._stamps, self._now = TopicRecording(), {}, None

    def instant(self, number: int, stamp_ns: int) -> None:
        """Take note that the input of an instant goes out."""
        with self._lock:
            self._now = number
            self._stamps[stamp_ns] = number
            self._recording.windows.setdefault(number, {})

    def put(self, topic: str, data: bytes) -> None:
        """Take a message in; before the first instant there is nothing that it could answer."""
        stamp = self._stamp_of(topic, data)
        with self._lock:
            self._last_s = process_time_s()
            if self._now is None:
                return
            number = self._now if stamp is None else self._stamps.get(stamp, self._now)
            if self._recording.truncated is not None:
                return
            data = self._kept(data)
            if self._size > MOST_BYTES:
                self._recording.truncated = number
                return
            self._recording.windows.setdefault(number, {}).setdefault(topic, []).append(data)

    def end(self) -> TopicRecording:
        """Wait for what is still on its way, and return what was recorded of the play."""
        with self._lock:
            self._last_s = process_time_s()
        wait_until(lambda: process_time_s() - self._last_s >= QUIET_S, LONGEST_S)
        with self._lock:
            ended, self._recording, self._now = self._recording, TopicRecording(), None
            return ended

    def _kept(self, data: bytes) -> bytes:
        known = self._pool.setdefault(data, data)
        if known is data:
            self._size += len(data)
        return known
