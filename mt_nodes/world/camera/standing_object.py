# SPDX-License-Identifier: Apache-2.0
"""An object on the ground before a camera: what its LiDAR returns and its outline say about the picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.world.camera.model import CameraModel

Flags = npt.NDArray[np.bool_]
Window = tuple[slice, slice]

#: An object may be this much higher than its topmost return: the gap between two beams of 0.4 degrees at 40 m.
TOP_M = 0.3
#: How far beside the outline of an object its shadow on the ground counts as part of it, at most, in metres and in
#: heights of the object: at a solar elevation of 27 degrees shadows are twice as long as what casts them.
SHADOW_M, SHADOW_HEIGHTS = 4.0, 2.0
#: Nearest distance before the camera at which sides are projected, points along a side, and fewest in sight.
_NEAREST_M, _STEPS, _LEAST_CORNERS = 0.3, 33, 3


@dataclass(frozen=True, eq=False)
class CameraGround:
    """The plane under an object, in the camera's frame: upward unit normal (3,), and the camera's height above it."""

    up: Floats
    camera_m: float

    def heights(self, xyz: Floats) -> Floats:
        """Return the heights (n,) of points (n, 3) above the plane."""
        return np.asarray(xyz @ self.up + self.camera_m)

    def ranges(self, directions: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the distance (...) of the plane along unit vectors (..., 3), infinite above the horizon."""
        down = -(directions @ self.up.astype(directions.dtype))
        with np.errstate(divide="ignore"):
            return np.where(down > 1e-4, self.camera_m / down, np.inf).astype(directions.dtype)


@dataclass(frozen=True, eq=False)
class StandingObject:
    """An object in the frame of a camera.

    Attributes:
        camera: the calibrated camera.
        returns_m: (n, 3) its LiDAR returns.
        outline_m: (k, 3) its convex outline on the ground.
        height_m: of its topmost return above the ground.
        ground: the plane under it.
    """

    camera: CameraModel
    returns_m: Floats
    outline_m: Floats
    height_m: float
    ground: CameraGround

    @cached_property
    def range_m(self) -> float:
        """Median distance of its returns from the camera."""
        return float(np.median(np.linalg.norm(self.returns_m, axis=1)))

    @cached_property
    def nearest_m(self) -> float:
        """Distance of its nearest return."""
        return float(np.linalg.norm(self.returns_m, axis=1).min())

    @cached_property
    def farthest_m(self) -> float:
        """Distance of its farthest return."""
        return float(np.linalg.norm(self.returns_m, axis=1).max())

    @property
    def metre_px(self) -> float:
        """Pixels of a metre across at its distance."""
        return float(self.camera.k[0, 0]) / self.range_m

    @cached_property
    def pixels(self) -> Floats:
        """Pixels (n, 2) of its returns, NaN where the camera sees none."""
        return self.camera.project(self.returns_m)

    @cached_property
    def in_picture(self) -> Flags:
        """Which of its returns (n,) lie within the picture's borders."""
        with np.errstate(invalid="ignore"):  # NaN is out of sight
            inside = (self.pixels > -0.5) & (self.pixels < (self.camera.width - 0.5, self.camera.height - 0.5))
        return np.asarray(inside.all(axis=1))

    def prism_px(self) -> npt.NDArray[np.int32] | None:
        """Return the convex polygon (k, 2) around the visible part of its box, None if out of sight."""
        top = self.outline_m + self.ground.up * (self.height_m + TOP_M)
        sides = [_along(self.outline_m), _along(top), _between(self.outline_m, top)]
        return self._polygon(np.concatenate(sides))

    def foot_px(self) -> npt.NDArray[np.int32] | None:
        """Return the convex polygon (k, 2) of the ground within its outline, None if out of sight."""
        return self._polygon(_along(self.outline_m))

    def shadow_px(self) -> npt.NDArray[np.int32] | None:
        """Return the convex polygon (k, 2) of the ground that its shadow may reach, None if out of sight."""
        reach = min(SHADOW_M, SHADOW_HEIGHTS * self.height_m)
        middle = self.outline_m.mean(axis=0)
        away = self.outline_m - middle
        return self._polygon(_along(middle + away * (1.0 + reach / np.linalg.norm(away, axis=1, keepdims=True))))

    def _polygon(self, points: Floats) -> npt.NDArray[np.int32] | None:
        pixels = self.camera.project(points[points[:, 2] > _NEAREST_M])
        pixels = pixels[np.isfinite(pixels).all(axis=1)]
        if len(pixels) < _LEAST_CORNERS:
            return None
        limit = 4.0 * max(self.camera.width, self.camera.height)
        return np.asarray(cv2.convexHull(np.rint(np.clip(pixels, -limit, limit)).astype(np.int32)).reshape(-1, 2))


def _along(polygon: Floats) -> Floats:
    """Return points (n, 3) along the sides of a polygon (k, 3)."""
    return _between(polygon, np.roll(polygon, -1, axis=0))


def _between(some: Floats, others: Floats) -> Floats:
    share = np.linspace(0.0, 1.0, _STEPS)[:, None, None]
    return np.asarray(((1.0 - share) * some + share * others).reshape(-1, 3))
