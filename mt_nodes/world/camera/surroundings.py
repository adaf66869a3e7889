# SPDX-License-Identifier: Apache-2.0
"""Positions of a picture's cells, and whether they show ground or sky."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.world.camera.depth import DepthMap, depth_of
from mt_nodes.world.camera.model import CameraModel

#: Points lower than this above the wheels' plane are ground; the limit grows with range.
_GROUND_M, _GROUND_SLOPE = 0.15, 0.01


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The cells (h, w) of a picture.

    Attributes:
        depth: ranges, and the cells' size.
        rays: (h, w, 3) unit vectors along which the cells are seen, in ``base_link``: x ahead, y left, z up.
        camera_m: (3,) where the camera is, in ``base_link``.
    """

    depth: DepthMap
    rays: Floats
    camera_m: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.depth.range_m.shape[0], self.depth.range_m.shape[1]

    @property
    def range_m(self) -> Floats:
        """Range (h, w) along the ray, infinite for the sky."""
        return self.depth.range_m.astype(np.float64)

    @cached_property
    def sky(self) -> Mask:
        """Mask (h, w) of the sky."""
        return np.isinf(self.depth.range_m)

    @cached_property
    def ground(self) -> Mask:
        """Mask (h, w) of the road, and of equally flat ground."""
        near = np.where(self.sky, 0.0, self.depth.range_m)
        height = np.abs(self.camera_m[2] + near * self.rays[..., 2])
        return np.asarray(~self.sky & (height < _GROUND_M + _GROUND_SLOPE * near))

    def thinned(self, every: int) -> Surroundings:
        """Return the cell in the middle of each square of so many cells on a side, an odd number."""
        some = np.s_[every // 2 :: every, every // 2 :: every]
        return Surroundings(self.depth.thinned(every), self.rays[some], self.camera_m)

    def points(self, farthest_m: float = 1000.0, every: int = 1) -> Floats:
        """Return the points (h, w, 3) that every so manieth cell shows, in ``base_link``; the sky at this distance."""
        near = np.minimum(self.depth.range_m[::every, ::every], farthest_m).astype(np.float64)
        return np.asarray(self.camera_m + self.rays[::every, ::every] * near[..., None])


_known: WeakKeyDictionary[Image, Surroundings] = WeakKeyDictionary()


def surroundings_of(bundle: Bundle, image: Image, camera: CameraModel) -> Surroundings:
    """Return the cells of an image; cached per image.

    Raises NotApplicable: no depth, or no transform from the camera to ``base_link``.
    """
    if (known := _known.get(image)) is None:
        depth = depth_of(bundle, image, camera)
        try:
            pose = np.asarray(bundle.transforms.lookup("base_link", image.frame_id))
        except UnknownTransform as error:
            raise NotApplicable(f"{image.topic}: where its camera is on the vehicle is not known: {error}") from error
        rays = _rays(camera, depth.step_px, pose[:3, :3].tobytes())
        known = _known[image] = Surroundings(depth, rays, pose[:3, 3])
    return known


@lru_cache(maxsize=16)
def _rays(camera: CameraModel, step_px: int, turn: bytes) -> Floats:
    """Return the directions (h, w, 3) of a camera's cells in ``base_link``, by a rotation (3, 3)."""
    rays = camera.grid(step_px) @ np.frombuffer(turn).reshape(3, 3).T
    rays.flags.writeable = False
    return rays


def register_surroundings(image: Image, known: Surroundings) -> None:
    """Store the cells of a rendered image, known without clouds."""
    _known[image] = known
