# SPDX-License-Identifier: Apache-2.0
"""Ranges of a cloud's returns in the cells of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.world.camera.free_space import Beams
from mt_nodes.world.camera.model import CameraModel

#: Beams this close to the topmost one are at the sensor's upper limit: the surfaces that they hit may continue above.
_TOP_BEAMS_RAD = np.radians(1.0)
_FAR_M = 15.0
#: Elevations above so high a quantile are the topmost beams'; those above the lower one, of every so manieth, hold it.
_TOPMOST, _HIGH, _SOME = 0.995, 0.98, 17


def to_camera(bundle: Bundle, cloud: Cloud, image: Image) -> Floats:
    """Return the 4×4 from a cloud's frame to an image's. Raises NotApplicable: it is not known."""
    try:
        return np.asarray(bundle.transforms.lookup(image.frame_id, cloud.frame_id))
    except UnknownTransform as error:
        raise NotApplicable(f"{image.topic}: where {cloud.topic} lies is not known: {error}") from error


def project_returns(
    cloud: Cloud, to_image: Floats, camera: CameraModel, step: int, extremes_m: tuple[Singles, Singles], on_top: Mask
) -> Beams:
    """Put the nearest and the farthest return into each cell, and whether the nearest is of the topmost beams.

    Returns:
        The returns in the picture.
    """
    range_m, far_m = extremes_m
    known = _known.setdefault(cloud, {})
    key = camera, to_image.tobytes(), step
    if key not in known:
        known[key] = _returns_in(cloud, to_image, camera, step, range_m.shape)
    seen = known[key]
    if not seen.cell.size:
        return seen.beams
    of_cells, ranges = range_m.reshape(-1), seen.beams.range_m
    np.minimum.at(of_cells, seen.cell, ranges)
    np.maximum.at(far_m.reshape(-1), seen.cell, ranges)
    nearest = np.flatnonzero(of_cells[seen.cell] == ranges)
    on_top.reshape(-1)[seen.cell[nearest]] = seen.on_top[nearest]
    return seen.beams


@dataclass(frozen=True, eq=False)
class _Returns:
    """Returns of a cloud in a picture: beams (n), cells (n,), and whether they are of the topmost beams (n,)."""

    beams: Beams
    cell: Ints
    on_top: Mask


#: By camera, pose and size of a cell: frames between two instants look at the same cloud.
_known: WeakKeyDictionary[Cloud, dict[tuple[CameraModel, bytes, int], _Returns]] = WeakKeyDictionary()
_topmost: WeakKeyDictionary[Cloud, float] = WeakKeyDictionary()


def _returns_in(cloud: Cloud, to_image: Floats, camera: CameraModel, step: int, shape: tuple[int, ...]) -> _Returns:
    axes = np.ascontiguousarray(cloud.xyz.T)  # along each axis, as processors like it
    own = axes.take(_before_camera(axes, to_image, camera), axis=1)
    in_camera = move(to_image, own.T)
    pixels = camera.project(in_camera)
    column, row = np.floor((pixels + 0.5) / step).T
    with np.errstate(invalid="ignore"):
        inside = np.flatnonzero((column >= 0) & (column < shape[1]) & (row >= 0) & (row < shape[0]))
    seen, column = in_camera.T.take(inside, axis=1).T, column[inside].astype(np.int64)
    cell = row[inside].astype(np.int64) * shape[1] + column
    ranges = np.sqrt(np.einsum("ij,ij->i", seen, seen)).astype(np.float32)
    beams = Beams(np.asarray(to_image[:3, 3], np.float64), seen, ranges, column)
    if not inside.size:
        return _Returns(beams, cell, np.zeros(0, bool))
    if cloud not in _topmost:
        _topmost[cloud] = _topmost_rad(*axes)
    x, y, z = own.take(inside, axis=1).astype(np.float64)
    return _Returns(beams, cell, z > np.tan(_topmost[cloud] - _TOP_BEAMS_RAD) * np.sqrt(x * x + y * y))


def _before_camera(axes: npt.NDArray[Any], to_image: Floats, camera: CameraModel) -> Ints:
    """Return the rows of returns (3, N) in the cone around the picture, in the cloud's own precision."""
    x, y = axes[:2]
    eye = -to_image[:3, :3].T @ to_image[:3, 3]
    with np.errstate(invalid="ignore", over="ignore"):
        dx, dy, dz = (axis - float(at) for axis, at in zip(axes, eye, strict=True))
        a, b, c = to_image[2, :3].tolist()
        ahead = dx * a + dy * b + dz * c
        widest = float(np.cos(camera.widest_rad))  # below 0 for a fisheye that sees behind itself
        least = np.copysign((widest - 0.01 * abs(widest)) ** 2, widest)
        within = ahead * abs(ahead) >= least * (dx * dx + dy * dy + dz * dz)
    # A return at the sensor itself does not count.
    return np.flatnonzero(within & ((x != 0.0) | (y != 0.0)))


def _topmost_rad(x: npt.NDArray[Any], y: npt.NDArray[Any], z: npt.NDArray[Any]) -> float:
    """Return the elevation of the sensor's topmost beams, from far returns: offsets of the beams raise near ones."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        flat = np.sqrt(x * x + y * y)
        far = np.flatnonzero(flat > _FAR_M)
        slope = z[far] / flat[far]
        slope = slope[np.isfinite(slope)]
        if not len(slope):
            slope = z / flat
            slope = slope[np.isfinite(slope)]
    high = slope[slope >= np.quantile(slope[::_SOME], _HIGH)]
    above = (1.0 - _TOPMOST) * (len(slope) - 1)  # as many are as high, or higher
    if above >= len(high) - 1:
        return float(np.arctan(np.quantile(slope, _TOPMOST)))
    return float(np.arctan(np.quantile(high, 1.0 - above / (len(high) - 1))))
