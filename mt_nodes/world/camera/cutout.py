# SPDX-License-Identifier: Apache-2.0
"""An object cut out of a picture and shown elsewhere: carried around the sensor, which sees the same side of it.

The cut-out is an upright board at the object's distance, facing the camera. Moved along a circle around the LiDAR, its
perspective is exact for a camera at the LiDAR; a camera beside it sees the object from another side, by the aspect
angle, for which there is a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.data.transforms import Matrix, inverse, move
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.silhouette import Silhouette, below_horizon, dilate_mask, occluder_mask, window_of
from mt_nodes.world.camera.standing_object import CameraGround, Flags, StandingObject, Window

#: The object may be seen from another side by up to this angle, and its light may come from another side by up to this:
#: a car's paint is lit evenly within it. Both are assumed.
MOST_ASPECT_RAD, MOST_TURN_RAD = np.radians(6.0), np.radians(45.0)
#: Least share of its returns in the picture, and largest share of its outline along something that hides it.
_LEAST_SHOWN, _MOST_HIDDEN = 0.99, 0.03
#: Softness of a cut-out's edge in pixels: the camera's blur, assumed.
_EDGE_PX = 0.8
_GAMMA = 2.2
#: Darkest shadow: share of the light that stays.
_DARKEST = 0.15


@dataclass(frozen=True, eq=False)
class Composite:
    """An object in its new place.

    Attributes:
        pixels: of the whole picture. sight: (H, W) share of each pixel that shows the object.
        box_px: (x0, y0, x1, y1) around it. visible: share of it that the picture shows.
    """

    pixels: Pixels
    sight: Singles
    box_px: tuple[float, float, float, float]
    visible: float


def aspect_rad(thing: StandingObject, turn: Matrix) -> float:
    """Return the angle by which the camera sees another side of an object after a rigid motion (4, 4)."""
    middle = thing.returns_m.mean(axis=0)
    before, after = -middle, turn[:3, :3].T @ -move(turn, middle[None])[0]
    cosine = before @ after / (np.linalg.norm(before) * np.linalg.norm(after))
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)))


def after_motion(thing: StandingObject, turn: Matrix) -> StandingObject:
    """Return an object after a rigid motion (4, 4) of the camera's frame."""
    up = turn[:3, :3] @ thing.ground.up
    outline = move(turn, thing.outline_m)
    ground = CameraGround(up, -float(outline[0] @ up))
    return StandingObject(thing.camera, move(turn, thing.returns_m), outline, thing.height_m, ground)


def motion_refusal(thing: StandingObject, silhouette: Silhouette, turn: Matrix) -> str | None:
    """Return why a cut-out cannot be shown elsewhere, None if it can."""
    aspect, angle = aspect_rad(thing, turn), float(np.arccos(np.clip((np.trace(turn[:3, :3]) - 1) / 2, -1, 1)))
    if aspect > MOST_ASPECT_RAD:
        return (
            f"the camera would see another side of it, by {np.degrees(aspect):.1f} degrees, allowed "
            f"{np.degrees(MOST_ASPECT_RAD):.0f}"
        )
    if angle > MOST_TURN_RAD:
        return (
            f"its light would come from {np.degrees(angle):.0f} degrees aside, allowed {np.degrees(MOST_TURN_RAD):.0f}"
        )
    if thing.in_picture.mean() < _LEAST_SHOWN:
        return "the picture shows only a part of it"
    edge = dilate_mask(silhouette.body, 2) & ~silhouette.body
    if np.count_nonzero(edge & silhouette.hidden) > _MOST_HIDDEN * np.count_nonzero(edge):
        return "something before it hides a part of it"
    return None


def composite(
    thing: StandingObject, silhouette: Silhouette, picture: Picture, without: Pixels, turn: Matrix, depth: DepthMap
) -> Composite | None:
    """Return a picture with an object in its new place; None if the picture does not show that place.

    ``without``: pixels of the whole picture without the object. ``turn``: (4, 4) its motion in the camera's frame.
    """
    there = after_motion(thing, turn)
    window = window_of(there)
    if window is None or not there.in_picture.any():
        return None
    at, inside = _sources(thing, there, turn, window, silhouette.window)
    alpha = np.where(inside, sampled(_alpha(silhouette, picture), at), np.float32(0.0))
    clear = ~occluder_mask(there, depth, window) | _within(silhouette, window)
    sight = alpha * cv2.blur(clear.astype(np.float32), (3, 3))
    if not (alpha > 0.5).any():
        return None
    pixels = without.copy()
    piece = pixels[window].astype(np.float32)
    piece *= _darkened(thing, there, silhouette, picture, without, window, clear).reshape(
        *sight.shape, *[1] * (piece.ndim - 2)
    )
    colours = sampled(picture.pixels[silhouette.window].astype(np.float32), at)
    share = sight.reshape(*sight.shape, *[1] * (piece.ndim - 2))
    blended = piece * (1.0 - share) + colours.reshape(piece.shape) * share
    pixels[window] = np.rint(np.clip(blended, 0, picture.full_scale)).astype(pixels.dtype)
    whole = np.zeros(picture.size, np.float32)
    whole[window] = sight
    rows, columns = np.flatnonzero((alpha > 0.5).any(axis=1)), np.flatnonzero((alpha > 0.5).any(axis=0))
    left, top = window[1].start, window[0].start
    box = (float(left + columns[0]), float(top + rows[0]), float(left + columns[-1]), float(top + rows[-1]))
    total = float(_alpha(silhouette, picture).sum()) * (thing.range_m / there.range_m) ** 2
    return Composite(pixels, whole, box, min(1.0, float(sight.sum()) / max(total, 1.0)))


