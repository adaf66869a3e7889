# SPDX-License-Identifier: Apache-2.0
"""The scene turned about the ego."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.lidar.scene_moved import Columns, Floats, SceneMoved
from mt_nodes.params import param
from mt_nodes.transforms import Matrix, pose_matrix, quaternion_of_yaw


@dataclass(frozen=True)
class CloudRotated(SceneMoved):
    """Turns the scene about the vertical axis of the ego's frame: what was ahead is then to the left.

    x' = x cos a - y sin a, y' = x sin a + y cos a, z' = z, for a uniform in ``yaw_rad`` ± ``spread_rad`` (rotation of
    the input as in LiRTest, Guo et al., ISSTA 2022). It is the cloud of the same sensor mounted turned by -a: possible
    for a sensor on the axis, whose beams sweep every azimuth; the azimuths are off its grid by a part of one step.

    Guaranteed: height and distance from the axis of every return are kept, and its bearing has grown by a.
    """

    yaw_rad: float = param(0.1, low=-np.pi, high=np.pi, unit="rad", help="turn to the left")
    spread_rad: float = param(0.05, low=0.0, high=np.pi, unit="rad", help="half-width about it that is drawn from")

    def draw_scene(self, rng: np.random.Generator) -> Draw:
        """Choose the angle."""
        return {"yaw_rad": float(self.yaw_rad + self.spread_rad * rng.uniform(-1.0, 1.0))}

    def matrix(self, draw: Draw, to_ego: Matrix) -> Matrix:
        """Return the rotation about z."""
        return pose_matrix((0.0, 0.0, 0.0), quaternion_of_yaw(float(draw["yaw_rad"])))

    def misplaced_m(self, draw: Draw, old: Columns, new: Columns, to_ego: Matrix) -> Floats:
        """Compare in polar coordinates: distance from the axis, bearing, height."""
        was, now = (np.hypot(x, y) for x, y, _ in (old, new))
        grown = np.arctan2(new[1], new[0]) - np.arctan2(old[1], old[0]) - float(draw["yaw_rad"])
        aside = now * np.abs(np.sin(grown / 2.0)) * 2.0
        return np.asarray(np.maximum(np.maximum(np.abs(now - was), np.abs(new[2] - old[2])), aside))
