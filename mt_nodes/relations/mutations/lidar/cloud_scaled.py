# SPDX-License-Identifier: Apache-2.0
"""The scene larger or smaller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.scene_moved import Columns, Floats, SceneMoved


@dataclass(frozen=True)
class CloudScaled(SceneMoved):
    """Scales every range about the sensor: each return stays on its beam, the scene grows or shrinks.

    p' = o + s (p - o) with o the sensor's origin and s uniform in ``factor`` ± ``spread`` (scale of the input as in
    LiRTest, Guo et al., ISSTA 2022; a range-scale error of the sensor does the same). The ground sinks with s > 1, by
    (s - 1) times the mounting height. With several clouds that do not share an origin there is no one scale.

    Guaranteed: every return is on its ray, at s times its range, but for those now out of the sensor's reach, which
    are lost.
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