def _sources(
    thing: StandingObject, there: StandingObject, turn: Matrix, window: Window, old: Window
) -> tuple[Floats, Flags]:
    """Return for each pixel of a window the pixel (h, w, 2) of the old one that shows the same, and which exist."""
    rows, columns = window
    x, y = np.meshgrid(np.arange(columns.start, columns.stop), np.arange(rows.start, rows.stop))
    away = thing.camera.directions(np.stack([x, y], axis=-1).reshape(-1, 2))
    middle = there.returns_m.mean(axis=0)
    facing = middle - (middle @ there.ground.up) * there.ground.up
    with np.errstate(divide="ignore", invalid="ignore"):
        range_m = (facing @ middle) / (away @ facing)
    board = away * np.where(range_m > 0.0, range_m, np.nan)[:, None]
    pixels = thing.camera.project(move(inverse(turn), board)) - (old[1].start, old[0].start)
    size = np.array([old[1].stop - old[1].start, old[0].stop - old[0].start])
    with np.errstate(invalid="ignore"):
        inside = np.asarray(((pixels >= 0) & (pixels <= size - 1)).all(axis=1))
    shape = rows.stop - rows.start, columns.stop - columns.start
    return np.where(inside[:, None], pixels, 0.0).reshape(*shape, 2), inside.reshape(shape)


def sampled(image: npt.NDArray[Any], at: Floats) -> npt.NDArray[Any]:
    """Return the samples of an image at places (h, w, 2) between its pixels: x and y."""
    x, y = (np.ascontiguousarray(at[..., i], np.float32) for i in (0, 1))
    return np.asarray(cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))


def _alpha(silhouette: Silhouette, picture: Picture) -> Singles:
    """Return how much of each pixel (h, w) of the window shows the object: its body without the growth, soft."""
    inner = max(1, round(2.0 * picture.size[1] / 1280.0))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * inner + 1,) * 2)
    core = cv2.erode(silhouette.body.astype(np.uint8), kernel).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(core, (0, 0), _EDGE_PX))


def _within(silhouette: Silhouette, window: Window) -> Flags:
    """Return the pixels (h, w) of a window where the object itself was: it hides nothing any more."""
    whole = np.zeros(tuple(max(a.stop, b.stop) for a, b in zip(silhouette.window, window, strict=True)), bool)
    whole[silhouette.window] = dilate_mask(silhouette.body, 4)
    return whole[window]


def _darkened(
    thing: StandingObject,
    there: StandingObject,
    silhouette: Silhouette,
    picture: Picture,
    without: Pixels,
    window: Window,
    clear: Flags,
) -> Singles:
    """Return the factor (h, w) of the samples in a window by the shadow, shifted without a turn: the sun stays."""
    luma = (p.astype(np.float32) + 1.0 for p in (picture.luma(), picture.with_pixels(without).luma()))
    old, new = (cv2.blur(p[silhouette.window], (5, 5)) for p in luma)
    factor = np.where(silhouette.shadow, np.clip(old / new, _DARKEST ** (1.0 / _GAMMA), 1.0), np.float32(1.0))
    factor = cv2.GaussianBlur(factor.astype(np.float32), (0, 0), 1.0)
    rows, columns = window
    x, y = np.meshgrid(np.arange(columns.start, columns.stop), np.arange(rows.start, rows.stop))
    away = thing.camera.directions(np.stack([x, y], axis=-1).reshape(-1, 2))
    plane = np.minimum(there.ground.ranges(away), 1e3)
    shift = there.outline_m.mean(axis=0) - thing.outline_m.mean(axis=0)
    pixels = thing.camera.project(away * plane[:, None] - shift)
    pixels = pixels - (silhouette.window[1].start, silhouette.window[0].start)
    size = np.array(factor.shape[::-1])
    with np.errstate(invalid="ignore"):
        inside = np.asarray(((pixels >= 0) & (pixels <= size - 1)).all(axis=1)).reshape(x.shape)
    at = np.where(inside[..., None], pixels.reshape(*x.shape, 2), 0.0)
    ground = inside & clear & below_horizon(there, window)
    return np.where(ground, sampled(factor, at), np.float32(1.0))
