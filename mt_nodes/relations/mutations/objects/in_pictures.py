# SPDX-License-Identifier: Apache-2.0
"""Renders an added object into pictures: in the scene's light, on its ground.

The object is drawn where the camera sees it, behind nearer LiDAR returns, in the light and colour balance of the ground
around its feet, with the camera's own blur and a soft dark spot under it; it casts no shadow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import ImageBox
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.data.messages import Image
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.materials import PANE
from mt_nodes.world.scene.object_rendering import Figure, Rendering, Singles, Window, directions, render

Floats = npt.NDArray[np.float64]

_GAMMA = 2.2
#: Mean albedo of asphalt after five years (Lawrence Berkeley National Laboratory, Heat Island Group: 0.12).
_GROUND_ALBEDO = 0.12
#: Bounds of the brightness of white: relative to full scale, and to the picture's brightest tenth.
_BRIGHTEST, _DARKEST = 1.5, 0.5
#: Share of light that a body takes from the ground right under it, and width of the soft edge of that spot, in metres.
_UNDER, _PENUMBRA_M = 0.75, 0.14
#: An occluder is nearer than the object by this, and this much above the ground under the object (more with the
#: distance between them, because ground is no plane).
_BEFORE_M, _ABOVE_GROUND_M, _UNEVEN = 0.3, 0.25, 0.02
#: Share of visible light that comes through two panes of a recorded car, into it and out of it.
TWO_PANES = PANE.visible_transmission**2
#: Fewer pixels than this do not count as visible.
LEAST_PIXELS = 12.0


@dataclass(frozen=True, eq=False)
class ObjectImage:
    """What one picture shows of an added object.

    Attributes:
        window: rows and columns of the picture that change; the arrays (h, w) cover them.
        sight: share of each pixel that shows the object.
        shadow: window of the dark spot under it, and its darkness, 0 to 1; None if out of sight.
        rendering: the object, with its own window within this one at ``at``.
        box: its place, and its visible share.
    """

    window: Window
    sight: Singles
    shadow: tuple[Window, Singles] | None
    rendering: Rendering
    at: Window
    box: ImageBox


_known: WeakKeyDictionary[Image, tuple[tuple[Any, ...], ObjectImage | None]] = WeakKeyDictionary()


def shot_of(view: View, figure: Figure, pose: Matrix, label: str, ego_frame_id: str) -> ObjectImage | None:
    """Return what an image shows of an object at a ``pose`` (4, 4) of the ego's frame; None for nothing.

    The last result for an image is cached: the draw and its application need the same one.

    Raises:
        NotApplicable: the camera is not calibrated, or its pose or the depth is unknown.
    """
    key = (figure, pose.tobytes(), label, ego_frame_id)
    known = _known.get(view.image)
    if known is None or known[0] != key:
        known = _known[view.image] = key, _shot(view, figure, pose, label, ego_frame_id)
    return known[1]


def _shot(view: View, figure: Figure, pose: Matrix, label: str, ego_frame_id: str) -> ObjectImage | None:
    camera, pose = view.camera(), camera_from(view, ego_frame_id) @ pose
    rendering = render(figure, pose, camera)
    if rendering is None:
        return None
    spot = _ground_spot(figure, pose, camera)
    window = _around([rendering.window, *([] if spot is None else [spot[0]])])
    clear = _clear(view, camera, pose, rendering.window, rendering.direction, rendering.range_m, rendering.step_px)
    sight = np.zeros(_size(window), np.float32)
    sight[at := _within(rendering.window, window)] = rendering.cover * rendering.enlarged(clear)
    shadow = None
    if spot is not None:
        where, dark = spot
        viewed = directions(camera, where)
        dark *= _clear(view, camera, pose, where, viewed, _ground_range(pose, viewed))
        shadow = _within(where, window), dark
    total = float(rendering.cover.sum())
    visible = rendering.inside * min(1.0, float(sight.sum()) / total) if total > 0.0 else 0.0
    return ObjectImage(
        window, sight, shadow, rendering, at, ImageBox(view.image.topic, rendering.box_px, visible, label)
    )


def with_object(view: View, shot: ObjectImage) -> Pixels:
    """Return the picture's pixels with the object in it."""
    pixels = view.picture.pixels.copy()
    piece, full = pixels[shot.window], float(view.picture.full_scale)
    if shot.shadow is not None:
        at, dark = shot.shadow
        ground = piece[at]
        left = (1.0 - _UNDER * dark) ** (1.0 / _GAMMA)
        ground[...] = np.rint(ground * (left if ground.ndim == 2 else left[..., None]))
    blur = blur_px(view.picture, shot.window)
    colour = _blurred(_painted(view.picture, shot), blur)
    sight = _blurred(shot.sight, blur)
    sight[sight < 0.5 / full] = 0.0
    piece[...] = _blended(colour, piece, sight)
    return pixels


