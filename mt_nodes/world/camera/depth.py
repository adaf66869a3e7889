# SPDX-License-Identifier: Apache-2.0
"""Depth of what a camera sees, from the clouds of the same instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.relight import coarse_light, grey

Singles = npt.NDArray[np.float32]
Grid = npt.NDArray[np.int64]
Cells = npt.NDArray[np.bool_]
#: A cell is this many pixels wide in a picture of 1,280 columns, and proportionally wider in a wider one.
_CELLS_ACROSS = 320
#: A cloud that measures fewer of the picture's columns says too little about the rest.
_LEAST_COLUMNS = 0.6
#: Beams this close to the topmost one are at the sensor's upper limit: the surfaces that they hit may continue above.
_TOP_BEAMS_RAD = np.radians(1.0)
_FAR_M = 15.0
#: Gaps of far cells narrower than this are closed.
_GAP = 7
#: Height of windows of cars, in metres (assumed), and in cells for cars from far to near.
_PANE_M, _PANE_CELLS = 0.8, (9, 17, 33)
#: Sky has at least this light, and this share of its brightest part's: assumptions.
_LEAST_SKY, _LIKE_SKY = 0.1, 0.4
#: A wall's light varies by less than this share; a cell that is dimmer than the sky by less than this may be sky.
_ALIKE, _DIMMER = 0.15, 0.8


@dataclass(frozen=True, eq=False)
class DepthMap:
    """Depth per camera cell.

    Attributes:
        range_m: (h, w) along the ray, infinite for the sky. Small gaps in near objects are closed.
        through_m: (h, w) the same with gaps. far_m: (h, w) the same to the farthest return of a cell: larger where an
            edge divides it. pane_m: (h, w) the same to panes of near objects (:func:`panes_m`).
        measured: (h, w) whether a return lies in the cell; elsewhere its range is a neighbour's, or the ground's.
        step_px: width and height of a cell.
    """

    range_m: Singles
    measured: npt.NDArray[np.bool_]
    step_px: int
    through_m: Singles
    far_m: Singles
    pane_m: Singles

    def middles_px(self) -> npt.NDArray[np.float64]:
        """Return x and y (h, w, 2) of the centres of the cells."""
        y, x = (np.arange(n) * self.step_px + (self.step_px - 1) / 2.0 for n in self.range_m.shape)
        return np.stack(np.meshgrid(x, y), axis=-1)

    def in_picture(self, cells: npt.NDArray[np.generic], size: tuple[int, int], smooth: bool = True) -> npt.NDArray:  # type: ignore[type-arg]
        """Return values of the cells (h, w) for every pixel of a picture of ``size`` (height, width)."""
        how = cv2.INTER_LINEAR if smooth else cv2.INTER_NEAREST
        rows, columns = (n * self.step_px for n in cells.shape[:2])
        return np.asarray(cv2.resize(cells, (columns, rows), interpolation=how))[: size[0], : size[1]]


def cell_px(width_px: int) -> int:
    """Return the width of a cell of a picture of some width."""
    return max(1, round(width_px / _CELLS_ACROSS))


_known: WeakKeyDictionary[Image, DepthMap] = WeakKeyDictionary()


def depth_of(bundle: Bundle, image: Image, camera: CameraModel) -> DepthMap:
    """Return the depth of an image; cached per image.

    The nearest return of a cell counts; cells between returns get their nearest neighbour's, and small gaps within near
    objects are closed. Above the topmost return of a column is sky if the picture looks like it; else the surface that
    the topmost beams hit continues upward, and cells that no beam hit are as far away as the cloud reaches. Below the
    lowest return is flat ground, if the transforms give the camera's height.

    Raises:
        NotApplicable: no cloud, no transform to it, or one that covers too little of the picture.
    """
    if (known := _known.get(image)) is None:
        known = _known[image] = _measure(bundle, image, camera)
    return known


def _measure(bundle: Bundle, image: Image, camera: CameraModel) -> DepthMap:
    step = cell_px(camera.width)
    shape = -(-camera.height // step), -(-camera.width // step)
    range_m, far_m = np.full(shape, np.inf, np.float32), np.zeros(shape, np.float32)
    on_top = np.zeros(shape, bool)
    for cloud in bundle.known_clouds:
        _project(cloud, _to_camera(bundle, cloud, image), camera, step, (range_m, far_m), on_top)
    measured = np.isfinite(range_m)
    covered = float(measured.any(axis=0).mean())
    if covered < _LEAST_COLUMNS:
        clouds = ", ".join(c.topic for c in bundle.known_clouds) or "no cloud"
        expected = f"expected {_LEAST_COLUMNS:.0%} or more"
        raise NotApplicable(f"{image.topic}: returns of {clouds} lie in {covered:.0%} of its columns, {expected}")
    filled = _filled(range_m, measured)
    top, bottom = _ends(measured)
    row = np.arange(shape[0])[:, None]
    above = row < top
    continues = np.take_along_axis(on_top, top, axis=0)
    farthest = np.float32(np.quantile(range_m[measured], 0.99))
    filled[above & ~continues] = farthest
    filled[above & _sky(coarse_light(decode(image), shape, step), above, top, continues)] = np.inf
    ground = _ground_m(bundle, image, camera, step)
    below = (row > bottom) & np.isfinite(ground)
    filled[below] = np.minimum(filled, ground)[below]
    far_m = np.where(measured, np.maximum(far_m, filled), filled)
    panes = panes_m(filled, step / float(camera.k[0, 0]))
    return DepthMap(_closed(filled), measured, step, filled, far_m, panes)


def _to_camera(bundle: Bundle, cloud: Cloud, image: Image) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(bundle.transforms.lookup(image.frame_id, cloud.frame_id))
    except UnknownTransform as error:
        raise NotApplicable(f"{image.topic}: where {cloud.topic} lies is not known: {error}") from error


def _project(
    cloud: Cloud,
    to_camera: npt.NDArray[np.float64],
    camera: CameraModel,
    step: int,
    extremes_m: tuple[Singles, Singles],
    on_top: npt.NDArray[np.bool_],
) -> None:
    """Put the nearest and the farthest return into each cell, and whether the nearest is of the topmost beams."""
    range_m, far_m = extremes_m
    own = cloud.xyz[_before_camera(cloud.xyz, to_camera, camera)]
    in_camera = move(to_camera, own)
    pixels = camera.project(in_camera)
    column, row = np.floor((pixels + 0.5) / step).T
    with np.errstate(invalid="ignore"):
        inside = np.flatnonzero((column >= 0) & (column < range_m.shape[1]) & (row >= 0) & (row < range_m.shape[0]))
    if not inside.size:
        return
    cell = row[inside].astype(np.int64) * range_m.shape[1] + column[inside].astype(np.int64)
    x, y, z = in_camera.T
    ranges = np.sqrt(x * x + y * y + z * z)[inside].astype(np.float32)
    of_cells, on_top_of_cells = range_m.reshape(-1), on_top.reshape(-1)
    np.minimum.at(of_cells, cell, ranges)
    np.maximum.at(far_m.reshape(-1), cell, ranges)
    nearest = np.flatnonzero(of_cells[cell] == ranges)
    x, y, z = own[inside[nearest]].T.astype(np.float64)
    high = z > np.tan(_topmost_rad(cloud.xyz) - _TOP_BEAMS_RAD) * np.sqrt(x * x + y * y)
    on_top_of_cells[cell[nearest]] = high


def _before_camera(
    xyz: npt.NDArray[Any], to_camera: npt.NDArray[np.float64], camera: CameraModel
) -> npt.NDArray[np.int64]:
    """Return the rows of returns in the cone around the picture, in the cloud's own precision."""
    x, y, z = xyz.T
    eye = -to_camera[:3, :3].T @ to_camera[:3, 3]
    with np.errstate(invalid="ignore", over="ignore"):
        dx, dy, dz = (axis - float(at) for axis, at in zip((x, y, z), eye, strict=True))
        a, b, c = to_camera[2, :3].tolist()
        ahead = dx * a + dy * b + dz * c
        within = ahead * abs(ahead) >= (0.99 * np.cos(camera.widest_rad)) ** 2 * (dx * dx + dy * dy + dz * dz)
    # A return at the sensor itself does not count.
    return np.flatnonzero(within & ((x != 0.0) | (y != 0.0)))


