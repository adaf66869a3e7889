# SPDX-License-Identifier: Apache-2.0
"""The scene as in a mirror."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.scene_moved import Columns, Floats, SceneMoved


@dataclass(frozen=True)
class CloudMirrored(SceneMoved):
    """Swaps left and right of the ego: right-hand traffic becomes left-hand traffic.

    x' = x, y' = -y, z' = z in the ego's frame (symmetry of the input as in LiRTest, Guo et al., ISSTA 2022). The rows
    stay, so the scan seems to turn the other way; a stack that takes azimuth from the order, not from the coordinates,
    may not be given this.

    Guaranteed: every return keeps x and z, and its y is the negative.
    """

    random: ClassVar[bool] = False

    def draw_scene(self, rng: np.random.Generator) -> Draw:
        """Nothing is left to chance."""
        return {}

    def matrix(self, draw: Draw, to_ego: Matrix) -> Matrix:
        """Return the reflection in the plane y = 0."""
        return np.diag([1.0, -1.0, 1.0, 1.0])

    def misplaced_m(self, draw: Draw, old: Columns, new: Columns, to_ego: Matrix) -> Floats:
        """Compare coordinate by coordinate."""
        off = np.maximum(np.abs(new[0] - old[0]), np.abs(new[2] - old[2]))
        return np.asarray(np.maximum(off, np.abs(new[1] + old[1])))
