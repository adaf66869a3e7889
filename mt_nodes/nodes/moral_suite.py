# SPDX-License-Identifier: Apache-2.0
"""The suite process of a moral campaign: one stack drives every run over topics, as one run directory says.

Started by ``mt experiment moral --transport ros``; its events are ``{"doing": …, "runs": n, "cases": n, "through": n,
"violated": n}`` and at the end ``{"end": …}``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from mt_nodes.base.environment import clean_shared_memory, user_domain
from mt_nodes.engine.arm import start
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.drive_suite import world_arm
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.nodes.suite import open_arms
from mt_nodes.nodes.suite_process import STATUS_EVERY_S, ProgressEvents, check_interrupted, run_suite
from mt_nodes.runs.moral.campaign import MoralProgress, carry_out
from mt_nodes.runs.moral.dilemma_driver import DilemmaDriver
from mt_nodes.runs.moral.moral_run import MoralRun


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the run's exit code."""
    run_suite("moral_suite", lambda out, events: _carry_out(MoralRun.load(out), events), args)


def _carry_out(run: MoralRun, events: ProgressEvents) -> dict[str, Any]:
    clean_shared_memory()
    with ExitStack() as ending:
        control_ros = SpinningContext(user_domain(os.environ))
        ending.callback(control_ros.close)
        status = _Status(control_ros.add(ControlNode), events)
        arm, _ = open_arms(run, ending, status, world_arm)
        start(arm)
        driver = DilemmaDriver(run.stack, run.request.seed, arm)
        return carry_out(run, lambda specs: map(driver.run, specs), driver.side, status.progress)


class _Status:
    """Tells the user's domain and whoever started us how a campaign goes."""

    def __init__(self, control: ControlNode, events: ProgressEvents) -> None:
        self._control, self._events, self._told = control, events, 0.0
        self.arms: Sequence[RosArm] = ()

    def progress(self, standing: MoralProgress) -> None:
        """Take in how far it is."""
        check_interrupted()
        if time.monotonic() - self._told < STATUS_EVERY_S:
            return
        self._told = time.monotonic()
        values = asdict(standing)
        self._events.send(values)
        self._control.status(values)
        for arm in self.arms:
            arm.refuse_strangers()


if __name__ == "__main__":
    main()
