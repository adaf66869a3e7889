# SPDX-License-Identifier: Apache-2.0
"""The silhouette of an object in a picture, and its shadow: LiDAR returns dilate_mask to the picture's own edges.

The returns seed a segmentation by colour (C. Rother, V. Kolmogorov and A. Blake, GrabCut, ACM Transactions on Graphics
23, 2004, pp. 309-314; OpenCV's implementation). Panes, which return nothing, are closed first. What a nearer return
hides is not the object's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints, Singles
from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.standing_object import Flags, StandingObject, Window

Bytes = npt.NDArray[np.uint8]

#: Colours are segmented on at most so many pixels along the longer side: 10 ms.
_SEGMENT_PX = 96
_ROUNDS, _SMOOTH = 2, 0.8
#: Gaps up to these widths in metres between returns are the object's: panes and dark paint; a leg's distance from the
#: other.
_PANE_M, _CLOSE_M = 0.6, 0.3
#: Parts lower than this are taken to reach down to the ground: returns so low count as the ground's.
_LOW_M = 0.7
#: An occluder is nearer than the object by this, and this much above its ground.
_BEFORE_M, _ABOVE_M = 0.4, 0.25
#: Ground this much darker than its surroundings at the same distance is in shadow: direct light is 80 to 90 % of all on
#: a clear day, so that shadows are darker still; under an overcast sky there are none but under the object.
_SHADOW = 0.72
#: Quantile of the ground's light that counts as lit, and rows that it is smoothed over.
_LIT, _SMOOTH_ROWS = 0.7, 9
#: Growth of the masks, in pixels at 1,280 columns: the camera's blur.
_GROW_PX = 3.0
#: Surroundings of the object that are examined, in widths of it, and at least so many pixels.
_CONTEXT, _CONTEXT_PX = 1.6, 90


@dataclass(frozen=True, eq=False)
class Silhouette:
    """An object in a picture.

    Attributes:
        window: rows and columns of the picture that the arrays (h, w) cover: the object and its surroundings.
        body: pixels that show the object. shadow: ground that it darkens, or that lies under it.
        hidden: pixels where something nearer hides it, or would.
    """

    window: Window
    body: Flags
    shadow: Flags
    hidden: Flags

    @property
    def hole(self) -> Flags:
        """Pixels (h, w) to fill if the object is removed."""
        return self.body | self.shadow


def window_of(thing: StandingObject) -> Window | None:
    """Return the window of an object with its surroundings; None if it is out of the picture."""
    prism, ground = thing.prism_px(), thing.shadow_px()
    if prism is None:
        return None
    shape = prism if ground is None else np.concatenate([prism, ground])
    height, width = thing.camera.height, thing.camera.width
    (left, top), (right, bottom) = prism.min(axis=0), prism.max(axis=0)
    if right < 0 or bottom < 0 or left >= width or top >= height:
        return None
    aside = max(int(_CONTEXT * (right - left)), _CONTEXT_PX)
    (low, _), (high, lowest) = shape.min(axis=0), shape.max(axis=0)
    across = slice(max(0, min(left - aside, low)), min(width, max(right + aside, high) + 1))
    margin = max(_CONTEXT_PX // 4, (bottom - top) // 6)
    return slice(max(0, top - margin), min(height, max(bottom, lowest) + margin)), across


def silhouette_of(thing: StandingObject, picture: Picture, depth: DepthMap) -> Silhouette | None:
    """Return what a picture shows of an object; None if it shows nothing of it.

    An object that reaches behind the camera, or has no return in the picture, is not shown: the caller decides.
    """
    window = window_of(thing)
    if window is None or not thing.in_picture.any():
        return None
    size = tuple(s.stop - s.start for s in window)
    at = np.array([window[1].start, window[0].start])
    prism = _filled(thing.prism_px(), at, size)
    ground = _filled(thing.shadow_px(), at, size) & below_horizon(thing, window)
    hidden = occluder_mask(thing, depth, window)
    body = _body(thing, picture, window, prism & ~hidden, hidden)
    if not body.any():
        return None
    grow = max(1, round(_GROW_PX * picture.size[1] / 1280.0))
    wide = dilate_mask(body, grow) & prism & ~hidden
    foot = _filled(thing.foot_px(), at, size) & ~hidden
    shadow = _shadow(thing, picture, window, wide | foot, ground & ~hidden & ~wide)
    return Silhouette(window, wide, (shadow | foot) & ~wide & ~hidden, hidden)


def in_sight(thing: StandingObject, depth: DepthMap) -> int:
    """Return how many of an object's returns a picture shows: within its borders, with nothing nearer before them."""
    whole = slice(0, thing.camera.height), slice(0, thing.camera.width)
    hidden = occluder_mask(thing, depth, whole)
    x, y = np.rint(thing.pixels[thing.in_picture]).astype(int).T
    return int(np.count_nonzero(~hidden[y, x]))


