# SPDX-License-Identifier: Apache-2.0
"""The suite process beside a live stack: taps, mutates and judges over topics, as one run directory says.

Started by ``mt live`` and its launch file. Its events are ``{"domains": …}``, then how the run goes (see
:attr:`mt_nodes.runs.live.live_driver.LiveDriver.status`) and at the end ``{"end": …}``.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node

from mt_nodes.base.environment import TAP_ENCLAVE, clean_shared_memory, enclave, free_domains
from mt_nodes.base.errors import InfrastructureError, IsolationError, UsageError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import wait_until
from mt_nodes.engine.arm import start
from mt_nodes.engine.arrival import Arrivals
from mt_nodes.engine.plan import ArmPlan, ReplayedTopic, stack_process
from mt_nodes.engine.recorder import Recorder
from mt_nodes.nodes import qos
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.external_arm import ExternalArm
from mt_nodes.nodes.listening_arm import ListeningArm
from mt_nodes.nodes.live_control import LiveControl
from mt_nodes.nodes.live_safety import LiveSafety
from mt_nodes.nodes.live_taps import CLOCK, LOOK_EVERY_S, LiveTaps, LiveTopics
from mt_nodes.nodes.live_view import LiveView
from mt_nodes.nodes.qos import load_overrides
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext, quiet_node
from mt_nodes.nodes.suite_process import STATUS_EVERY_S, ProgressEvents, check_interrupted, ros_arguments, run_suite
from mt_nodes.runs.live.attendance import Presence
from mt_nodes.runs.live.commands import Commands, RunState
from mt_nodes.runs.live.config import NOT_GIVEN, OWN_ARMS
from mt_nodes.runs.live.followup_workers import FollowupWorkers
from mt_nodes.runs.live.live_driver import LiveDriver
from mt_nodes.runs.live.live_judging import nothing_missed
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.live_surroundings import LiveSurroundings
from mt_nodes.runs.replay.execute import play_to_end, record_run
from mt_nodes.runs.vehicle.caps import in_idle_thread

#: Names in the live domain.
TAP_NODE = "mt_tap"
#: Longest time that a node in a domain stayed unseen (measured: 1,055 ms).
DISCOVERY_S = 1.2


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the run's exit code."""
    run_suite("live_suite", lambda out, events: _carry_out(LiveRun.load(out), events), args)


def _carry_out(run: LiveRun, events: ProgressEvents) -> dict[str, Any]:
    clean_shared_memory()
    process_time_s.start_watching()
    with ExitStack() as ending:
        given = run.request.control_domain
        lease = ending.enter_context(free_domains(int(given == NOT_GIVEN), {run.request.live_domain}))
        control_ros = SpinningContext((*lease.domains, given)[0], ros_arguments())
        ending.callback(control_ros.close)
        control: ControlNode = control_ros.add(ControlNode)
        ending.callback(control.flush, 2.0)
        commands = Commands(run.request, [relation.id for relation in run.suite.relations])
        live_control: LiveControl = control_ros.add(LiveControl, commands)
        safety = LiveSafety(run, ending, TAP_NODE)
        suite = _LiveSuite(run, commands, control, events, control_ros.domain, live_control.pings.offsets, safety)
        return record_run(run, suite.play, control.line, LiveView(control).show)


