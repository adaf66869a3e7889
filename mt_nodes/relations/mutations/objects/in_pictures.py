# SPDX-License-Identifier: Apache-2.0
"""Renders an added object into pictures: in the scene's light, on its ground.

The object is drawn where the camera sees it, behind nearer LiDAR returns, in the light and colour balance of the ground
around its feet, with its shadow, and with the blur, noise and colour fringes of the camera.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import ImageBox
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.data.messages import Image
from mt_nodes.data.transforms import Matrix, UnknownTransform
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.ground_shadow import (
    ground_around,
    ground_shadow,
    surroundings_of,
    white_level,
)
from mt_nodes.relations.mutations.objects.host_camera import (
    blur_px,
    fringe_px,
    grain,
    has_mosaic,
    noise_level,
    through_mosaic,
)
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.depth_completion import part_of
from mt_nodes.world.camera.headlamps import bloom
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.relight import relit
from mt_nodes.world.camera.sun_direction import SKY_SHARE, SunLight
from mt_nodes.world.scene.figures import Figure
from mt_nodes.world.scene.materials import PANE
from mt_nodes.world.scene.object_light import ObjectLight
from mt_nodes.world.scene.object_rendering import Rendering, Window, enlarged, render

_GAMMA = 2.2
#: An occluder is nearer than the object by this, and this much above the ground under the object (more with the
#: distance between them, because ground is no plane).
_BEFORE_M, _ABOVE_GROUND_M, _UNEVEN = 0.3, 0.25, 0.02
#: Share of visible light that comes through two panes of a recorded car, into it and out of it.
TWO_PANES = PANE.visible_transmission**2
#: A narrower blur changes nothing.
_LEAST_BLUR_PX = 0.1
#: Light of a lamp relative to what its pixels hold (assumed; three times as much hides red signals from the reference
#: stack by day); how far its bloom reaches, in shares of the picture's width and in pixels beyond the object; less
#: light than this shows nothing.
_LAMP, _BLOOM, _BEYOND_PX, _LEAST_LIGHT = 0.5, 0.03, 2, 1e-5
#: Fewer pixels than this do not count as visible.
LEAST_PIXELS = 12.0


@dataclass(frozen=True, eq=False)
class ObjectImage:
    """What one picture shows of an added object.

    Attributes:
        window: rows and columns of the picture that change; the arrays (h, w) cover them.
        sight: share of each pixel that shows the object.
        shadow: share of the light that the ground keeps; 1 off the ground.
        rendering: the object, with its own window within this one at ``at``.
        level: (3,) red, green, blue: light of white level ground here, in shares of full scale.
        box: its place, and its visible share.
    """

    window: Window
    sight: Singles
    shadow: Singles
    rendering: Rendering
    at: Window
    level: Singles
    box: ImageBox


_known: WeakKeyDictionary[Image, tuple[tuple[Any, ...], ObjectImage | None]] = WeakKeyDictionary()


def shot_of(
    view: View, figure: Figure, pose: Matrix, label: str, ego_frame_id: str, sun: SunLight | None = None
) -> ObjectImage | None:
    """Return what an image shows of an object at a ``pose`` (4, 4) of the ego's frame; None for nothing.

    The last result for an image is cached: the draw and its application need the same one.
    ``sun``: in the object's frame; None if the sky is overcast, or the sun was not found.
    Raises NotApplicable: the camera is not calibrated, or its pose or the depth is unknown.
    """
    key = (figure, pose.tobytes(), label, ego_frame_id, None if sun is None else sun.numbers().tobytes())
    known = _known.get(view.image)
    if known is None or known[0] != key:
        known = _known[view.image] = key, _shot(view, figure, pose, label, ego_frame_id, sun)
    return known[1]


def _shot(
    view: View, figure: Figure, pose: Matrix, label: str, ego_frame_id: str, sun: SunLight | None
) -> ObjectImage | None:
    camera, pose = view.camera(), camera_from(view, ego_frame_id) @ pose
    away_m = float(np.linalg.norm(pose[:3, 3]))
    depth = depth_of(view.bundle, view.image, camera)
    ground = ground_around(view.picture, camera, figure.feet_m, pose, depth=depth)
    share = 0.0 if sun is None else float(sun.share(ground.mean(), away_m, SKY_SHARE))
    light = ObjectLight(None if sun is None else sun.to_sun, share, surroundings_of(view.picture, camera))
    rendering = render(figure, pose, camera, light)
    if rendering is None:
        return None
    shade = ground_shadow(view.picture, camera, figure, pose, sun)
    window = _around([rendering.window, *([] if shade is None else [shade.window])])
    clear = _clear(view, camera, pose, rendering.window, rendering.direction, rendering.range_m)
    sight = np.zeros(_size(window), np.float32)
    sight[at := _within(rendering.window, window)] = rendering.cover * clear
    shadow = np.ones(_size(window), np.float32)
    if shade is not None:
        open_view = _clear(view, camera, pose, shade.window, shade.direction, shade.range_m, shade.step_px)
        few = 1.0 - (1.0 - shade.light) * open_view
        shadow[_within(shade.window, window)] = enlarged(few, _size(shade.window), shade.step_px)
    level = white_level(view.picture, ground, 0.0 if sun is None else SKY_SHARE * float(sun.lit_at(away_m)))
    if figure.balanced:  # cameras balance white: what one recorded has the colours that another shows
        level[:] = level.mean()
    total = float(rendering.cover.sum())
    visible = rendering.inside * min(1.0, float(sight.sum()) / total) if total > 0.0 else 0.0
    box = ImageBox(view.image.topic, rendering.box_px, visible, label)
    return ObjectImage(window, sight, shadow, rendering, at, level, box)


def with_object(view: View, shot: ObjectImage) -> Pixels:
    """Return the picture's pixels with the object in it: its shadow first, then itself as the host camera sees it."""
    picture = view.picture
    pixels = picture.pixels.copy()
    piece, full = pixels[shot.window], float(picture.full_scale)
    blur = blur_px(picture, shot.window)
    _shade(piece, _blurred(shot.shadow, max(blur, 0.8)))
    sight = _blurred(shot.sight[shot.at], blur)
    sight[sight < 0.5 / full] = 0.0
    own = shot.rendering.added_detail
    colour = _blurred(_painted(picture, shot.rendering, shot.level), blur * own) * np.float32(full)
    colour = _fringed(colour, fringe_px(picture, shot.window), picture)
    mosaic = has_mosaic(picture, shot.window)
    noise, seed = own * noise_level(picture, shot.window, mosaic), view.image.stamp_ns
    if mosaic:
        colour = through_mosaic(colour, picture, noise, seed)
    else:
        colour += _deep(grain(sight.shape, noise, seed), colour.ndim)
    samples = np.clip(colour, 0.0, full)
    samples = cv2.convertScaleAbs(samples) if full < 256 else np.rint(samples).astype(piece.dtype)
    piece[shot.at] = _blended(samples, piece[shot.at], sight)
    if shot.rendering.glow is not None:
        _shine(picture, pixels, shot, shot.rendering.glow * sight[..., None])
    return pixels