def _topmost_rad(xyz: npt.NDArray[Any]) -> float:
    """Return the elevation of the sensor's topmost beams, from far returns: offsets of the beams raise near ones."""
    x, y, z = xyz.T
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        flat = np.sqrt(x * x + y * y)
        slope = z / flat
    known = np.isfinite(slope)
    far = slope[known & (flat > _FAR_M)]
    return float(np.arctan(np.quantile(far if len(far) else slope[known], 0.995)))


def _filled(range_m: Singles, measured: npt.NDArray[np.bool_]) -> Singles:
    """Return ranges with every cell's nearest measured one."""
    _, label = cv2.distanceTransformWithLabels(
        (~measured).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    by_label = np.zeros(int(label.max()) + 1, np.float32)
    by_label[label[measured]] = range_m[measured]
    return np.asarray(by_label[label])


def panes_m(range_m: Singles, cell_rad: float) -> Singles:
    """Return ranges (h, w) with the gaps in near objects that are as small as car windows: taken for panes (assumed).

    Gaps into which a square of seven cells does not fit, and gaps of less than 0.8 m between what is above and below.
    """
    pane_m = _closed(range_m)
    nearness = _nearness(range_m)
    for height in _PANE_CELLS:
        kernel = np.ones((height, 1), np.uint8)
        far = np.float32(height * cell_rad / _PANE_M)  # farther objects have larger gaps of so many cells
        closed = cv2.morphologyEx(np.where(nearness >= far, nearness, np.float32(0.0)), cv2.MORPH_CLOSE, kernel)
        with np.errstate(divide="ignore"):
            np.minimum(pane_m, np.float32(1.0) / closed, out=pane_m)
    return pane_m


def _nearness(range_m: Singles) -> Singles:
    return np.where(np.isinf(range_m), np.float32(0.0), 1.0 / np.maximum(range_m, np.float32(0.1)))


def _closed(range_m: Singles) -> Singles:
    """Return ranges without small gaps in near objects, such as windows that light passes through."""
    nearness = _nearness(range_m)
    closed = cv2.morphologyEx(nearness, cv2.MORPH_CLOSE, np.ones((_GAP, _GAP), np.uint8))
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(np.isinf(range_m), np.inf, 1.0 / closed), np.float32)


