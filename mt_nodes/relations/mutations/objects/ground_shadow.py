# SPDX-License-Identifier: Apache-2.0
"""The ground around an added object: its light, the shadow that the object casts on it, and what is mirrored of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.images.codecs import Picture
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image
from mt_nodes.data.transforms import Matrix, TransformTree, UnknownTransform, move
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.sun_direction import SunLight, sun_of
from mt_nodes.world.scene.figures import Figure
from mt_nodes.world.scene.object_light import Surroundings
from mt_nodes.world.scene.object_rendering import Window, directions

_GAMMA = 2.2
#: Mean albedo of asphalt after five years (Lawrence Berkeley National Laboratory, Heat Island Group: 0.12).
_GROUND_ALBEDO = 0.12
#: Bounds of the light of white level ground: in shares of full scale, and relative to the picture's brightest tenth.
_BRIGHTEST, _DARKEST = 1.5, 0.1
#: Ground around the feet that is looked at: from and to this far off them, in metres, on a grid of so many places.
_NEAR_M, _FAR_M, _GRID = 0.15, 1.6, 40
_FEWEST, _FARTHER_M = 30, 5.0
#: What is nearer than the ground by more than this factor hides it.
_AS_FAR = 0.93
#: What hides the sky gives this share back (:data:`mt_nodes.world.modelling.shading`); darkest light under a body.
_BACK, _DARKEST_SKY = 0.25, 0.05
#: Farthest shadow on the ground, from the object, in metres; above so many pixels every second, or third, is cast;
#: below, so many rays in each pixel's height.
_LONGEST_M, _MANY_PX, _SHADOW_RAYS = 12.0, (15_000, 60_000), 3
_SMALL = (48, 24)


@dataclass(frozen=True, eq=False)
class GroundShade:
    """Every ``step_px``-th pixel of a window of ground: light (r, c), direction (r, c, 3), range (r, c)."""

    window: Window
    light: Singles
    direction: Singles
    range_m: Singles
    step_px: int


def ground_around(
    picture: Picture,
    camera: CameraModel,
    feet_m: Floats,
    pose: Matrix,
    quantile: float = 0.5,
    depth: DepthMap | None = None,
) -> Floats:
    """Return the light (3,) of the ground around an object's feet, red, green, blue, in shares of full scale.

    ``feet_m``: (2, 2) least and greatest x and y of the feet. ``pose``: (4, 4) object to camera. ``quantile``: of the
    samples around. ``depth``: of the picture; what it has before the ground counts for nothing, and ground farther off
    the feet is looked at where they stand hidden.
    """
    rows, columns = _ground_pixels(camera, feet_m, pose, _FAR_M, depth)
    if depth is not None and len(rows) < _FEWEST:
        rows, columns = _ground_pixels(camera, feet_m, pose, _FARTHER_M, depth)
    if len(rows) < _FEWEST:  # the feet are out of the picture: its lowest rows show ground
        height, width = picture.size
        rows, columns = (a.ravel() for a in np.mgrid[height * 7 // 8 : height : 4, 0:width:16])
    level = np.quantile(picture.pixels[rows, columns].reshape(len(rows), -1), quantile, axis=0) / picture.full_scale
    return np.asarray(_rgb(level, picture) ** _GAMMA, np.float64)


def _ground_pixels(
    camera: CameraModel, feet_m: Floats, pose: Matrix, far_m: float, depth: DepthMap | None
) -> tuple[Rows, Rows]:
    """Return rows and columns (n,) of pixels that show the ground around feet, up to ``far_m`` off them."""
    low, high = feet_m[0] - far_m, feet_m[1] + far_m
    x, y = np.meshgrid(*(np.linspace(a, b, _GRID) for a, b in zip(low, high, strict=True)))
    near_low, near_high = feet_m[0] - _NEAR_M, feet_m[1] + _NEAR_M
    off = (x < near_low[0]) | (x > near_high[0]) | (y < near_low[1]) | (y > near_high[1])
    places = move(pose, np.column_stack([x[off], y[off], np.zeros(int(off.sum()))]))
    pixels = camera.project(places)
    known = np.isfinite(pixels).all(axis=1)
    columns, rows = np.rint(pixels[known]).astype(np.int64).T
    inside = (columns >= 0) & (rows >= 0) & (columns < camera.width) & (rows < camera.height)
    columns, rows, range_m = columns[inside], rows[inside], np.linalg.norm(places[known][inside], axis=1)
    if depth is None:
        return rows, columns
    seen = depth.range_m[rows // depth.step_px, columns // depth.step_px] > _AS_FAR * range_m
    return rows[seen], columns[seen]


def white_level(picture: Picture, ground: Floats, least: float) -> Singles:
    """Return the light (3,) of white level ground where ground of a mean albedo gives ``ground`` (3,).

    ``least`` is the light of such ground under the open sky alone, which what stands there gets in the shade, too.
    Bounds from the brightest tenth of the picture keep a dark patch or a bright line from misleading.
    """
    some = picture.with_pixels(np.ascontiguousarray(picture.pixels[::8, ::8]))
    bright = float(np.quantile(some.luma(), 0.9)) / picture.full_scale
    lit = max(float(ground.mean()), least) / _GROUND_ALBEDO
    lit = float(np.clip(lit, _DARKEST * bright**_GAMMA, _BRIGHTEST))
    balance = np.clip(ground / max(float(ground.mean()), 1e-6), 0.8, 1.25)
    return (lit * balance).astype(np.float32)


def surroundings_of(picture: Picture, camera: CameraModel) -> Surroundings:
    """Return what smooth surfaces mirror: the picture, small."""
    stride = max(1, picture.size[1] // 400)
    few = np.ascontiguousarray(picture.pixels[::stride, ::stride])
    small = cv2.resize(few, _SMALL, interpolation=cv2.INTER_AREA).astype(np.float32) / picture.full_scale
    small = small if small.ndim == 3 else np.repeat(small[..., None], 3, axis=2)
    if picture.order != "mono":
        small = small[..., [picture.channel(c) for c in "rgb"]]
    half = float(np.arctan(camera.k[0, 2] / camera.k[0, 0]))
    low = -float(np.arctan((camera.height - camera.k[1, 2]) / camera.k[1, 1]))
    high = float(np.arctan(camera.k[1, 2] / camera.k[1, 1]))
    return Surroundings(np.ascontiguousarray(small**_GAMMA, np.float32), half, low, high)


def ground_shadow(
    picture: Picture, camera: CameraModel, figure: Figure, pose: Matrix, sun: SunLight | None
) -> GroundShade | None:
    """Return the shade of an object on the ground: of the sky near it, and of the sun; None if it is out of sight.

    Ground that lies in the shade already keeps its light.
    """
    window = _window_of(camera, figure, pose, sun)
    if window is None:
        return None
    rows, columns = (s.stop - s.start for s in window)
    step = 1 + sum(rows * columns > many for many in _MANY_PX)
    direction = np.ascontiguousarray(directions(camera, window)[::step, ::step])
    range_m = _ground_range(pose, direction)
    ground = np.isfinite(range_m)
    turn, eye = pose[:3, :3].astype(np.float32), np.linalg.inv(pose)[:3, 3].astype(np.float32)
    places = eye[:2] + (direction @ turn[:, :2]) * np.where(ground, range_m, 0.0)[..., None]
    sky = _open_sky(figure, places)
    light = sky
    if sun is not None:
        luma = cv2.blur(picture.pixels[window], (5, 5))[::step, ::step].astype(np.float32) / picture.full_scale
        luma = luma if luma.ndim == 2 else luma.mean(axis=2)
        share = sun.share(luma**_GAMMA, range_m)
        shadow = _cast(figure, places, ground, sun)
        light = np.asarray(share * (1.0 - shadow) + (1.0 - share) * sky, np.float32)
    return GroundShade(window, np.where(ground, light, 1.0).astype(np.float32), direction, range_m, step)


def sun_over(bundle: Bundle, ego_frame_id: str) -> SunLight | None:
    """Return the sun over the scene, in the ego's frame, by the first image and the first cloud; None if unknown."""
    if not bundle.images or not bundle.known_clouds:
        return None
    image, cloud = bundle.images[0], bundle.known_clouds[0]
    return _sun_over(image, bundle.camera_infos, cloud, bundle.transforms, ego_frame_id)


