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

from mt_nodes.world.camera.depth_completion import ON_GROUND, flooded

Singles = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
#: Height of windows and the roof over them, in metres, and in cells for vehicles some 8 and 4 metres away (assumed).
_ABOVE_M, _ABOVE_CELLS = 0.8, (17, 33)
#: Lower than this, in cells, is no vehicle.
_LEAST_HIGH = 5
#: What lies behind a vehicle is farther than it by this factor (assumed).
_JUMP = np.float32(1.5)


def within_hulls(range_m: Singles, light: Singles, ground_m: Singles, cell_rad: float) -> tuple[Singles, Singles]:
    """Return the range (h, w) of every cell, with those of near vehicles' hulls that the picture joins to them.

    The picture is flooded from all cells around in the order of its edges, weak ones first (watershed: F. Meyer, "Color
    Image Segmentation", ICIP 1992): a window follows its frame, for it is enclosed by it.

    Args:
        range_m: (h, w) of the cells. light: (h, w, 3) of them. ground_m: (h, w) range of flat ground.
        cell_rad: width of a cell.

    Returns:
        The ranges; and (h, w) how near each cell may be as part of a vehicle, infinite where it is in no hull.
    """
    nearest_m = np.full(range_m.shape, np.inf, np.float32)
    standing = range_m < ON_GROUND * ground_m
    for cells in _ABOVE_CELLS:
        for hull, own_m in _hulls(range_m, standing & (range_m < _ABOVE_M / (cells * cell_rad)), cells):
            np.copyto(nearest_m, np.minimum(nearest_m, own_m), where=hull & (range_m > _JUMP * own_m))
    doubtful = np.isfinite(nearest_m)
    if not doubtful.any():
        return range_m, nearest_m
    seeds = np.where(doubtful, 0, np.arange(1, range_m.size + 1).reshape(range_m.shape))
    label = flooded(light, seeds.astype(np.int32))
    found = np.where(label > 0, range_m.reshape(-1)[label - 1], range_m)
    return np.where(doubtful & (found * _JUMP < range_m), found, range_m), nearest_m


def _hulls(range_m: Singles, near: Mask, cells: int) -> Iterator[tuple[Mask, np.float32]]:
    """Yield the hull of each thing, as far as it is some cells above it at most, and the thing's range."""
    whole = cv2.morphologyEx(near.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    count, label, place, _ = cv2.connectedComponentsWithStats(whole, connectivity=4)
    above = np.zeros((2 * cells + 1, 1), np.uint8)
    above[cells:] = 1
    for number in range(1, count):
        left, top, width, height, _ = place[number].tolist()
        if width < cells or height < _LEAST_HIGH:
            continue
        box = slice(max(0, top - cells), top + height), slice(left, left + width)
        thing = np.asarray(label[box] == number)
        outline, _ = cv2.findContours(thing.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        hull = cv2.fillConvexPoly(np.zeros(thing.shape, np.uint8), cv2.convexHull(np.concatenate(outline)), 1)
        hull &= cv2.dilate(thing.astype(np.uint8), above, borderType=cv2.BORDER_CONSTANT, borderValue=0)
        found = np.zeros(range_m.shape, bool)
        found[box] = (hull != 0) & ~thing
        yield found, np.float32(np.median(range_m[box][thing]))
