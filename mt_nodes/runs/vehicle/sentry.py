# SPDX-License-Identifier: Apache-2.0
"""Watches the process of a relay: that it lives, and that it does not stand still."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from enum import Enum

from mt_nodes.runs.vehicle.baton import Baton, Phase

#: So many looks in a row without a sign of life make ``frozen_s``. Looks are counted, not seconds: when the whole
#: computer stood still, nobody did. As many in a row must find it behind: it gets time to catch up.
LOOKS = 6
#: A relay that is busy may keep silent for so many times as long.
BUSY_TIMES = 20


class RelayFate(Enum):
    """What became of a relay."""

    ENDED = "ended"
    DIED = "died"
    #: It stood still, and was killed: it cannot come back and send what another has sent.
    FROZEN = "frozen"
    #: It lived, did not send what the standby had long had, and was killed: its reader may have lost the sensor.
    DEAF = "deaf"


class Sentry:
    """Waits for the end of a relay, and brings it about when it stands still.

    Args:
        pidfd: of its process; it cannot become another's, as a process id can.
        baton: where it gives its signs of life. frozen_s: so long without one is too long.
        is_behind: whether it has not sent what it should have by now.
    """

    def __init__(
        self, pidfd: int, baton: Baton, frozen_s: float, is_behind: Callable[[], bool] = lambda: False
    ) -> None:
        self._pidfd, self._baton, self._is_behind = pidfd, baton, is_behind
        self._poll = select.poll()
        self._poll.register(pidfd, select.POLLIN)
        self._every_ms = max(1, round(1e3 * frozen_s / LOOKS))

    def wait(self, over: Callable[[], bool]) -> RelayFate | None:
        """Return what became of it, once no thread of it runs any more; None when ``over()`` says so before."""
        beats, silent, behind = self._baton.beats, 0, 0
        while not over():
            if self._poll.poll(self._every_ms):
                return RelayFate.ENDED if self._baton.phase is Phase.ENDED else RelayFate.DIED
            silent = silent + 1 if self._baton.beats == beats else 0
            beats = self._baton.beats
            if silent >= self._patience():
                return self._end(RelayFate.FROZEN)
            behind = behind + 1 if self._baton.phase is Phase.SERVING and self._is_behind() else 0
            if behind >= LOOKS:
                return self._end(RelayFate.DEAF)
        return None

    def close(self) -> None:
        """Watch no more."""
        os.close(self._pidfd)

    def _patience(self) -> float:
        looks = {Phase.SERVING: LOOKS, Phase.BUSY: LOOKS * BUSY_TIMES}
        return looks.get(self._baton.phase, float("inf"))

    def _end(self, fate: RelayFate) -> RelayFate:
        signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._poll.poll()  # dead when this returns; until then it might publish
        return fate