@lru_cache(maxsize=2)  # every relation that puts something into a drive asks for that over its first bundle
def _sun_over(
    image: Image, infos: tuple[CameraInfo, ...], cloud: Cloud, transforms: TransformTree, ego_frame_id: str
) -> SunLight | None:
    view = View.of(Bundle(0, 0, image.stamp_ns, images=(image,), camera_infos=infos), image)
    try:
        camera = view.camera()
        to_ego, to_camera = (transforms.lookup(f, cloud.frame_id) for f in (ego_frame_id, image.frame_id))
    except (NotApplicable, UnknownTransform):
        return None  # whoever draws the picture says what is missing
    xyz = cloud.xyz[np.isfinite(cloud.xyz).all(axis=1)].astype(np.float64)
    pixels = camera.project(move(to_camera, xyz))
    return sun_of(move(to_ego, xyz), pixels, view.picture.luma(), float(view.picture.full_scale))


def _open_sky(figure: Figure, places: Singles) -> Singles:
    """Return the share of the sky's light (h, w) that reaches places (h, w, 2) of the ground near an object."""
    sky, first = figure.open_sky
    x, y = (np.ascontiguousarray((places[..., i] - first[i]) / figure.cell_m, np.float32) for i in (0, 1))
    found = cv2.remap(sky, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=1.0)
    edge = cv2.remap(_fade(sky.shape), x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=0.0)
    open_share = np.clip((found - _BACK) / (1.0 - _BACK), _DARKEST_SKY, 1.0)
    return np.asarray(1.0 - edge * (1.0 - open_share), np.float32)