def _shine(picture: Picture, pixels: Pixels, shot: ObjectImage, glow: Singles) -> None:
    """Add in place what the lens spreads of lamps, of a glow (h, w, 3), around them, and little beyond the object."""
    reach = round(_BLOOM * picture.size[1])
    lit = part_of(_brightest(glow) > 0.0, reach)
    if lit is None:
        return
    lamps = glow[lit] ** np.float32(_GAMMA) * np.float32(_LAMP)
    away, off = (
        cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
        for mask in (_brightest(lamps) == 0.0, shot.sight[shot.at][lit] < 0.5)
    )
    near = np.maximum(1.0 - away / np.float32(reach), 0.0) * np.maximum(1.0 - off / np.float32(_BEYOND_PX), 0.0)
    halo = bloom(lamps, picture.size[1]) * near[..., None]
    piece = pixels[shot.window][shot.at][lit]
    brighter = relit(picture.with_pixels(np.ascontiguousarray(piece)), np.ones(near.shape, np.float32), halo, 1)
    seen = _brightest(halo) > _LEAST_LIGHT
    piece[seen] = brighter[seen]


def _brightest(light: Singles) -> Singles:
    """Return the largest (h, w) of red, green and blue; NumPy takes ten times as long over so short an axis."""
    return np.asarray(reduce(np.maximum, cv2.split(light)))


def _shade(piece: Pixels, kept: Singles) -> None:
    """Darken ground (h, w[, 3]) in place to a share of its light (h, w); where nothing is taken, it stays as it is."""
    rows, columns = np.nonzero(kept < 0.998)
    left = kept[rows, columns] ** np.float32(1.0 / _GAMMA)
    piece[rows, columns] = np.rint(piece[rows, columns] * _deep(left, piece.ndim - 1)).astype(piece.dtype)


def _blended(some: Pixels, others: Pixels, share: Singles) -> Pixels:
    """Return pixels with ``share`` (h, w) of each from ``some``, the rest from ``others``, unchanged at share 0."""
    if some.dtype == np.uint8:
        return np.asarray(cv2.blendLinear(some, np.ascontiguousarray(others), share, 1.0 - share))
    share = _deep(share, some.ndim)
    return np.asarray(np.rint(some * share + others * (1.0 - share)), some.dtype)


def _fringed(layer: Singles, shifts_px: Floats, picture: Picture) -> Singles:
    """Return a layer (h, w[, 3]) whose red and blue are shifted against green, as the lens does here."""
    for name, (x, y) in zip("rb", shifts_px, strict=True):
        if max(abs(x), abs(y)) > 0.05:
            c = picture.channel(name)
            move_by = np.array([[1.0, 0.0, x], [0.0, 1.0, y]])
            layer[..., c] = cv2.warpAffine(
                np.ascontiguousarray(layer[..., c]), move_by, layer.shape[1::-1], borderMode=cv2.BORDER_REPLICATE
            )
    return layer


def _painted(picture: Picture, rendering: Rendering, level: Singles) -> Singles:
    """Return the object's colours (h, w[, 3]) in the scene's light, in shares of full scale, in the picture's order."""
    lit = np.minimum(rendering.light * level + rendering.mirrored, np.float32(1.0))
    cv2.pow(lit, 1.0 / _GAMMA, lit)
    if rendering.glow is not None:
        np.maximum(lit, rendering.glow, out=lit)
    if picture.order != "rgb":
        lit = np.asarray(cv2.cvtColor(lit, cv2.COLOR_RGB2GRAY if picture.order == "mono" else cv2.COLOR_RGB2BGR))
    return np.asarray(lit, np.float32)


def _deep(layer: npt.NDArray[Any], dimensions: int) -> npt.NDArray[Any]:
    return layer[..., None] if dimensions > layer.ndim else layer


def camera_from(view: View, ego_frame_id: str) -> Matrix:
    """Return the 4×4 from the ego's frame to the camera's. Raises NotApplicable: no transform joins the two."""
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

    Ground does not occlude: points close to the plane under the
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


def _blurred(layer: npt.NDArray[Any], sigma_px: float) -> npt.NDArray[Any]:
    if sigma_px < _LEAST_BLUR_PX:
        return layer
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


def _size(window: Window) -> tuple[int, int]:
    rows, columns = window
    return rows.stop - rows.start, columns.stop - columns.start
