# SPDX-License-Identifier: Apache-2.0
"""Drops and flakes in pictures: streaks of near particles, which persist from frame to frame.

Only particles wide enough to stand out from the veil are drawn; they fill periodic boxes before the camera and move
together by fall, wind and the ego's speed, so that their places depend on time alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.scatterers import Spectrum
from mt_nodes.world.camera.light import mapped_by_table, values_of
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.relight import light_in, samples_of

#: Narrower particles are part of the veil.
_LEAST_WIDTH_PX = 0.3
#: Nothing is drawn nearer than the windscreen or farther than this.
_NEAR_M, _FAR_M = 0.4, 12.0
_CLASSES = 8
#: Largest number that is drawn: of more, only the widest.
_MOST = 2000
#: Largest number of particles of a class, of which the widest are drawn.
_SEEDED = 8000
#: Steps of cover for each factor of e; most streaks stop one or two hundredths of the light.
_SHADES = 6.0
_SHIFT = 4
#: Streaks of these widths in pixels are drawn at a fraction of the resolution, blurred by so many of its pixels, with a
#: core of this share of their width.
_WIDTHS, _COARSE, _SOFT, _CORE = (0.0, 2.0, 6.0, 28.0, 1e6), (1, 2, 4, 8), 0.8, 0.8
#: What is shorter than this many pixels is a dot: the lens's blur of so many pixels makes it round.
_DOT_PX, _ROUND_PX = 2.0, 0.6
#: Layers are drawn about this wide at most.
_SHARP_PX = 1000
#: Rows that are blended at a time.
_STRIPE_PX = 320
#: Diameter of the lens's aperture in metres; it is focused far away: a 6 mm lens at F/4 (assumed).
_APERTURE_M = 1.5e-3


@dataclass(frozen=True, eq=False)
class Streaks:
    """Streaks of particles on a picture during the exposure.

    Attributes:
        begin_px, end_px: (k, 2) positions when the shutter opens and closes.
        width_px: (k,) of the particle. blur_px: (k,) of the disc into which the lens spreads each of its points.
        cover: (k,) share of the background light that a streak blocks.
    """

    begin_px: Floats
    end_px: Floats
    width_px: Floats
    blur_px: Floats
    cover: Floats

    def layer(self, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
        """Return the cover (h, w) of a picture, 0 to 255.

        Wide particles are out of focus: they are drawn at a fraction of the resolution, blurred and enlarged.
        """
        step = max(1, round(size[1] / _SHARP_PX))
        layer = np.zeros([-(-side // step) for side in size], np.uint8)
        true = np.maximum(self.width_px + self.blur_px, 1.0) / step
        wide = np.maximum(true, 1.0)
        cover = self.cover * true / wide
        ends = (np.stack([self.begin_px, self.end_px], axis=1) + 0.5) / step
        dot = (wide < _WIDTHS[1]) & (np.abs(ends[:, 1] - ends[:, 0]).max(axis=1, initial=0.0) < _DOT_PX)
        if dot.any():
            _draw(layer, ends[dot] - 0.5, wide[dot], cover[dot])
            cv2.GaussianBlur(layer, (0, 0), _ROUND_PX, dst=layer)
        for coarse, (low, high) in zip(_COARSE, pairwise(_WIDTHS), strict=True):
            rows = np.flatnonzero((wide >= low) & (wide < high) & ~dot)
            if rows.size:
                small = np.zeros([-(-side // coarse) for side in layer.shape], np.uint8)
                core = np.maximum(wide[rows] * (_CORE if coarse > 1 else 1.0) / coarse, 1.0)
                dense = np.minimum(cover[rows] * wide[rows] / (coarse * core), 1.0)
                _draw(small, ends[rows] / coarse - 0.5, core, dense)
                if coarse > 1:
                    small = cv2.GaussianBlur(small, (0, 0), _SOFT)
                cv2.add(layer, _enlarged(small, coarse, layer.shape), dst=layer)
        return _enlarged(layer, step, size)


def _enlarged(layer: npt.NDArray[np.uint8], times: int, size: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    if times == 1:
        return layer
    whole = np.asarray(cv2.resize(layer, (layer.shape[1] * times, layer.shape[0] * times)))
    return np.ascontiguousarray(whole[: size[0], : size[1]])


def _draw(layer: npt.NDArray[np.uint8], ends: Floats, wide: Floats, cover: Floats) -> None:
    """Draw lines from ends (k, 2, 2) of widths (k,) with a cover (k,) into a layer; in place."""
    lines = np.rint(ends * (1 << _SHIFT)).astype(np.int32)
    lines[(lines[:, 0] == lines[:, 1]).all(axis=1), 1, 0] += 1 << (_SHIFT - 1)  # of no length, nothing would be drawn
    thick = np.clip(np.rint(wide), 1, 60).astype(np.int64)
    shade = np.exp(np.rint(np.log(np.clip(255.0 * cover, 0.5, 255.0)) * _SHADES) / _SHADES)
    kinds = np.rint(np.clip(shade, 1, 255)).astype(np.int64) * 64 + thick
    # Faint ones first, so that they do not overwrite strong ones.
    for kind in np.unique(kinds):
        some = list(lines[kinds == kind])
        cv2.polylines(layer, some, False, (int(kind // 64),), int(kind % 64), cv2.LINE_AA, _SHIFT)


def streaks(
    view: View, key: int, spectrum: Spectrum, velocity_mps: Callable[[Floats], Floats], exposure_s: float
) -> Streaks:
    """Return the streaks in a view.

    A streak is as long as the particle's motion during the exposure, and as wide as the particle and the disc into
    which a lens with an aperture a spreads each of its points, a f / z before a far focus. It blocks as much of the
    light as the particle's area is of the streak's (K. Garg, S. Nayar, "Vision and Rain", IJCV 75, 2007: the transit
    time over the exposure).
    ``velocity_mps``: from diameters D (n,) to velocities (n, 3) of particles in ``base_link``.
    """
    camera, around = view.camera(), surroundings(view)
    to_camera = np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[:3, :3]
    seconds, boxes = view.image.stamp_ns * 1e-9, _boxes(view)
    near = [
        (place.T, size, *_near(camera, to_camera, spectrum.swell, place.T, size))
        for place, size in _particles(key, spectrum, boxes, velocity_mps, seconds)
    ]
    at, diameter_mm, width = _widest(near)
    begin = at @ to_camera.T
    end = (at + velocity_mps(diameter_mm) * exposure_s) @ to_camera.T
    a, b, range_m = camera.project(begin), camera.project(end), _away_m(camera, begin)
    bounds = np.array([camera.width, camera.height])
    inside = np.asarray(np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1))
    inside &= _away_m(camera, end) > 0.5 * _NEAR_M
    inside &= (a >= 0).all(axis=1) & (a < bounds).all(axis=1)
    cells = np.where(inside[:, None], a, 0.0).astype(np.int64) // around.depth.step_px
    inside &= range_m < around.depth.range_m[cells[:, 1], cells[:, 0]]
    a, b, width = a[inside], b[inside], width[inside]
    blur = _APERTURE_M * camera.k[0, 0] / np.maximum(range_m[inside], _NEAR_M)
    drawn = np.maximum(width + blur, 1.0)
    area = drawn * (np.hypot(*(b - a).T) + np.pi / 4.0 * drawn)
    return Streaks(a, b, width, blur, np.minimum(1.0, np.pi / 4.0 * np.square(width) / area))


def with_layer(view: View, pixels: Pixels, layer: npt.NDArray[np.uint8], light: Singles) -> Pixels:
    """Return pixels behind a layer of bright particles of this light (3,), red, green, blue; writes into the pixels.

    As :func:`with_streaks`, on samples instead of light, which takes a third of the time, by more cover: a little
    light makes much of a dark sample. What is brighter stays, as particles before it are not seen.
    """
    if pixels.dtype != np.uint8:
        return with_streaks(view, pixels, layer, light)
    red, green, blue = np.rint(values_of(light) * 255.0).tolist()
    if pixels.ndim == 2:
        more = cv2.subtract(float(np.rint(255.0 * values_of(float(light.mean())))), pixels)
        return np.asarray(cv2.add(pixels, cv2.multiply(more, mapped_by_table(layer, _COVER), scale=1.0 / 255.0)))
    colour = (red, green, blue, 0.0) if view.picture.order == "rgb" else (blue, green, red, 0.0)
    for first in range(0, len(pixels), _STRIPE_PX):  # so that what lies between fits the processor's cache
        some = pixels[first : first + _STRIPE_PX]
        cover = mapped_by_table(layer[first : first + _STRIPE_PX], _COVER)
        more = cv2.subtract(colour, some)
        cv2.multiply(more, cv2.merge((cover, cover, cover)), dst=more, scale=1.0 / 255.0)
        cv2.add(some, more, dst=some)
    return pixels


#: Cover of samples by that of light: exact over black for white.
_COVER = np.rint(255.0 * values_of(np.arange(256) / 255.0) ** 1.2).astype(np.uint8)


def with_streaks(view: View, pixels: Pixels, layer: npt.NDArray[np.uint8], light: Singles) -> Pixels:
    """Return pixels behind a layer of streaks of this light (3,), red, green, blue; blended in linear light."""
    cell = np.flatnonzero(layer != 0)
    if not cell.size:
        return pixels
    new = pixels.copy()
    of_cells = new.reshape(layer.size, -1)  # one channel or three
    share = layer.reshape(-1)[cell].astype(np.float32)[:, None] / np.float32(255.0)
    own = light.mean(keepdims=True) if pixels.ndim == 2 else light if view.picture.order == "rgb" else light[::-1]
    behind = light_in(of_cells[cell])
    of_cells[cell] = samples_of(behind + share * (own - behind), pixels.dtype)
    return new


def _near(
    camera: CameraModel, to_camera: Floats, swell: float, at: Singles, diameter_mm: Singles
) -> tuple[Rows, Singles]:
    """Return which particles (k,) at places (3, n) stand out from the veil, and their widths in pixels (k,).

    Particles that are surely outside of the picture are excluded: they are most of a box around the field of view.
    """
    turn = to_camera.astype(np.float32)
    ahead_m = np.linalg.norm(at, axis=0) if camera.fisheye else _along(turn[2], at)
    scale = np.float32(swell * 1e-3 * camera.k[0, 0])
    rows = np.flatnonzero((ahead_m > _NEAR_M) & (diameter_mm * (scale / np.float32(_LEAST_WIDTH_PX)) >= ahead_m))
    far_m, some = ahead_m.take(rows), at.take(rows, axis=1)
    for axis, (low, high) in zip(turn, () if camera.fisheye else _slopes(camera), strict=False):
        aside_m = _along(axis, some)
        seen = np.flatnonzero((aside_m >= low * far_m) & (aside_m <= high * far_m))
        rows, far_m, some = rows.take(seen), far_m.take(seen), some.take(seen, axis=1)
    return rows, diameter_mm.take(rows) * scale / far_m


def _along(axis: Singles, at: Singles) -> Singles:
    """Return how far along an axis (3,) places (3, n) are: so few rows are no work for threads."""
    x, y, z = at
    return np.asarray(axis[0] * x + axis[1] * y + axis[2] * z)


def _away_m(camera: CameraModel, at: Floats) -> Floats:
    """Return how far away places (n, 3) are: along the axis, for a fisheye along the ray, as its scale demands."""
    return np.linalg.norm(at, axis=1) if camera.fisheye else at[:, 2]


@lru_cache(maxsize=16)
def _slopes(camera: CameraModel) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the least and largest x / z and y / z along the edge of what a camera sees."""
    x, y = (np.linspace(0.0, end, 17) for end in (camera.width, camera.height))
    edge = [(a, b) for a in x for b in (0.0, camera.height)] + [(a, b) for a in (0.0, camera.width) for b in y]
    directions = camera.directions(np.array(edge))
    slopes = directions[:, :2] / np.maximum(directions[:, 2:], 1e-3)
    (left, top), (right, bottom) = slopes.min(axis=0).tolist(), slopes.max(axis=0).tolist()
    return (left, right), (top, bottom)


