# SPDX-License-Identifier: Apache-2.0
"""Night."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.low_light import LowLight, Singles
from mt_nodes.relations.mutations.camera.sensor_noise import SensorNoise
from mt_nodes.world.camera.headlamps import WARM, headlamps
from mt_nodes.world.camera.relight import coarse_light, grey
from mt_nodes.world.camera.surroundings import Surroundings, surroundings_of

#: Red, green and blue of what a clear night leaves of day: it is seen blue.
_BLUE = np.array([0.55, 0.75, 1.25], np.float32)
#: What is this bright, and no sky, is taken for a lamp; it keeps its light, and blooms.
_LAMP, _BLOOM = 0.85, 0.35


@dataclass(frozen=True)
class Night(LowLight):
    """Takes the light of day away: the moon's is left, blue, the ego's headlights, lamps that are lit, and noise.

    Light is multiplied by 2^(−``stops``), less of it red; the sky gets six times less. Headlights add to what each
    cell would reflect by day: a beam of two Gaussians of the angle, falling with the square of the range that clouds
    tell. What is near white and no sky is taken for a lamp, keeps its light and blooms: white paint and the sun's
    reflections in cars are taken for lamps, too. Shadows of the day stay. Shape, colour and strength of headlights
    and moon are assumptions. Only cameras see it: a LiDAR brings its own light.

    Guaranteed: the mean brightness fell.
    """

    stops: float = param(
        6.0, low=1.0, high=10.0, unit="EV", neutral=1.0, help="powers of two by which there is less light"
    )
    headlights: float = param(
        1.0, low=0.0, high=5.0, aspect="fixed", help="strength of the ego's headlights; 0: switched off"
    )
    full_well_e: float = param(
        800.0, low=50.0, high=100000.0, unit="electrons", neutral=100000.0, help="electrons at white: the noise"
    )

    def noise(self) -> SensorNoise:
        """Return that of a sensor at high gain."""
        return SensorNoise(self.full_well_e, 6.0)

    def light(self, view: View) -> tuple[Singles, Singles, int]:
        """Return the moon's gain, the headlights', and the bloom of lamps."""
        around = surroundings_of(view.bundle, view.image, view.camera())
        day = coarse_light(view.picture, around.shape, around.depth.step_px)
        moon = np.where(around.sky, 1.0 / 6.0, 1.0).astype(np.float32) * np.float32(2.0**-self.stops)
        lamps = ((grey(day) > _LAMP) & ~around.sky & ~around.ground).astype(np.float32)
        gain = moon[..., None] * _BLUE + self._headlights(around)[..., None] * WARM
        gain = np.maximum(gain, lamps[..., None] * np.float32(0.8))
        bloom = cv2.GaussianBlur(lamps[..., None] * day, (0, 0), 2.5)
        return gain, np.float32(_BLOOM) * np.asarray(bloom), around.depth.step_px

    def _headlights(self, around: Surroundings) -> Singles:
        """Return the light (h, w) of the headlights on each cell, relative to day's."""
        forward, left, upward = (np.ascontiguousarray(around.rays[..., axis], np.float32) for axis in range(3))
        return headlamps(forward, left, upward, around.depth.range_m, self.headlights)
