# SPDX-License-Identifier: Apache-2.0
"""Where pictures may change if an object is removed, and whether it is gone, independently of the code that fills.

Lines of sight are cast to the box over the object's outline and to the ground around it; its silhouette plays no part.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.data.images.codecs import Picture
from mt_nodes.data.transforms import inverse
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.in_pictures import camera_from
from mt_nodes.world.camera.measures import Mask

Flags = npt.NDArray[np.bool_]

#: An object may reach this much above its topmost return, and its shadow so far beside its outline.
_ABOVE_M, _SHADOW_M = 0.6, 4.5
#: Lines of sight are cast for every second pixel; masks are grown by so many pixels.
_STEP_PX, _GROW_PX = 2, 4
#: Correlation of the fine structure of what is there now with what was: as seldom between unlike pictures.
MOST_ALIKE = 0.6
#: Scale of fine structure, and least standard deviation of it that can be compared, as a share of full scale.
_FINE_PX, _LEAST_DETAIL = 4.0, 0.01


def may_change(view: View, outline_m: Floats, plane: Floats, top_m: float, ego_frame_id: str) -> Mask:
    """Return where (H, W, nonzero) a picture may change without an object.

    ``outline_m``: (k, 2) around the object. ``plane``: (5,) the ground under it, as from ``ObjectRemoved.things``.
    ``top_m``: height of its topmost return above the ground.
    """
    camera, to_ego = view.camera(), inverse(camera_from(view, ego_frame_id))
    x, y = np.arange(0, camera.width, _STEP_PX), np.arange(0, camera.height, _STEP_PX)
    rays = camera.grid(1)[::_STEP_PX, ::_STEP_PX].reshape(-1, 3) @ to_ego[:3, :3].T
    eye = to_ego[:3, 3]
    slope, foot = plane[1:3], float(plane[0] - plane[3:] @ plane[1:3])
    up = rays[:, 2] - rays[:, :2] @ slope
    above = float(eye[2] - foot - eye[:2] @ slope)
    may = _meets(eye, rays, outline_m, up, above, top_m + _ABOVE_M) | _ground_near(eye, rays, outline_m, up, above)
    mask = may.reshape(len(y), len(x)).astype(np.uint8)
    whole = np.repeat(np.repeat(mask, _STEP_PX, axis=0), _STEP_PX, axis=1)[: camera.height, : camera.width]
    return np.asarray(255 * cv2.dilate(whole, np.ones((2 * _GROW_PX + 1,) * 2, np.uint8)), np.uint8)


def _meets(eye: Floats, rays: Floats, outline_m: Floats, up: Floats, above: float, top_m: float) -> Flags:
    """Return which rays (n, 3) meet the prism over a convex outline: where they are within all its planes at once."""
    enter, leave = np.zeros(len(rays)), np.full(len(rays), np.inf)
    for distance, speed in _sides(eye, rays, outline_m):
        enter, leave = _within(enter, leave, distance, speed)
    for distance, speed in ((above + 0.05, up), (top_m - above, -up)):
        enter, leave = _within(enter, leave, distance, speed)
    return np.asarray(enter < leave)


def _sides(eye: Floats, rays: Floats, outline_m: Floats) -> list[tuple[float, Floats]]:
    """Return for each side of an outline the eye's distance inwards of it, and how fast rays go inwards."""
    x, y = outline_m.T
    turns = float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())
    ring = outline_m if turns > 0.0 else outline_m[::-1]
    sides = []
    for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        inward = np.array([a[1] - b[1], b[0] - a[0]]) / np.linalg.norm(b - a)
        sides.append((float((eye[:2] - a) @ inward), rays[:, :2] @ inward))
    return sides


def _within(enter: Floats, leave: Floats, distance: float, speed: Floats) -> tuple[Floats, Floats]:
    """Return the stretch of rays within one more half space: distance + t · speed ≥ 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        at = -distance / speed
    enter = np.where(speed > 0.0, np.maximum(enter, at), enter)
    leave = np.where(speed < 0.0, np.minimum(leave, at), leave)
    return enter, np.where((speed == 0.0) & (distance < 0.0), -np.inf, leave)


def _ground_near(eye: Floats, rays: Floats, outline_m: Floats, up: Floats, above: float) -> Flags:
    """Return which rays (n, 3) meet the ground near an outline."""
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(up < -1e-6, -above / up, np.nan)
        ground = eye[:2] + rays[:, :2] * at[:, None]
        low, high = outline_m.min(axis=0) - _SHADOW_M, outline_m.max(axis=0) + _SHADOW_M
        return np.asarray(((ground >= low) & (ground <= high)).all(axis=1))


def likeness(old: Picture, new: Picture, where: Mask) -> float | None:
    """Return the correlation of the fine structure of two pictures within a mask (H, W); None without structure."""
    inside = where != 0
    fine = []
    for picture in (old, new):
        luma = picture.luma().astype(np.float32) / picture.full_scale
        fine.append((luma - cv2.GaussianBlur(luma, (0, 0), _FINE_PX))[inside])
    if len(fine[0]) < 2 or min(float(f.std()) for f in fine) < _LEAST_DETAIL:
        return None
    return float(np.corrcoef(*fine)[0, 1])
