# SPDX-License-Identifier: Apache-2.0
"""An obstacle that is published once more after it has gone."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps

_COLUMNS = tuple(f.name for f in fields(Detections))[2:]


@dataclass(frozen=True)
class ObstacleHeld(Fault):
    """What was found in the last cloud and has nothing near it in this one is published once more, against flicker.

    Whatever has gone is seen for one cloud longer; a stack that is said to remember nothing must not.
    """

    near_m: float = param(1.0, low=0.0, high=10.0, unit="m", help="an obstacle so near is the same one")

    def plant(self, steps: Steps) -> Steps:
        """Add what is missed of the last result."""

        last: list[Detections] = []

        def report(found: Detections) -> Detections | None:
            before, last[:] = last[:], [found]
            return steps.report(self._with_missed(found, before[0]) if before else found)

        return replace(steps, report=report)

    def _with_missed(self, found: Detections, before: Detections) -> Detections:
        apart = np.linalg.norm(before.center_m[:, None, :2] - found.center_m[None, :, :2], axis=2)
        missed = before.take(apart.min(axis=1, initial=np.inf) > self.near_m)
        columns: list[Any] = [np.concatenate([getattr(found, name), getattr(missed, name)]) for name in _COLUMNS]
        return Detections(found.frame_id, found.stamp_ns, *columns)
