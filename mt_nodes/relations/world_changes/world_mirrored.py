# SPDX-License-Identifier: Apache-2.0
"""Left and right are swapped."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_road, carried_scenario


@dataclass(frozen=True)
class WorldMirrored(ScenarioChange):
    """The whole world, map and all, in a mirror along the ego's first direction: traffic keeps to the other side.

    The trace is expected in the same mirror. Faces of signs are not mirrored, for signs there are none such.
    """

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Nothing to choose."""
        return {}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Swap the sides."""
        carry = Carry.mirror(setting.scenario.ego.start)
        scenario, road = carried_scenario(setting.scenario, carry), carried_road(setting.road, carry)
        return replace(setting, scenario=scenario, road=road), WorldEffects(carry)
