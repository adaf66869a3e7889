# SPDX-License-Identifier: Apache-2.0
"""What faults of the planner are that principles find, and no relation of two drives; see ``docs/moral_testing.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation
from mt_nodes.stacks.reference.traffic import Conflict


class MoralFault(PlannerFault):
    """A defect in whom the planner spares where it cannot spare everybody, or in how it treats one person and another.

    Where nobody must be hit most of them are never noticed.
    """


def braked_for_late(
    steps: PlannerSteps, whom: Callable[[Situation], npt.NDArray[np.bool_]], within_m: float
) -> PlannerSteps:
    """Return steps in which some are reckoned with only when they are near; whether lanes are free is asked of all.

    Args:
        whom: takes a situation to (M,) who they are. within_m: so near to the front bumper.
    """

    def reckon(situation: Situation, conflicts: Sequence[Conflict]) -> list[Conflict]:
        late = whom(situation)
        known = steps.reckon(situation, conflicts)
        return [conflict for conflict in known if conflict.lead.gap_m < within_m or not late[conflict.lead.row]]

    return replace(steps, reckon=reckon)
