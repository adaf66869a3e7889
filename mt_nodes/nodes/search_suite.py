# SPDX-License-Identifier: Apache-2.0
"""The suite process of a search: plays all its trials over topics, with arms that stay alive.

Started by ``mt search``; its events are ``{"trials": n, "violated": n}`` and at the end ``{"end": …}``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from mt_nodes.base.environment import clean_shared_memory, user_domain
from mt_nodes.data.verdict import Verdict
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.nodes.suite import open_arm, open_arms
from mt_nodes.nodes.suite_process import STATUS_EVERY_S, ProgressEvents, check_interrupted, run_suite
from mt_nodes.runs.campaign.search.search_execution import search
from mt_nodes.runs.campaign.search.search_run import SearchRun
from mt_nodes.runs.campaign.search.trial import Trial


def main(args: list[str] | None = None) -> None:
    """Search to the end and exit with the search's exit code."""
    run_suite("search_suite", lambda out, events: _carry_out(SearchRun.load(out), events), args)


def _carry_out(run: SearchRun, events: ProgressEvents) -> dict[str, Any]:
    clean_shared_memory()
    with ExitStack() as ending:
        control_ros = SpinningContext(user_domain(os.environ))
        ending.callback(control_ros.close)
        status = _Status(control_ros.add(ControlNode), events)
        return search(
            run, lambda replay, stack: open_arms(replay, stack, status, open_arm), status.trial, status.progress
        )


class _Status:
    """Tells the user's domain and whoever started us how a search goes."""

    def __init__(self, control: ControlNode, events: ProgressEvents) -> None:
        self._control, self._events, self._told = control, events, 0.0
        self._trials = self._violated = 0
        self.arms: Sequence[RosArm] = ()

    def trial(self, trial: Trial) -> None:
        """Take in a trial that was played."""
        self._trials, self._violated = self._trials + 1, self._violated + trial.violated
        self._events.send({"trials": self._trials, "violated": self._violated})

    def progress(self, verdicts: Sequence[Verdict]) -> None:
        """Take in what was judged."""
        check_interrupted()
        if time.monotonic() - self._told < STATUS_EVERY_S:
            return
        self._told = time.monotonic()
        self._control.status({"trials": self._trials, "violated": self._violated})
        for arm in self.arms:
            arm.refuse_strangers()


if __name__ == "__main__":
    main()