class _LiveSuite:
    """Opens taps and arms, runs the driver, and tells how it goes."""

    def __init__(
        self,
        run: LiveRun,
        commands: Commands,
        control: ControlNode,
        events: ProgressEvents,
        control_domain: int,
        clocks: Callable[[], dict[str, dict[str, Any]]],
        safety: LiveSafety,
    ) -> None:
        self._clocks, self._safety = clocks, safety
        self._run, self._commands, self._control, self._events = run, commands, control, events
        self._domains = {"live": run.request.live_domain, "control": control_domain}
        self._arms: Sequence[RosArm | ListeningArm] = ()
        self._taps: LiveTaps | None = None
        self._live: SpinningContext | None = None
        self._began_s, self._status_s = time.monotonic(), -STATUS_EVERY_S
        #: Since when all topics of the live stack are known, in process time.
        self._known_since_s = 0.0
        self._alarmed = ""

    def play(self, recorder: Recorder) -> dict[str, Any]:
        """Do all of it; return what ended it early, and what is known of the clocks of other computers."""
        begin = partial(self._begin, recorder=recorder)
        play = partial(play_to_end, self._run.out, begin, recorder.death)
        ended = in_idle_thread(play, self._over) if self._run.request.caps.policy == "idle" else play()
        return {**ended, "clocks": self._clocks(), "safety": self._safety.summary, "topics": self._given_topics()}

    def _begin(self, ending: ExitStack, recorder: Recorder) -> Callable[[], None]:
        """Join the live domain, wait for its topics, start our instances; return what is to be done then."""
        self._tell_domains()
        with enclave(TAP_ENCLAVE):
            live = self._live = SpinningContext(self._run.request.live_domain)
        ending.callback(live.close)
        node: Node = live.add(quiet_node, TAP_NODE)
        topics = self._topics(node)
        if self._over() or topics.missing():
            return lambda: None
        other_topics = topics.other_topics()
        given = {**topics.sensors(), **other_topics}
        if not self._look_first(node, given):
            return lambda: None
        arms = self._open_arms(ending, node, given)
        self._arms = list(dict.fromkeys(arms))
        self._safety.watch_leaks(ending, node, [arm.monitor for arm in self._arms if isinstance(arm, RosArm)])
        self._tell_domains()
        if not self._wait_for_external():
            return lambda: None
        start(*arms)
        missed = arms[0].missed if isinstance(arms[0], ListeningArm) else nothing_missed
        driver = LiveDriver(
            *(self._run, arms, recorder, self._commands),
            LiveSurroundings(self._tell, missed, self._presence, self._safety.health, self._safety.over_duty),
            workers=self._open_workers(ending),
        )
        self._safety.stop = driver.line.hold
        self._taps = LiveTaps(node, self._run.stack, other_topics, self._run.static_transforms, driver)
        return driver.run

    def _open_workers(self, ending: ExitStack) -> FollowupWorkers | None:
        """Return the processes that make follow-ups; they start when one takes long enough to be worth it."""
        run = self._run
        count = run.request.workers_on(len(os.sched_getaffinity(0)))
        if not count:
            return None
        workers = FollowupWorkers(run.suite, run.request.seed, run.offers, count, run.out / "console.log")
        ending.callback(workers.close)
        return workers

    def _topics(self, node: Node) -> LiveTopics:
        """Wait until it is known how the inputs are published: what our instances are given has to be advertised."""
        config = self._run.request
        topics = LiveTopics(node, self._run.stack, config.use_sim_time)
        began_s = self._known_since_s = process_time_s()

        def known() -> bool:
            missing = topics.missing()
            if missing:
                self._known_since_s = process_time_s()
            text = f"a publisher of {', '.join(missing)} in domain {config.live_domain}" if missing else ""
            self._tell({"state": self._commands.wishes.state.value, "waiting_for": text})
            # Who publishes /clock may be found later than who publishes the rest.
            found = not missing and (config.use_sim_time != "auto" or process_time_s() - began_s > DISCOVERY_S)
            return found or self._over(began_s)

        wait_until(known, math.inf, LOOK_EVERY_S)
        return topics

    def _look_first(self, node: Node, given: dict[str, ReplayedTopic]) -> bool:
        """See what is there before anything of ours is, and how well the live stack does; return whether to go on."""
        self._safety.begin_watch(node, given)
        state = self._commands.wishes.state.value

        def known() -> bool:
            waiting = self._safety.measured(node)
            self._tell({"state": state, "waiting_for": waiting})
            return (not waiting and process_time_s() - self._known_since_s > DISCOVERY_S) or self._over()

        wait_until(known, math.inf, LOOK_EVERY_S)
        return not self._over()

    def _wait_for_external(self) -> bool:
        """Wait for instances that somebody else starts, and tell so; return whether to go on."""
        stack, state, began_s = self._run.stack, self._commands.wishes.state.value, process_time_s()

        def come() -> bool:
            away = self._presence().away
            self._tell({"state": state, "waiting_for": away})
            return not away or self._over(began_s)

        if not wait_until(come, stack.ready_timeout_s, LOOK_EVERY_S):
            raise InfrastructureError(
                f"not there after {stack.ready_timeout_s:g} s: {self._presence().away}; start it, or mend its "
                "topics and domain in the stack file (`mt doctor --live-config FILE` looks at them)"
            )
        return not self._over(began_s)

    def _presence(self) -> Presence:
        """Return whether all instances are there that somebody else starts."""
        found = [arm.presence() for arm in self._arms if isinstance(arm, ExternalArm)]
        return Presence(next((p.away for p in found if p.away), ""), sum(p.times_lost for p in found))

    def _given_topics(self) -> dict[str, Any]:
        """Return what is told of the topics that the instance with the follow-ups is given."""
        last = self._arms[-1] if self._arms else None
        return last.topics if isinstance(last, RosArm) else {}

    def _over(self, began_s: float | None = None) -> bool:
        lasted_s = process_time_s() - began_s if began_s is not None else 0.0
        return self._commands.wishes.state is RunState.STOPPING or 0.0 < self._run.request.duration_s < lasted_s

    def _open_arms(
        self, ending: ExitStack, node: Node, topics: dict[str, ReplayedTopic]
    ) -> tuple[RosArm | ListeningArm, RosArm | ListeningArm]:
        mode, stack = self._run.request.mode, self._run.stack
        plans = [ArmPlan(name, stack.domain.get(name)) for name in OWN_ARMS[mode]]
        leased = [plan for plan in plans if plan.domain is None]
        free = ending.enter_context(free_domains(len(leased), self._domains.values()))
        self._domains |= {plan.name: plan.domain for plan in plans if plan.domain is not None}
        self._domains |= {plan.name: domain for plan, domain in zip(leased, free.domains, strict=True)}
        arms: list[RosArm | ListeningArm] = []
        for plan in plans:
            arms.append(self._open_arm(plan, topics))
            ending.callback(arms[-1].stop)
        if mode == "shadow":
            arms.insert(0, ListeningArm(node, stack, self._run.request.window_s))
        return arms[0], arms[-1]

    def _open_arm(self, plan: ArmPlan, topics: dict[str, ReplayedTopic]) -> RosArm:
        run, domain = self._run, self._domains[plan.name]
        required = frozenset((*run.stack.sensor_topics, *run.stack.needs))
        process = stack_process(run.stack, plan, domain, run.out, os.environ)
        process = self._safety.process(process, plan, domain, topics, required)
        profiles = {CLOCK: qos.CLOCK, **(load_overrides(Path(run.request.qos)) if run.request.qos else {})}
        stack, config = run.stack, run.request
        arrivals = Arrivals(stack.answers, stack.match, config.window_s, deadline_s=stack.deadline_s)
        once = "use mode: twin or shadow" if config.mode == "alternate" else ""
        make = ExternalArm if stack.external else RosArm
        inputs = ArmInputs(topics, required, profiles)
        given = (plan, ArmDomain(domain, plan.domain is None), stack, process, inputs, once)
        return make(*given, arrivals=arrivals, given_up=self._over)

    def _tell_domains(self) -> None:
        print(
            f"live_suite: ROS domains: {', '.join(f'{name} {n}' for name, n in self._domains.items())}", file=sys.stderr
        )
        self._run.write_domains(self._domains)
        self._events.send({"domains": self._domains})

    def _tell(self, status: dict[str, Any]) -> None:
        """Tell whoever wants to know, not too often; and look whether all is well with our arms and taps."""
        check_interrupted()
        if self._taps is not None and self._taps.failure:
            raise UsageError(self._taps.failure)
        if self._live is not None and self._live.failure:
            raise InfrastructureError(f"live taps: {self._live.failure}")
        self._refuse_leaks(status)
        now_s = time.monotonic()
        if now_s - self._status_s < STATUS_EVERY_S:
            return
        self._status_s = now_s
        for arm in self._arms:
            status |= {f"{name}_{arm.name}": value for name, value in arm.status().items()}
        status |= self._safety.usage() | {"topics": self._given_topics()}
        self._commands.tell(status)
        self._events.send(status)
        clocks = self._clocks()
        flat = {f"clock_{name}_{key}": value for name, row in clocks.items() for key, value in row.items()}
        lasted_s = max(now_s - self._began_s, 1e-9)
        rate = {"pairs_per_s": round(status["done"] / lasted_s, 1)} if "done" in status else {}
        self._control.status(
            {**status, **flat, **rate}, [row["warning"] for row in clocks.values() if "warning" in row]
        )
        self._refuse_unexpected_nodes(status)

    def _refuse_leaks(self, status: dict[str, Any]) -> None:
        """Say at once where people look that a test could reach an actuator, and end the run when that is sure."""
        leak, before = self._safety.leak, self._alarmed
        if leak != before:
            self._alarmed = leak
            self._control.status({**status, "leak": leak}, [leak] if leak else [])  # an ERROR would hide the second
        self._safety.refuse_leaks()

    def _refuse_unexpected_nodes(self, status: dict[str, Any]) -> None:
        """End the run, and say so where people look, when somebody is in an arm who may not be."""
        try:
            for arm in self._arms:
                if isinstance(arm, RosArm):
                    arm.refuse_unexpected_nodes()
        except IsolationError as error:
            self._control.status(status, [str(error)])
            raise


if __name__ == "__main__":
    main()
