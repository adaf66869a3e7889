# SPDX-License-Identifier: Apache-2.0
"""Rays without a return amid those of a near object: its glass or its dark paint took their light.

Whatever stands behind the object gives no echo on them, either: a pane would be passed twice more. The same closing
tells a camera's panes (:mod:`mt_nodes.world.camera.depth`).
"""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Cloud
from mt_nodes.world.camera.depth import panes_m
from mt_nodes.world.scene.returns import lengths, places, within_cone

#: Width of a cell, as of a camera's of some 80 degrees, and how far around the directions returns count.
_CELL_RAD, _MARGIN_RAD = np.radians(0.25), np.radians(2.0)


def enclosing_m(cloud: Cloud, direction: Floats) -> Floats:
    """Return the range (n,) of the object whose gap each direction (n, 3) lies in, infinite where there is none.

    Gaps are those of :func:`~mt_nodes.world.camera.depth.panes_m` among the nearest returns of cells of 0.25 degrees.
    """
    if not len(direction):
        return np.empty(0)
    middle = direction.mean(axis=0)
    middle /= np.linalg.norm(middle)
    reach = float(np.arccos(np.clip((direction @ middle).min(), -1.0, 1.0))) + _MARGIN_RAD
    returns = places(cloud, within_cone(cloud, middle, float(np.cos(min(reach, np.pi)))))
    bearing = float(np.arctan2(middle[1], middle[0]))
    ends, wanted = _angles(returns, bearing), _angles(direction, bearing)
    if not len(ends):
        return np.full(len(direction), np.inf)
    low = np.minimum(ends.min(axis=0), wanted.min(axis=0))
    row, column = ((ends - low) / _CELL_RAD).astype(np.int64).T
    here = ((wanted - low) / _CELL_RAD).astype(np.int64)
    nearest_m = np.full(np.maximum([row.max(), column.max()], here.max(axis=0)) + 1, np.inf, np.float32)
    np.minimum.at(nearest_m, (row, column), lengths(returns).astype(np.float32))
    return np.asarray(panes_m(nearest_m, float(_CELL_RAD))[here[:, 0], here[:, 1]], np.float64)


def _angles(directions: Floats, bearing: float) -> Floats:
    """Return angles (n, 2) of directions (n, 3): up, and to the left of a bearing."""
    aside = np.arctan2(directions[:, 1], directions[:, 0]) - bearing
    up = np.arctan2(directions[:, 2], np.hypot(directions[:, 0], directions[:, 1]))
    return np.column_stack([up, aside - 2.0 * np.pi * np.rint(aside / (2.0 * np.pi))])
