# SPDX-License-Identifier: Apache-2.0
"""Weather of a world, by the physics of the mutations that change it in recordings.

What a scenario's numbers from 0 to 1 stand for is declared in :mod:`mt_nodes.world.weather_units`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.mutations.joint.joint_weather import JointWeather
from mt_nodes.relations.mutations.joint.precipitation import Precipitation
from mt_nodes.relations.mutations.joint.rain_snow_hail import Rain, Snow
from mt_nodes.relations.mutations.joint.wet_ground import WetGround
from mt_nodes.world.camera.surroundings import Surroundings, register_surroundings
from mt_nodes.world.drive.scenario import Environment
from mt_nodes.world.weather_units import FOG_M, RAIN_MM_PER_H, SNOW_MM_PER_H, WATER_MM

_LEAST_MM_PER_H = 0.1


class WorldWeather:
    """The weather of a scenario, the same everywhere and all the time.

    ``air``: what fills the air, as mutations; none in clear weather. falls: whether some of it falls. ``wet``: of the
    road, None where it is dry.
    """

    def __init__(self, environment: Environment, range_m: float = 120.0) -> None:
        """Take a scenario's numbers, and how far the LiDAR sees a bright target."""
        self.air: tuple[JointWeather, ...] = ()
        if environment.fog > 0.0:
            visibility_m = FOG_M[0] * (FOG_M[1] / FOG_M[0]) ** environment.fog
            self.air += (Fog(patchiness=0.0, visibility_m=visibility_m, max_range_m=range_m),)
        if environment.rain > 0.0:
            rate = max(RAIN_MM_PER_H * environment.rain, _LEAST_MM_PER_H)
            self.air += (
                Rain(rain_mm_per_h=rate, road_film=0.0, max_range_m=range_m),
            )  # the world's road is wet anyway
        if environment.snow > 0.0:
            self.air += (
                Snow(snow_mm_per_h=max(SNOW_MM_PER_H * environment.snow, _LEAST_MM_PER_H), max_range_m=range_m),
            )
        self.falls = any(isinstance(air, Precipitation) for air in self.air)
        wetness = max(environment.wetness, environment.rain)
        self.wet = WetGround(water_mm=WATER_MM * wetness) if wetness > 0.0 else None

    @property
    def veil_per_m(self) -> float:
        """Extinction of what hangs in the air, 1/m; what falls has a veil of its own."""
        return sum(air.extinction_per_m for air in self.air if not isinstance(air, Precipitation))

    def begin(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """Seed the particles of an episode."""
        return tuple(air.begin(rng, Bundle(0, 0, 0)) for air in self.air)

    def on_clouds(self, bundle: Bundle, states: tuple[Any, ...], speed_mps: float, rng: np.random.Generator) -> Bundle:
        """Return a bundle of clouds as they are seen through the air at a speed of the ego."""
        for air, state in zip(self.air, states, strict=True):
            moving = replace(air, ego_speed_mps=speed_mps)
            bundle = moving.apply(bundle, moving.draw(rng, bundle, state)).first
        return bundle

    def on_radars(self, bundle: Bundle, rng: np.random.Generator) -> Bundle:
        """Return a bundle of radars as they detect through the air: only rain weakens their echoes."""
        for air in (air for air in self.air if isinstance(air, Rain)):
            radars = [air.change_radar(bundle, r, air.draw_radar(rng, bundle, r, None)) for r in bundle.radars]
            bundle = bundle.with_clouds(radars)
        return bundle

    def on_picture(
        self, bundle: Bundle, known: Surroundings, states: tuple[Any, ...], speed_mps: float, rng: np.random.Generator
    ) -> Bundle:
        """Return a bundle with what falls before its one picture, which shows what is ``known``."""
        for air, state in zip(self.air, states, strict=True):
            if isinstance(air, Precipitation):
                register_surroundings(bundle.images[0], known)
                moving, view = replace(air, ego_speed_mps=speed_mps), View.of(bundle, bundle.images[0])
                pixels = moving.change_image(view, moving.draw_image(rng, view, state))
                bundle = replace(bundle, images=(replace(view.image, pixels=pixels),))
        return bundle

    def wetted(self, cosine: Floats, reflectivity: Floats) -> Any:
        """Return which share (n,) of its light a LiDAR gets back from the road, by cosine of incidence (n,)."""
        return 1.0 if self.wet is None else self.wet.share_left(cosine, reflectivity)
