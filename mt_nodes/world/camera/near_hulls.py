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
import numpy.typing as npt

from mt_nodes.world.camera.depth_completion import ON_GROUND, Colours, flooded

Singles = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
#: Rows and columns.
Part = tuple[slice, slice]
#: Height of windows and the roof over them, in metres, and in cells for vehicles some 8 and 4 metres away (assumed).
_ABOVE_M, _ABOVE_CELLS = 0.8, (17, 33)
#: Lower than this, in cells, is no vehicle.
_LEAST_HIGH = 5
#: What lies behind a vehicle is farther than it by this factor (assumed).
_JUMP = np.float32(1.5)


def within_hulls(range_m: Singles, colours: Colours, ground_m: Singles, cell_rad: float) -> tuple[Singles, Singles]:
    """Return the range (h, w) of every cell, with those of near vehicles' hulls that the picture joins to them.

    The picture is flooded from all cells around in the order of its edges, weak ones first (watershed: F. Meyer, "Color
    Image Segmentation", ICIP 1992): a window follows its frame, for it is enclosed by it.

    Args:
        range_m: (h, w) of the cells. colours: (h, w, 3) of them. ground_m: (h, w) range of flat ground.
        cell_rad: width of a cell.

    Returns:
        The ranges; and (h, w) how near each cell may be as part of a vehicle, infinite where it is in no hull.
    """
    nearest_m = np.full(range_m.shape, np.inf, np.float32)
    standing = range_m < ON_GROUND * ground_m
    for cells in _ABOVE_CELLS:
        for box, hull, own_m in _hulls(range_m, standing & (range_m < _ABOVE_M / (cells * cell_rad)), cells):
            own = nearest_m[box]
            np.copyto(own, np.minimum(own, own_m), where=hull & (range_m[box] > _JUMP * own_m))
    return joined_by_picture(range_m, colours, np.isfinite(nearest_m)), nearest_m


def joined_by_picture(range_m: Singles, colours: Colours, doubtful: Mask) -> Singles:
    """Return ranges (h, w), of doubtful cells that of what the picture joins them to, if that is much nearer."""
    part = part_of(doubtful, 2)
    if part is None:
        return range_m
    own, asked = range_m[part], doubtful[part]
    label = flooded(colours[part], np.where(asked, 0, np.arange(1, own.size + 1).reshape(own.shape)).astype(np.int32))
    found = np.where(label > 0, own.reshape(-1)[label - 1], own)
    joined = range_m.copy()
    joined[part] = np.where(asked & (found * _JUMP < own), found, own)
    return joined


def part_of(cells: Mask, around: int) -> Part | None:
    """Return the rows and columns of some cells (h, w) and so many around them; None for no cells."""
    left, top, width, height = cv2.boundingRect(cells.view(np.uint8))
    if not width:
        return None
    return slice(max(top - around, 0), top + height + around), slice(max(left - around, 0), left + width + around)


def _hulls(range_m: Singles, near: Mask, cells: int) -> Iterator[tuple[Part, Mask, np.float32]]:
    """Yield a box around each thing, in it its hull as far as it is some cells above it at most, and its range."""
    whole = cv2.morphologyEx(near.view(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    part = part_of(whole, cells)
    if part is None:
        return
    count, label, place, _ = cv2.connectedComponentsWithStats(whole[part], connectivity=4)
    above = np.zeros((2 * cells + 1, 1), np.uint8)
    above[cells:] = 1
    for number in range(1, count):
        left, top, width, height, _ = place[number].tolist()
        if width < cells or height < _LEAST_HIGH:
            continue
        first = max(0, top - cells)
        thing = label[first : top + height, left : left + width] == number
        top, left = part[0].start + first, part[1].start + left
        box = slice(top, top + thing.shape[0]), slice(left, left + width)
        outline, _ = cv2.findContours(thing.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        hull = cv2.fillConvexPoly(np.zeros(thing.shape, np.uint8), cv2.convexHull(np.concatenate(outline)), 1)
        hull &= cv2.dilate(thing.astype(np.uint8), above, borderType=cv2.BORDER_CONSTANT, borderValue=0)
        yield box, (hull != 0) & ~thing, np.float32(np.median(range_m[box][thing]))
