# SPDX-License-Identifier: Apache-2.0
"""Rain, snow and hail as cameras see them: light without sun, a veil of all particles, and near ones one by one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.ego_speed import EgoSpeed, speed_in
from mt_nodes.relations.mutations.joint.air_drift import DEFAULT_MPS
from mt_nodes.relations.mutations.joint.air_in_pictures import air_light, proof_of_mean
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.joint_weather import JointWeather
from mt_nodes.relations.mutations.joint.particles_in_pictures import streaks, with_layer
from mt_nodes.relations.mutations.joint.scatterers import Spectrum
from mt_nodes.relations.mutations.joint.weather_light import WeatherLight, cloud_tone

#: The sky is overcast where less of the sun's light than this comes through.
_OVERCAST = 0.5


@dataclass(frozen=True)
class PrecipitationInPictures(JointWeather):
    """Base of precipitation: what of it pictures show."""

    shutter_ms: float = param(
        8.0, low=0.05, high=100.0, unit="ms", aspect="fixed", help="exposure of the cameras: length of streaks"
    )

    @property
    @abstractmethod
    def spectrum(self) -> Spectrum:
        """Size distribution of the particles."""

    @abstractmethod
    def fall_mps(self, diameter_mm: Floats) -> Floats:
        """Return the terminal speed (n,) of particles of diameters D (n,)."""

    @property
    @abstractmethod
    def shine(self) -> float:
        """Light that a particle sends to a camera, relative to that of the horizon."""

    @property
    def direct(self) -> float:
        """Share of the sun's light that comes through the clouds, 0 to 1."""
        return 0.0

    @property
    def air_brightness(self) -> float:
        """Brightness of thick air relative to the picture's horizon."""
        return 1.0

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the particles, and the light that the air scatters."""
        key = int(rng.integers(2**62)) if state is None else state.seen_key
        seen: Draw = {"seen_key": key, "air_light": air_light(view, (1.0, 1.0, 1.0), self.air_brightness)}
        motion = view.bundle.motion
        if motion is not None and motion.pose is not None:
            turn, place_m = motion.pose[:3, :3], motion.pose[:2, 3]
            seen["ego_pose"] = np.array([*place_m, np.arctan2(turn[1, 0], turn[0, 0])])
        return seen | EgoSpeed.drawn(view.bundle, self.ego_speed_mps, DEFAULT_MPS)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Change the light and the ground, draw the veil of all particles, then near ones one by one."""
        light, air = WeatherLight(view, self.direct, draw.get("ego_pose")), draw["air_light"]
        self.change_ground(light, draw)
        light.veil(np.exp(-self.extinction_per_m * surroundings(view).range_m), air)
        if self.direct < _OVERCAST:
            light.clouds(int(draw["seen_key"]))
        return with_layer(view, light.pixels(), self._layer(view, draw), air * np.float32(self.shine))

    def change_ground(self, light: WeatherLight, draw: Draw) -> None:
        """Change what lies on the ground."""

    def white(self, view: View) -> Floats:
        """Return the share (h, w) of each cell that is covered by earlier precipitation."""
        return np.zeros(surroundings(view).shape)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check the veil by range."""
        around = surroundings(old)
        passing = np.exp(-self.extinction_per_m * around.range_m)
        overcast = self.direct < _OVERCAST
        clouds = cloud_tone(around.rays.astype(np.float32), int(draw["seen_key"])) if overcast else None
        return proof_of_mean(old, new, passing, draw["air_light"], self.white(old), self.direct, self.wets, clouds)

    @property
    def wets(self) -> bool:
        """Whether the ground is wet."""
        return False

    def _layer(self, view: View, draw: Draw) -> npt.NDArray[np.uint8]:
        """Return the cover (h, w) of particles, 0 to 255."""
        velocities = partial(self._velocities, ego_mps=speed_in(draw, self.ego_speed_mps))
        key, shutter_s = int(draw["seen_key"]), self.shutter_ms * 1e-3
        return streaks(view, key, self.spectrum, velocities, shutter_s).layer(view.picture.size)

    def _velocities(self, diameter_mm: Floats, ego_mps: float = DEFAULT_MPS) -> Floats:
        """Return the velocities (n, 3) of particles in ``base_link``: wind, fall, and the ego's own speed."""
        falls = self.fall_mps(diameter_mm)
        return np.column_stack([*np.full((len(falls), 2), (self.wind_x_mps - ego_mps, self.wind_y_mps)).T, -falls])
