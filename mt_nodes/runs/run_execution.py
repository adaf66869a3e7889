# SPDX-License-Identifier: Apache-2.0
"""Executes a run in this process or in a suite process, and counts its verdicts as they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mt_nodes.base.processes import Process
from mt_nodes.base.suite_client import in_suite
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.plan import suite_stop_s
from mt_nodes.stacks.stack import Stack

Summary = dict[str, Any]
#: Called with the number of pairs that are judged, of those to come, and of those that are violated.
ShowCount = Callable[[int, int, int], None]


class ExecutableRun(Protocol):
    """What must be known of a run to execute it and to show its progress."""

    @property
    def out(self) -> Path:
        """Results directory."""

    @property
    def stack(self) -> Stack:
        """Stack under test."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Relations of patterns and suites that cannot be judged, and why."""

    @property
    def pairs_to_come(self) -> int:
        """Number of verdicts of the whole run."""


class PairCounter:
    """Counts the pairs and violations of a run.

    Args:
        total: number of verdicts of the whole run. show: called with each count. warn: called with each warning.
    """

    def __init__(self, total: int, show: ShowCount, warn: Callable[[str], None]) -> None:
        self._total, self._show, self.warn = total, show, warn
        self._done = self._violated = 0

    def verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Take a group of verdicts."""
        self._update(self._done + len(verdicts), self._violated + sum(v.outcome is Outcome.VIOLATED for v in verdicts))

    def event(self, event: Mapping[str, Any]) -> None:
        """Take an event of a suite process: its progress, or a warning."""
        if "warning" in event:
            self.warn(event["warning"])
        else:
            self._update(event["done"], event["violated"])

    def _update(self, done: int, violated: int) -> None:
        self._done, self._violated = done, violated
        self._show(done, self._total, violated)


def execute_in(
    run: ExecutableRun,
    in_process: Callable[[Callable[[Sequence[Verdict]], None]], Summary],
    suite: Process | None,
    counter: PairCounter,
    afterwards: str,
) -> Summary:
    """Execute a run and return its summary.

    Raises MtError: the run failed, or the suite process ended without a summary.
    ``in_process``: executes the run in this process; called with what takes each group of verdicts. ``suite``: process
    that executes the run; None: this one. ``afterwards``: what the user can do if the suite ends early.
    """
    if suite is not None:
        return in_suite(suite, suite_stop_s(run.stack), counter.event, afterwards)
    (run.out / "console.log").touch()
    return in_process(counter.verdicts)
