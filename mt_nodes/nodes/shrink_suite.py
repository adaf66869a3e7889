# SPDX-License-Identifier: Apache-2.0
"""The suite process of ``mt shrink``: one pair is played again and again over topics, in arms that stay alive."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from mt_nodes.base.environment import clean_shared_memory, user_domain
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.drive_suite import world_arm
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.nodes.suite import Status, open_arm, open_arms
from mt_nodes.nodes.suite_process import ProgressEvents, check_interrupted, run_suite
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay.execute import Arms
from mt_nodes.runs.shrink.shrink_run import ShrinkRun, carry_out


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the exit code of the shrinking."""
    run_suite("shrink_suite", lambda out, events: _carry_out(ShrinkRun.load(out), events), args)


def _carry_out(shrinking: ShrinkRun, events: ProgressEvents) -> dict[str, Any]:
    clean_shared_memory()
    run = shrinking.run
    with ExitStack() as ending:
        control_ros = SpinningContext(user_domain(os.environ))
        ending.callback(control_ros.close)
        control: ControlNode = control_ros.add(ControlNode)
        ending.callback(control.flush, 2.0)
        status = Status(run.pairs_to_come, control, events)

        def tell(play: int, words: str) -> None:
            check_interrupted()
            events.send({"play": play, "words": words})

        def open_all(stack: ExitStack) -> Arms:
            if isinstance(run, ScenarioRun):
                return open_arms(run, stack, status, world_arm)
            return open_arms(run, stack, status, open_arm)

        return carry_out(shrinking, open_all, control.line, status.progress, tell)


if __name__ == "__main__":
    main()
