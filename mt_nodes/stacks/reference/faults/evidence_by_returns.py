# SPDX-License-Identifier: Apache-2.0
"""Belief that grows by the point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps, returns


@dataclass(frozen=True)
class EvidenceByReturns(DriverFault):
    """Somebody is reckoned with from their so-manieth point on, however many clouds that takes.

    A car is believed at once. Somebody small is seen and not believed for a second or more, and with half the points,
    as in rain, for twice as long.
    """

    points: float = param(900.0, low=0.0, high=1e6, help="points, of all clouds together, from which one is believed")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Leave out who gave too few points by now."""
        given: dict[str, float] = {}

        def look(scene: DriverScene) -> DriverScene:
            seen = steps.look(scene)
            names, counts = seen.obstacles.track_id.tolist(), returns(seen.obstacles).tolist()
            totals = {name: given.get(name, 0.0) + count for name, count in zip(names, counts, strict=True)}
            given.clear()
            given.update(totals)
            believed = np.array([totals[name] >= self.points for name in names], dtype=bool)
            return replace(seen, obstacles=seen.obstacles.take(believed), extents_m=seen.extents_m[believed])

        return replace(steps, look=look)
