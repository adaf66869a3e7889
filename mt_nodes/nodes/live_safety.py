# SPDX-License-Identifier: Apache-2.0
"""What keeps a run beside a live stack from its actuators and out of its way: box, caps, guards, leaks."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from rclpy.node import Node

from mt_nodes.base.errors import IsolationError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.process_limits import ProcessLimits
from mt_nodes.base.processes import Process
from mt_nodes.base.safety_settings import Actuators, Guard
from mt_nodes.data.cdr import codec
from mt_nodes.engine.plan import ArmPlan, ReplayedTopic
from mt_nodes.nodes import qos
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.graph_guard import Ours, endpoints, participant
from mt_nodes.nodes.isolation import NAMES_S, NOT_KNOWN_YET
from mt_nodes.nodes.leak_watch import WORTH_S, GraphSnapshot, LeakWatch
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.runs.live.config import LiveConfig
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.vehicle.box_report import what_can_be_boxed
from mt_nodes.runs.vehicle.boxed_stack import boxed_stack, bridge_process
from mt_nodes.runs.vehicle.caps import HeldLimits, yielding
from mt_nodes.runs.vehicle.duty import AdaptiveDuty
from mt_nodes.runs.vehicle.gpu import gpu_environment, lacking_for
from mt_nodes.runs.vehicle.leaks import PUBLISHER, GraphEndpoint, LeakQuery, leaks_in_arm, leaks_in_live
from mt_nodes.runs.vehicle.live_guard import ComputerGuard, Health, LiveGuard
from mt_nodes.runs.vehicle.usage import ResourceUsage
from mt_nodes.stacks.stack import Stack

#: Inputs whose answer is still awaited; older ones have none.
_MOST_AWAITED = 100


class LiveWatch:
    """Taps the leading input and the first output of a live stack best effort; nobody is held back by it.

    An answer that bears no stamp is taken for that of the last input.
    ``node``: in the live domain, spun by somebody else. ``input_topic``, ``input_type``: of the leading sensor.
    """

    def __init__(self, node: Node, stack: Stack, input_topic: str, input_type: str, settings: Guard) -> None:
        self._guard = LiveGuard(settings)
        self._came_s: OrderedDict[int, float] = OrderedDict()
        role = stack.answers[0]
        row = stack.outputs[role]
        self._adapter = adapter_of(role, row)
        subscribe_raw(node, input_type, input_topic, self._input, qos.LIVE_TAP)
        node.create_subscription(message_class(row.type), row.topic, self._answered, qos.LIVE_BURSTS)

    def health(self) -> Health:
        """Return whether the live stack is as well as before the first test."""
        return self._guard.health(time.monotonic())

    @property
    def baseline(self) -> tuple[float, float] | None:
        """Rate in Hz and 95th percentile of the latency in s before the first test, None until it is known."""
        return self._guard.baseline

    def _input(self, data: bytes) -> None:
        self._came_s[codec.header_stamp_ns(data) or 0] = time.monotonic()
        while len(self._came_s) > _MOST_AWAITED:
            self._came_s.popitem(last=False)

    def _answered(self, message: object) -> None:
        now_s = time.monotonic()
        stamp_ns = self._adapter.stamp_ns(message) if self._adapter.stamped else next(reversed(self._came_s), None)
        if stamp_ns is not None and (came_s := self._came_s.pop(stamp_ns, None)) is not None:
            self._guard.answered(now_s, now_s - came_s)


class LiveSafety:
    """One run's; made before anything is started.

    Raises IsolationError: a box is required, and this system does not allow all of it. UsageError: a core is named that
    there is not.
    """

    def __init__(self, run: LiveRun, ending: ExitStack, tap: str) -> None:
        config: LiveConfig = run.request
        self._run, self._config, self._tap = run, config, f"/{tap}"
        self._missing = what_can_be_boxed().shortfalls if config.box.use != "off" else ()
        if self._missing and config.box.use == "required":
            raise IsolationError(f"box.use: required, and {'; '.join(self._missing)}")
        self._held: HeldLimits = ending.enter_context(yielding(config.caps))
        self._computer = ComputerGuard(config.guard)
        self._watch: LiveWatch | None = None
        self._leaks: LeakWatch | None = None
        #: Called in another thread as soon as a leak is sure.
        self.stop: Callable[[], object] = lambda: None
        self._watched = LeakQuery(config.actuators, config.observers, tuple(row.topic for row in run.stack.published))
        self._before: frozenset[GraphEndpoint] = frozenset()
        self._usage = ResourceUsage()
        self._duty, self._duty_began_s = AdaptiveDuty(config.guard, 1e3 * (os.cpu_count() or 1)), time.monotonic()
        self._duty_most_ms_per_s = config.limits.duty_ms_per_s
        self._began_s = process_time_s()

    def begin_watch(self, node: Node, topics: Mapping[str, ReplayedTopic]) -> None:
        """Begin to watch the live stack; to be called before anything of ours is started."""
        self._began_s = process_time_s()
        if self._config.guard.baseline_s:
            topic = self._run.stack.leading_topic
            row = next(row for row in topics.values() if row.topic == topic)
            self._watch = LiveWatch(node, self._run.stack, topic, row.type, self._config.guard)

    def measured(self, node: Node) -> str:
        """Return what is waited for before anything of ours may be started; empty when all is known."""
        self._before = endpoints(node)
        unknown = any(NOT_KNOWN_YET in one.node for one in self._before)
        if unknown and process_time_s() - self._began_s < NAMES_S:
            return "the names of nodes in the live domain"  # under their own they would be new to us later on
        if self._watch is not None and self._watch.health().why and self._watch.baseline is None:
            return f"a baseline: {self._watch.health().why}"
        return ""

    def process(
        self,
        process: Process | None,
        plan: ArmPlan,
        domain: int,
        topics: Mapping[str, ReplayedTopic],
        needed: Iterable[str],
    ) -> Process | None:
        """Return what is started in place of an instance: a bridge to it in a box, where that is wanted."""
        config = self._config
        if process is None:
            return None
        limits = process.limits or ProcessLimits()
        if config.caps.policy == "idle":
            limits = replace(limits, policy="idle")
        process = replace(process, env={**process.env, **gpu_environment(config.gpu)}, limits=limits)
        if config.box.use == "off":
            return process
        guarded = (config.box, config.actuators, config.observers)
        inside = boxed_stack(process, self._run.stack, domain, topics, sorted(needed), *guarded)
        bridge = bridge_process(inside, self._run.out / f"box_{plan.name}.json", os.environ)
        return replace(bridge, limits=limits)

    def health(self) -> str:
        """Return why nothing may be tested just now; empty when all is well."""
        if self.leak:
            return self.leak
        if self._leaks is not None and self._leaks.is_blind:
            return f"nobody has looked for leaks in the last {WORTH_S:g} s"
        found = self._computer.health()
        if found.well and self._watch is not None:
            found = self._watch.health()
            if found.latency_ratio is not None:
                self._duty.observe(time.monotonic(), self._usage.taken_ms, found.latency_ratio)
        return found.why

    def over_duty(self, most_ms_per_s: float) -> str:
        """Return why no test may begin now for the processor time taken so far; empty if one may."""
        self._duty_most_ms_per_s = most_ms_per_s
        if not most_ms_per_s and self._watch is None:
            return ""
        return self._duty.refuses(time.monotonic(), self._usage.taken_ms, most_ms_per_s)

    @property
    def leak(self) -> str:
        """By which way a test could reach an actuator just now, as far as it is known; empty when there is none."""
        return self._leaks.why if self._leaks else ""

    def watch_leaks(self, ending: ExitStack, live: Node, arms: Sequence[Node]) -> None:
        """Look at the live domain, and at those of arms where actuators are named, until all ends."""
        if not arms:
            return  # nothing of ours is given anything
        ours = Ours(frozenset({self._tap}), frozenset({participant(live)}))
        looks = [partial(self._look_at_live, live, ours)]
        if self._config.actuators != Actuators():
            own = frozenset(map(participant, arms))
            looks += [partial(self._look_at_arm, node, Ours(_names(node), own)) for node in arms]
        self._leaks = LeakWatch(looks, self._stop_injection)
        ending.callback(self._leaks.close)

    def _stop_injection(self) -> None:
        self.stop()  # what is to be called may be set later than the watch begins

    def refuse_leaks(self) -> None:
        """Raise when a way has come up by which a test could reach an actuator.

        Raises IsolationError: naming it. InfrastructureError: it cannot be looked at any more.
        """
        if self._leaks is not None:
            self._leaks.refuse()

    def _look_at_live(self, node: Node, ours: Ours, whole: bool) -> GraphSnapshot:
        found = endpoints(node, ours) if whole else endpoints(node, ours, self._watched.concerns)
        self._adopt(found)
        return GraphSnapshot(leaks_in_live(found, self._before, self._watched, ours.names), found)

    def _look_at_arm(self, node: Node, ours: Ours, whole: bool) -> GraphSnapshot:
        found = endpoints(node, ours, self._watched.concerns)
        return GraphSnapshot(leaks_in_arm(found, self._watched, ours.names), found)

    def _adopt(self, found: Iterable[GraphEndpoint]) -> None:
        """A live stack that was not there at first may come; a second one that says the same may not."""
        known = {one.name for one in self._before if one.role == PUBLISHER}
        first = {
            one
            for one in found
            if one.role == PUBLISHER and one.name in self._watched.outputs and one.name not in known
        }
        self._before |= first if len({(one.name) for one in first}) == len(first) else frozenset()

    def usage(self) -> dict[str, Any]:
        """Look at what this run takes of the computer, and return it, with what tests may take."""
        self._usage.look()
        return {**self._usage.as_plain(), **self._duty.as_plain(self._duty_most_ms_per_s)}

    @property
    def summary(self) -> dict[str, Any]:
        """What the summary says of it."""
        baseline = self._watch.baseline if self._watch else None
        figures = {"rate_hz": round(baseline[0], 3), "latency_p95_s": round(baseline[1], 6)} if baseline else {}
        return {
            "box": self._config.box.use,
            "box_lacks": list(self._missing),
            "caps": {**self._held.how, **gpu_environment(self._config.gpu)},
            "caps_lacking": {**self._held.lacking, **lacking_for(self._config.gpu, self._config.box, os.environ)},
            "usage": self._usage.as_plain(),
            **self._duty.as_plain(self._duty_most_ms_per_s),
            "duty_changes": self._duty.changes_as_plain(self._duty_began_s),
            **({"live_stack_before": figures} if figures else {}),
        }


def _names(node: Node) -> frozenset[str]:
    names = ("mt_replayer", "mt_mutator", "mt_monitor_source", "mt_monitor_followup")
    return frozenset({f"/{node.get_name()}", *(f"/{name}" for name in names)})
