# SPDX-License-Identifier: Apache-2.0
"""Depth of what a camera sees, from the clouds of the same instant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.world.camera.above_beams import above_beams
from mt_nodes.world.camera.depth_bounds import bounds_of, within
from mt_nodes.world.camera.depth_completion import (
    JUMP,
    ON_GROUND,
    Colours,
    between_beams,
    colours_of,
    joined_to,
    part_of,
)
from mt_nodes.world.camera.depth_network import monocular_m
from mt_nodes.world.camera.free_space import distinct, outlined
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.near_hulls import within_hulls
from mt_nodes.world.camera.relight import coarse_light
from mt_nodes.world.camera.sky_cells import like_hit, sky_in
from mt_nodes.world.camera.sparse_depth import project_returns, to_camera

Grid = npt.NDArray[np.int64]
Cells = npt.NDArray[np.bool_]
#: The least and the largest ranges (h, w) that cells may have.
Bounds = tuple[Singles, Singles]
#: A cell is this many pixels wide in a picture of 1,280 columns, and proportionally wider in a wider one.
_CELLS_ACROSS = 320
#: A cloud that measures fewer of the picture's columns says too little about the rest.
_LEAST_COLUMNS = 0.6
#: Gaps of far cells narrower than this are closed.
_GAP = 7
#: Height of windows of cars, in metres (assumed), and in cells for cars from far to near.
_PANE_M, _PANE_CELLS = 0.8, (9, 17, 33)
#: The background is what is farthest within a so manieth part of the picture's width on either side.
_AROUND = 8
#: Nearer than this is no sky where flat ground would be.
_HORIZON_M = 300.0


@dataclass(frozen=True, eq=False)
class DepthMap:
    """Depth per camera cell.

    Attributes:
        range_m: (h, w) along the ray, infinite for the sky. Small gaps in near objects are closed.
        through_m: (h, w) the same with gaps. far_m: (h, w) the same to the farthest return of a cell: larger where an
            edge divides it. pane_m: (h, w) the same to panes of near objects (:func:`panes_m`).
        measured: (h, w) whether a return lies in the cell; elsewhere its range is a neighbour's, or the ground's.
        step_px: width and height of a cell. find_bounds_m: yields ``bounds_m``.
    """

    range_m: Singles
    measured: Mask
    step_px: int
    through_m: Singles
    far_m: Singles
    pane_m: Singles
    find_bounds_m: Callable[[], Bounds]

    @classmethod
    def known(cls, range_m: Singles, step_px: int) -> DepthMap:
        """Return the depth of a rendered picture: nothing about it is in doubt."""
        return cls(range_m, np.isfinite(range_m), step_px, *(range_m,) * 3, lambda: (range_m, range_m))

    @cached_property
    def bounds_m(self) -> Bounds:
        """The least and the largest range (h, w) of each cell (:mod:`~mt_nodes.world.camera.depth_bounds`).

        Found when they are first asked for: many mutations do not.
        """
        return self.find_bounds_m()

    def thinned(self, every: int) -> DepthMap:
        """Return the cell in the middle of each square of so many cells on a side, an odd number."""
        some = np.s_[every // 2 :: every, every // 2 :: every]
        through_m, far_m, pane_m = (a[some] for a in (self.through_m, self.far_m, self.pane_m))

        def find_bounds_m() -> Bounds:
            return self.bounds_m[0][some], self.bounds_m[1][some]

        step_px = every * self.step_px
        return DepthMap(self.range_m[some], self.measured[some], step_px, through_m, far_m, pane_m, find_bounds_m)

    def middles_px(self) -> Floats:
        """Return x and y (h, w, 2) of the centres of the cells."""
        y, x = (np.arange(n) * self.step_px + (self.step_px - 1) / 2.0 for n in self.range_m.shape)
        return np.stack(np.meshgrid(x, y), axis=-1)

    def in_picture(self, cells: npt.NDArray[np.generic], size: tuple[int, int], smooth: bool = True) -> npt.NDArray:  # type: ignore[type-arg]
        """Return values of the cells (h, w) for every pixel of a picture of ``size`` (height, width)."""
        how = cv2.INTER_LINEAR if smooth else cv2.INTER_NEAREST
        rows, columns = (n * self.step_px for n in cells.shape[:2])
        return np.asarray(cv2.resize(cells, (columns, rows), interpolation=how))[: size[0], : size[1]]

    def in_part(self, cells: Singles, part: tuple[slice, slice]) -> Singles:
        """Return values of the cells (h, w) for every pixel of a part of a picture: those of :meth:`in_picture`."""
        step = self.step_px
        first = [max(0, side.start // step - 1) for side in part]  # a cell more on each side: seams do not show
        near = cells[tuple(slice(at, side.stop // step + 2) for at, side in zip(first, part, strict=True))]
        whole = cv2.resize(near, (near.shape[1] * step, near.shape[0] * step))
        own = (slice(s.start - at * step, s.stop - at * step) for at, s in zip(first, part, strict=True))
        return np.asarray(whole[tuple(own)])


def cell_px(width_px: int) -> int:
    """Return the width of a cell of a picture of some width."""
    return max(1, round(width_px / _CELLS_ACROSS))


_known: WeakKeyDictionary[Image, DepthMap] = WeakKeyDictionary()


def depth_of(bundle: Bundle, image: Image, camera: CameraModel) -> DepthMap:
    """Return the depth of an image; cached per image.

    The nearest return of a cell counts; cells between returns get the range of the surface that the returns above and
    below lie on (:mod:`~mt_nodes.world.camera.depth_completion`). Gaps of near objects as small as car windows are
    closed, and corners and roofs are where the picture joins them to the object
    (:mod:`~mt_nodes.world.camera.near_hulls`), or it has an edge and no beam passes
    (:mod:`~mt_nodes.world.camera.free_space`). Above the topmost return of a column is sky if the picture looks like
    it, else what it joins there without a strong edge
    (:mod:`~mt_nodes.world.camera.above_beams`), or what a network of the user's says
    (:mod:`~mt_nodes.world.camera.depth_network`). Below the lowest return is flat ground, if the transforms give the
    camera's height. :mod:`~mt_nodes.world.camera.depth_bounds` says how far off all that may be.
    Raises NotApplicable: no cloud, no transform to it, or one that covers too little of the picture. UsageError: a
    network is named, and cannot be used.
    """
    if (known := _known.get(image)) is None:
        known = _known[image] = _measure(bundle, image, camera)
    return known


def _measure(bundle: Bundle, image: Image, camera: CameraModel) -> DepthMap:
    step = cell_px(camera.width)
    shape, cell_rad = (-(-camera.height // step), -(-camera.width // step)), step / float(camera.k[0, 0])
    range_m, far_m = np.full(shape, np.inf, np.float32), np.zeros(shape, np.float32)
    on_top = np.zeros(shape, bool)
    beams = [
        project_returns(cloud, to_camera(bundle, cloud, image), camera, step, (range_m, far_m), on_top)
        for cloud in bundle.known_clouds
    ]
    measured = np.isfinite(range_m)
    covered = float(measured.any(axis=0).mean())
    if covered < _LEAST_COLUMNS:
        clouds = ", ".join(c.topic for c in bundle.known_clouds) or "no cloud"
        expected = f"expected {_LEAST_COLUMNS:.0%} or more"
        raise NotApplicable(f"{image.topic}: returns of {clouds} lie in {covered:.0%} of its columns, {expected}")
    light = coarse_light(decode(image), shape, step)
    colours = colours_of(light)
    ground = _ground_m(bundle, image, camera, step)
    filled = between_beams(range_m, measured, light, ground)
    top, bottom = _ends(measured)
    row = np.arange(shape[0])[:, None]
    above = row < top
    hit = np.take_along_axis(filled, top, axis=0)
    under = np.take_along_axis(ground, top, axis=0)
    continues = np.take_along_axis(on_top, top, axis=0) & (hit < ON_GROUND * under)
    farthest = np.minimum(ground, _behind(filled, top))
    sky = sky_in(light, above, top, continues) & (ground > _HORIZON_M)
    high = np.s_[: int(top.max()) + 2]  # below, there is nothing to fill
    near_m, wide_m = np.full(shape, np.inf, np.float32), np.zeros(shape, np.float32)
    filled[high], near_m[high], wide_m[high] = above_beams(
        filled[high], top, continues, np.isinf(under), sky[high], colours[high], farthest[high], cell_rad
    )
    by_network = monocular_m(decode(image), range_m, measured, camera.grid(step)[..., 2])
    if by_network is not None:
        filled = np.where(above & np.isfinite(filled), by_network[0], filled)
    below = (row > bottom) & np.isfinite(ground)
    np.minimum(filled, ground, out=filled, where=below)
    np.maximum(far_m, filled, out=far_m)  # it is 0 where there is no return
    glazed, panes = _with_panes(filled, cell_rad)
    closed = _cornered(glazed, colours, ground, cell_rad)
    joined, hull_m, things = within_hulls(closed, colours, ground, cell_rad)
    glazed, solid = outlined(joined, filled, measured, light, ground, distinct(things, joined), beams, (camera, step))
    panes = np.minimum(panes, glazed)
    opaque = solid | ((glazed < closed) & ~measured)
    filled, far_m = (np.where(opaque, glazed, a) for a in (filled, far_m))
    glass = glazed < filled

    def find_bounds_m() -> Bounds:
        extremes = np.where(glass, glazed, filled), np.where(glass, glazed, far_m)
        least, most = bounds_of(glazed, extremes, measured | below | glass, above, farthest, cell_rad)
        # What beams or the picture add to a vehicle, or take from it, may be the other way round.
        least = np.minimum(np.minimum(least, np.minimum(hull_m, near_m)), np.where(glazed > closed, closed, least))
        most = np.maximum(np.where(np.isfinite(hull_m) | (glazed < closed), np.maximum(most, closed), most), wide_m)
        # A wall as bright as the sky may be one: a picture cannot tell.
        maybe_wall = (sky & continues)[high] & like_hit(light[high], top)
        least[high] = np.where(maybe_wall, np.minimum(least[high], hit), least[high])
        bounds = least, most
        return bounds if by_network is None else within(bounds, above & np.isfinite(glazed), *by_network)

    return DepthMap(glazed, measured, step, filled, far_m, panes, find_bounds_m)


def panes_m(range_m: Singles, cell_rad: float) -> Singles:
    """Return ranges (h, w) with the gaps in near objects that are as small as car windows: taken for panes (assumed).

    Gaps into which a square of seven cells does not fit, and gaps of less than 0.8 m between what is above and below.
    """
    nearness, in_columns = _nearness_over_gaps(range_m, cell_rad)
    return _range_m(_over_squares(range_m, nearness, in_columns, 0.0))


def _with_panes(range_m: Singles, cell_rad: float) -> tuple[Singles, Singles]:
    """Return ranges as :func:`panes_m`, first with squares up to the size of a window, then with all of them."""
    nearness, in_columns = _nearness_over_gaps(range_m, cell_rad)
    glazed = _over_squares(range_m, nearness, in_columns, cell_rad / _PANE_M)
    # Of a roof with few returns, columns close that have one, and those between them.
    glazed = _closed(glazed, (1, _GAP), cell_rad / _PANE_M)
    glazed = np.where(glazed > JUMP * nearness, glazed, nearness)
    return _range_m(glazed), _range_m(_over_squares(range_m, nearness, in_columns, 0.0))


def _nearness_over_gaps(range_m: Singles, cell_rad: float) -> tuple[Singles, Singles]:
    """Return the inverse of ranges (h, w), 0 for infinite ones, and the same where gaps in columns are closed."""
    nearness = np.asarray(np.float32(1.0) / np.maximum(range_m, np.float32(0.1)), np.float32)
    closed = [_closed(nearness, (height, 1), cell_rad / _PANE_M) for height in _PANE_CELLS]
    return nearness, np.maximum(np.maximum(closed[0], closed[1]), closed[2])


def _over_squares(range_m: Singles, nearness: Singles, in_columns: Singles, least: float) -> Singles:
    squares = np.where(np.isinf(range_m), np.float32(0.0), _closed(nearness, (_GAP, _GAP), least))
    return np.asarray(np.maximum(squares, in_columns))


def _range_m(nearness: Singles) -> Singles:
    with np.errstate(divide="ignore"):
        return np.asarray(np.float32(1.0) / nearness)


def _cornered(range_m: Singles, colours: Colours, ground_m: Singles, cell_rad: float) -> Singles:
    """Return ranges with notches in the corners of near objects filled where the picture joins them to the object."""
    nearness = np.float32(1.0) / np.maximum(range_m, np.float32(0.1))
    standing = np.where(range_m < ON_GROUND * ground_m, nearness, np.float32(0.0))
    standing, notch = cv2.morphologyEx(standing, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)), np.zeros_like(nearness)
    for size in _PANE_CELLS:
        near = _at_least(standing, size * cell_rad / _PANE_M)
        part = part_of(near > 0.0, 2 * size)
        for line in (np.eye(size, dtype=np.uint8), np.ascontiguousarray(np.eye(size, dtype=np.uint8)[::-1])):
            if part is None:
                break
            nearest = cv2.dilate(near[part], line)
            closed = cv2.erode(nearest, line)
            np.maximum(notch[part], closed, out=notch[part], where=JUMP * closed > nearest)
    return joined_to(range_m, colours, notch > JUMP * nearness)


def _closed(nearness: Singles, shape: tuple[int, int], least: float) -> Singles:
    """Return inverse ranges (h, w) with gaps in near objects closed: nearer than ``least`` for each cell of a gap."""
    near = _at_least(nearness, max(shape) * least)
    return np.asarray(np.maximum(nearness, cv2.morphologyEx(near, cv2.MORPH_CLOSE, np.ones(shape, np.uint8))))


def _at_least(values: Singles, least: float) -> Singles:
    """Return values (h, w) with 0 in place of those below ``least``."""
    below = float(np.nextafter(np.float32(least), np.float32(-np.inf)))
    return np.asarray(cv2.threshold(values, below, 0.0, cv2.THRESH_TOZERO)[1])


def _ends(measured: Mask) -> tuple[Grid, Grid]:
    """Return the topmost and the lowest measured row (1, w) of each column, of the nearest column if it has none."""
    has = np.flatnonzero(measured.any(axis=0))
    every = np.arange(measured.shape[1])
    right = np.clip(np.searchsorted(has, every), 0, len(has) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(has[left] - every) < np.abs(has[right] - every), has[left], has[right])
    top = measured.argmax(axis=0)
    bottom = measured.shape[0] - 1 - measured[::-1].argmax(axis=0)
    return top[nearest][None], bottom[nearest][None]


def _ground_m(bundle: Bundle, image: Image, camera: CameraModel, step: int) -> Singles:
    """Return the range (h, w) to flat ground under ``base_link``, infinite where it is not visible or unknown."""
    try:
        pose = np.asarray(bundle.transforms.lookup("base_link", image.frame_id))
    except UnknownTransform:
        return np.full(camera.grid(step).shape[:2], np.inf, np.float32)
    return _level_ground_m(camera, step, pose[2].tobytes())


@lru_cache(maxsize=16)
def _level_ground_m(camera: CameraModel, step: int, up: bytes) -> Singles:
    """Return the range (h, w) to where heights are 0, by the row (4,) of a pose that yields heights."""
    *turn, height_m = np.frombuffer(up).tolist()
    down = -(camera.grid(step) @ np.array(turn))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(down > 1e-3, height_m / down, np.inf).astype(np.float32)
    found.flags.writeable = False
    return found


def _behind(range_m: Singles, top: Grid) -> Singles:
    """Return the range (1, w) of what is farthest around, at the topmost returns; smooth."""
    reached = np.take_along_axis(range_m, top, axis=0)
    width = 2 * (reached.shape[1] // _AROUND) + 1
    return np.asarray(cv2.blur(cv2.dilate(reached, np.ones((1, width), np.uint8)), (width // 2, 1)))
