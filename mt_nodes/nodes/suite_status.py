# SPDX-License-Identifier: Apache-2.0
"""How a run over topics goes, for the user's domain and for whoever started the suite process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from mt_nodes.base.environment import clean_shared_memory, user_domain
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.recorder import Progress
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.nodes.suite_process import STATUS_EVERY_S, ProgressEvents, check_interrupted, ros_arguments


class SuiteStatus:
    """Tells how a run goes, and ends it when a stranger is in one of its arms.

    ``control``: the node in the user's domain. ``arms``: of the run, once they are open.
    """

    def __init__(self, control: ControlNode, events: ProgressEvents) -> None:
        self.control, self._events = control, events
        self.arms: Sequence[RosArm] = ()
        self._began = time.monotonic()
        self._status_s = self._began - STATUS_EVERY_S

    def event(self, **values: Any) -> None:
        """Send an event to whoever started us."""
        self._events.send(values)

    def warn(self, warning: str) -> None:
        """Send a warning to whoever started us."""
        self.event(warning=warning)

    def tell(self, values: Mapping[str, Any], *, at_once: bool = False, rate_of: str = "") -> None:
        """Send values to both, not too often.

        ``values``: by name. ``at_once``: however lately that was done. ``rate_of``: the name of a count whose rate is
        told too.
        Raises KeyboardInterrupt: the run was interrupted. IsolationError: somebody is in an arm who may not be.
        """
        check_interrupted()
        now = time.monotonic()
        if not at_once and now - self._status_s < STATUS_EVERY_S:
            return
        self._status_s = now
        self._events.send(values)
        rate = {"pairs_per_s": round(values[rate_of] / max(now - self._began, 1e-9), 1)} if rate_of else {}
        arms = {f"{name}_{arm.name}": value for arm in self.arms for name, value in arm.status().items()}
        self.control.status({**values, **rate, **arms})
        for arm in self.arms:
            arm.refuse_unexpected_nodes()

    def count(self, total: int) -> Progress:
        """Return what counts the verdicts of a run that owes so many, and tells how many there are."""
        done = violated = 0

        def progress(verdicts: Sequence[Verdict]) -> None:
            nonlocal done, violated
            done += len(verdicts)
            violated += sum(verdict.outcome is Outcome.VIOLATED for verdict in verdicts)
            values = {"done": done, "total": total, "violated": violated}
            self.tell(values, at_once=done >= total, rate_of="done")

        return progress


@contextmanager
def suite_status(events: ProgressEvents) -> Iterator[SuiteStatus]:
    """Join the user's domain; what was published there reaches everybody who listens before it is left."""
    clean_shared_memory()
    with ExitStack() as ending:
        ros = SpinningContext(user_domain(os.environ), ros_arguments())
        ending.callback(ros.close)
        control: ControlNode = ros.add(ControlNode)
        ending.callback(control.flush, 2.0)
        yield SuiteStatus(control, events)
