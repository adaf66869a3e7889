# SPDX-License-Identifier: Apache-2.0
"""What keeps a run beside a live stack from its actuators and out of its way: box, caps, guards, leaks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from rclpy.node import Node

from mt_nodes.errors import IsolationError
from mt_nodes.live.config import LiveConfig
from mt_nodes.live.run import LiveRun
from mt_nodes.nodes.graph_guard import endpoints
from mt_nodes.nodes.isolation import NAMES_S, NOT_KNOWN_YET
from mt_nodes.nodes.live_watch import LiveWatch
from mt_nodes.own_time import own_time_s
from mt_nodes.plan import ArmPlan, Replayed
from mt_nodes.processes import Process
from mt_nodes.vehicle.boxed_stack import boxed_stack, bridge_process
from mt_nodes.vehicle.boxing import what_can_be_boxed
from mt_nodes.vehicle.caps import Held, capped
from mt_nodes.vehicle.guarding import ComputerGuard
from mt_nodes.vehicle.leaks import PUBLISHER, Endpoint, Watched, leaks_in_arm, leaks_in_live
from mt_nodes.vehicle.settings import Actuators
from mt_nodes.vehicle.usage import Usage


class LiveSafety:
    """One run's; made before anything is started.

    Raises:
        IsolationError: a box is required, and this system does not allow all of it.
        UsageError: a core is named that there is not.
    """

    def __init__(self, run: LiveRun, ending: ExitStack, tap: str) -> None:
        config: LiveConfig = run.config
        self._run, self._config, self._tap = run, config, f"/{tap}"
        self._missing = what_can_be_boxed().shortfalls if config.box.use != "off" else ()
        if self._missing and config.box.use == "required":
            raise IsolationError(f"box.use: required, and {'; '.join(self._missing)}")
        self._held: Held = ending.enter_context(capped(config.caps))
        self._computer = ComputerGuard(config.guard)
        self._watch: LiveWatch | None = None
        self._watched = Watched(config.actuators, config.observers, tuple(row.topic for row in run.stack.said))
        self._before: frozenset[Endpoint] = frozenset()
        self._usage = Usage()
        self._began_s = own_time_s()

    def look_first(self, node: Node, topics: Mapping[str, Replayed]) -> None:
        """Begin to watch the live stack; to be called before anything of ours is started."""
        self._began_s = own_time_s()
        if self._config.guard.baseline_s:
            topic = self._run.stack.leading_topic
            row = next(row for row in topics.values() if row.topic == topic)
            self._watch = LiveWatch(node, self._run.stack, topic, row.type, self._config.guard)

    def measured(self, node: Node) -> str:
        """Return what is waited for before anything of ours may be started; empty when all is known."""
        self._before = endpoints(node)
        unknown = any(NOT_KNOWN_YET in one.node for one in self._before)
        if unknown and own_time_s() - self._began_s < NAMES_S:
            return "the names of nodes in the live domain"  # under their own they would be new to us later on
        if self._watch is not None and self._watch.health().why and self._watch.baseline is None:
            return self._watch.health().why
        return ""

    def process(
        self, process: Process | None, plan: ArmPlan, domain: int, topics: Mapping[str, Replayed], needed: Iterable[str]
    ) -> Process | None:
        """Return what is started in place of an instance: a bridge to it in a box, where that is wanted."""
        config = self._config
        if process is None or config.box.use == "off":
            return process
        guarded = (config.box, config.actuators, config.observers)
        inside = boxed_stack(process, self._run.stack, domain, topics, sorted(needed), *guarded)
        return bridge_process(inside, self._run.out / f"box_{plan.name}.json", os.environ)

    def health(self) -> str:
        """Return why nothing may be tested just now; empty when all is well."""
        found = self._computer.health()
        if found.well and self._watch is not None:
            found = self._watch.health()
        return found.why

    def refuse_leaks(self, live: Node, arms: Iterable[Node]) -> None:
        """Raise when a way has come up by which a test could reach an actuator.

        Raises:
            IsolationError: naming it.
        """
        found = endpoints(live)
        self._adopt(found)
        leaks = leaks_in_live(found, self._before, self._watched, (self._tap,))
        if self._config.actuators != Actuators():
            for node in arms:
                leaks += leaks_in_arm(endpoints(node), self._watched, _ours(node))
        if leaks:
            raise IsolationError(f"{leaks[0]}; nothing more is tested")

    def _adopt(self, found: Iterable[Endpoint]) -> None:
        """A live stack that was not there at first may come; a second one that says the same may not."""
        known = {one.name for one in self._before if one.role == PUBLISHER}
        first = {
            one
            for one in found
            if one.role == PUBLISHER and one.name in self._watched.outputs and one.name not in known
        }
        self._before |= first if len({(one.name) for one in first}) == len(first) else frozenset()

    def usage(self) -> dict[str, float]:
        """Look at what this run takes of the computer, and return it."""
        self._usage.look()
        return self._usage.as_plain()

    @property
    def told(self) -> dict[str, Any]:
        """What the summary says of it."""
        baseline = self._watch.baseline if self._watch else None
        figures = {"rate_hz": round(baseline[0], 3), "latency_p95_s": round(baseline[1], 6)} if baseline else {}
        return {
            "box": self._config.box.use,
            "box_lacks": list(self._missing),
            "caps": dict(self._held.how),
            "caps_lacking": dict(self._held.lacking),
            "usage": self._usage.as_plain(),
            **({"live_stack_before": figures} if figures else {}),
        }


def _ours(node: Node) -> tuple[str, ...]:
    names = ("mt_replayer", "mt_mutator", "mt_monitor_source", "mt_monitor_followup", "mt_box")
    return (f"/{node.get_name()}", *(f"/{name}" for name in names))
