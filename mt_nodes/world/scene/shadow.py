# SPDX-License-Identifier: Apache-2.0
"""The wedge that an object hides, seen from above."""

from __future__ import annotations

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.data.effects import Volume

#: A beam or two to each side: objects there may lose a return to the object's edge.
_MARGIN_RAD = 0.01
_HEIGHT_M = 20.0
_WIDEST_RAD = 1.4


def shadow(corners_m: Floats, sensor_m: Floats, frame_id: str, to_m: float) -> Volume:
    """Return the wedge over the ground behind a convex object, up to a distance, over all heights.

    ``corners_m``: (n, 2) outline of the object. ``sensor_m``: (2,) origin of the rays, outside of it. ``to_m``: end of
    the wedge, from the sensor.
    """
    away = corners_m - sensor_m
    axis = away.mean(axis=0)
    bearing = np.arctan2(axis[1], axis[0])
    offset_rad = np.arctan2(away[:, 1], away[:, 0]) - bearing
    offset_rad -= 2.0 * np.pi * np.rint(offset_rad / (2.0 * np.pi))
    right, left = offset_rad.min() - _MARGIN_RAD, offset_rad.max() + _MARGIN_RAD
    sides = bearing + np.array([right, left])
    rim_m = to_m / np.cos(min((left - right) / 2, _WIDEST_RAD))
    rim = sensor_m + rim_m * np.column_stack([np.cos(sides), np.sin(sides)])
    wedge = shapely.MultiPoint(np.concatenate([corners_m, rim])).convex_hull
    behind = wedge.difference(shapely.MultiPoint(corners_m).convex_hull)
    outline = shapely.get_coordinates(max(shapely.get_parts(behind), key=shapely.area).exterior)[:-1]
    low, high = outline.min(axis=0), outline.max(axis=0)
    (x, y), (length, width) = ((low + high) / 2).tolist(), (high - low).tolist()
    corners = tuple((float(a), float(b)) for a, b in outline.tolist())
    return Volume(frame_id, (x, y, 0.0), (length, width, _HEIGHT_M), label="shadow", outline_m=corners)
