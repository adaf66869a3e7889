# SPDX-License-Identifier: Apache-2.0
"""The scene moved beside the ego."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.scene_moved import Columns, Floats, SceneMoved


@dataclass(frozen=True)
class CloudTranslated(SceneMoved):
    """Moves the scene by a vector of the ego's frame: the same world, the ego standing elsewhere.

    p' = p + t with t uniform in (``x_m``, ``y_m``) ± ``spread_m`` each, and ``z_m`` (translation of the input as in
    LiRTest, Guo et al., ISSTA 2022). No sensor would sample the surfaces exactly so from there: density does not
    follow range, and what was hidden stays hidden. Hence small steps, and relations that are expected.

    Guaranteed: every return has moved by that vector, but for those now out of the sensor's reach, which are lost.
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
        """Compare the way that each return went with the vector."""
        off = [np.abs(n - o - by) for n, o, by in zip(new, old, np.asarray(draw["by_m"]).tolist(), strict=True)]
        return np.asarray(np.maximum(np.maximum(*off[:2]), off[2]))
