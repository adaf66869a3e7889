# SPDX-License-Identifier: Apache-2.0
"""Outlines of near vehicles, whose roof and windows may give a LiDAR no return: as far as the picture joins them.

A LiDAR looks through windows, past a roof that it grazes, and its light glances off dark paint; returns from far behind
then lie within the vehicle in the picture. What is near is nearly convex (assumed, of vehicles): between its returns
and up to the height of a window above them, cells within its convex hull may be part of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from mt_nodes.base.arrays import Mask, Singles
from mt_nodes.world.camera.depth_completion import JUMP, ON_GROUND, Colours, joined_to, part_of
from mt_nodes.world.camera.free_space import ABOVE_M

#: Height of a window and the roof over it, in cells, of vehicles some 8 and 4 metres away.
_ABOVE_CELLS = (17, 33)
#: Lower than this, in cells, is no vehicle.
_LEAST_HIGH = 5


def within_hulls(
    range_m: Singles, colours: Colours, ground_m: Singles, cell_rad: float
) -> tuple[Singles, Singles, list[Mask]]:
    """Return the range (h, w) of every cell, with those of near vehicles' hulls that the picture joins to them.

    The picture is flooded from all cells around in the order of its edges, weak ones first (watershed: F. Meyer, "Color
    Image Segmentation", ICIP 1992): a window follows its frame, for it is enclosed by it.

    Args:
        range_m: (h, w) of the cells. colours: (h, w, 3) of them. ground_m: (h, w) range of flat ground.
        cell_rad: width of a cell.

    Returns:
        The ranges; (h, w) how near each cell may be as part of a vehicle, infinite where it is in no hull; and the
        cells (h, w) of each vehicle.
    """
    nearest_m, things = np.full(range_m.shape, np.inf, np.float32), []
    for thing, cells in _near_things(range_m, ground_m, cell_rad):
        own_m = np.float32(np.median(range_m[thing]))
        doubt = _hull(thing, cells) & (range_m > JUMP * own_m)
        np.copyto(nearest_m, np.minimum(nearest_m, own_m), where=doubt)
        things.append((thing, doubt))
    joined = joined_to(range_m, colours, np.isfinite(nearest_m))
    nearer = joined < range_m
    return joined, nearest_m, [thing | (doubt & nearer) for thing, doubt in things]


def _near_things(range_m: Singles, ground_m: Singles, cell_rad: float) -> Iterator[tuple[Mask, int]]:
    """Yield the cells (h, w) of each near thing that may be a vehicle, and the height of its window in cells."""
    standing = range_m < ON_GROUND * ground_m
    for cells in _ABOVE_CELLS:
        near = (standing & (range_m < ABOVE_M / (cells * cell_rad))).view(np.uint8)
        whole = cv2.morphologyEx(near, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        part = part_of(whole, 0)
        if part is None:
            continue
        _, label = cv2.connectedComponents(whole[part], connectivity=4)  # OpenCV's statistics take six times as long
        for number in 1 + np.flatnonzero(np.bincount(label.reshape(-1))[1:] >= cells):
            thing = np.zeros(whole.shape, bool)
            thing[part] = label == number
            *_, width, height = cv2.boundingRect(thing.view(np.uint8))
            if width >= cells and height >= _LEAST_HIGH:
                yield thing, cells


def _hull(whole: Mask, cells: int) -> Mask:
    """Return the hull (h, w) of a thing, as far as it is some cells above it at most, without itself."""
    rows, columns = (np.flatnonzero(whole.any(axis=axis)) for axis in (1, 0))
    box = slice(max(0, int(rows[0]) - cells), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    thing = whole[box]
    above = np.zeros((2 * cells + 1, 1), np.uint8)
    above[cells:] = 1
    outline, _ = cv2.findContours(thing.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    hull = cv2.fillConvexPoly(np.zeros(thing.shape, np.uint8), cv2.convexHull(np.concatenate(outline)), 1)
    hull &= cv2.dilate(thing.astype(np.uint8), above, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    found = np.zeros(whole.shape, bool)
    found[box] = (hull != 0) & ~thing
    return found
