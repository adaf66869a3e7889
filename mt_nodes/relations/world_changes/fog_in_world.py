# SPDX-License-Identifier: Apache-2.0
"""The same drive in fog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects


@dataclass(frozen=True)
class FogInWorld(ScenarioChange):
    """Fog lies over the whole world; where there is as much already, there is nothing to add."""

    fog: float = param(0.8, low=0.01, high=1.0, help="1: as heavy as it gets")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Nothing to choose."""
        if setting.scenario.environment.fog >= self.fog:
            raise NotApplicable(f"there is fog of {setting.scenario.environment.fog:g} already")
        return {}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Let fog rise."""
        environment = replace(setting.scenario.environment, fog=self.fog)
        return replace(setting, scenario=replace(setting.scenario, environment=environment)), WorldEffects()

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """The fog that there is."""
        return {"fog": setting.scenario.environment.fog}
