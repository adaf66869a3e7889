# SPDX-License-Identifier: Apache-2.0
"""Where an object added to a scene may be visible in pictures, found independently of the rendering.

The pixels' lines of sight are cast to the LiDAR's body, one by one, and to the ground plane under it, where the shadow
of its vertices falls; its vertices, projected into the picture, must agree with that. Pixels in front of which a LiDAR
return lies must not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Cloud, Image
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.sight import RaycastBody

_RAYS = np.dtype([("x", "<f8"), ("y", "<f8"), ("z", "<f8")])
_FAR_M = 1000.0
#: Reach of blur around an outline, in pixels, and of the dark spot around the feet, in metres.
_BLUR_PX, _SPOT_M = 7, 0.6
#: Reach of a shadow's soft edge, in metres, and of the rounding of its cells.
_SOFT_M = 0.15
#: Margins by which a return is nearer than the object and above its ground (more with the distance between them):
#: surely an occluder, or possibly one.
_SURELY, _PERHAPS = (1.0, 0.8, 0.05), (0.1, 0.1, 0.0)
#: Returns up to so many depth cells apart have nothing else between them.
_CELLS = 2
_MANY_PX, _FEW_PX = 250_000, 20_000
#: A projection is off from here on: as far as the corner of the next pixel, as lines of sight of whole pixels tell.
_OFF_PX = 1.5


@dataclass(frozen=True, eq=False)
class Sight:
    """Where (H, W, nonzero) pixels may change, and where the object must be visible.

    ``off``: share of the object's vertices in the picture that the projection puts where no line of sight meets it.
    """

    may: Mask
    must: Mask
    off: float = 0.0


_known: WeakKeyDictionary[Image, tuple[tuple[Any, ...], Sight]] = WeakKeyDictionary()


def sight_of(view: View, body: RaycastBody, pose: Matrix, low_feet_m: Floats, to_sun: Floats | None = None) -> Sight:
    """Cast the lines of sight of an image to an object; the last result for an image is cached.

    ``pose``: (4, 4) object to camera. ``low_feet_m``: (2, 2) least and greatest x and y of the object's parts near the
    ground. ``to_sun``: (3,) direction of the sun in the object's frame; None for no shadow of it.
    """
    key = (body, pose.tobytes(), None if to_sun is None else to_sun.tobytes())
    known = _known.get(view.image)
    if known is None or known[0] != key:
        known = _known[view.image] = key, _sight(view, body, pose, low_feet_m, to_sun)
    return known[1]


def _sight(view: View, body: RaycastBody, pose: Matrix, low_feet_m: Floats, to_sun: Floats | None) -> Sight:
    camera, shadow = view.camera(), _shadow(body, to_sun)
    x, y = _pixels_about(camera, body, pose, shadow)
    rays = camera.directions(np.stack(np.meshgrid(x, y), axis=-1)).reshape(-1, 3)
    range_m = _cast(rays, body, pose)
    if len(rays) < _FEW_PX:  # what is thinner than a pixel lies between the lines of sight
        for aside in (-1.0 / 3.0, 1.0 / 3.0):
            between = camera.directions(np.stack(np.meshgrid(x + aside, y), axis=-1)).reshape(-1, 3)
            range_m = np.minimum(range_m, _cast(between, body, pose))
    hit = np.isfinite(range_m)
    nearest_m = np.where(hit, range_m, range_m.min())
    surely, perhaps = (_before(view, camera, pose, rays, nearest_m, (x, y), margin) for margin in (_SURELY, _PERHAPS))
    may = hit | _near_feet(pose, rays, low_feet_m) | _in_shadow(pose, rays, shadow)
    size, step = (len(y), len(x)), int(x[1] - x[0]) if len(x) > 1 else 1
    reach = np.ones((2 * _BLUR_PX // step + 3,) * 2, np.uint8)
    wide = cv2.dilate(may.reshape(size).astype(np.uint8), reach)
    hidden = cv2.erode(surely.reshape(size).astype(np.uint8), reach)
    doubtful = cv2.dilate(perhaps.reshape(size).astype(np.uint8), reach)
    must = cv2.erode(hit.reshape(size).astype(np.uint8), np.ones((3, 3), np.uint8)) & (1 - doubtful)
    off = _off(camera, body, pose, cv2.dilate(hit.reshape(size).astype(np.uint8), np.ones((3, 3), np.uint8)), x, y)
    return Sight(_in_picture(wide & (1 - hidden), x, y, camera), _in_picture(must, x, y, camera), off)


def _cast(rays: Floats, body: RaycastBody, pose: Matrix) -> Floats:
    """Return the range (N,) at which rays (N, 3) meet the object, infinite for none."""
    hits = body.cast(Cloud("", 0, "", (rays * _FAR_M).view(_RAYS).reshape(-1)), pose)
    range_m = np.full(len(rays), np.inf)
    range_m[hits.rows] = hits.range_m
    return range_m


def _off(
    camera: CameraModel, body: RaycastBody, pose: Matrix, hit: npt.NDArray[np.uint8], x: Floats, y: Floats
) -> float:
    """Return the share of the body's vertices in the picture that no line of sight (h, w) hits, nor their own one."""
    step = x[1] - x[0] if len(x) > 1 else 1.0
    vertices_m = move(pose, body.vertices_m)
    pixels = camera.project(vertices_m)
    inside = (pixels >= 0.0).all(axis=1) & (pixels[:, 0] < camera.width - 1) & (pixels[:, 1] < camera.height - 1)
    columns, rows = np.rint((pixels[inside] - (x[0], y[0])) / step).astype(np.int64).T
    known = (columns >= 0) & (columns < len(x)) & (rows >= 0) & (rows < len(y))
    missed = np.flatnonzero(inside)[known][hit[rows[known], columns[known]] == 0]
    beside = np.count_nonzero(~known)
    if len(missed):
        beside += np.count_nonzero(_beside(camera, body, pose, vertices_m[missed], pixels[missed]))
    return beside / max(1, len(rows))


