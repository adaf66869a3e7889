# SPDX-License-Identifier: Apache-2.0
"""State of the planner between instants."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.evasion import Escape
from mt_nodes.stacks.reference.grip import Grip
from mt_nodes.stacks.reference.tracker import NOMINAL_PERIOD_S

#: After a pause that is longer, or a step back in time, the planner takes over anew.
_PAUSE_S = 1.0


@dataclass
class Memory:
    """State of the planner; without an acceleration it takes over just now.

    ``harmful`` is where it cannot but hit somebody, ``stays`` when it has decided to do so in its lane, and ``struck``
    when it has done so: then it stops for good.
    """

    stamp_ns: int | None = None
    acceleration_mps2: float | None = None
    aside_m: float = 0.0
    escape: Escape | None = None
    harmful: bool = False
    stays: bool = False
    struck: bool = False
    grip: Grip = field(default_factory=Grip)
    output: Output = field(default_factory=Output)

    def elapsed_s(self, stamp_ns: int | None) -> float:
        """Return the time since the last instant; after a jump in time everything else is forgotten."""
        unknown = stamp_ns is None or self.stamp_ns is None
        elapsed = NOMINAL_PERIOD_S if unknown else (stamp_ns - self.stamp_ns) * 1e-9  # type: ignore[operator]
        if not 0.0 <= elapsed <= _PAUSE_S:
            self.acceleration_mps2, self.aside_m, self.escape = None, 0.0, None
            self.harmful = self.stays = self.struck = False
            self.grip = Grip()
            elapsed = NOMINAL_PERIOD_S
        self.stamp_ns = stamp_ns
        return elapsed
