# SPDX-License-Identifier: Apache-2.0
"""A low sun, with long shadows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.diffuse_light import Shading, diffuse_light, shading_of
from mt_nodes.world.camera.light import colour_of_temperature
from mt_nodes.world.camera.local_relight import relit_locally
from mt_nodes.world.camera.relight import coarse_light, grey
from mt_nodes.world.camera.surroundings import Surroundings, surroundings_of

#: Size of the squares of the ground map, and its extent ahead and to each side.
_CELL_M, _AHEAD_M, _ASIDE_M = 0.15, 60.0, 30.0
#: Lower objects cast no noticeable shadow.
_LEAST_M = 0.3
#: Share of light in a shadow: the sky's (assumed).
_SKY_SHARE = 0.35
_LEAST_SHADOW = 0.002
#: Width of the edge of a shadow on the ground, one standard deviation (assumed: the disc has 9 mrad; over 5 m, seen at
#: 0.2 rad).
_SOFT_M = 0.2
#: Colour of the clear sky, and the elevation at which it has it; light of the sky at most (assumed).
_SKY_K, _BLUE_RAD, _SKY_MOST = 9000.0, 0.5, 0.8
#: Light of shadows relative to sunny ground, at most, in the proof, and the cells that tell.
_DARKER, _FEWEST = 0.8, 60


def _relative(temperature_k: float) -> tuple[float, float, float]:
    """Return the red, green and blue of a black body relative to daylight, green 1."""
    light, white = (np.array(colour_of_temperature(k)) for k in (temperature_k, 6504.0))
    red, green, blue = (light / white / (light / white)[1]).tolist()
    return red, green, blue


@dataclass(frozen=True)
class LowSun(EachImage):
    """Lowers the sun: its light is warmer, and everything that clouds show above the ground casts long shadows.

    Every cell above the ground darkens the square of ground behind it as seen from the sun; gaps between squares are
    closed. Only sides visible to LiDAR and camera cast shadows, and objects do not shade each other. Shadows that lay
    on the ground fade (:mod:`mt_nodes.world.camera.diffuse_light`); the new ones are lit by the sky, and have soft
    edges. The sky has the sun's colour at the horizon. A LiDAR is not affected.

    Guaranteed: the ratio of red to blue rises, and the ground in the new shadows is darker than that in the sun.
    """

    azimuth_rad: float = param(
        1.2, low=-6.2832, high=6.2832, unit="rad", aspect="place", help="of the sun: 0 ahead, positive left"
    )
    elevation_rad: float = param(
        0.2, low=0.05, high=0.8, unit="rad", aspect="place", help="of the sun over the horizon"
    )
    temperature_k: float = param(4000.0, low=2000.0, high=6500.0, unit="K", aspect="fixed", help="colour of its light")
    random: ClassVar[bool] = False
    for_frames_between: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random. Raises NotApplicable: depth is unknown, or no shadow falls into the picture."""
        share = float((self._shadow(view) > 0.5).mean())
        if share < _LEAST_SHADOW:
            raise NotApplicable(
                f"{view.image.topic}: shadows would lie on {share:.2%} of it, expected {_LEAST_SHADOW:.1%}"
            )
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Take the sun of the source away, light all by the low one and the sky, and leave its shadows to the sky."""
        around = self._around(view)
        shading = shading_of(view.picture, around)
        warm, cool = _relative(self.temperature_k), _relative(_SKY_K)
        sunny = np.float32(1.0 - _SKY_SHARE) * (np.float32(1.0) - self._shadow(view))
        light = shading.light + shading.ground * (diffuse_light(shading) - shading.light)
        for place, own in enumerate(self._sky(around, shading)):
            light[place] *= np.float32(_SKY_SHARE * cool[place]) + np.float32(warm[place]) * sunny
            light[place] += shading.sky * (own - light[place])
        return relit_locally(view.picture, shading.samples, light, around.depth.step_px)

    def _sky(self, around: Surroundings, shading: Shading) -> Singles:
        """Return the light (3, h, w) of the sky: of the sun's colour at the horizon, blue above."""
        up = np.clip(around.rays[..., 2] / np.sin(_BLUE_RAD), 0.0, 1.0).astype(np.float32)
        warm, cool = (np.array(_relative(k), np.float32)[:, None, None] for k in (self.temperature_k, _SKY_K))
        colour = warm + up * (cool - warm)
        return np.asarray(np.float32(min(shading.sky_light, _SKY_MOST)) * colour / colour.max(axis=0))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare colours of all, and the brightness of shadows with that of the ground in the sun."""
        if old.picture.order != "mono":
            ratios = [(red + 1e-3) / (blue + 1e-3) for red, _, blue in map(measures.colour, (old.picture, new.picture))]
            if ratios[1] <= ratios[0]:
                return f"red over blue went from {ratios[0]:.3f} to {ratios[1]:.3f}, it was to rise"
        around, shadow = self._around(old), self._shadow(old)
        near = around.ground & (around.range_m < _AHEAD_M)
        shares = []
        for view in (old, new):
            light = grey(coarse_light(view.picture, around.shape, around.depth.step_px))
            dark, lit = light[near & (shadow > 0.9)], light[near & (shadow < 0.1)]
            if min(len(dark), len(lit)) < _FEWEST or lit.mean() < 0.01:
                return None
            shares.append(float(dark.mean() / lit.mean()))
        if shares[1] < max(_DARKER, _DARKER * shares[0]):
            return None
        return (
            f"the shadows have {shares[1]:.2f} of the light of the ground in the sun, {shares[0]:.2f} before, expected "
            f"{_DARKER:g} at most"
        )

    def _around(self, view: View) -> Surroundings:
        return surroundings_of(view.bundle, view.image, view.camera())

    def _shadow(self, view: View) -> Singles:
        """Return the share (h, w) of sunlight that each ground cell lacks, 0 to 1; 0 elsewhere; the last is kept."""
        around, sun = self._around(view), (self.azimuth_rad, self.elevation_rad)
        known = _known_shadows.get(around)
        if known is None or known[0] != sun:
            known = _known_shadows[around] = sun, self._cast(around)
        return known[1]

    def _cast(self, around: Surroundings) -> Singles:
        points = around.points()
        tall = ~around.sky & ~around.ground & (points[..., 2] > _LEAST_M) & around.depth.measured
        away = points[tall][:, 2:] / np.tan(self.elevation_rad)
        towards = np.array([np.cos(self.azimuth_rad), np.sin(self.azimuth_rad)])
        squares = np.zeros((int(_AHEAD_M / _CELL_M), int(2.0 * _ASIDE_M / _CELL_M)), np.uint8)
        row, column, inside = _square(points[tall][:, :2] - away * towards, squares.shape)
        squares[row[inside], column[inside]] = 255
        squares = cv2.morphologyEx(squares, cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8))
        # Half a degree of sun, some metres behind what it shines past.
        soft = cv2.GaussianBlur(squares, (0, 0), _SOFT_M / _CELL_M)
        row, column, inside = _square(points[..., :2], squares.shape)
        shade = np.where(inside, soft[np.where(inside, row, 0), np.where(inside, column, 0)], 0)
        return np.where(around.ground, shade / np.float32(255.0), 0.0).astype(np.float32)


_known_shadows: WeakKeyDictionary[Surroundings, tuple[tuple[float, float], Singles]] = WeakKeyDictionary()


def _square(xy_m: Floats, shape: tuple[int, ...]) -> tuple[Ints, Ints, Mask]:
    """Return row and column of the ground squares that contain places (…, 2), and whether there is one."""
    row, column = np.floor(xy_m[..., 0] / _CELL_M), np.floor((xy_m[..., 1] + _ASIDE_M) / _CELL_M)
    inside = (row >= 0) & (row < shape[0]) & (column >= 0) & (column < shape[1])
    return np.where(inside, row, 0).astype(np.int64), np.where(inside, column, 0).astype(np.int64), np.asarray(inside)
