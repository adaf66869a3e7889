# SPDX-License-Identifier: Apache-2.0
"""An episode's trace with its scenario: the input of trace checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.trace import Trace

if TYPE_CHECKING:
    from mt_nodes.world.drive.scenario import Scenario


@dataclass(frozen=True, eq=False)
class ScenarioTrace:
    """A trace and its scenario."""

    trace: Trace
    scenario: Scenario

    @property
    def places_m(self) -> Floats:
        """(T, 2) positions of the ego's rear axle."""
        return np.asarray(self.trace.ego[:, :2])

    @property
    def way_m(self) -> Floats:
        """(T,) distance driven by the ego."""
        return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(self.places_m, axis=0), axis=1))])

    @property
    def period_s(self) -> float:
        """Time between two rows; 1 if there is only one."""
        times = self.trace.time_s
        return float(times[1] - times[0]) if len(times) > 1 else 1.0

    @property
    def hit(self) -> tuple[str, ...]:
        """Names of the bodies that the ego hit."""
        return tuple(collision.name for collision in self.trace.collisions)