def _widest(near: Sequence[tuple[Singles, Singles, Rows, Singles]]) -> tuple[Floats, Floats, Floats]:
    """Return places (k, 3), diameters D (k,) and widths in pixels (k,) of the widest particles of several classes.

    ``near``: of each class places (3, n), diameters (n,), which of them count (k,), and how wide these are (k,).
    """
    nothing = np.empty(0, np.float32)
    widths = np.concatenate([nothing, *(width for *_, width in near)])
    least = np.partition(widths, -_MOST)[-_MOST] if len(widths) > _MOST else 0.0
    parts: list[tuple[Singles, Singles, Singles]] = [(np.empty((0, 3), np.float32), nothing, nothing)]
    for at, diameter_mm, rows, width in near:
        few = np.flatnonzero(width >= least)
        parts.append((at.take(rows[few], axis=1).T, diameter_mm[rows[few]], width[few]))
    places, sizes, widest = (np.concatenate(part).astype(np.float64) for part in zip(*parts, strict=True))
    return places, sizes, widest


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Periodic boxes of particles around a camera, one for each class, by how far away its particles are drawn.

    ``focal_px``: by which particles stand out from the veil. ``sight``: (n, 3) corners of what is to be filled, for a
    distance of 1. ``camera_m``: (3,) place of the camera within a lattice that it shares with others; 0 if it has one
    of its own. ``most``: of a class.
    """

    focal_px: float
    sight: Floats
    camera_m: Floats
    most: int

    def of(self, far_m: float) -> tuple[Floats, Floats]:
        """Return the least corner of a box (3,) and its sides (3,)."""
        sight = self.sight * far_m
        return sight.min(axis=0), np.maximum(np.ptp(sight, axis=0), 0.1)


def _boxes(view: View) -> _Boxes:
    """Return boxes around what a camera sees; those of a rig, and a fisheye's, are cubes to all sides.

    The cubes of a rig are as large for each of its cameras, so that all see the same particles.
    """
    camera, around = view.camera(), surroundings(view)
    to_camera = np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[:3, :3]
    frames, cube = {image.frame_id for image in view.bundle.images}, np.array([[-1.0] * 3, [1.0] * 3])
    focals = [float(info.k[0, 0]) for info in view.bundle.camera_infos if info.frame_id in frames]
    if len(focals) > 1:
        return _Boxes(max(focals), cube, around.camera_m, 8 * _SEEDED)
    if camera.fisheye:
        return _Boxes(float(camera.k[0, 0]), cube, np.zeros(3), 8 * _SEEDED)
    corners = camera.directions(np.array([(x, y) for x in (0, camera.width) for y in (0, camera.height)]))
    sight = np.concatenate([np.zeros((1, 3)), corners / corners[:, 2:]]) @ to_camera
    return _Boxes(float(camera.k[0, 0]), sight, np.zeros(3), _SEEDED)


def _particles(
    key: int, spectrum: Spectrum, boxes: _Boxes, velocity_mps: Callable[[Floats], Floats], seconds: float
) -> Iterator[tuple[Singles, Singles]]:
    """Yield places (k, 3) around the camera, in the axes of ``base_link``, and diameters D (k,), class by class."""
    edges = np.geomspace(0.25, spectrum.most_mm, _CLASSES + 1)
    for number, (low, high) in enumerate(pairwise(edges.tolist())):
        far_m = min(_FAR_M, boxes.focal_px * high * spectrum.swell * 1e-3 / _LEAST_WIDTH_PX)
        if far_m <= _NEAR_M:
            continue
        first, side = boxes.of(far_m)
        unit, diameter = _seeded(key, number, spectrum, low, high, float(side.prod()), boxes.most)
        # A class moves together: fall speeds differ little within a class.
        moved = velocity_mps(np.array([np.sqrt(low * high)]))[0] * seconds - boxes.camera_m
        turned = (moved - first) / side
        places = unit + (turned - np.floor(turned)).astype(np.float32)[:, None]
        places -= np.floor(places)
        places *= side.astype(np.float32)[:, None]
        places += first.astype(np.float32)[:, None]
        yield places.T, diameter


@lru_cache(maxsize=4 * _CLASSES)
def _seeded(
    key: int, number: int, spectrum: Spectrum, low_mm: float, high_mm: float, volume_m3: float, most: int
) -> tuple[Singles, Singles]:
    """Return a class's places (3, k), as shares of its box's sides, and diameters D (k,): those of a segment stay."""
    rng = np.random.default_rng([key, number])
    count = min(rng.poisson(float(spectrum.per_m3(low_mm, high_mm)) * volume_m3), most)
    unit, diameter = rng.random((count, 3)), spectrum.diameters_mm(rng.random(count), low_mm, high_mm)
    return np.ascontiguousarray(unit.T, np.float32), diameter.astype(np.float32)