def _painted(picture: Picture, shot: ObjectImage) -> Pixels:
    """Return the object's colours (h, w[, 3]) in the scene's light, in a picture's own samples."""
    rendering, full = shot.rendering, float(picture.full_scale)
    lit = np.minimum(rendering.light * _light(picture, shot), np.float32(1.0))
    cv2.pow(lit, 1.0 / _GAMMA, lit)
    if rendering.glow is not None:
        np.maximum(lit, rendering.glow, out=lit)
    if picture.order != "rgb":
        lit = np.asarray(cv2.cvtColor(lit, cv2.COLOR_RGB2GRAY if picture.order == "mono" else cv2.COLOR_RGB2BGR))
    samples = cv2.convertScaleAbs(lit, alpha=full) if full < 256 else np.rint(lit * full).astype(picture.pixels.dtype)
    whole = np.zeros((*shot.sight.shape, *samples.shape[2:]), samples.dtype)
    whole[shot.at] = rendering.enlarged(samples)
    return whole


def _blended(some: Pixels, others: Pixels, share: Singles) -> Pixels:
    """Return pixels with ``share`` (h, w) of each from ``some``, the rest from ``others``, unchanged at share 0."""
    if some.dtype == np.uint8:
        return np.asarray(cv2.blendLinear(some, np.ascontiguousarray(others), share, 1.0 - share))
    share = share if some.ndim == 2 else share[..., None]
    return np.asarray(np.rint(some * share + others * (1.0 - share)), some.dtype)


def blur_px(picture: Picture, window: Window) -> float:
    """Return the standard deviation in pixels of the camera's blur, measured on the sharpest edges around a window.

    A sharp edge blurred by s, blurred again by 1, has a gradient s / sqrt(s² + 1) times as steep (S. Zhuo and T. Sim,
    Defocus map estimation from a single image, Pattern
    Recognition 44, 2011, pp. 1852-1858).
    """
    rows, columns = (slice(max(0, s.start - 40), s.stop + 40) for s in window)
    luma = picture.luma()[rows, columns].astype(np.float32)
    blurred = cv2.GaussianBlur(luma, (0, 0), 1.0)
    first, second = (np.abs(np.diff(a, axis=1)) for a in (luma, blurred))
    steep = first >= max(float(np.quantile(first[::2, ::2], 0.99)), 1.0)
    if not steep.any():
        return 0.6
    ratio = float(np.median(first[steep] / np.maximum(second[steep], 1e-3)))
    return float(np.clip(1.0 / np.sqrt(max(ratio * ratio - 1.0, 0.2)), 0.45, 1.5))


def camera_from(view: View, ego_frame_id: str) -> Matrix:
    """Return the 4×4 from the ego's frame to the camera's.

    Raises:
        NotApplicable: no transform joins the two.
    """
    try:
        return view.bundle.transforms.lookup(view.image.frame_id, ego_frame_id)
    except UnknownTransform as error:
        raise NotApplicable(f"{view.image.topic}: where the camera stands is not known: {error}") from error


