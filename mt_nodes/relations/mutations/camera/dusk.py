# SPDX-License-Identifier: Apache-2.0
"""Dusk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.low_light import LowLight, Singles
from mt_nodes.relations.mutations.camera.sensor_noise import SensorNoise
from mt_nodes.world.camera.light import colour_of_temperature

_CELL_PX = 8


@dataclass(frozen=True)
class Dusk(LowLight):
    """Shows the scene after sunset, by the light of the sky alone: less of it, and bluer, with some noise.

    Light is multiplied by 2^(−``stops``) and by the colour of a black body of ``temperature_k`` over that of 6,504 K;
    the sky's own glow and lamps that people light are left out, shadows of the day stay. Only cameras see it: a LiDAR
    brings its own light.

    Guaranteed: the mean brightness fell.
    """

    stops: float = param(
        2.5, low=0.5, high=6.0, unit="EV", neutral=0.5, help="powers of two by which there is less light"
    )
    temperature_k: float = param(
        9000.0, low=3000.0, high=20000.0, unit="K", neutral=6500.0, help="colour of the sky's light"
    )
    full_well_e: float = param(
        4000.0, low=50.0, high=100000.0, unit="electrons", neutral=100000.0, help="electrons at white: the noise"
    )

    def noise(self) -> SensorNoise:
        """Return that of a sensor at some gain."""
        return SensorNoise(self.full_well_e, 4.0)

    def light(self, view: View) -> tuple[Singles, Singles, int]:
        """Return one gain for all."""
        here, white = (np.array(colour_of_temperature(k)) for k in (self.temperature_k, 6504.0))
        gain = (2.0**-self.stops * here / white).astype(np.float32)
        height, width = (-(-side // _CELL_PX) for side in view.picture.size)
        everywhere = np.broadcast_to(gain, (height, width, 3))
        return np.ascontiguousarray(everywhere), np.zeros((height, width, 3), np.float32), _CELL_PX
