# SPDX-License-Identifier: Apache-2.0
"""The suite process of the closed loop: worlds that the stack drives through over topics, as one run directory says.

Started by ``mt scenario``; its events are those of the suite process of a replay.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from mt_nodes.base.environment import clean_shared_memory, user_domain
from mt_nodes.engine.plan import ArmPlan, stack_process
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.convert import topics_of_world
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.nodes.suite import Status, open_arms
from mt_nodes.nodes.suite_process import ProgressEvents, run_suite
from mt_nodes.runs.loop.episode_conductor import execute
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.stacks.stack import Stack


class InWorlds(Protocol):
    """What must be known of a run to open an arm that drives in worlds."""

    @property
    def stack(self) -> Stack:
        """What is under test."""

    @property
    def out(self) -> Path:
        """Results directory."""


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the run's exit code."""
    run_suite("drive_suite", lambda out, events: _carry_out(ScenarioRun.load(out), events), args)


def _carry_out(run: ScenarioRun, events: ProgressEvents) -> dict[str, Any]:
    clean_shared_memory()
    with ExitStack() as ending:
        control_ros = SpinningContext(user_domain(os.environ))
        ending.callback(control_ros.close)
        control: ControlNode = control_ros.add(ControlNode)
        ending.callback(control.flush, 2.0)
        status = Status(run.pairs_to_come, control, events)
        return execute(run, lambda stack: open_arms(run, stack, status, world_arm), control.line, status.progress)


def world_arm(run: InWorlds, plan: ArmPlan, domain: int, leased: bool) -> RosArm:
    """Return an arm that is given everything that a world says, on the stack's own topics."""
    topics = topics_of_world(run.stack)
    process = stack_process(run.stack, plan, domain, run.out, os.environ)
    return RosArm(plan, domain, leased, run.stack, process, topics, frozenset(topics))


if __name__ == "__main__":
    main()
