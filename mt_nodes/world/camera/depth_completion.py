# SPDX-License-Identifier: Apache-2.0
"""Ranges of the cells between a LiDAR's beams, from the returns above and below and from the picture."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Singles

Grid = npt.NDArray[np.integer[Any]]
Labels = npt.NDArray[np.int32]
Colours = npt.NDArray[np.uint8]

#: Two returns of a column whose ranges differ by less than this factor lie on one surface (assumed).
_ONE_SURFACE = np.float32(1.3)
#: What lies behind a thing is farther than it by this factor (assumed).
JUMP = np.float32(1.5)
#: So near to the range of flat ground a return lies on it.
ON_GROUND = np.float32(0.85)
#: Beams that are farther apart than this many cells say nothing of what is between them.
_WIDEST_GAP = 8
#: A difference of light that counts as much as half a cell of distance, when an edge lies between two returns.
_LIGHT = np.float32(0.05)


def between_beams(range_m: Singles, measured: Mask, light: Singles, ground_m: Singles) -> Singles:
    """Return the range of every cell from the first row with a return on; above, they stay infinite.

    Between two returns of a column that lie on one surface, the inverse range is linear in the row: exactly so on a
    plane that the camera sees without distortion, wherever it lies (its inverse depth is a linear function of the
    pixel). Where an edge lies between the two, a cell has the range of that return to which it is more alike in colour,
    and nearer. Elsewhere the range is that of the nearest return.

    Args:
        range_m: (h, w) of the returns. measured: (h, w) which cells have one.
        light: (h, w, 3) of the cells. ground_m: (h, w) range of flat ground, infinite above the horizon.
    """
    filled, first = range_m.copy(), int(measured.any(axis=1).argmax())
    filled[first:] = nearest(range_m[first:], measured[first:])
    cell, up, down = _gaps(measured)
    width = measured.shape[1]
    ends = cell - up * width, cell + down * width
    upper, lower = (range_m.take(end) for end in ends)
    share = (up / (up + down)).astype(np.float32)
    linear = np.float32(1.0) / ((1 - share) / upper + share / lower)
    ground = [ground_m.take(end) for end in ends]
    one_surface = (upper > ON_GROUND * ground[0]) & (lower > ON_GROUND * ground[1])
    one_surface |= np.maximum(upper, lower) < _ONE_SURFACE * np.minimum(upper, lower)
    split = np.flatnonzero(~one_surface)
    here, *there = (light.reshape(-1, light.shape[-1])[at[split]] for at in (cell, *ends))
    unlike = [np.abs(here - other).sum(axis=-1) / _LIGHT for other in there]
    is_upper = unlike[0] + 0.5 * up[split] < unlike[1] + 0.5 * down[split]
    linear[split] = np.where(is_upper, upper[split], lower[split])
    filled.reshape(-1)[cell] = linear
    return filled


def joined_to(range_m: Singles, colours: Colours, doubtful: Mask) -> Singles:
    """Return ranges (h, w) whose doubtful cells have those of nearer cells that the picture joins to them.

    The picture is flooded from all other cells (:func:`flooded`); what is nearer by a third or less is no other thing.
    """
    part = part_of(doubtful, 2)
    if part is None:
        return range_m
    own, asked = range_m[part], doubtful[part]
    seeds = np.where(asked, np.int32(0), np.arange(1, own.size + 1, dtype=np.int32).reshape(own.shape))
    label = flooded(colours[part], seeds)
    found = np.where(label > 0, own.reshape(-1)[label - 1], own)
    joined = range_m.copy()
    joined[part] = np.where(asked & (found * JUMP < own), found, own)
    return joined


def part_of(cells: Mask, around: int) -> tuple[slice, slice] | None:
    """Return the rows and columns of some cells (h, w) and so many around them; None for no cells."""
    left, top, width, height = cv2.boundingRect(np.ascontiguousarray(cells).view(np.uint8))
    if not width:
        return None
    return slice(max(top - around, 0), top + height + around), slice(max(left - around, 0), left + width + around)


def colours_of(light: Singles) -> Colours:
    """Return light (h, w, 3) in bytes about as fine as eyes are, for :func:`flooded`."""
    return np.asarray(np.minimum(np.float32(255.0) * cv2.sqrt(light), np.float32(255.0)).astype(np.uint8))


def flooded(colours: Colours, seeds: Labels) -> Labels:
    """Return the label (h, w) of every cell, flooded from the labels above 0 of ``seeds`` in the order of edges.

    A cell where many meet may have none: 0, or less.
    """
    # OpenCV leaves the edge of the picture and the lines between two labels without one.
    image, labels = (cv2.copyMakeBorder(a, 1, 1, 1, 1, cv2.BORDER_REPLICATE) for a in (colours, seeds))
    cv2.watershed(image, labels)
    labels = np.where(seeds > 0, seeds, labels[1:-1, 1:-1])
    (height, width), flat = labels.shape, labels.reshape(-1)
    for down, right in ((0, -1), (0, 1), (-1, 0), (1, 0)):
        bare = np.flatnonzero(flat <= 0)
        row, column = np.divmod(bare, width)
        flat[bare] = flat[(row + down) % height * width + (column + right) % width]
    return labels


def nearest(range_m: Singles, measured: Mask) -> Singles:
    """Return ranges (h, w) with every cell's nearest measured one."""
    return nearest_within(range_m, measured)[0]


def nearest_within(range_m: Singles, measured: Mask) -> tuple[Singles, Singles]:
    """Return ranges (h, w) with every cell's nearest measured one, and its distance in cells."""
    apart, label = cv2.distanceTransformWithLabels(
        (~measured).view(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    by_label = np.zeros(int(label.max()) + 1, np.float32)
    by_label[label[measured]] = range_m[measured]
    return by_label.take(label), np.asarray(apart)


def _gaps(measured: Mask) -> tuple[Grid, Grid, Grid]:
    """Return the number of each cell (n,) in a narrow gap, and of rows up and down to the next measured one."""
    up = np.where(measured, np.uint8(0), np.uint8(_WIDEST_GAP))
    down = up.copy()
    for step in (1, 2, 4):  # rows to the next measured one, as far as it counts
        np.minimum(up[step:], up[:-step] + np.uint8(step), out=up[step:])
        np.minimum(down[:-step], down[step:] + np.uint8(step), out=down[:-step])
    within = np.flatnonzero((up + down <= _WIDEST_GAP) & ~measured)
    return within, up.take(within).astype(np.int64), down.take(within).astype(np.int64)
