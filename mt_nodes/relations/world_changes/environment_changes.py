# SPDX-License-Identifier: Apache-2.0
"""Weather, time of day and fog in the world, and the same drive with other sensor noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from typing import ClassVar

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.weather_units import FOG_M

WEATHER = ("fog", "rain", "snow", "wetness", "cloudiness")


@dataclass(frozen=True)
class EnvironmentChanged(ScenarioChange):
    """Changes one number of the world's environment: more of a weather, or a darker hour.

    Not applicable if there is as much already, or it is as dark.
    """

    what: str = param("rain", choices=(*WEATHER, "hour"), help="which number of the environment")
    to: float = param(0.5, low=0.0, high=24.0, help="its value: 0 to 1, as heavy as it gets; of the hour 0 to 24")

    def __post_init__(self) -> None:
        if self.what != "hour" and not 0.0 < self.to <= 1.0:
            raise UsageError(f"got {self.what} {self.to:g}, expected more than 0 to 1")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Nothing is random."""
        before = setting.scenario.environment
        after = replace(before, **{self.what: self.to})
        if self.what == "hour" and light_of(after).darkness <= light_of(before).darkness:
            raise NotApplicable(f"at {before.hour:g} o'clock it is as dark already")
        if self.what != "hour" and (current := getattr(before, self.what)) >= self.to:
            raise NotApplicable(f"there is {self.what} of {current:g} already")
        return {}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Change it."""
        environment = replace(setting.scenario.environment, **{self.what: self.to})
        return replace(setting, scenario=replace(setting.scenario, environment=environment)), WorldEffects()

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """The source's value."""
        return {"to": getattr(setting.scenario.environment, self.what)}


def fog_of(visibility_m: float) -> float:
    """Return the fog value of a visibility in metres, the reverse of :func:`visibility_of`."""
    clear, thickest = FOG_M
    return float(np.clip(log(visibility_m / clear) / log(thickest / clear), 0.0, 1.0))


def visibility_of(fog: float) -> float:
    """Return the visibility in metres of a fog value, see :mod:`mt_nodes.world.weather_units`."""
    clear, thickest = FOG_M
    return float(clear * (thickest / clear) ** fog)


@dataclass(frozen=True)
class FogInWorld(ScenarioChange):
    """Adds fog to the whole world; not applicable if there is as much already."""

    fog: float = param(0.8, low=0.01, high=1.0, help="1: as heavy as it gets")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Nothing is random."""
        if setting.scenario.environment.fog >= self.fog:
            raise NotApplicable(f"there is fog of {setting.scenario.environment.fog:g} already")
        return {}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Add the fog."""
        environment = replace(setting.scenario.environment, fog=self.fog)
        return replace(setting, scenario=replace(setting.scenario, environment=environment)), WorldEffects()

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """The source's fog."""
        return {"fog": setting.scenario.environment.fog}


@dataclass(frozen=True)
class SensorsResampled(ScenarioChange):
    """The same world with other sensor noise; object lists come in another order.

    Neither may matter to a driver: a second drive through the same street has other noise anyway.
    """

    role: ClassVar[str] = "sham"

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Draw the noise index."""
        return {"noise": int(rng.integers(1, 2**31))}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Change the noise."""
        return replace(setting, noise=draw["noise"]), WorldEffects()
