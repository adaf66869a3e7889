# SPDX-License-Identifier: Apache-2.0
"""The arms of a run over topics: a ROS domain and an instance of the stack each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_topic_name import validate_topic_name

from mt_nodes.base.environment import free_domains
from mt_nodes.engine.plan import ArmPlan, ReplayedTopic, arm_plans, stack_process
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.convert import topics_of_world
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.qos import load_overrides
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.suite_status import SuiteStatus
from mt_nodes.runs.replay.execute import Arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.run_directory import StackRun

R = TypeVar("R", bound=StackRun[Any])


def open_arms(
    run: R, ending: ExitStack, status: SuiteStatus, open_arm: Callable[[R, ArmPlan, ArmDomain], RosArm]
) -> Arms:
    """Join a ROS domain for each arm of a run, and put the end of all on the stack.

    Args:
        run: whose arms they are.
        ending: takes what ends them.
        status: tells of them from then on.
        open_arm: makes one, of its plan and its domain.
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
        exclusive = plan.domain is None or (shared and bool(arms))
        arms.append(open_arm(run, plan, ArmDomain(domain, exclusive)))
    status.arms = arms
    return arms[0], arms[-1]


def _stop(arms: Sequence[RosArm]) -> None:
    """Side by side: every stack is told to end before any is waited for."""
    with ExitStack() as each:
        for arm in arms:
            each.callback(arm.stop)
            arm.ask_to_end()


def open_arm(run: Run, plan: ArmPlan, domain: ArmDomain) -> RosArm:
    """Make one arm of a replay: of its plan and its domain."""
    topics, required = run.topics()
    unusable = {t: why for t, row in topics.items() if t not in required and (why := _unusable(row))}
    for topic, why in sorted(unusable.items()):
        print(f"suite: {topic} is not replayed: {why}", file=sys.stderr)
    process = stack_process(run.stack, plan, domain.number, run.out, os.environ, report_errors=True)
    usable = {t: row for t, row in topics.items() if t not in unusable}
    profiles = load_overrides(Path(run.request.qos)) if run.request.qos else {}
    fan_out = run.stack.stateless and run.request.pace == "lockstep"
    once = "say stateless: false in the stack file" if fan_out else ""
    return RosArm(plan, domain, run.stack, process, ArmInputs(usable, required, profiles), once)


def world_arm(run: StackRun[Any], plan: ArmPlan, domain: ArmDomain) -> RosArm:
    """Return an arm that is given everything that a world says, on the stack's own topics."""
    topics = topics_of_world(run.stack)
    process = stack_process(run.stack, plan, domain.number, run.out, os.environ, report_errors=True)
    return RosArm(plan, domain, run.stack, process, ArmInputs(topics, frozenset(topics)))


def _unusable(row: ReplayedTopic) -> str | None:
    """Say why a topic of the bag cannot be published here, None when it can."""
    if not available(row.type):
        return f"{row.type} is not installed here"
    try:
        validate_topic_name(row.topic)
    except InvalidTopicNameException:
        return "its name is none in ROS 2"
    return None
