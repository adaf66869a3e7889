# SPDX-License-Identifier: Apache-2.0
"""What is behind an object in a picture: ground up to a line, and what stands beyond it."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.fill import Surfaces
from mt_nodes.world.camera.silhouette import Silhouette, enlarged, grown
from mt_nodes.world.camera.standing_object import Flags, Floats, StandingObject

Rows = npt.NDArray[np.int64]

#: Ground is measured at this share of the plane's distance or farther, up to so many metres: it is no plane beyond.
_LIKE_PLANE, _FARTHEST_M = 0.8, 90.0
#: Another object counts as one beside, and not as background, if it is no more than this farther away.
_BEYOND_M = 5.0
#: How far around a return of another object the picture shows that object.
_AROUND_M = 0.2
#: Pixels beside a hole that tell what is behind it, at least, and as a share of the window's width.
_BAND_PX, _BAND = 10, 0.07
#: Blur of an object's outline.
_EDGE_PX = 2


def surfaces_of(
    thing: StandingObject, picture: Picture, depth: DepthMap, silhouette: Silhouette, others_m: Floats
) -> Surfaces:
    """Return what can fill the hole that an object leaves; ``others_m`` (n, 3) are returns of others, in its frame."""
    pixels = np.atleast_3d(picture.pixels[silhouette.window].astype(np.float32) / picture.full_scale)
    apart = grown(silhouette.hole | silhouette.hidden, _EDGE_PX) | _shown(thing, others_m, silhouette)
    measured = _measured_ground(thing, depth, silhouette)
    return Surfaces(pixels, ~apart, measured, thing.camera, thing.ground, silhouette.window)


def ground_behind(surfaces: Surfaces, hole: Flags) -> Flags:
    """Return the surfaces' ground (h, w), within the hole continued from both of its sides.

    On each side the line at which ground ends is where it divides the rows beside the hole best.
    """
    lines = [_line(surfaces, hole, side) for side in (-1, 1)]
    known = [line for line in lines if line is not None]
    if not known:
        return surfaces.ground
    columns = np.flatnonzero(hole.any(axis=0))
    ends = [known[0] if line is None else line for line in lines]
    line = np.interp(np.arange(hole.shape[1]), [columns[0], columns[-1]], ends)
    below = np.arange(hole.shape[0])[:, None] >= line
    return np.where(hole, below, surfaces.ground)


def _line(surfaces: Surfaces, hole: Flags, side: int) -> int | None:
    """Return the first row of ground beside a hole, on the left (−1) or right (1); None if nothing is usable there."""
    rows = np.flatnonzero(hole.any(axis=1))
    mask = hole[rows[0] : rows[-1] + 1]
    width = hole.shape[1]
    column = np.arange(width)
    if side < 0:
        edge = np.where(mask.any(axis=1), mask.argmax(axis=1), 0)[:, None]
        away = edge - column
    else:
        edge = np.where(mask.any(axis=1), width - 1 - mask[:, ::-1].argmax(axis=1), width)[:, None]
        away = column - edge
    band = max(_BAND_PX, int(_BAND * width))
    beside = (away > 0) & (away <= 3 * band) & surfaces.usable[rows[0] : rows[-1] + 1]
    count = beside.sum(axis=1)
    known = count >= 4
    if not known.any():
        return None
    ground = (beside & surfaces.ground[rows[0] : rows[-1] + 1]).sum(axis=1) * 2 > count
    # Above the line what is known should be no ground, below it ground.
    wrong = np.concatenate([[0], np.cumsum(known & ground)]) + np.concatenate(
        [np.cumsum((known & ~ground)[::-1])[::-1], [0]]
    )
    return int(rows[0] + np.argmin(wrong))


def _measured_ground(thing: StandingObject, depth: DepthMap, silhouette: Silhouette) -> Flags:
    step = depth.step_px
    rows, columns = (np.arange(s.start // step, -(-s.stop // step)) for s in silhouette.window)
    range_m = np.minimum(depth.range_m[rows[:, None], columns], np.float32(1e4))
    plane_m = thing.ground.ranges(thing.camera.grid(step)[rows[:, None], columns].astype(np.float32))
    cells = (plane_m < _FARTHEST_M) & (range_m > _LIKE_PLANE * plane_m)
    return enlarged(cells.astype(np.uint8), step, silhouette.window) != 0


def _shown(thing: StandingObject, others_m: Floats, silhouette: Silhouette) -> Flags:
    """Return the pixels (h, w) that show other objects which are not far behind."""
    rows, columns = silhouette.window
    mask = np.zeros(silhouette.body.shape, np.uint8)
    range_m = np.linalg.norm(others_m, axis=1)
    near = range_m < thing.range_m + _BEYOND_M
    pixels = thing.camera.project(others_m[near]) - (columns.start, rows.start)
    reach = np.clip(_AROUND_M * thing.camera.k[0, 0] / np.maximum(range_m[near], 0.1), 1.0, 20.0)
    with np.errstate(invalid="ignore"):
        inside = ((pixels > -20) & (pixels < np.array(mask.shape[::-1]) + 20)).all(axis=1)
    for size in np.unique(np.ceil(reach[inside] / 2.0) * 2.0).astype(int).tolist():
        own = inside.copy()
        own[inside] = np.ceil(reach[inside] / 2.0) * 2.0 == size
        dots = np.zeros((mask.shape[0] + 40, mask.shape[1] + 40), np.uint8)
        x, y = np.rint(pixels[own] + 20).astype(int).T
        dots[np.clip(y, 0, dots.shape[0] - 1), np.clip(x, 0, dots.shape[1] - 1)] = 1
        mask |= cv2.dilate(dots, np.ones((2 * size + 1,) * 2, np.uint8))[20:-20, 20:-20]
    return mask != 0
