# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that show what the camera's own motion does during an exposure or a read-out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.ego_speed import RATE, EgoSpeed, speed_in
from mt_nodes.world.camera.depth import cell_px, depth_of

#: Distance of the sky: it moves by rotation alone.
_FAR_M = 1e5
#: Speed of the vehicle in m/s where its motion is unknown (assumed: a town's limit of 50 km/h).
_DEFAULT_MPS = 15.0


@dataclass(frozen=True)
class MovingView(EachImage):
    """Base: the picture changes with the ego's motion during some time, near objects most, far ahead least.

    Each pixel, at its range, is projected from the camera's pose at another time. Moving objects are treated as if they
    stood.
    """

    ego_speed_mps: float | None = param(
        None,
        low=-20.0,
        high=70.0,
        unit="m/s",
        aspect="fixed",
        help="speed of the vehicle, forward; unset: it moves and turns as recorded, 15 m/s where that is unknown",
    )
    yaw_rate_radps: float = param(
        0.0, low=-1.5, high=1.5, unit="rad/s", neutral=0.0, help="its turning, positive to the left, on top of that"
    )
    range_m: float | None = param(
        None, low=0.5, high=10_000.0, unit="m", aspect="fixed", help="range of everything; unset: as the clouds measure"
    )
    random: ClassVar[bool] = False

    @property
    @abstractmethod
    def seconds(self) -> float:
        """Duration of the motion that counts."""

    @property
    def needs_motion(self) -> bool:
        """Whether the speed of the ego is not given."""
        return self.ego_speed_mps is None

    def drawn_motion(self, view: View) -> Draw:
        """Return the ego's motion, for a draw."""
        return EgoSpeed.drawn(view.bundle, self.ego_speed_mps, _DEFAULT_MPS)

    def path_px(self, view: View, draw: Draw, every: int = 1) -> Floats:
        """Return the displacement (h, w, 2) in pixels of each (or every n-th) cell during the time that counts."""
        camera, step = view.camera(), cell_px(view.picture.size[1])
        some = np.s_[::every, ::every]
        rays, middles = camera.grid(step)[some], middles_px(step, view.picture.size)[some]
        before = self._seen_before(view, draw, rays * self.ranges_m(view)[some][..., None])
        return np.asarray(np.nan_to_num(before - middles))

    def ranges_m(self, view: View) -> Floats:
        """Return the range (h, w) of each cell, at most that of the sky."""
        if self.range_m is None:
            return np.minimum(depth_of(view.bundle, view.image, view.camera()).range_m, _FAR_M)
        height, width = view.picture.size
        step = cell_px(width)
        return np.full((-(-height // step), -(-width // step)), self.range_m)

    def _seen_before(self, view: View, draw: Draw, points_m: Floats) -> Floats:
        """Return where the camera saw points (…, 3) of its frame when that time began: pixels (…, 2)."""
        axes, pose, shift = self.axes(view), np.eye(4), np.eye(4)
        turned = -(self.yaw_rate_radps + float(draw.get(RATE, 0.0))) * self.seconds
        pose[:3, :3] = Rotation.from_rotvec(axes[:, 2] * turned).as_matrix().T
        shift[:3, 3] = axes[:, 0] * speed_in(draw, self.ego_speed_mps) * self.seconds
        return view.camera().project(move(pose @ shift, points_m.reshape(-1, 3))).reshape((*points_m.shape[:-1], 2))

    def axes(self, view: View) -> Floats:
        """Return the vehicle's axes (3, 3), column by column, in the camera's frame."""
        try:
            return np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[:3, :3]
        except UnknownTransform as error:
            raise NotApplicable(f"{view.image.topic}: where the vehicle's front is, is not known: {error}") from error


@lru_cache(maxsize=8)
def middles_px(step_px: int, size: tuple[int, int]) -> Floats:
    """Return x and y (h, w, 2) of the centres of the cells of a picture (height, width)."""
    y, x = (np.arange(0, n, step_px) + (step_px - 1) / 2.0 for n in size)
    return np.stack(np.meshgrid(x, y), axis=-1)


@lru_cache(maxsize=4)
def places_px(size: tuple[int, int]) -> Singles:
    """Return x and y (H, W, 2) of the pixels of a picture (height, width); read-only."""
    x, y = np.meshgrid(*(np.arange(side, dtype=np.float32) for side in reversed(size)))
    places = np.stack([x, y], axis=-1)
    places.flags.writeable = False
    return places


def in_picture(cells: Singles, step_px: int, size: tuple[int, int]) -> Singles:
    """Return values of cells (h, w, …) for every pixel of a picture of ``size`` (height, width), interpolated."""
    rows, columns = (n * step_px for n in cells.shape[:2])
    return np.asarray(cv2.resize(cells, (columns, rows)))[: size[0], : size[1]]
