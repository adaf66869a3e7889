# SPDX-License-Identifier: Apache-2.0
"""The process of a relay: in a session of its own and below no keeper, so that it outlives whoever started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import ros_environment
from mt_nodes.runs.vehicle.baton import Baton
from mt_nodes.runs.vehicle.inline import InlineConfig

CONFIG, OFFERS, LOG = "inline.yaml", "offers.sock", "relay.log"
#: Time for a relay to end once asked.
STOP_S = 5.0
_PIPE_BYTES = 65536


def environment(config: InlineConfig) -> dict[str, str]:
    """Return what the processes of an in-line run are started with."""
    return ros_environment(os.environ, None if config.domain == -1 else config.domain)


class RelayProcess:
    """One relay, serving or standing by.

    Args:
        out: results directory, with the configuration. armed: by the user. baton: shared by the relays of the run.
        number: of this one among them. after: whose place it is to take when that dies; None: it serves at once.
    """

    def __init__(
        self, config: InlineConfig, out: Path, armed: bool, baton: Baton, number: int, after: RelayProcess | None = None
    ) -> None:
        #: Read for what it tells.
        reading, telling = os.pipe()
        os.set_blocking(reading, False)
        self.events_from = os.fdopen(reading, "rb", buffering=0)
        self._rest = b""
        #: Whether it ever told how it goes, and when it did last, or was started.
        self.has_reported, self.last_event_s = False, time.monotonic()
        handed = {"--events": telling, "--baton": baton.descriptor}
        if after is not None:
            handed["--after"] = os.pidfd_open(after.pid)  # of a child that nobody waited for: it is that process
        module = "relay" if after is None else "standby_relay"
        words = [
            "--config",
            out / CONFIG,
            "--offers",
            out / OFFERS,
            "--number",
            number,
            *(["--armed"] if armed else []),
        ]
        words += [word for pair in handed.items() for word in pair]
        with (out / LOG).open("ab") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", f"mt_nodes.nodes.{module}", *map(str, words)),
                env=environment(config),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=tuple(handed.values()),
            )
        for descriptor in set(handed.values()) - {baton.descriptor}:
            os.close(descriptor)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Exit code, None while it runs."""
        return self._process.poll()

    def events(self) -> list[dict[str, Any]]:
        """Return what it has told since."""
        if not self.events_from.closed:
            self._rest += self.events_from.read(_PIPE_BYTES) or b""
        *lines, self._rest = self._rest.split(b"\n")
        if lines:
            self.has_reported, self.last_event_s = True, time.monotonic()
        return [json.loads(line) for line in lines]

    def stop(self) -> list[dict[str, Any]]:
        """End it; return what it told at last."""
        self._process.send_signal(signal.SIGTERM)
        self._process.send_signal(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        return self.kill()

    def kill(self) -> list[dict[str, Any]]:
        """End it at once, if it runs; return what it told at last."""
        self._process.kill()
        self._process.wait()
        last = self.events()
        self.events_from.close()
        return last
