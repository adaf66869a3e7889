# SPDX-License-Identifier: Apache-2.0
"""Out of sight, out of mind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class HiddenForgotten(PlannerFault):
    """Who is behind somebody else is dropped at once, although a moment ago he was seen walking there.

    A person who disappears behind a parked van, and is to come out before it, comes as a surprise.
    """

    grows_m: float = param(0.3, low=0.0, high=3.0, unit="m", help="what hides is taken to be wider by so much")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Drop whoever lies behind another one, by the direction of his middle."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            return replace(seen, objects=seen.objects.take(~self._hidden(seen.objects)))

        return replace(steps, look=look)

    def _hidden(self, objects: Detections) -> np.ndarray:
        x, y = objects.center_m[:, :2].T
        distance, bearing = np.hypot(x, y), np.arctan2(y, x)
        half = np.hypot(*objects.size_m[:, :2].T) / 2.0 + self.grows_m
        covers = np.arctan2(half, np.maximum(distance, 0.1))
        turn = np.abs(np.angle(np.exp(1j * (bearing[:, None] - bearing))))
        behind = (distance[:, None] > distance + half) & (turn < covers)
        return np.asarray(behind.any(axis=1))