def occluder_mask(thing: StandingObject, depth: DepthMap, window: Window) -> Flags:
    """Return the pixels (h, w) of a window at which something stands nearer to the camera than the object."""
    step = depth.step_px
    rows, columns = (np.arange(s.start // step, -(-s.stop // step)) for s in window)
    range_m = depth.range_m[rows[:, None], columns]
    directions = thing.camera.grid(step)[rows[:, None], columns]
    near = range_m < thing.nearest_m - _BEFORE_M
    height = thing.ground.camera_m + np.where(near, range_m, 0.0) * (directions @ thing.ground.up)
    cells = (near & (height > _ABOVE_M)).astype(np.uint8)
    return np.asarray(upsample(cells, step, window) != 0)


def upsample(cells: npt.NDArray[Any], step: int, window: Window) -> npt.NDArray[Any]:
    """Return cells that cover a window as its pixels (h, w)."""
    rows, columns = window
    full = np.repeat(np.repeat(cells, step, axis=0), step, axis=1)
    top, left = rows.start % step, columns.start % step
    return full[top : top + rows.stop - rows.start, left : left + columns.stop - columns.start]


def below_horizon(thing: StandingObject, window: Window) -> Flags:
    """Return the pixels (h, w) of a window whose lines of sight meet the plane under the object."""
    step = 4
    rows, columns = (np.arange(s.start // step, -(-s.stop // step)) for s in window)
    down = thing.camera.grid(step)[rows[:, None], columns] @ thing.ground.up < -1e-3
    return np.asarray(upsample(down.astype(np.uint8), step, window) != 0)


def dilate_mask(mask: Flags, by_px: int) -> Flags:
    """Return a mask (h, w) dilate_mask by some pixels."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * by_px + 1,) * 2)
    return np.asarray(cv2.dilate(mask.astype(np.uint8), kernel) != 0)


def _filled(polygon: npt.NDArray[np.int32] | None, at: Ints, size: tuple[int, ...]) -> Flags:
    mask = np.zeros(size, np.uint8)
    if polygon is not None:
        cv2.fillConvexPoly(mask, (polygon - at).astype(np.int32), 1)
    return np.asarray(mask != 0)


def _body(thing: StandingObject, picture: Picture, window: Window, may: Flags, hidden: Flags) -> Flags:
    """Return the object's pixels (h, w): its closed returns, and what its colours add to them."""
    rows, columns = np.flatnonzero(may.any(axis=1)), np.flatnonzero(may.any(axis=0))
    if not len(rows):
        return may
    inner = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    scale = min(1.0, _SEGMENT_PX / max(may[inner].shape))
    size = tuple(max(8, round(n * scale)) for n in may[inner].shape)
    allowed = cv2.resize(may[inner].astype(np.uint8), size[::-1], interpolation=cv2.INTER_AREA) != 0
    seeds = _seeds(thing, window, inner, size, allowed)
    closed = _closed(seeds, thing.metre_px * size[1] / may[inner].shape[1], _PANE_M) & allowed
    small = _segmented(picture, window, inner, size, seeds, closed, allowed)
    small |= _closed(seeds, thing.metre_px * size[1] / may[inner].shape[1], _CLOSE_M) & allowed
    body = np.zeros_like(may)
    smooth = cv2.GaussianBlur(small.astype(np.float32), (0, 0), _SMOOTH)
    whole = cv2.resize(smooth, may[inner].shape[::-1], interpolation=cv2.INTER_LINEAR)
    body[inner] = whole > 0.5
    return body & may


def _seeds(thing: StandingObject, window: Window, inner: Window, size: tuple[int, ...], allowed: Flags) -> Flags:
    """Return the pixels (h, w) of the object's returns, and of the parts between the lowest and the ground."""
    low = thing.ground.heights(thing.returns_m)
    feet = thing.returns_m[low < _LOW_M] - low[low < _LOW_M, None] * thing.ground.up
    between = [feet + thing.ground.up * (share * low[low < _LOW_M, None]) for share in (0.0, 0.35, 0.7)]
    pixels = thing.camera.project(np.concatenate([thing.returns_m, *between]))
    top, left = window[0].start + inner[0].start, window[1].start + inner[1].start
    scale = np.array(size[::-1]) / (inner[1].stop - inner[1].start, inner[0].stop - inner[0].start)
    with np.errstate(invalid="ignore"):
        x, y = ((pixels - (left, top) + 0.5) * scale).T
        inside = (x >= 0) & (y >= 0) & (x < size[1]) & (y < size[0])
    seeds = np.zeros(size, bool)
    seeds[y[inside].astype(int), x[inside].astype(int)] = True
    return seeds & allowed


def _closed(seeds: Flags, metre_px: float, gap_m: float) -> Flags:
    wide = max(3, round(gap_m * metre_px) | 1)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (wide, wide))
    padded = cv2.copyMakeBorder(seeds.astype(np.uint8), wide, wide, wide, wide, cv2.BORDER_CONSTANT)
    closed = np.asarray(cv2.morphologyEx(padded, cv2.MORPH_CLOSE, kernel))
    return np.asarray(closed[wide:-wide, wide:-wide] != 0)


def _segmented(
    picture: Picture, window: Window, inner: Window, size: tuple[int, ...], seeds: Flags, closed: Flags, allowed: Flags
) -> Flags:
    """Return the pixels (h, w) that GrabCut gives to the object."""
    if seeds.sum() < 4 or (allowed & ~closed).sum() < 8:
        return closed
    colours = _colours(picture, window, inner, size)
    labels = np.where(allowed, np.where(closed, cv2.GC_PR_FGD, cv2.GC_PR_BGD), cv2.GC_BGD).astype(np.uint8)
    labels[seeds] = cv2.GC_FGD
    edge = np.zeros_like(labels, bool)
    edge[0], edge[:, 0], edge[:, -1] = True, True, True
    labels[edge & ~closed] = cv2.GC_BGD
    cv2.setRNGSeed(0)
    cv2.grabCut(colours, labels, None, np.zeros((1, 65)), np.zeros((1, 65)), _ROUNDS, cv2.GC_INIT_WITH_MASK)
    return np.asarray((labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD))


def _colours(picture: Picture, window: Window, inner: Window, size: tuple[int, ...]) -> Bytes:
    part = picture.pixels[window][inner]
    small = cv2.resize(part, size[::-1], interpolation=cv2.INTER_AREA)
    if small.dtype != np.uint8:
        small = (small >> 8).astype(np.uint8)
    return small if small.ndim == 3 else np.asarray(cv2.cvtColor(small, cv2.COLOR_GRAY2BGR))


def _shadow(thing: StandingObject, picture: Picture, window: Window, root: Flags, ground: Flags) -> Flags:
    """Return the ground (h, w) that is darker than its surroundings and joined to the object's foot."""
    if not ground.any():
        return ground
    luma = cv2.blur(picture.luma()[window].astype(np.float32) / picture.full_scale, (3, 3)) ** np.float32(2.2)
    level = _ground_level(luma, ground, root)
    dark = (luma < np.float32(_SHADOW) * level[:, None]) & ground
    dark = cv2.morphologyEx(dark.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    _, label = cv2.connectedComponents(np.maximum(dark, root.astype(np.uint8)))
    own = np.unique(label[root])
    joined = np.isin(label, own[own > 0]) & (dark != 0)
    return dilate_mask(joined, 2) & ground


def _ground_level(luma: Singles, ground: Flags, root: Flags) -> Singles:
    """Return the light (h,) of the lit ground in each row: a high quantile of the row's ground, smoothed over rows."""
    lit = ground & ~root
    rows = np.flatnonzero(lit.any(axis=1))
    if not len(rows):
        return np.zeros(len(luma), np.float32)
    level = [np.quantile(luma[row][lit[row]], _LIT) for row in rows]
    every = np.interp(np.arange(len(luma)), rows, level).astype(np.float32)
    return np.asarray(cv2.blur(every[:, None], (1, _SMOOTH_ROWS)))[:, 0]
