# SPDX-License-Identifier: Apache-2.0
"""Whether an instance is there that somebody else starts and ends: it may go while a run goes on, and another come."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable
from dataclasses import dataclass

from mt_nodes.base.process_clock import process_time_s

#: So long after it was killed an instance may still be seen: Fast DDS waits for 20 s unless a profile says otherwise.
LEASE_S = 22.0
RESTARTED = "our instances were being restarted"
LOST = (
    "the external stack went (it ended, was started anew, or was cut off) before it had answered; "
    "pause the run (`mt live pause`) before somebody restarts it"
)


@dataclass(frozen=True)
class Presence:
    """Which instance is not there and why (empty: it is), and how often it went, or another came in its place."""

    away: str = ""
    times_lost: int = 0


def always_present() -> Presence:
    """Say that nobody else ends the instances: who dies of ours ends the run."""
    return Presence()


class Attendance:
    """Follows who is there.

    Whoever was killed is seen for a while longer, and is silent meanwhile like one who has nothing to say. So silence
    counts only when something was said later on, by the same instance; what was asked of one that went is lost.
    ``name``: of the instance, in words.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.presence = Presence()
        self._instances: frozenset[Hashable] = frozenset()
        #: Process time until which everything that was asked is lost: it went then, or another came.
        self.lost_s = -math.inf
        #: Process time until which nobody was there to be asked.
        self.back_s = -math.inf

    def look(self, instances: Collection[Hashable], lacking: Collection[str]) -> None:
        """Take in who is there now (each instance is another), and what of it is lacking, in words."""
        before, was_away = self._instances, bool(self.presence.away)
        self._instances = frozenset(instances)
        away = f"{self.name}: {'; '.join(lacking)}" if lacking else ""
        lost = bool(before) and not was_away and bool(away or self._instances - before)
        if lost:
            self.lost_s = process_time_s()
        if was_away:
            self.back_s = process_time_s()
        self.presence = Presence(away, self.presence.times_lost + lost)

    def unsure(self, sent_s: float, deadline_s: float, last_message_s: float) -> bool:
        """Tell whether silence may still turn out to be that of one who has gone.

        ``sent_s``: when it was asked, process time. ``deadline_s``: when its answer was due. ``last_message_s``: when
        anything was heard of it last.
        """
        lost = sent_s <= max(self.lost_s, self.back_s)
        return lost or (last_message_s <= deadline_s and process_time_s() < deadline_s + LEASE_S)