def _clear(
    view: View,
    camera: CameraModel,
    pose: Matrix,
    window: Window,
    direction: Singles,
    range_m: Singles,
    step_px: int = 1,
) -> Singles:
    """Return the unoccluded share of each pixel (r, c) that looks at something ``range_m`` away.

    The pixels are every ``step_px``-th one of a window. Ground does not occlude: points close to the plane under the
    object, more so with distance from it, do not count. A cell that an edge divides is half hidden, panes of recorded
    cars let a share of the light through, and edges between cells are soft.
    """
    depth = depth_of(view.bundle, view.image, camera)
    rows, columns = (np.arange(s.start, s.stop, step_px) // depth.step_px for s in window)
    nearest_m = depth.pane_m[rows[:, None], columns]
    if not (nearest_m < range_m - np.float32(_BEFORE_M)).any():
        return np.ones(nearest_m.shape, np.float32)
    up = pose[:3, 2].astype(np.float32)
    rise, foot_m = direction @ up, np.float32(pose[:3, 3] @ pose[:3, 2])

    def hidden(measured_m: Singles) -> Singles:
        before = measured_m < range_m - np.float32(_BEFORE_M)
        height = np.minimum(measured_m, np.float32(1e6)) * rise - foot_m
        return np.asarray(before & (height > _ABOVE_GROUND_M + _UNEVEN * (range_m - measured_m)), np.float32)

    panes, through, far = (hidden(a[rows[:, None], columns]) for a in (depth.pane_m, depth.through_m, depth.far_m))
    solid = np.float32(0.5) * (through + far)
    clear = np.float32(1.0) - np.maximum(solid, np.float32(1.0 - TWO_PANES) * panes)
    soft = cv2.blur(clear, (-(-depth.step_px // step_px),) * 2, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(np.clip(soft, 0.0, 1.0), np.float32)


def _ground_range(pose: Matrix, direction: Singles) -> Singles:
    """Return the distance of the plane under the object along directions (h, w, 3), infinite above it."""
    up = pose[:3, 2]
    down = -(direction @ up.astype(np.float32))
    away = np.float32(-(pose[:3, 3] @ up))
    with np.errstate(divide="ignore"):
        return np.where(down > 1e-4, away / down, np.float32(np.inf)).astype(np.float32)


def _ground_spot(figure: Figure, pose: Matrix, camera: CameraModel) -> tuple[Window, Singles] | None:
    """Return the window of the soft spot under the object and its darkness (h, w), 0 to 1; None if out of sight."""
    low, high = figure.feet_m
    outline = _spot_outline(camera, pose, (low + high) / 2.0, (high - low) / 2.0 + _PENUMBRA_M)
    if outline is None:
        return None
    pixel_m = float(np.linalg.norm(pose[:3, 3])) / float(camera.k[0, 0])
    # Ground is seen at a grazing angle: a pixel covers several times its width along the line of sight.
    sigma = float(np.clip(_PENUMBRA_M / pixel_m, 0.8, 40.0)) / 2.0
    steep = max(0.15, abs(float(pose[:3, 2] @ pose[:3, 3])) / float(np.linalg.norm(pose[:3, 3])))
    reach = int(3.0 * sigma) + 2
    window = _cut(outline.min(axis=0) - reach, outline.max(axis=0) + reach, camera)
    if window is None:
        return None
    mask = np.zeros(_size(window), np.uint8)
    at = np.rint((outline - (window[1].start, window[0].start)) * 16.0).astype(np.int32)
    cv2.fillConvexPoly(mask, at, 255, cv2.LINE_AA, 4)
    soft = cv2.GaussianBlur(mask.astype(np.float32) / 255.0, (0, 0), sigma, sigmaY=max(0.5, sigma * steep))
    soft[soft < 0.02] = 0.0
    return window, np.asarray(soft, np.float32)


def _spot_outline(camera: CameraModel, pose: Matrix, center_m: Floats, half_m: Floats) -> Floats | None:
    """Return the pixels (n, 2) of a rounded rectangle on the ground around an object's feet."""
    angle = np.linspace(0.0, 2.0 * np.pi, 49)[:-1]
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    oval = np.sign(circle) * np.abs(circle) ** 0.6 * half_m + center_m
    outline = camera.project(move(pose, np.column_stack([oval, np.zeros(len(oval))])))
    return outline if np.isfinite(outline).all() else None


def _light(picture: Picture, shot: ObjectImage) -> Singles:
    """Return the light (3,), red, green, blue, of white level ground here, in shares of full scale.

    The ground around the object's feet, and the ground that the picture shows below the object, is assumed to have a
    mean albedo; bounds from the brightest tenth of the picture keep a dark patch or a bright line from misleading.
    """
    rows, columns = shot.window
    height = max(8, (rows.stop - rows.start) // 6)
    below = slice(max(0, rows.stop - height), min(picture.size[0], rows.stop + height))
    width = max(4, (columns.stop - columns.start) // 2)
    around = slice(max(0, columns.start - width), min(picture.size[1], columns.stop + width))
    ground = picture.pixels[below, around].reshape(-1, 1 if picture.order == "mono" else 3)[::3]
    level = np.median(ground, axis=0) / picture.full_scale
    bright = float(np.quantile(picture.luma()[::8, ::8], 0.9)) / picture.full_scale
    colour = _rgb(level, picture) ** _GAMMA
    lit = float(colour.mean()) / _GROUND_ALBEDO
    lit = float(np.clip(lit, _DARKEST * bright**_GAMMA, _BRIGHTEST))
    balance = np.clip(colour / max(float(colour.mean()), 1e-6), 0.8, 1.25)
    return (lit * balance).astype(np.float32)


def _rgb(level: npt.NDArray[Any], picture: Picture) -> npt.NDArray[Any]:
    return np.repeat(level, 3) if picture.order == "mono" else level[[picture.channel(c) for c in "rgb"]]


def _blurred(layer: npt.NDArray[Any], sigma_px: float) -> npt.NDArray[Any]:
    return np.asarray(cv2.GaussianBlur(layer, (0, 0), sigma_px, borderType=cv2.BORDER_REPLICATE))


def _around(windows: Iterable[Window]) -> Window:
    """Return the smallest window around windows."""
    rows, columns = zip(*windows, strict=True)
    top, left = min(r.start for r in rows), min(c.start for c in columns)
    return slice(top, max(r.stop for r in rows)), slice(left, max(c.stop for c in columns))


def _within(inner: Window, outer: Window) -> Window:
    """Return the slices of a window's arrays for another window within it."""
    rows, columns = (slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True))
    return rows, columns


def _cut(low: Floats, high: Floats, camera: CameraModel) -> Window | None:
    """Return the window of the picture between two corners (x, y); None if it is empty."""
    left, top = (max(0, int(v)) for v in low)
    right, bottom = min(camera.width, int(high[0]) + 1), min(camera.height, int(high[1]) + 1)
    return (slice(top, bottom), slice(left, right)) if left < right and top < bottom else None


def _size(window: Window) -> tuple[int, int]:
    rows, columns = window
    return rows.stop - rows.start, columns.stop - columns.start