def _beside(
    camera: CameraModel, body: RaycastBody, pose: Matrix, vertices_m: Floats, pixels: Floats
) -> npt.NDArray[np.bool_]:
    """Return which vertices (N, 3) are off the lines of sight of the pixels (N, 2) onto which they are projected.

    The tip of a cone is thinner than a pixel, so that the lines of whole pixels pass it on both sides.
    """
    sight, next_pixel = camera.directions(pixels), camera.directions(pixels + np.array([1.0, 0.0]))
    range_m = np.linalg.norm(vertices_m, axis=1)
    off_m = body.off_surface_m(sight * range_m[:, None], pose)
    return np.asarray(off_m > _OFF_PX * range_m * np.linalg.norm(next_pixel - sight, axis=1))


def _shadow(body: RaycastBody, to_sun: Floats | None) -> shapely.Polygon | None:
    """Return the outline around the shadows of all vertices of a body on its ground, with the feet."""
    if to_sun is None:
        return None
    xyz = body.vertices_m
    fall = xyz[:, :2] - np.maximum(xyz[:, 2:], 0.0) * (to_sun[:2] / to_sun[2])
    return shapely.MultiPoint(fall).convex_hull.buffer(_SOFT_M)


def _in_shadow(pose: Matrix, rays: Floats, shadow: shapely.Polygon | None) -> npt.NDArray[np.bool_]:
    """Return which rays (N,) meet the ground within an outline on it."""
    if shadow is None:
        return np.zeros(len(rays), bool)
    ground, down = _on_ground(pose, rays)
    return np.asarray(down & shapely.contains_xy(shadow, np.nan_to_num(ground)))


