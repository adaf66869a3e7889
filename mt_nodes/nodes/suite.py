# SPDX-License-Identifier: Apache-2.0
"""The suite process: replays, mutates and judges over topics, as one run directory says.

Started by ``mt replay`` and by the launch files; its events are ``{"done": n, …}`` and at the end ``{"end": …}``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_topic_name import validate_topic_name

from mt_nodes.base.environment import clean_shared_memory, free_domains, user_domain
from mt_nodes.data.verdict import Verdict
from mt_nodes.engine.plan import ArmPlan, ReplayedTopic, WithMode, arm_plans, stack_process
from mt_nodes.engine.summary.score_range import score_notes
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.live_view import LiveView
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.qos import load_overrides
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.nodes.suite_process import STATUS_EVERY_S, ProgressEvents, check_interrupted, run_suite
from mt_nodes.runs.replay.execute import Arms, execute
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import Stack


class WithArms(Protocol):
    """What must be known of a run to open its arms."""

    @property
    def request(self) -> WithMode:
        """What was asked."""

    @property
    def stack(self) -> Stack:
        """What is under test."""


class TellsOfArms(Protocol):
    """What tells of arms how they are."""

    arms: Sequence[RosArm]


R = TypeVar("R", bound=WithArms)


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the run's exit code."""
    run_suite("suite", lambda out, events: _carry_out(Run.load(out), events), args)


def _carry_out(run: Run, events: ProgressEvents) -> dict[str, Any]:
    clean_shared_memory()
    with ExitStack() as ending:
        control_ros = SpinningContext(user_domain(os.environ))
        ending.callback(control_ros.close)
        control: ControlNode = control_ros.add(ControlNode)
        ending.callback(control.flush, 2.0)
        status = Status(run.pairs_to_come, control, events)
        view = LiveView(control)
        listen = score_notes(control.line, status.warn)
        return execute(run, lambda stack: open_arms(run, stack, status, open_arm), listen, status.progress, view.show)


def open_arms(
    run: R, ending: ExitStack, status: TellsOfArms, open_arm: Callable[[R, ArmPlan, int, bool], RosArm]
) -> Arms:
    """Join a ROS domain for each arm of a run, and put the end of all on the stack.

    Args:
        run: whose arms they are.
        ending: takes what ends them.
        status: tells of them from then on.
        open_arm: makes one, of its plan, its domain, and whether nobody else can be there.
    """
    plans = arm_plans(run.request, run.stack)
    shared = run.stack.isolation == "remap"
    free = ending.enter_context(free_domains(0 if plans[0].domain is not None else 1 if shared else len(plans)))
    domains = [plan.domain for plan in plans] if plans[0].domain is not None else list(free.domains) * len(plans)
    arms: list[RosArm] = []
    ending.callback(_stop, arms)
    for plan, domain in zip(plans, domains, strict=False):
        assert domain is not None, "a stack file fixes the domains of all arms or of none"
        # In a shared domain the first arm looks for strangers: to the second one the first one's stack would be some.
        leased = plan.domain is None or (shared and bool(arms))
        arms.append(open_arm(run, plan, domain, leased))
    status.arms = arms
    return arms[0], arms[-1]


def _stop(arms: Sequence[RosArm]) -> None:
    """Side by side: every stack is told to end before any is waited for."""
    with ExitStack() as each:
        for arm in arms:
            each.callback(arm.stop)
            arm.ask_to_end()


def open_arm(run: Run, plan: ArmPlan, domain: int, leased: bool) -> RosArm:
    """Make one arm of a replay: of its plan, its domain, and whether nobody else can be there."""
    topics, required = run.topics()
    unusable = {t: why for t, row in topics.items() if t not in required and (why := _unusable(row))}
    for topic, why in sorted(unusable.items()):
        print(f"suite: {topic} is not replayed: {why}", file=sys.stderr)
    process = stack_process(run.stack, plan, domain, run.out, os.environ)
    usable = {t: row for t, row in topics.items() if t not in unusable}
    profiles = load_overrides(Path(run.request.qos)) if run.request.qos else {}
    fan_out = run.stack.stateless and run.request.pace == "lockstep"
    once = "say stateless: false in the stack file" if fan_out else ""
    return RosArm(plan, domain, leased, run.stack, process, usable, required, profiles, once)


def _unusable(row: ReplayedTopic) -> str | None:
    """Say why a topic of the bag cannot be published here, None when it can."""
    if not available(row.type):
        return f"{row.type} is not installed here"
    try:
        validate_topic_name(row.topic)
    except InvalidTopicNameException:
        return "its name is none in ROS 2"
    return None


class Status:
    """Tells the user's domain and whoever started us how a run goes that owes so many verdicts."""

    def __init__(self, total: int, control: ControlNode, events: ProgressEvents) -> None:
        self._control, self._events = control, events
        self._total, self._done, self._violated = total, 0, 0
        self._began = self._told = time.monotonic()
        self.arms: Sequence[RosArm] = ()

    def warn(self, warning: str) -> None:
        """Hand on a warning to whoever started us."""
        self._events.send({"warning": warning})

    def progress(self, verdicts: Sequence[Verdict]) -> None:
        """Take in what was judged."""
        check_interrupted()
        self._done += len(verdicts)
        self._violated += sum(v.outcome.value == "VIOLATED" for v in verdicts)
        now = time.monotonic()
        if self._done < self._total and now - self._told < STATUS_EVERY_S:
            return
        self._told = now
        values = {"done": self._done, "total": self._total, "violated": self._violated}
        self._events.send(values)
        rate = self._done / max(now - self._began, 1e-9)
        arms = {f"{name}_{arm.name}": value for arm in self.arms for name, value in arm.status().items()}
        self._control.status({**values, "pairs_per_s": round(rate, 1), **arms})
        for arm in self.arms:
            arm.refuse_strangers()


if __name__ == "__main__":
    main()
