# SPDX-License-Identifier: Apache-2.0
"""The same drive in other weather, on another road surface, at another hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.weather_units import FOG_M

WEATHER = ("fog", "rain", "snow", "wetness", "cloudiness")


@dataclass(frozen=True)
class EnvironmentChanged(ScenarioChange):
    """One of the numbers of a world's environment is another: more of a weather, or a darker hour.

    Where there is as much already, or it is as dark, there is nothing to change.
    """

    what: str = param("rain", choices=(*WEATHER, "hour"), help="which number of the environment")
    to: float = param(0.5, low=0.0, high=24.0, help="its value: 0 to 1, as heavy as it gets; of the hour 0 to 24")

    def __post_init__(self) -> None:
        if self.what != "hour" and not 0.0 < self.to <= 1.0:
            raise UsageError(f"got {self.what} {self.to:g}, expected more than 0 to 1")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Nothing to choose."""
        before = setting.scenario.environment
        made = replace(before, **{self.what: self.to})
        if self.what == "hour" and light_of(made).darkness <= light_of(before).darkness:
            raise NotApplicable(f"at {before.hour:g} o'clock it is as dark already")
        if self.what != "hour" and (there := getattr(before, self.what)) >= self.to:
            raise NotApplicable(f"there is {self.what} of {there:g} already")
        return {}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Change it."""
        environment = replace(setting.scenario.environment, **{self.what: self.to})
        return replace(setting, scenario=replace(setting.scenario, environment=environment)), WorldEffects()

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """As it is."""
        return {"to": getattr(setting.scenario.environment, self.what)}


def fog_of(visibility_m: float) -> float:
    """Return the number of a fog in which one sees so far, the reverse of :func:`visibility_of`."""
    clear, thickest = FOG_M
    return float(np.clip(log(visibility_m / clear) / log(thickest / clear), 0.0, 1.0))


def visibility_of(fog: float) -> float:
    """Return how far one sees in a fog in metres, as :mod:`mt_nodes.world.weather_units` has it."""
    clear, thickest = FOG_M
    return float(clear * (thickest / clear) ** fog)