def _on_ground(pose: Matrix, rays: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return where rays (N, 3) meet the ground (N, 2) in the object's frame, and which of them do."""
    back = np.linalg.inv(pose)
    eye, along = back[:3, 3], rays @ back[:3, :3].T
    with np.errstate(divide="ignore", invalid="ignore"):
        ground = eye[:2] + along[:, :2] * (-eye[2] / along[:, 2])[:, None]
    return ground, along[:, 2] < 0.0


def _pixels_about(
    camera: CameraModel, body: RaycastBody, pose: Matrix, shadow: shapely.Polygon | None
) -> tuple[Floats, Floats]:
    """Return columns and rows of the pixels around the object's box and shadow, every second one if there are many.

    One beyond each border, too: an outermost pixel shows what passes between its centre and the next one's.
    """
    low, high = body.low_m - _SPOT_M, body.high_m + _SPOT_M / 2.0
    corners = np.array([[a, b, c] for a in (low[0], high[0]) for b in (low[1], high[1]) for c in (low[2], high[2])])
    if shadow is not None:
        rim = shapely.get_coordinates(shadow.segmentize(0.5))
        corners = np.concatenate([corners, np.column_stack([rim, np.zeros(len(rim))])])
    pixels = camera.project(move(pose, corners))
    pixels = pixels if np.isfinite(pixels).all() else np.array([[0.0, 0.0], [camera.width, camera.height]])
    margin = 2.0 * _BLUR_PX
    left, top = np.clip(pixels.min(axis=0) - margin, -1, (camera.width, camera.height)).astype(int)
    right, bottom = np.clip(pixels.max(axis=0) + margin, -1, (camera.width, camera.height)).astype(int)
    step = 2 if (right - left) * (bottom - top) > _MANY_PX else 1
    x, y = (np.arange(first, last + step, step, dtype=np.float64) for first, last in ((left, right), (top, bottom)))
    return x, y


def _near_feet(pose: Matrix, rays: Floats, feet_m: Floats) -> npt.NDArray[np.bool_]:
    """Return which rays (N,) meet the ground near the object's feet."""
    ground, down = _on_ground(pose, rays)
    with np.errstate(invalid="ignore"):
        near = (ground >= feet_m[0] - _SPOT_M) & (ground <= feet_m[1] + _SPOT_M)
    return np.asarray(near.all(axis=1) & down)


def _before(
    view: View,
    camera: CameraModel,
    pose: Matrix,
    rays: Floats,
    range_m: Floats,
    pixels: tuple[Floats, Floats],
    margins: tuple[float, float, float],
) -> npt.NDArray[np.bool_]:
    """Return which rays to an object (N,) have an occluder, with a margin: see :data:`_SURELY`."""
    depth = depth_of(view.bundle, view.image, camera)
    near = cv2.dilate(depth.measured.astype(np.uint8), np.ones((2 * _CELLS + 1,) * 2, np.uint8)) != 0
    x, y = pixels
    rows, columns = (np.clip(a.astype(int), 0, None) // depth.step_px for a in (y, x))
    rows, columns = (np.minimum(a, n - 1) for a, n in zip((rows, columns), near.shape, strict=True))
    # An edge or a pane leaves something to see: surely hidden is what lies behind every return of a cell.
    ranges_m = depth.pane_m if margins is _PERHAPS else depth.far_m
    measured, known = (a[rows[:, None], columns].ravel() for a in (ranges_m, near))
    nearer = (known | (margins is _PERHAPS)) & (measured < range_m - margins[0])
    height = (rays * np.where(nearer, measured, 0.0)[:, None] - pose[:3, 3]) @ pose[:3, 2]
    with np.errstate(invalid="ignore"):
        return np.asarray(nearer & (height > margins[1] + margins[2] * np.where(nearer, range_m - measured, 0.0)))


def _in_picture(mask: npt.NDArray[np.uint8], x: Floats, y: Floats, camera: CameraModel) -> Mask:
    """Return a mask of the whole picture (H, W) from a mask of some of its columns and rows."""
    whole = np.zeros((camera.height, camera.width), np.uint8)
    step = int(x[1] - x[0]) if len(x) > 1 else 1
    if step > 1:
        mask = np.repeat(np.repeat(mask, step, axis=0), step, axis=1)
    top, left = int(y[0]), int(x[0])
    part = mask[max(0, -top) : camera.height - top, max(0, -left) : camera.width - left]
    top, left = max(0, top), max(0, left)
    whole[top : top + part.shape[0], left : left + part.shape[1]] = 255 * part
    return whole
