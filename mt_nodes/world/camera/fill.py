# SPDX-License-Identifier: Apache-2.0
"""Fills a hole in a picture with what may be behind it: ground and background beside it, shifted as they recede.

Ground comes from the same ground elsewhere, shifted in metres along the plane, so that texture and lines keep their
perspective; what stands behind comes from the same heights of the picture, shifted in pixels. Of many shifts the one
counts whose pixels agree best with those around the hole (statistics of few dominant offsets: K. He and J. Sun,
Statistics of patch offsets for image completion, ECCV 2012). Left and right sides may take different shifts, joined
along the seam of least difference (A. Efros and W. Freeman, Image quilting, SIGGRAPH 2001). What differs in brightness
at the border is spread smoothly over the hole (Z. Farbman et al., Convolution pyramids, SIGGRAPH Asia 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.standing_object import CameraGround, Flags, Window

#: Width of the border that shifts are compared on, in pixels; pixels of it, and of the hole, that are examined.
_BORDER_PX, _SAMPLES = 4, 96
#: Shifts of the ground: along the picture's columns and along its rows, in metres.
_ASIDE_M = np.geomspace(0.3, 9.0, 22)
_ALONG_M = np.array([0.0, -0.6, 0.6, -1.2, 1.2, -2.0, 2.0, 3.0])
#: Shifts of the background: across, in widths of the hole, and up or down, in heights of it.
_ACROSS = np.linspace(0.4, 2.6, 30)
_UPRIGHT = np.array([0.0, -0.03, 0.03, -0.08, 0.08])
#: A shift counts if it gives at least this share of the hole.
_LEAST_GIVEN = 0.35
#: Two shifts are better than one if their borders differ by less than this share of its.
_BETTER = 0.8
_TRIED = 24
_UNKNOWN_COST = 1e-3
#: In each pass, background may be so many times as far as what it stands for, or as near; everything is as far as this.
_ALIKE, _FAR_M = (1.6, 2.5, 1e9), 150.0
#: Passes over a zone, each from what the former left, until so little is left; greatest change of brightness.
_PASSES, _LEAST_REST, _LEVEL = 3, 0.02, 0.12
#: OpenCV's maps have at most 32,767 rows.
_ROW = 1024
#: A difference of mean brightness costs this share of one of structure: it is spread out anyway.
_LEVEL_COST = 0.15


@dataclass(frozen=True, eq=False)
class Surfaces:
    """A window of a picture to fill.

    Attributes:
        pixels: (h, w, c) single precision.
        usable: (h, w) pixels that show ground or background: not the object, nor others, nor what hides it.
        ground: (h, w) whether the surface behind is the plane under the object.
        range_m: (h, w) of what is seen, in the hole of what is behind it.
        camera, plane: to shift along it. window: of the picture.
    """

    pixels: Singles
    usable: Flags
    ground: Flags
    range_m: Singles
    camera: CameraModel
    plane: CameraGround
    window: Window


@dataclass(frozen=True, eq=False)
class Fill:
    """Pixels (h, w, c) of a window with a hole filled; ``given`` (h, w) is where pixels came from other places."""

    pixels: Singles
    given: Flags


def fill(surfaces: Surfaces, hole: Flags) -> Fill:
    """Return the window with a hole (h, w) filled."""
    pixels, given = surfaces.pixels.copy(), np.zeros(hole.shape, bool)
    usable = surfaces.usable & ~hole
    for ground in (True, False):
        zone = hole & (surfaces.ground == ground)
        for turn in range(_PASSES):
            rest = zone & ~given
            if np.count_nonzero(rest) <= _LEAST_REST * np.count_nonzero(zone):
                break
            now = replace(surfaces, pixels=pixels, usable=usable | given)
            _Sources(now, rest, ground, _ALIKE[turn]).paint(pixels, given)
    rest = hole & ~given
    if rest.any():
        pixels[rest] = spread(pixels, usable | given)[rest]
    return Fill(pixels, given)


class _Sources:
    """Shifted copies of usable pixels for one zone of a hole: ground, or what stands behind."""

    def __init__(self, surfaces: Surfaces, zone: Flags, ground: bool, alike: float) -> None:
        self._surfaces, self._zone, self._ground = surfaces, zone, ground
        self._flat = surfaces.pixels.reshape(-1, surfaces.pixels.shape[2])
        self._same = (surfaces.usable & (surfaces.ground == ground)).ravel()
        # Ground is as far as its row of the picture says; of what stands on it, the distance must be told.
        self._depth = None if ground else np.log(np.minimum(surfaces.range_m, _FAR_M)).ravel()
        self._alike = np.log(alike)
        kernel = np.ones((2 * _BORDER_PX + 1,) * 2, np.uint8)
        border = (cv2.dilate(zone.astype(np.uint8), kernel) != 0) & surfaces.usable & (surfaces.ground == ground)
        self._whole_border = np.argwhere(border & ~zone)
        self._border = _some(self._whole_border, _SAMPLES)
        self._hole = np.argwhere(zone)
        self._probe = _some(self._hole, _SAMPLES)
        self._shifts = self._ground_shifts() if ground else self._background_shifts()

    def paint(self, pixels: Singles, given: Flags) -> None:
        """Write the best copies into pixels (h, w, c), and where there is one into ``given`` (h, w)."""
        if not len(self._border):
            return
        costs = self._costs()
        whole = self._best(costs.mean(axis=1))
        if whole is None:
            return
        found = [self._best(costs[:, side].mean(axis=1)) for side in self._sides() if side.any()]
        shifts = [shift for shift in found if shift is not None]
        chosen = [whole]
        if len(shifts) == 2 and shifts[0] != shifts[1]:
            pair = [costs[shift, side].mean() for shift, side in zip(shifts, self._sides(), strict=True)]
            if np.mean(pair) < _BETTER * costs[whole].mean():
                chosen = shifts
        copies = [self._copy(shift) for shift in chosen]
        colours, known = copies[0] if len(copies) == 1 else self._joined(*copies)
        rows, columns = self._hole[known].T
        pixels[rows, columns] = colours[known]
        given[rows, columns] = True

    def _sides(self) -> tuple[Flags, Flags]:
        middle = float(np.median(self._hole[:, 1]))
        left = self._border[:, 1] < middle
        return left, ~left

    def _costs(self) -> Floats:
        """Return the difference (n, k) of each shift at each pixel of the border, infinite where it has none."""
        at = self._border
        own = self._surfaces.pixels[at[:, 0], at[:, 1]]
        places = self._places(at, np.arange(len(self._shifts)))
        colours, known = self._look(places, at)
        apart = colours - own
        apart[~known] = 0.0
        count = np.maximum(known.sum(axis=1), 1)[:, None]
        level = apart.sum(axis=1) / count
        cost = ((apart - level[:, None]) ** 2).mean(axis=2) + _LEVEL_COST * (level**2).mean(axis=1)[:, None]
        # What a shift does not give is left for another: it costs as much as what it gives, and a little more.
        unknown = np.where(known, cost, 0.0).sum(axis=1, keepdims=True) / count + _UNKNOWN_COST
        cost = np.where(known, cost, unknown)
        cost[known.mean(axis=1) < _LEAST_GIVEN] = np.inf
        return np.asarray(cost)

    def _best(self, cost: Floats) -> int | None:
        """Return the best shift that gives enough of the hole, without more structure than there is around it."""
        own = float(self._surfaces.pixels[tuple(self._border.T)].mean(axis=1).std())
        found: list[tuple[float, int]] = []
        for shift in np.argsort(cost)[:_TRIED]:
            if not np.isfinite(cost[shift]) or (found and cost[shift] >= found[0][0]):
                break
            colours, known = self._look(self._places(self._probe, np.array([shift])), self._probe)
            if known.mean() >= _LEAST_GIVEN:
                more = max(0.0, float(colours[known].mean(axis=1).std()) - own)
                found = [min((*found, (float(cost[shift]) + more * more, int(shift))))]
        return found[0][1] if found else None

    def _copy(self, shift: int) -> tuple[Singles, Flags]:
        """Return the colours (n, c) of the hole's pixels under a shift, in the light of the border; and which exist."""
        colours, known = self._sampled(self._hole, shift)
        own = self._surfaces.pixels[tuple(self._whole_border.T)]
        beside, there = self._sampled(self._whole_border, shift)
        if not there.any():
            return colours, known
        corner = np.minimum(self._hole.min(axis=0), self._whole_border.min(axis=0))
        height, width = np.maximum(self._hole.max(axis=0), self._whole_border.max(axis=0)) - corner + 1
        apart, where = np.zeros((height, width, own.shape[1]), np.float32), np.zeros((height, width), bool)
        at = tuple((self._whole_border[there] - corner).T)
        apart[at], where[at] = np.clip(own[there] - beside[there], -_LEVEL, _LEVEL), True
        return colours + spread(apart, where)[tuple((self._hole - corner).T)], known

    def _sampled(self, at: Rows, shift: int) -> tuple[Singles, Flags]:
        places = self._places(at, np.array([shift]))[0]
        colours, known = self._look(places, at)
        if not self._ground:
            return colours, known
        maps = np.where(known[:, None], places, 0.0).astype(np.float32)
        padded = np.resize(maps, (-(-len(maps) // _ROW) * _ROW, 2)).reshape(-1, _ROW, 2)
        x, y = np.ascontiguousarray(padded[..., 1]), np.ascontiguousarray(padded[..., 0])
        sampled = cv2.remap(self._surfaces.pixels, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(sampled).reshape(-1, colours.shape[1])[: len(maps)], known

    def _joined(self, left: tuple[Singles, Flags], right: tuple[Singles, Flags]) -> tuple[Singles, Flags]:
        """Return two copies joined along the seam of least difference, from top to bottom."""
        rows, columns = self._hole.T
        top, first = rows.min(), columns.min()
        shape = rows.max() - top + 1, columns.max() - first + 1
        apart = np.zeros(shape, np.float32)
        apart[rows - top, columns - first] = ((left[0] - right[0]) ** 2).mean(axis=1)
        apart[rows - top, columns - first][~(left[1] & right[1])] = 10.0
        of_left = columns - first <= _seam(apart)[rows - top]
        of_left = np.where(left[1] & right[1], of_left, left[1])
        return np.where(of_left[:, None], left[0], right[0]), left[1] | right[1]

    def _look(self, places: Floats, at: Rows) -> tuple[Singles, Flags]:
        """Return the colours (..., n, c) at places (..., n, 2), rows and columns, and which may fill pixels (n, 2)."""
        shape = np.array(self._zone.shape)
        with np.errstate(invalid="ignore"):
            inside = np.asarray(((places >= 0) & (places <= shape - 1)).all(axis=-1))
        whole = np.where(inside[..., None], np.rint(places), 0).astype(np.intp)
        flat = whole[..., 0] * shape[1] + whole[..., 1]
        known = inside & self._same.take(flat)
        if self._depth is not None:
            known &= np.abs(self._depth.take(flat) - self._depth.take(at[:, 0] * shape[1] + at[:, 1])) <= self._alike
        return self._flat.take(flat, axis=0), known

    def _places(self, at: Rows, shifts: Rows) -> Floats:
        """Return where pixels (n, 2) come from under each shift: (s, n, 2), row and column of the window."""
        if not self._ground:
            return at[None] + self._shifts[shifts][:, None]
        surfaces = self._surfaces
        corner = np.array([surfaces.window[0].start, surfaces.window[1].start])
        directions = surfaces.camera.directions((at + corner)[:, ::-1])
        points = directions * np.minimum(surfaces.plane.ranges(directions), 200.0)[:, None]
        moved = (points[None] + self._shifts[shifts][:, None]).reshape(-1, 3)
        return np.asarray(surfaces.camera.project(moved)[:, ::-1].reshape(len(shifts), len(at), 2) - corner)

    def _background_shifts(self) -> Floats:
        low, high = self._hole.min(axis=0), self._hole.max(axis=0)
        height, width = high - low + 1
        across = np.unique(np.rint(max(width, 12) * _ACROSS))
        upright = np.unique(np.rint(min(height, 60) * _UPRIGHT))
        x, y = np.meshgrid(np.concatenate([across, -across]), upright)
        return np.column_stack([y.ravel(), x.ravel()])

    def _ground_shifts(self) -> Floats:
        """Return shifts (n, 3) along the plane, in the camera's frame."""
        up = self._surfaces.plane.up
        ahead = np.array([0.0, 0.0, 1.0]) - up[2] * up
        ahead /= np.linalg.norm(ahead)
        aside = np.cross(ahead, up)
        x, y = np.meshgrid(np.concatenate([_ASIDE_M, -_ASIDE_M]), _ALONG_M)
        along = _ALONG_M[np.abs(_ALONG_M) > 1.0]
        shifts = x.ravel()[:, None] * aside + y.ravel()[:, None] * ahead
        return np.concatenate([shifts, along[:, None] * ahead])


def _some(places: Rows, count: int) -> Rows:
    """Return about so many of places (n, 2), evenly in their order."""
    return places[:: max(1, len(places) // count)]


def _seam(apart: Singles) -> Rows:
    """Return for each row the column of the seam of least difference, neighbours at most one column apart."""
    height = len(apart)
    cost = apart.copy()
    for row in range(1, height):
        above = np.pad(cost[row - 1], 1, constant_values=np.inf)
        cost[row] += np.minimum(np.minimum(above[:-2], above[1:-1]), above[2:])
    seam = np.empty(height, np.int64)
    seam[-1] = int(np.argmin(cost[-1]))
    for row in range(height - 2, -1, -1):
        low = max(0, seam[row + 1] - 1)
        seam[row] = low + int(np.argmin(cost[row, low : seam[row + 1] + 2]))
    return seam


def spread(values: Singles, where: Flags) -> Singles:
    """Return values (h, w, c) known in some pixels (h, w), spread smoothly over all: push and pull on a pyramid.

    S. Gortler et al., The Lumigraph, SIGGRAPH 1996, section 3.4.
    """
    weight = where.astype(np.float32)
    return _pulled(values * weight[..., None], weight)


def _pulled(total: Singles, weight: Singles) -> Singles:
    mean = total / np.maximum(weight, 1e-6)[..., None]
    if min(weight.shape) <= 2:
        return np.asarray(np.broadcast_to(total.sum(axis=(0, 1)) / max(float(weight.sum()), 1e-6), total.shape))
    half = -(-weight.shape[1] // 2), -(-weight.shape[0] // 2)
    # Sums over 2 x 2 pixels; from a weight of 1 on, a cell is as well known as one can be.
    less, sums = (4.0 * np.asarray(cv2.resize(a, half, interpolation=cv2.INTER_AREA)) for a in (weight, total))
    most = np.maximum(less, 1.0)
    means = (sums.reshape(*less.shape, -1) / most[..., None]).astype(np.float32)
    coarse = _pulled(means, np.asarray(less / most, np.float32))
    wide = cv2.resize(coarse, weight.shape[::-1], interpolation=cv2.INTER_LINEAR).reshape(total.shape)
    share = np.minimum(weight, 1.0)[..., None]
    return np.asarray(mean * share + wide * (1.0 - share), np.float32)
