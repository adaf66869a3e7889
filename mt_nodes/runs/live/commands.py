# SPDX-License-Identifier: Apache-2.0
"""What a run beside a live stack is told while it goes on, by services, parameters or ``mt live``."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import build
from mt_nodes.runs.live.config import PARTS, Limits, LiveConfig, Segments
from mt_nodes.runs.relation_choice import loaded_relations


class RunState(str, Enum):
    """What a run is doing: before it begins, testing, not testing for now, and ending."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"


@dataclass(frozen=True)
class Wishes:
    """What the run is to do from now on."""

    state: RunState
    relations: tuple[str, ...]
    segments: Segments
    limits: Limits


@dataclass(frozen=True)
class Reply:
    """Whether a command was taken, and what is so now, or why not and what to do."""

    ok: bool
    text: str


#: Parameters that may change while it runs, by the part of the configuration that they belong to.
CHANGEABLE: dict[str, tuple[str, ...]] = {part: PARTS[part] for part in ("segments", "limits")}


class Commands:
    """Takes commands from any thread; the driver asks for the wishes of the moment before each instant.

    ``config``: what the run began with. ``relations``: ids of the relations that were loaded: control and sham, which
    need not be named, are none of them.
    """

    def __init__(self, config: LiveConfig, relations: Sequence[str]) -> None:
        self._lock = threading.RLock()  # held from reading what is wished until what was made of it is
        self._known = tuple(relations)
        state = RunState.RUNNING if config.autostart else RunState.WAITING
        self._config = config
        self._wishes = Wishes(state, self._known, config.segments, config.limits)
        self._status: dict[str, Any] = {}

    @property
    def config(self) -> LiveConfig:
        """What the run began with."""
        return self._config

    @property
    def wishes(self) -> Wishes:
        """What is wished now."""
        with self._lock:
            return self._wishes

    @property
    def status(self) -> dict[str, Any]:
        """What the driver last told of the run: plain values by name."""
        with self._lock:
            return dict(self._status)

    def tell(self, status: dict[str, Any]) -> None:
        """Keep what the driver tells of the run."""
        with self._lock:
            self._status = dict(status)

    def start(self) -> Reply:
        """Begin, or go on."""
        return self._go(RunState.RUNNING, "testing")

    def pause(self) -> Reply:
        """Test nothing until told to go on: an instance that remembers gets the source, to stay in step."""
        return self._go(RunState.PAUSED, "paused: an instance that remembers gets the source; `mt live start` goes on")

    def stop(self) -> Reply:
        """End the run in good order: the summary is written."""
        return self._go(RunState.STOPPING, "ending: what is on its way is judged, then the summary is written")

    def choose(self, relations: Sequence[str]) -> Reply:
        """Let only these relations take turns, in this order."""
        try:
            relations = loaded_relations(relations, self._known)
        except UsageError as error:
            return Reply(False, str(error))
        if not relations:
            return Reply(False, f"got no relation, expected some of {', '.join(self._known)}")
        if len(set(relations)) < len(relations):
            return Reply(False, f"got a relation twice: {', '.join(relations)}")
        return self._wish(f"relations take turns: {', '.join(relations)}", relations=tuple(relations))

    def change(self, name: str, value: Any) -> Reply:
        """Change a parameter, ``segments.test_bundles`` for one, where that is safe while it runs."""
        part, _, key = name.partition(".")
        if key not in CHANGEABLE.get(part, ()):
            return Reply(False, self._refusal(name))
        if name == "segments.swap_arms" and value and self._config.mode != "twin":
            return Reply(
                False, f"segments.swap_arms: roles change in mode twin only; this run's is {self._config.mode}"
            )
        with self._lock:
            before = getattr(self._wishes, part)
            try:
                after = build(type(before), {**dataclasses.asdict(before), key: value}, part)
            except UsageError as error:
                return Reply(False, str(error))
            return self._wish(f"{name}: {getattr(after, key)}", **{part: after})

    def _refusal(self, name: str) -> str:
        changeable = [f"{part}.{key}" for part, keys in CHANGEABLE.items() for key in keys]
        if name in {f.name for f in dataclasses.fields(self._config)}:
            return (
                f"{name} holds for the whole run: what was judged before would not compare with what comes after; "
                f"stop, change the configuration file, and start anew. Changeable are {', '.join(changeable)}"
            )
        return f"no parameter '{name}'{suggest(name, changeable, 'changeable are ' + ', '.join(changeable))}"

    def _go(self, state: RunState, text: str) -> Reply:
        with self._lock:
            if self._wishes.state is RunState.STOPPING and state is not RunState.STOPPING:
                return Reply(False, "the run is ending; begin another with `mt live --config FILE`")
            self._wishes = dataclasses.replace(self._wishes, state=state)
        return Reply(True, text)

    def _wish(self, text: str, **changes: Any) -> Reply:
        with self._lock:
            self._wishes = dataclasses.replace(self._wishes, **changes)
        return Reply(True, text)
