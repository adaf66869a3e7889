# SPDX-License-Identifier: Apache-2.0
"""Waymo's range images as points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.data.messages import Points
from mt_nodes.data.transforms import inverse

_POINT = np.dtype(
    [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("elongation", "<f4"), ("ring", "<u2")]
)


@dataclass(frozen=True, eq=False)
class RangeImageModel:
    """How a pixel of a range image becomes a point.

    Pixel (row, column) of an image (H, W) looks at elevation ``elevations(H)[row]`` and azimuth
    ``(2 (W - column - 0.5) / W - 1) π`` about the LiDAR, less the LiDAR's own yaw in the vehicle (paper, section 3.1,
    and the development kit's ``range_image_utils``).
    ``extrinsic``: 4×4 from the LiDAR to the vehicle. ``elevations``: H -> (H,) radians, the uppermost row first.
    """

    extrinsic: Floats
    elevations: Callable[[int], Floats]

    def points(self, image: Singles, pixel_poses: Singles | None, pose: Floats) -> Points:
        """Return the points (N,) that came back, in the LiDAR's frame at the frame's own instant.

        Args:
            image: (H, W, C) range in metres, intensity, elongation, …; a range of 0 or less is no return.
            pixel_poses: (H, W, 6) roll, pitch, yaw, x, y, z of the vehicle in the world when a pixel was measured, None
                where motion is not compensated.
            pose: 4×4 of the vehicle in the world at the frame's instant.
        """
        height, width = image.shape[:2]
        rows, columns = np.nonzero(image[..., 0] > 0.0)
        measured = image[rows, columns].astype(np.float64)
        elevation = self.elevations(height)[rows]
        yaw = np.arctan2(self.extrinsic[1, 0], self.extrinsic[0, 0])
        azimuth = (2.0 * (width - columns - 0.5) / width - 1.0) * np.pi - yaw
        ground = np.cos(elevation) * measured[:, 0]
        own = np.column_stack([ground * np.cos(azimuth), ground * np.sin(azimuth), measured[:, 0] * np.sin(elevation)])
        if pixel_poses is not None:
            own = self._compensated(own, pixel_poses[rows, columns].astype(np.float64), pose)
        made = np.empty(len(rows), _POINT)
        made["x"], made["y"], made["z"] = own.T
        made["intensity"], made["elongation"] = measured[:, 1], measured[:, 2]
        made["ring"] = rows
        return made

    def _compensated(self, own: Floats, poses: Floats, pose: Floats) -> Floats:
        """Return points as if all had been measured at the frame's instant."""
        vehicle = own @ self.extrinsic[:3, :3].T + self.extrinsic[:3, 3]
        world = np.einsum("nij,nj->ni", _turns(*poses[:, :3].T), vehicle) + poses[:, 3:]
        back = inverse(pose @ self.extrinsic)
        return np.asarray(world @ back[:3, :3].T + back[:3, 3])


def _turns(roll: Floats, pitch: Floats, yaw: Floats) -> Floats:
    """Return rotations (N, 3, 3) about x, then y, then z."""
    (cr, sr), (cp, sp), (cy, sy) = ((np.cos(a), np.sin(a)) for a in (roll, pitch, yaw))
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
