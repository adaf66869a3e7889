# SPDX-License-Identifier: Apache-2.0
"""One in-line run: starts the relay and the mutator, starts anew what ends by itself, and keeps a record."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from mt_nodes.environment import ros_environment
from mt_nodes.errors import ExitCode, InfrastructureError, IsolationError, UsageError
from mt_nodes.jsonl import LineFile
from mt_nodes.processes import Child, Process, how_it_ended, wait_until
from mt_nodes.vehicle.inline import InlineConfig

CONFIG, OFFERS, RECORD, SUMMARY = "inline.yaml", "offers.sock", "replaced.jsonl", "summary.json"
#: Time for a relay to import ROS and listen, and to end once asked; a mutator is started anew so often at most.
READY_S, STOP_S, AGAIN_S = 30.0, 5.0, 1.0
_LOOK_S = 0.1
#: Relays that end at once, in a row, before it is given up.
MOST_IDLE = 3
_PIPE_BYTES = 65536


class _Relay:
    """The relay's process: in a session of its own and below no keeper, so that it outlives whoever started it."""

    def __init__(self, config: InlineConfig, out: Path, armed: bool) -> None:
        self._log, self._offers = out / "relay.log", out / OFFERS
        self._events, telling = os.pipe()
        os.set_blocking(self._events, False)
        self._rest = b""
        #: Whether it ever told how it goes.
        self.told = False
        words = ("--config", str(out / CONFIG), "--offers", str(self._offers), "--events", str(telling))
        argv = (sys.executable, "-m", "mt_nodes.nodes.relay", *words, *(["--armed"] if armed else []))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                env=_environment(config),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(telling,),
            )
        os.close(telling)

    def wait_until_ready(self) -> None:
        """Return when a mutator can connect, or when it has ended."""
        if not wait_until(lambda: self._offers.exists() or self.code is not None, READY_S):
            raise InfrastructureError(f"the relay does not listen after {READY_S:g} s; see {self._log}")

    @property
    def code(self) -> int | None:
        """Exit code, None while it runs."""
        return self._process.poll()

    def events(self, wait_s: float) -> list[dict[str, Any]]:
        """Return what it has told since, after at most so long."""
        if not select.select([self._events], [], [], wait_s)[0]:
            return []
        with suppress(BlockingIOError):
            self._rest += os.read(self._events, _PIPE_BYTES)
        *lines, self._rest = self._rest.split(b"\n")
        self.told = self.told or bool(lines)
        return [json.loads(line) for line in lines]

    def stop(self) -> list[dict[str, Any]]:
        """End it; return what it told at last."""
        self._process.send_signal(signal.SIGTERM)
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        last = self.events(0.0)
        os.close(self._events)
        return last


def _environment(config: InlineConfig) -> dict[str, str]:
    return ros_environment(os.environ, None if config.domain == -1 else config.domain)


class StandingIn:
    """Relay and mutator of one run.

    Args:
        config: what was asked. out: results directory, where the configuration was written to. armed: by the user.
        show: is told how it goes.
    """

    def __init__(self, config: InlineConfig, out: Path, armed: bool, show: Callable[[Mapping[str, Any]], None]) -> None:
        self._config, self._out, self._armed, self._show = config, out, armed, show
        self._counts: dict[str, dict[str, int]] = {}
        self._before: dict[str, dict[str, int]] = {}
        self._added: dict[str, Any] = {}
        self._granted = Counter[str]()
        self._restarts = Counter[str]()
        #: So many relays in a row ended before they told anything.
        self._idle = 0
        self._told_s = time.monotonic()

    def run(self, over: Callable[[], bool]) -> dict[str, Any]:
        """Stand in until ``over()``; return the summary, which is in the directory, too.

        Raises:
            IsolationError: somebody else publishes what only the relay may.
            UsageError: the configuration cannot be carried out.
            InfrastructureError: the relay cannot be started.
        """
        with closing(LineFile(self._out / RECORD)) as record:
            relay = self._start_relay()
            mutator = self._start_mutator()
            started_s = time.monotonic()
            try:
                while not over():
                    self._take(relay.events(_LOOK_S), record)
                    if relay.code is not None:
                        relay = self._start_relay_anew(relay)
                    if mutator.code is not None and time.monotonic() - started_s > AGAIN_S:
                        self._restarts["mutator"] += 1
                        mutator.stop(STOP_S)
                        mutator, started_s = self._start_mutator(), time.monotonic()
            finally:
                mutator.stop(STOP_S)
                self._take(relay.stop(), record)
        return self._summary()

    def _start_relay(self) -> _Relay:
        relay = _Relay(self._config, self._out, self._armed)
        relay.wait_until_ready()
        if relay.code is not None:
            self._refuse(relay.code)
        return relay

    def _start_relay_anew(self, ended: _Relay) -> _Relay:
        """Start another at once; one that never does its work is not tried for ever."""
        assert ended.code is not None
        self._refuse(ended.code)
        self._idle = 0 if ended.told else self._idle + 1
        if self._idle > MOST_IDLE:
            raise InfrastructureError(f"the relay {how_it_ended(ended.code)} {self._idle} times; {self._last_words()}")
        self._restarts["relay"] += 1
        # A new one counts from nothing.
        self._before = self._counts.copy()
        return self._start_relay()

    def _start_mutator(self) -> Child:
        words = ("--config", str(self._out / CONFIG), "--offers", str(self._out / OFFERS), "--out", str(self._out))
        argv = (sys.executable, "-m", "mt_nodes.nodes.inline_mutator", *words)
        return Child(Process("mutator", argv, _environment(self._config), self._out / "mutator.log"))

    def _refuse(self, code: int) -> None:
        """Raise what a relay ended with that would end so again."""
        kinds = {ExitCode.ISOLATION: IsolationError, ExitCode.USAGE: UsageError}
        if code in kinds:
            raise kinds[ExitCode(code)](self._last_words().removeprefix("relay: "))

    def _last_words(self) -> str:
        lines = (self._out / "relay.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _take(self, events: list[dict[str, Any]], record: LineFile) -> None:
        for event in events:
            if "topics" not in event:
                continue
            now_s = time.monotonic()
            self._granted[event["why"] or "granted"] += now_s - self._told_s  # type: ignore[assignment]
            self._told_s = now_s
            for topic, told in event["topics"].items():
                for stamp_ns in told.pop("replaced_ns"):
                    record.append({"topic": topic, "stamp_ns": stamp_ns})
                self._added[topic] = told.pop("added_ms")
                before = self._before.get(topic, {})
                self._counts[topic] = {name: count + before.get(name, 0) for name, count in told.items()}
            self._show(event)

    def _summary(self) -> dict[str, Any]:
        summary = {
            "schema": 1,
            "type": "inline",
            "armed": self._armed,
            "relation": self._config.relation,
            "topics": {name: {**counts, "added_ms": self._added[name]} for name, counts in self._counts.items()},
            "seconds": {why: round(seconds, 3) for why, seconds in self._granted.items()},
            "restarts": dict(self._restarts),
        }
        (self._out / SUMMARY).write_text(json.dumps(summary, indent=2), encoding="utf-8")
        return summary
