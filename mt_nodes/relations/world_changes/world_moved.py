# SPDX-License-Identifier: Apache-2.0
"""The same world lies elsewhere on the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_road, carried_scenario
from mt_nodes.world.drive.scenario import Pose


@dataclass(frozen=True)
class WorldMoved(ScenarioChange):
    """The whole world, map and all, is turned and shifted in one piece; the trace is expected to be, too.

    Where the origin and the axes of a map lie is convention: nothing that one drives by depends on it.
    """

    by_at_most_m: float = param(500.0, low=0.0, high=10_000.0, unit="m", help="largest shift")
    turned_by_at_most_rad: float = param(3.1416, low=0.0, high=3.1416, unit="rad", help="largest turn")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose where to."""
        distance_m, toward_rad = self.by_at_most_m * rng.uniform(), rng.uniform(-np.pi, np.pi)
        return {
            "turn_rad": float(self.turned_by_at_most_rad * rng.uniform(-1.0, 1.0)),
            "x_m": float(distance_m * np.cos(toward_rad)),
            "y_m": float(distance_m * np.sin(toward_rad)),
        }

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Turn about the ego's start, then shift."""
        start = setting.scenario.ego.start
        there = Pose(start.x_m + draw["x_m"], start.y_m + draw["y_m"], start.yaw_rad + draw["turn_rad"])
        carry = Carry.between(start, there)
        scenario, road = carried_scenario(setting.scenario, carry), carried_road(setting.road, carry)
        return replace(setting, scenario=scenario, road=road), WorldEffects(carry)

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """Where it is."""
        return {"by_at_most_m": 0.0, "turned_by_at_most_rad": 0.0}
