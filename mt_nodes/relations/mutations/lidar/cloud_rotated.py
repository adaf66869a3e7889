# SPDX-License-Identifier: Apache-2.0
"""The scene turned about the ego."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.transforms import Matrix, pose_matrix, quaternion_of_yaw
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.scene_moved import Columns, Floats, SceneMoved


@dataclass(frozen=True)
class CloudRotated(SceneMoved):
    """Turns the scene about the vertical axis of the ego's frame: what was ahead is then to the left.

    x' = x cos a - y sin a, y' = x sin a + y cos a, z' = z, for a uniform in ``yaw_rad`` ± ``spread_rad`` (rotation of
    the input as in LiRTest, Guo et al., ISSTA 2022). It is the cloud of the same sensor mounted turned by -a: possible
    for a sensor on the axis, whose beams sweep every azimuth; the azimuths are off its grid by a part of one step.

    Guaranteed: height and distance from the axis of every return are kept, and its bearing has grown by a.
    """

    yaw_rad: float = param(0.1, low=-np.pi, high=np.pi, unit="rad", neutral=0.0, help="turn to the left")
    spread_rad: float = param(
        0.05, low=0.0, high=np.pi, unit="rad", neutral=0.0, help="half-width about it that is drawn from"
    )

    def draw_scene(self, rng: np.random.Generator) -> Draw:
        """Choose the angle."""
        return {"yaw_rad": float(self.yaw_rad + self.spread_rad * rng.uniform(-1.0, 1.0))}

    def matrix(self, draw: Draw, to_ego: Matrix) -> Matrix:
        """Return the rotation about z."""
        return pose_matrix((0.0, 0.0, 0.0), quaternion_of_yaw(float(draw["yaw_rad"])))

    def misplaced_m(self, draw: Draw, old: Columns, new: Columns, to_ego: Matrix) -> Floats:
        """Compare distance from the axis, height, and the turn by dot and cross product of old and new."""
        (x0, y0, z0), (x1, y1, z1), yaw = old, new, float(draw["yaw_rad"])
        was, now = np.sqrt(x0 * x0 + y0 * y0), np.sqrt(x1 * x1 + y1 * y1)
        turned = np.abs(x0 * x1 + y0 * y1 - was * now * np.cos(yaw))
        turned += np.abs(x0 * y1 - y0 * x1 - was * now * np.sin(yaw))
        return np.asarray(np.abs(now - was) + np.abs(z1 - z0) + turned / np.maximum(was, 1e-3))
