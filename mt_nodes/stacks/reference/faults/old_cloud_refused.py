# SPDX-License-Identifier: Apache-2.0
"""A limit on latency that a busy machine exceeds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class OldCloudRefused(Fault):
    """A cloud that comes later than a fixed time after its stamp is not looked at, and an empty list is published.

    The limit was measured on a desk. Where driver and network take longer the road is always free. In process only: a
    callable hosted as a node is not told the time.
    """

    oldest_s: float = param(0.03, low=0.0, high=10.0, unit="s", help="age of the oldest cloud that is looked at")

    def plant(self, steps: Steps) -> Steps:
        """Look at the clock; where there is none nobody is late."""
        oldest_ns = round(self.oldest_s * 1e9)

        def in_time(stamp_ns: int | None, now_ns: int | None) -> bool:
            late = stamp_ns is not None and now_ns is not None and now_ns - stamp_ns > oldest_ns
            return not late and steps.in_time(stamp_ns, now_ns)

        return replace(steps, in_time=in_time)