def _sky(light: Singles, above: Cells, top: Grid, continues: Cells) -> Cells:
    """Return which cells above all returns look like sky: as bright as its brightest part, not red.

    A cell with the colour of the surface that the column's topmost beams hit is no sky, unless that is as bright as the
    sky: a picture cannot tell; white walls above the sensor's view count as sky.

    Args:
        light: (h, w, 3) of the cells, red, green, blue.
        above: (h, w) the cells in question.
        top: (1, w) each column's topmost measured row.
        continues: (1, w) whether the surface hit there may continue upward.
    """
    if not above.any():
        return above
    bright = grey(light)
    reference = max(float(np.quantile(bright[above], 0.95)), _LEAST_SKY)
    like_sky = (bright > _LIKE_SKY * reference) & (light[..., 2] >= 0.8 * light[..., 0])
    # One cell lower, because the topmost may show the edge.
    row = np.minimum(top + 1, light.shape[0] - 1)
    hit = np.take_along_axis(light, row[..., None], axis=0)
    similar = np.abs(light - hit).max(axis=-1) < _ALIKE * hit.max(axis=-1)
    like_sky &= ~(continues & (np.take_along_axis(bright, row, axis=0) < _DIMMER * reference) & similar)
    return np.asarray(cv2.medianBlur(like_sky.astype(np.uint8), 5) != 0)


def _ends(measured: npt.NDArray[np.bool_]) -> tuple[Grid, Grid]:
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
    grid = camera.grid(step)
    try:
        pose = bundle.transforms.lookup("base_link", image.frame_id)
    except UnknownTransform:
        return np.full(grid.shape[:2], np.inf, np.float32)
    down = -(grid @ pose[2, :3])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(down > 1e-3, pose[2, 3] / down, np.inf).astype(np.float32)
