# SPDX-License-Identifier: Apache-2.0
"""The scene mirrored, rotated, scaled or translated about the ego."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import Matrix, pose_matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.scene_moved import Columns, SceneMoved


@dataclass(frozen=True)
class CloudMirrored(SceneMoved):
    """Swaps left and right of the ego: right-hand traffic becomes left-hand traffic.

    x' = x, y' = -y, z' = z in the ego's frame (symmetry of the input as in LiRTest, Guo et al., ISSTA 2022). Rows stay,
    so the scan seems to rotate the other way; it is not suitable for a stack that derives azimuth from the order
    instead of the coordinates.

    Guaranteed: every return keeps x and z, and its y changes sign.
    """

    random: ClassVar[bool] = False

    def draw_scene(self, rng: np.random.Generator) -> Draw:
        """Nothing is random."""
        return {}

    def matrix(self, draw: Draw, to_ego: Matrix) -> Matrix:
        """Return the reflection in the plane y = 0."""
        return np.diag([1.0, -1.0, 1.0, 1.0])

    def misplaced_m(self, draw: Draw, old: Columns, new: Columns, to_ego: Matrix) -> Floats:
        """Compare coordinate by coordinate."""
        off = np.maximum(np.abs(new[0] - old[0]), np.abs(new[2] - old[2]))
        return np.asarray(np.maximum(off, np.abs(new[1] + old[1])))


@dataclass(frozen=True)
class CloudRotated(SceneMoved):
    """Rotates the scene about the vertical axis of the ego's frame: what was ahead is then to the left.

    x' = x cos a - y sin a, y' = x sin a + y cos a, z' = z, for a uniform in ``yaw_rad`` ± ``spread_rad`` (rotation of
    the input as in LiRTest, Guo et al., ISSTA 2022). It is the cloud of the same sensor mounted at an angle of -a:
    possible for a sensor on the axis with 360 degrees of azimuth; the azimuths are off its grid by part of a step.

    Guaranteed: every return keeps its height and its distance from the axis, and its bearing grows by a.
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
        """Compare distance from the axis, height, and the rotation by dot and cross product of old and new."""
        (x0, y0, z0), (x1, y1, z1), yaw = old, new, float(draw["yaw_rad"])
        was, now = np.sqrt(x0 * x0 + y0 * y0), np.sqrt(x1 * x1 + y1 * y1)
        turned = np.abs(x0 * x1 + y0 * y1 - was * now * np.cos(yaw))
        turned += np.abs(x0 * y1 - y0 * x1 - was * now * np.sin(yaw))
        return np.asarray(np.abs(now - was) + np.abs(z1 - z0) + turned / np.maximum(was, 1e-3))


@dataclass(frozen=True)
class CloudScaled(SceneMoved):
    """Scales every range about the sensor: each return stays on its beam, the scene grows or shrinks.

    p' = o + s (p - o) with the sensor's origin o and s uniform in ``factor`` ± ``spread`` (scale of the input as in
    LiRTest, Guo et al., ISSTA 2022; a range-scale error of the sensor has the same effect). For s > 1 the ground sinks
    by (s - 1) times the mounting height. Several clouds without a common origin have no single scale.

    Guaranteed: every return is on its beam at s times its range, except those beyond the sensor's range, which are
    lost.
    """

    factor: float = param(1.03, low=0.5, high=2.0, neutral=1.0, help="sizes and distances times this")
    spread: float = param(0.02, low=0.0, high=0.4, neutral=0.0, help="half-width about it that is drawn from")

    def draw_scene(self, rng: np.random.Generator) -> Draw:
        """Choose the factor."""
        return {"factor": float(self.factor + self.spread * rng.uniform(-1.0, 1.0))}

    def matrix(self, draw: Draw, to_ego: Matrix) -> Matrix:
        """Return the scaling about the sensor's origin."""
        factor, matrix = float(draw["factor"]), np.eye(4)
        matrix[:3, :3] *= factor
        matrix[:3, 3] = (1.0 - factor) * to_ego[:3, 3]
        return matrix

    def misplaced_m(self, draw: Draw, old: Columns, new: Columns, to_ego: Matrix) -> Floats:
        """Compare along the ray from the sensor: the vector to the return, times the factor."""
        origin = to_ego[:3, 3].tolist()
        off = [np.abs(n - o - draw["factor"] * (p - o)) for n, p, o in zip(new, old, origin, strict=True)]
        return np.asarray(np.maximum(np.maximum(*off[:2]), off[2]))


@dataclass(frozen=True)
class CloudTranslated(SceneMoved):
    """Moves the scene by a vector of the ego's frame, as if the ego stood elsewhere in the same world.

    p' = p + t with t uniform in (``x_m``, ``y_m``) ± ``spread_m`` each, and ``z_m`` (translation of the input as in
    LiRTest, Guo et al., ISSTA 2022). No sensor would sample the surfaces exactly like this from there: density does not
    follow range, and hidden parts stay hidden. Hence small steps, and expected relations.

    Guaranteed: every return moves by that vector, except those that leave the sensor's range, which are lost.
    """

    x_m: float = param(1.0, low=-50.0, high=50.0, unit="m", neutral=0.0, help="ahead")
    y_m: float = param(0.0, low=-50.0, high=50.0, unit="m", neutral=0.0, help="to the left")
    z_m: float = param(0.0, low=-5.0, high=5.0, unit="m", neutral=0.0, help="up: the ground moves, too")
    spread_m: float = param(
        0.5, low=0.0, high=50.0, unit="m", neutral=0.0, help="half-width about x_m and y_m that is drawn from"
    )

    def draw_scene(self, rng: np.random.Generator) -> Draw:
        """Choose the vector."""
        x_m, y_m = np.array([self.x_m, self.y_m]) + self.spread_m * rng.uniform(-1.0, 1.0, 2)
        return {"by_m": np.array([x_m, y_m, self.z_m])}

    def matrix(self, draw: Draw, to_ego: Matrix) -> Matrix:
        """Return the translation."""
        matrix = np.eye(4)
        matrix[:3, 3] = draw["by_m"]
        return matrix

    def misplaced_m(self, draw: Draw, old: Columns, new: Columns, to_ego: Matrix) -> Floats:
        """Compare the displacement of each return with the vector."""
        off = [np.abs(n - o - by) for n, o, by in zip(new, old, np.asarray(draw["by_m"]).tolist(), strict=True)]
        return np.asarray(np.maximum(np.maximum(*off[:2]), off[2]))
