# SPDX-License-Identifier: Apache-2.0
"""One in-line run: starts relays and the mutator, starts anew what ends by itself, and keeps a record."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import clean_shared_memory
from mt_nodes.base.jsonl import LineFile, write_result
from mt_nodes.base.processes import Child, Process
from mt_nodes.runs.vehicle.inline import InlineConfig
from mt_nodes.runs.vehicle.interlock import cause
from mt_nodes.runs.vehicle.relay_pair import RelayPair
from mt_nodes.runs.vehicle.relay_process import CONFIG, OFFERS, environment

RECORD, SUMMARY = "replaced.jsonl", "summary.json"
#: Time for a mutator to end once asked; it is started anew so often at most.
STOP_S, AGAIN_S = 5.0, 1.0
_LOOK_S = 0.1


class StandingIn:
    """Relays and mutator of one run.

    ``config``: what was asked. ``out``: results directory, where the configuration was written to. ``armed``: by the
    user. ``show``: is told how it goes.
    """

    def __init__(self, config: InlineConfig, out: Path, armed: bool, show: Callable[[Mapping[str, Any]], None]) -> None:
        self._config, self._out, self._armed, self._show = config, out, armed, show
        self._counts: dict[str, dict[str, int]] = {}
        self._before: dict[str, dict[str, int]] = {}
        self._added: dict[str, Any] = {}
        self._granted = Counter[str]()
        self._restarts = Counter[str]()
        #: Which relay told last, and whoever took over, and why.
        self._relay = 0
        self._takeovers: list[dict[str, Any]] = []
        self._guarded = False
        self._last_event_s = time.monotonic()

    def run(self, over: Callable[[], bool]) -> dict[str, Any]:
        """Stand in until ``over()``; return the summary, which is in the directory, too.

        Raises IsolationError: somebody else publishes what only the relay may. UsageError: the configuration cannot be
        carried out. InfrastructureError: the relay cannot be started.
        """
        clean_shared_memory()  # where much of killed processes lies about, large messages get lost
        with closing(LineFile(self._out / RECORD)) as record:
            relays = RelayPair(self._config, self._out, self._armed)
            mutator = self._start_mutator()
            started_s = time.monotonic()
            try:
                while not over():
                    self._take(relays.events(_LOOK_S), record)
                    self._guarded = relays.guarded
                    relays.look_after()
                    if mutator.code is not None and time.monotonic() - started_s > AGAIN_S:
                        self._restarts["mutator"] += 1
                        mutator.stop(STOP_S)
                        mutator, started_s = self._start_mutator(), time.monotonic()
            finally:
                mutator.stop(STOP_S)
                self._take(relays.stop(), record)
                self._restarts.update(relays.restarts)
        return self._summary()

    def _start_mutator(self) -> Child:
        words = ("--config", str(self._out / CONFIG), "--offers", str(self._out / OFFERS), "--out", str(self._out))
        argv = (sys.executable, "-m", "mt_nodes.nodes.inline_mutator", *words)
        return Child(Process("mutator", argv, environment(self._config), self._out / "mutator.log"))

    def _take(self, events: list[dict[str, Any]], record: LineFile) -> None:
        for event in events:
            if "topics" not in event:
                continue
            if event["relay"] != self._relay:
                self._relay, self._before = event["relay"], self._counts.copy()  # a new one counts from nothing
                self._takeovers += [event["took_over"]] if event["took_over"] else []
            now_s = time.monotonic()
            self._granted[cause(event["why"]) or "granted"] += now_s - self._last_event_s  # type: ignore[assignment]
            self._last_event_s = now_s
            for topic, counts in event["topics"].items():
                for stamp_ns in counts.pop("replaced_ns"):
                    record.append({"topic": topic, "stamp_ns": stamp_ns})
                self._added[topic] = counts.pop("added_ms")
                before = self._before.get(topic, {})
                self._counts[topic] = {name: count + before.get(name, 0) for name, count in counts.items()}
            self._show({**event, "guarded": self._guarded})

    def _summary(self) -> dict[str, Any]:
        summary = {
            "schema": 1,
            "type": "inline",
            "armed": self._armed,
            "relation": self._config.relation,
            "topics": {name: {**counts, "added_ms": self._added[name]} for name, counts in self._counts.items()},
            "seconds": {why: round(seconds, 3) for why, seconds in self._granted.items()},
            "restarts": dict(self._restarts),
            "takeovers": self._takeovers,
        }
        write_result(self._out / SUMMARY, summary)
        return summary
