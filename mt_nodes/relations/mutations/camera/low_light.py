# SPDX-License-Identifier: Apache-2.0
"""Dusk and night: less light, in other colours, with sensor noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.camera.sensor_noise import SensorNoise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.headlamps import WARM, headlamps
from mt_nodes.world.camera.light import colour_of_temperature
from mt_nodes.world.camera.relight import coarse_light, grey, relit
from mt_nodes.world.camera.surroundings import Surroundings, surroundings_of

Singles = npt.NDArray[np.float32]


class LowLight(EachImage):
    """Base: changes the light of each cell, and adds the noise of the few electrons that are left."""

    @abstractmethod
    def light(self, view: View) -> tuple[Singles, Singles, int]:
        """Return gain and offset (h, w, 3) of the light of cells, and the width of a cell in pixels."""

    @abstractmethod
    def noise(self) -> SensorNoise:
        """Return the noise of a sensor exposed for this light."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Choose the noise's field."""
        return self.noise().begin(rng, bundle)

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the noise."""
        return self.noise().draw_image(rng, view, state)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Apply the light, then the noise."""
        gain, offset, cell_px = self.light(view)
        dark = relit(view.picture, gain, offset, cell_px)
        return self.noise().change_image(View(view.bundle, view.image, view.picture.with_pixels(dark)), draw)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the brightness falls."""
        before, after = measures.brightness(old.picture), measures.brightness(new.picture)
        return None if after < before else f"the mean brightness went from {before:.3f} to {after:.3f}, it was to fall"


_CELL_PX = 8


@dataclass(frozen=True)
class Dusk(LowLight):
    """Shows the scene after sunset, by the light of the sky alone: darker, bluer and slightly noisy.

    Light is multiplied by 2^(−``stops``) and by the colour of a black body of ``temperature_k`` relative to 6,504 K;
    afterglow and switched-on lamps are left out, shadows of the day stay. Camera only: a LiDAR brings its own light.

    Guaranteed: the mean brightness falls.
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
        """Return the noise of a sensor at some gain."""
        return SensorNoise(self.full_well_e, 4.0)

    def light(self, view: View) -> tuple[Singles, Singles, int]:
        """Return one gain for all."""
        lamp, white = (np.array(colour_of_temperature(k)) for k in (self.temperature_k, 6504.0))
        gain = (2.0**-self.stops * lamp / white).astype(np.float32)
        height, width = (-(-side // _CELL_PX) for side in view.picture.size)
        everywhere = np.broadcast_to(gain, (height, width, 3))
        return np.ascontiguousarray(everywhere), np.zeros((height, width, 3), np.float32), _CELL_PX


#: Red, green and blue of daylight that remain in a clear night, which appears blue.
_BLUE = np.array([0.55, 0.75, 1.25], np.float32)
#: A pixel this bright that is not sky counts as a lamp; it keeps its light, and blooms.
_LAMP, _BLOOM = 0.85, 0.35


@dataclass(frozen=True)
class Night(LowLight):
    """Removes daylight: blue moonlight, the ego's headlights, lamps and noise remain.

    Light is multiplied by 2^(−``stops``), more so in red; the sky gets six times less. Headlights add to each cell's
    daylight reflection: a beam of two Gaussians of the angle, falling with the square of the range from the clouds.
    Near-white pixels that are not sky count as lamps, keep their light and bloom; so do white paint and reflections of
    the sun in cars. Shadows of the day stay. Shape, colour and strength of headlights and moon are assumptions. Camera
    only: a LiDAR brings its own light.

    Guaranteed: the mean brightness falls.
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
        """Return the gain of moonlight and headlights, and the bloom of lamps."""
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
