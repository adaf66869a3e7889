# SPDX-License-Identifier: Apache-2.0
"""The relay that serves and the one that stands by: whichever ends is followed by another."""

from __future__ import annotations

import select
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, InfrastructureError, IsolationError, UsageError
from mt_nodes.base.processes import how_it_ended, wait_until
from mt_nodes.runs.vehicle.baton import Baton, Phase
from mt_nodes.runs.vehicle.inline import InlineConfig
from mt_nodes.runs.vehicle.relay_process import LOG, OFFERS, RelayProcess

#: Time for a relay to import ROS and listen; for a standby to take over, once the other is known to be dead.
READY_S, TAKE_OVER_S = 30.0, 2.0
#: A standby that tells nothing for so long stands still: it would take nothing over.
SILENT_S = 5.0
#: Relays that end at once, in a row, before it is given up.
MOST_IDLE = 3


class RelayPair:
    """Relays of one run. The standby itself takes over; here it gets a successor, and a relay is begun without one.

    Raises IsolationError: somebody else publishes what only the relay may. UsageError: the configuration cannot be
    carried out. InfrastructureError: the relay cannot be started.
    """

    def __init__(self, config: InlineConfig, out: Path, armed: bool) -> None:
        self._config, self._out, self._armed = config, out, armed
        self._baton = Baton.create(len(config.topics), config.depth)
        self._number = 0
        #: So many relays, and standbys, in a row ended before they told anything.
        self._idle = Counter[str]()
        #: What ended by itself and was followed by another.
        self.restarts = Counter[str]()
        self._last: list[dict[str, Any]] = []
        self._dead_since_s: float | None = None
        self._standby: RelayProcess | None = None
        self._serving = self._begun()
        self._standby = self._start_standby()

    @property
    def log(self) -> Path:
        """What the relays print."""
        return self._out / LOG

    @property
    def guarded(self) -> bool:
        """Whether another relay stands by."""
        return self._standby is not None and self._standby.has_reported

    def events(self, wait_s: float) -> list[dict[str, Any]]:
        """Return what they have told since, after at most so long."""
        both = [one for one in (self._serving, self._standby) if one is not None]
        # What has ended has an end of file to read, always: nobody would wait any more.
        select.select([one.events_from for one in both if one.code is None], [], [], wait_s)
        events, self._last = self._last, []
        return events + [event for one in both for event in one.events()]

    def look_after(self) -> None:
        """See that one serves and another stands by."""
        if self._serving.code is not None:
            self._follow(self._serving.code)
        elif self._standby is not None and self._standby_is_lost(self._standby):
            self._count("standby", self._standby)
            self._last += self._standby.kill()
            self._standby = self._start_standby()

    def stop(self) -> list[dict[str, Any]]:
        """End both; return what they told at last."""
        # Should the other die meanwhile, nobody is to take over.
        last = [] if self._standby is None else self._standby.stop()
        return self._last + last + self._serving.stop()

    def _follow(self, code: int) -> None:
        """Go on with the standby where it has taken over; where it does not in time, begin anew."""
        self._refuse(code)
        dead, standby, now_s = self._serving, self._standby, time.monotonic()
        self._dead_since_s = self._dead_since_s or now_s
        alive = standby is not None and standby.code is None
        taken_over = alive and standby is not None and self._baton.owner == standby.pid
        if alive and not taken_over and now_s - self._dead_since_s < TAKE_OVER_S:
            return
        self._standby, self._dead_since_s = None, None
        self._count("relay", dead)
        self._last += dead.kill()
        if taken_over and standby is not None:
            self._serving = standby
        else:
            self._last += standby.kill() if standby is not None else []  # it must not wake up and publish
            self._check_restarts(code)
            self._serving = self._begun()
        self._standby = self._start_standby()

    def _check_restarts(self, code: int) -> None:
        if (times := self._idle["relay"]) > MOST_IDLE:
            raise InfrastructureError(f"the relay {how_it_ended(code)} {times} times; {self._last_words()}")

    def _begun(self) -> RelayProcess:
        """Start a relay that serves, and wait until a mutator can connect, or it has ended."""
        self._baton.phase = Phase.STARTING
        (self._out / OFFERS).unlink(missing_ok=True)
        relay = RelayProcess(self._config, self._out, self._armed, self._baton, self._next())
        if not wait_until(lambda: (self._out / OFFERS).exists() or relay.code is not None, READY_S):
            relay.kill()
            raise InfrastructureError(f"the relay does not listen after {READY_S:g} s; see {self.log}")
        if relay.code is not None:
            self._refuse(relay.code)
        return relay

    def _start_standby(self) -> RelayProcess | None:
        """Start a standby, not waited for; None where those before ended one after the other."""
        if self._idle["standby"] > MOST_IDLE:
            return None
        return RelayProcess(self._config, self._out, self._armed, self._baton, self._next(), after=self._serving)

    def _standby_is_lost(self, standby: RelayProcess) -> bool:
        still = standby.has_reported and time.monotonic() - standby.last_event_s > SILENT_S
        return standby.code is not None or still

    def _count(self, what: str, ended: RelayProcess) -> None:
        self.restarts[what] += 1
        self._idle[what] = 0 if ended.has_reported else self._idle[what] + 1

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _refuse(self, code: int) -> None:
        """Raise what a relay ended with that would end so again."""
        kinds = {ExitCode.ISOLATION: IsolationError, ExitCode.USAGE: UsageError}
        if code in kinds:
            raise kinds[ExitCode(code)](self._last_words().removeprefix("relay: "))

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"
