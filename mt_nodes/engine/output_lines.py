# SPDX-License-Identifier: Apache-2.0
"""Lines on the ground that show an output: lanes, paths, predicted paths, and the outlines of what is occupied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.data.outputs import Output
from mt_nodes.data.perception import FreeSpace

#: Cells count as occupied from here on, as for map_server of nav2.
_OCCUPIED_PERCENT = 65
#: Half the sides of a unit cell, corner by corner.
_CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
_GAP = np.full((1, 2), np.nan)


def lines_of(output: Output) -> Iterator[tuple[str, Floats]]:
    """Yield the frame and the places (N, 2) of each lane, of the path, and of each obstacle's likeliest path."""
    if output.lanes is not None:
        for strip in output.lanes.strips:
            yield output.lanes.frame_id, strip.middle_m
    if output.path is not None:
        yield output.path.frame_id, output.path.pose[:, :2]
    if output.predictions is not None:
        for paths in output.predictions.paths:
            if paths:
                yield output.predictions.frame_id, max(paths, key=lambda path: path.probability).place_m


def occupied_outlines(grid: FreeSpace) -> Iterator[Floats]:
    """Yield the outlines (N, 2), in the grid's frame, of the connected areas that are occupied, and of their holes."""
    centers = grid.centers_m(np.asarray(grid.cells >= _OCCUPIED_PERCENT))
    yaw = grid.origin[2]
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    # A little larger than a cell: neighbours overlap, and so become one area whatever is rounded.
    corners = centers[:, None] + 1.001 * grid.resolution_m * _CORNERS @ turn.T
    area = shapely.union_all(shapely.polygons(corners)) if len(corners) else shapely.Polygon()
    for part in shapely.get_parts(area):
        for ring in (part.exterior, *part.interiors):
            yield np.asarray(ring.coords)


def joined(lines: Iterable[Floats]) -> Floats:
    """Return lines (N, 2) as one array, not-a-number between two of them."""
    parts = [part for line in lines for part in (line, _GAP)]
    return np.concatenate([np.empty((0, 2)), *parts[:-1]])
