# SPDX-License-Identifier: Apache-2.0
"""A low sun, with long shadows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import colour_of_temperature
from mt_nodes.world.camera.relight import relit
from mt_nodes.world.camera.surroundings import Surroundings, surroundings_of

Singles = npt.NDArray[np.float32]
#: Size of the squares of the ground map, and its extent ahead and to each side.
_CELL_M, _AHEAD_M, _ASIDE_M = 0.15, 60.0, 30.0
#: Lower objects cast no noticeable shadow.
_LEAST_M = 0.3
#: Share of light in a shadow: the sky's (assumed).
_SKY_SHARE = 0.35
_LEAST_SHADOW = 0.002


@dataclass(frozen=True)
class LowSun(EachImage):
    """Lowers the sun: its light is warmer, and everything that clouds show above the ground casts long shadows.

    Every cell above the ground darkens the square of ground behind it as seen from the sun; gaps between squares are
    closed. Only sides visible to LiDAR and camera cast shadows, objects do not shade each other, and original shadows
    stay. A LiDAR is not affected.

    Guaranteed: the ratio of red to blue rises, and the ground in the new shadows gets darker.
    """

    azimuth_rad: float = param(
        1.2, low=-6.2832, high=6.2832, unit="rad", aspect="place", help="of the sun: 0 ahead, positive left"
    )
    elevation_rad: float = param(
        0.2, low=0.05, high=0.8, unit="rad", aspect="place", help="of the sun over the horizon"
    )
    temperature_k: float = param(4000.0, low=2000.0, high=6500.0, unit="K", aspect="fixed", help="colour of its light")
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random.

        Raises:
            NotApplicable: depth is unknown, or no shadow falls into the picture.
        """
        share = float((self._shadow(view) > 0.5).mean())
        if share < _LEAST_SHADOW:
            raise NotApplicable(
                f"{view.image.topic}: shadows would lie on {share:.2%} of it, expected {_LEAST_SHADOW:.1%}"
            )
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Warm the light, and remove sunlight in the shadows."""
        sun, white = (np.array(colour_of_temperature(k)) for k in (self.temperature_k, 6504.0))
        warm = (sun / white / (sun / white)[1]).astype(np.float32)
        lit = 1.0 - np.float32(1.0 - _SKY_SHARE) * self._shadow(view)
        # Areas lit by the sky alone stay bluer.
        gain = lit[..., None] * (1.0 + (warm - 1.0) * lit[..., None])
        return relit(view.picture, gain, np.zeros_like(gain), self._around(view).depth.step_px)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare colours of all, and brightness where shadows lie."""
        if old.picture.order != "mono":
            ratios = [(red + 1e-3) / (blue + 1e-3) for red, _, blue in map(measures.colour, (old.picture, new.picture))]
            if ratios[1] <= ratios[0]:
                return f"red over blue went from {ratios[0]:.3f} to {ratios[1]:.3f}, it was to rise"
        cells = (self._shadow(old) > 0.9).astype(np.uint8)
        where = self._around(old).depth.in_picture(cells, old.picture.size, smooth=False)
        where = np.ascontiguousarray(where)
        before, after = measures.brightness(old.picture, where), measures.brightness(new.picture, where)
        if not where.any() or after < before or before < 0.02:
            return None
        return f"in the shadows the brightness went from {before:.3f} to {after:.3f}, it was to fall"

    def _around(self, view: View) -> Surroundings:
        return surroundings_of(view.bundle, view.image, view.camera())

    def _shadow(self, view: View) -> Singles:
        """Return the share (h, w) of sunlight that each ground cell lacks, 0 to 1; 0 elsewhere."""
        around = self._around(view)
        points = around.points()
        tall = ~around.sky & ~around.ground & (points[..., 2] > _LEAST_M) & around.depth.measured
        away = points[tall][:, 2:] / np.tan(self.elevation_rad)
        towards = np.array([np.cos(self.azimuth_rad), np.sin(self.azimuth_rad)])
        squares = np.zeros((int(_AHEAD_M / _CELL_M), int(2.0 * _ASIDE_M / _CELL_M)), np.uint8)
        row, column, inside = _square(points[tall][:, :2] - away * towards, squares.shape)
        squares[row[inside], column[inside]] = 255
        squares = cv2.morphologyEx(squares, cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8))
        soft = cv2.blur(squares, (3, 3))
        row, column, inside = _square(points[..., :2], squares.shape)
        shade = np.where(inside, soft[np.where(inside, row, 0), np.where(inside, column, 0)], 0)
        return np.where(around.ground, shade / np.float32(255.0), 0.0).astype(np.float32)


def _square(
    xy_m: npt.NDArray[np.float64], shape: tuple[int, ...]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return row and column of the ground squares that contain places (…, 2), and whether there is one."""
    row, column = np.floor(xy_m[..., 0] / _CELL_M), np.floor((xy_m[..., 1] + _ASIDE_M) / _CELL_M)
    inside = (row >= 0) & (row < shape[0]) & (column >= 0) & (column < shape[1])
    return np.where(inside, row, 0).astype(np.int64), np.where(inside, column, 0).astype(np.int64), np.asarray(inside)
