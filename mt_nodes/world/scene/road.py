# SPDX-License-Identifier: Apache-2.0
"""Centre line of a street: straight, or bending to the left and right in turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.scene.meshes import Mesh

#: Length of one bend to the left and one to the right.
WAVE_M = 160.0
_STEP_M = 0.25
#: The line begins so far before s = 0 for any length, so that a longer road begins with the shorter one.
_BEHIND_M = 200.0


@dataclass(frozen=True)
class Road:
    """The centre line of the ego's lane, by the distance s along it.

    Its curvature is ``bend_1pm * cos(2 pi s / WAVE_M)``, so its heading swings about the x axis and the road
    never crosses itself.
    ``bend_1pm``: largest curvature in 1/m, positive where it begins to the left; 0 for a straight road. ``length_m``:
    how far the road goes.
    """

    bend_1pm: float
    length_m: float

    def curvature_1pm(self, s_m: float) -> float:
        """Return the curvature at a distance, positive to the left."""
        return float(self.bend_1pm * np.cos(2.0 * np.pi * s_m / WAVE_M))

    def pose(self, s_m: float) -> tuple[float, float, float]:
        """Return x and y in metres and heading in radians of the centre line at a distance along it."""
        if not self.bend_1pm:
            return s_m, 0.0, 0.0
        x, y, heading = (float(np.interp(s_m, self._line[0], row)) for row in self._line[1:])
        return x, y, heading

    def on_road(self, mesh: Mesh, ego_m: float) -> Mesh:
        """Return the mesh of a straight street moved onto this one.

        Vertices (s, d, z), d to the left of the centre line, become those that an ego at s = ``ego_m`` sees that
        stands at (``ego_m``, 0) and looks along x, as it would in the straight street.
        """
        if not self.bend_1pm:
            return mesh
        s, d, z = mesh.vertices_m.T
        x, y, heading = (np.interp(s, self._line[0], row) for row in self._line[1:])
        x, y = x - np.sin(heading) * d, y + np.cos(heading) * d
        x0, y0, turn = self.pose(ego_m)
        ahead = np.cos(turn) * (x - x0) + np.sin(turn) * (y - y0)
        left = np.cos(turn) * (y - y0) - np.sin(turn) * (x - x0)
        return replace(mesh, vertices_m=np.column_stack([ego_m + ahead, left, z]))

    @cached_property
    def _line(self) -> Floats:
        """Rows s, x, y and heading of points along the centre line; y by the trapezoidal rule."""
        s = np.arange(-_BEHIND_M, self.length_m + _STEP_M, _STEP_M)
        heading = self.bend_1pm * WAVE_M / (2.0 * np.pi) * np.sin(2.0 * np.pi * s / WAVE_M)
        steps = np.stack([np.cos(heading), np.sin(heading)])
        x, y = np.concatenate([np.zeros((2, 1)), np.cumsum((steps[:, 1:] + steps[:, :-1]) / 2.0, axis=1)], axis=1)
        return np.stack([s, _STEP_M * x, _STEP_M * y, heading])