def _fade(shape: tuple[int, ...]) -> Singles:
    """Return weights (rows, columns) that fall to 0 at the border of a map, so that it ends without an edge."""
    rows, columns = (np.minimum(np.arange(n), np.arange(n)[::-1]) / 8.0 for n in shape)
    return np.minimum(1.0, np.minimum(rows[:, None], columns)).astype(np.float32)


def _cast(figure: Figure, places: Singles, ground: Mask, sun: SunLight) -> Singles:
    """Return how much (h, w) of the sun the object hides from places (h, w, 2) of the ground.

    Ground is seen so flat that a leg's shadow is thinner than a pixel: several places of each pixel's height count.
    """
    height, width = ground.shape
    finer = _SHADOW_RAYS if ground.size < _MANY_PX[0] else 1
    some = cv2.resize(np.ascontiguousarray(places), (width, finer * height)) if finer > 1 else places
    whole = np.repeat(ground, finer, axis=0)
    shadow = np.zeros(whole.shape, np.float32)
    shadow[whole] = figure.hides_sun(some[whole], sun.to_sun)
    return np.asarray(shadow.reshape(height, finer, width).mean(axis=1))


def _window_of(camera: CameraModel, figure: Figure, pose: Matrix, sun: SunLight | None) -> Window | None:
    """Return the window of the picture that contains the ground in the object's shade."""
    low, high = figure.feet_m[0] - 0.6, figure.feet_m[1] + 0.6
    ring = [np.array([[a, b] for a in (low[0], high[0]) for b in (low[1], high[1])])]
    if sun is not None:
        drift = -sun.to_sun[:2] / max(float(sun.to_sun[2]), 1e-3)
        drift *= min(1.0, _LONGEST_M / max(float(np.linalg.norm(drift)) * figure.top_m, 1e-6))
        body = np.array(
            [[a, b] for a in (figure.low_m[0], figure.high_m[0]) for b in (figure.low_m[1], figure.high_m[1])]
        )
        ring += [body, body + drift * figure.top_m]
    # Between the corners, a straight line on the ground stays straight but for the lens: a dense outline bounds it.
    hull = cv2.convexHull(np.concatenate(ring).astype(np.float32))[:, 0].astype(np.float64)
    line = np.concatenate(
        [a + np.linspace(0, 1, 16)[:, None] * (b - a) for a, b in zip(hull, np.roll(hull, -1, 0), strict=True)]
    )
    points = move(pose, np.column_stack([line, np.zeros(len(line))]))
    pixels = camera.project(points[points[:, 2] > 0.3])
    pixels = pixels[np.isfinite(pixels).all(axis=1)]
    if not len(pixels):
        return None
    (left, top), (right, bottom) = np.clip(pixels.min(axis=0) - 3, 0, None), pixels.max(axis=0) + 4
    rows, columns = slice(int(top), min(camera.height, int(bottom))), slice(int(left), min(camera.width, int(right)))
    return (rows, columns) if rows.start < rows.stop and columns.start < columns.stop else None


def _ground_range(pose: Matrix, direction: Singles) -> Singles:
    """Return the distance of the plane under the object along directions (h, w, 3), infinite above it."""
    up = pose[:3, 2]
    down = -(direction @ up.astype(np.float32))
    away = np.float32(-(pose[:3, 3] @ up))
    with np.errstate(divide="ignore"):
        return np.where(down > 1e-4, away / down, np.float32(np.inf)).astype(np.float32)


def _rgb(level: Floats, picture: Picture) -> Floats:
    return np.repeat(level, 3) if picture.order == "mono" else level[[picture.channel(c) for c in "rgb"]]
