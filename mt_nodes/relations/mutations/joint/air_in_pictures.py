# SPDX-License-Identifier: Apache-2.0
"""Effect of attenuating and scattering air on pictures: Koschmieder's law over depth, in linear light."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.images.codecs import Picture
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.rig_light import mean_light, shading_in_rig, views_of_scene
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.world.camera.diffuse_light import BOUNDS, LEFT, UNCHANGED, diffuse_light
from mt_nodes.world.camera.light import Colour, light_of, mapped_by_table, quantile, values_of
from mt_nodes.world.camera.local_relight import relit_locally
from mt_nodes.world.camera.relight import blended, grey
from mt_nodes.world.camera.surroundings import Surroundings

#: Light of the horizon if a picture shows no sky: that of an overcast day at usual exposure (assumed).
_NO_SKY = 0.5
#: Bounds of the air light: the night sky must not give a black veil, an overexposed sky not one of full scale.
#: Thick air is exposed for: at usual exposure a fog is light grey (assumed).
_DARKEST, _BRIGHTEST = 0.02, 0.6
#: Sky this low, as the sine of its elevation, is the horizon's; sky counts if it is this share of the picture.
_NEAR_HORIZON, _LEAST_SKY = 0.2, 0.005
#: Bins of the transmitted share of light, for the proof.
_SHARES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
_LEAST_CELLS, _LEAST_CONTRAST = 200, 0.02
_STEADY = 0.1
#: Neighbouring cells whose transmitted shares differ by less than this show no edge.
_LEAST_STEP = 0.04
#: By how much two ways to take the sun's light away may differ, in logarithms, at ranges between these.
_WAYS, _RANGES_M = 0.35, (0.0, 12.0, 25.0, 50.0, 100.0)
#: Downward rays as steep as this meet the ground right ahead.
_STEEP = -0.2
#: Side of the square whose median is the base of a cell's light.
_MEDIAN_CELLS = 5
_SLACK, _ROUNDING = 0.15, 0.01
#: Light of each sample of 8 bits, 65,535 for full scale: its high and its low byte.
_LIGHT_BYTES = [
    part.astype(np.uint8) for part in divmod(np.rint(light_of(np.arange(256) / 255.0) * 65535.0).astype(np.int64), 256)
]
#: Of eight rows, those that tell a source's mean, and which of two columns does.
_SEEN_OF_EIGHT = ((0, 0), (2, 1), (5, 0), (7, 1))
#: Rows of cells that are added up at a time, so that they fit the processor's cache.
_STRIPE_CELLS = 20
_cells_known: WeakKeyDictionary[Picture, dict[int, Singles]] = WeakKeyDictionary()
_inherent_known: WeakKeyDictionary[View, dict[tuple[float, bool], Singles]] = WeakKeyDictionary()
_thinned_known: WeakKeyDictionary[Picture, Picture] = WeakKeyDictionary()
_sure_known: WeakKeyDictionary[View, Mask] = WeakKeyDictionary()


def air_light(view: View, tint: Colour, brightness: float = 1.0) -> Singles:
    """Return the light (3,), red, green, blue, of optically thick air of a tint: that of the picture's own horizon.

    Cameras of a rig that share a scene have one horizon, which each shows at its own exposure
    (:mod:`~mt_nodes.relations.mutations.camera.rig_light`).
    """
    exposure, views = views_of_scene(view)
    lights = [grey(v.light) / np.float32(v.exposure) for v in views]
    low = [own[v.around.sky & (v.around.rays[..., 2] < _NEAR_HORIZON)] for v, own in zip(views, lights, strict=True)]
    least = _LEAST_SKY * sum(own.size for own in lights)
    sky = np.concatenate(low)
    if sky.size < least:
        sky = np.concatenate([own[v.around.sky] for v, own in zip(views, lights, strict=True)])
    bright = quantile(sky, 0.5) if sky.size >= least else _NO_SKY
    colour = np.array(tint, np.float32)
    return np.asarray(brightness * exposure * np.clip(bright, _DARKEST, _BRIGHTEST) * colour / colour.max(), np.float32)


def veiled(picture: Picture, passing: Floats, air: Singles, step_px: int) -> npt.NDArray[Any]:
    """Return the pixels of a picture through air of which a share ``passing`` (h, w) of each cell's light arrives.

    I e^(-τ) + A (1 - e^(-τ)) in linear light (H. Koschmieder, "Theorie der horizontalen Sichtweite", 1924).
    """
    return blended(picture, passing.astype(np.float32), air, step_px, _LEAST_STEP)


def proof_of_veil(old: View, new: View, passing: Floats, air: Singles, direct: float = 1.0) -> str | None:
    """Check the contrast by transmission: it falls with the transmitted light, and far objects fade into the air.

    For each bin of cells with similar transmission, the deviation of the brightness is compared with transmission × its
    old value; bins with too little contrast do not count.
    """
    around = surroundings(old)
    before, after = _inherent_light(old, direct), _cells(new, around)
    # Where range jumps within or next to a cell, a cell shows both.
    size = np.ones((3, 3), np.uint8)
    steady = cv2.dilate(passing, size) - cv2.erode(passing, size) < _STEADY
    whole = steady & (after < 0.9) & (before < 0.9) & _surely(old, around) & ~around.sky
    for low, high in pairwise(_SHARES):
        band = whole & (passing >= low) & (passing < high)
        if np.count_nonzero(band) < _LEAST_CELLS or before[band].std() < _LEAST_CONTRAST:
            continue
        expected = before[band] * passing[band] + (1.0 - passing[band]) * float(grey(air[None])[0])
        found = float(after[band].std())
        ratio = found / max(float(expected.std()), 1e-6)
        if not 1.0 - _SLACK < ratio < 1.0 + _SLACK and abs(found - expected.std()) > _ROUNDING:
            return f"where {low:.0%} to {high:.0%} of the light arrives contrast is {ratio:.2f} of what it was to be"
    return _proof_of_sky(old, after, around, air) or _proof_of_diffuse_light(old, before, direct)


def _proof_of_sky(old: View, after: Singles, around: Surroundings, air: Singles) -> str | None:
    """Check that nothing is left of the sky but the air's light."""
    sky = _surely(old, around) & around.sky
    if np.count_nonzero(sky) < _LEAST_CELLS:
        return None
    found, expected = float(after[sky].mean()), float(grey(air[None])[0])
    if abs(found - expected) <= _SLACK * expected + _ROUNDING:
        return None
    return f"the sky has {found:.3f} of light, the air that hides it {expected:.3f}"


def proof_of_mean(
    old: View,
    new: View,
    passing: Floats,
    air: Singles,
    white: Floats,
    direct: float = 1.0,
    wet: bool = False,
    clouds: Singles | None = None,
) -> str | None:
    """Check the mean light by transmission: the transmitted share of the old light, and the air's for the rest.

    Single particles add contrast of their own, so contrast is no measure here; nor is ground that is wet. The sky has
    the light of the air times 1 plus that of ``clouds`` (h, w).
    """
    around = surroundings(old)
    before, after = _inherent_light(old, direct, some=True), _cells(new, around)
    whole = (after < 0.9) & ((before < 0.9) | around.sky) & ~(around.ground & wet) & _surely(old, around)
    for low, high in pairwise((*_SHARES, 1.0)):
        band = whole & (passing >= low) & (passing < high)
        if np.count_nonzero(band) < _LEAST_CELLS:
            continue
        left = (passing * (1.0 - white))[band]
        behind = float(grey(air[None])[0]) * (np.float32(1.0) if clouds is None else 1.0 + (clouds * around.sky)[band])
        expected = float((before[band] * left + (1.0 - left) * behind).mean())
        off = float(after[band].mean()) - expected
        if abs(off) > _SLACK * expected + _ROUNDING:
            return f"where {low:.0%} to {high:.0%} of the light arrives the mean light is off by {off:+.3f}"
    return _proof_of_diffuse_light(old, before, direct)


def proof_of_wetness(old: View, new: View, passing: Floats, air: Singles, direct: float, film: float) -> str | None:
    """Check that the ground right ahead, where water mirrors little, is as dark as a share of a film makes it.

    A film takes up to half of the light (J. Lekner, M. Dorf, Applied Optics 27, 1988), and mirrors a twentieth at most.
    """
    around = surroundings(old)
    dry = _inherent_light(old, direct, some=True) * passing + (1.0 - passing) * float(grey(air[None])[0])
    near = around.ground & (around.rays[..., 2] < _STEEP)
    if np.count_nonzero(near) < _LEAST_CELLS or dry[near].mean() < 2.0 * _ROUNDING:
        return None
    ratio = float(_cells(new, around)[near].mean() / dry[near].mean())
    least, most = 1.0 - 0.5 * film - _SLACK, 1.0 - 0.5 * film + 0.05 / float(dry[near].mean()) + _SLACK
    if least <= ratio <= most:
        return None
    return f"the wet ground right ahead has {ratio:.2f} of the light of dry ground, expected {least:.2f} to {most:.2f}"


def _inherent_light(view: View, direct: float, some: bool = False) -> Singles:
    """Return the brightness (h, w) of cells without the air, with a share of the sun's own light; cached.

    ``some``: by a quarter of the source's pixels, which suffices for means of many cells, not for contrast.
    """
    around = surroundings(view)
    if direct >= UNCHANGED:
        return _cells(view, around)
    known = _inherent_known.setdefault(view, {})
    if (direct, some) not in known:
        shading, step, picture = shading_in_rig(view), around.depth.step_px, view.picture
        if some:
            picture, step = _thinned(picture, step)
        new = relit_locally(picture, shading.samples, diffuse_light(shading, direct), step)
        known[direct, some] = _mean_brightness(picture.with_pixels(new), around.shape, step)
    return known[direct, some]


def _thinned(picture: Picture, step: int) -> tuple[Picture, int]:
    """Return a quarter of the pixels and the width of cells in these, where they are whole; cached.

    Even and odd rows and columns count alike, so that no pattern of the source's is missed.
    """
    height, width = picture.size
    if step % 2 or step < 4 or height % 8 or width % 2:
        return picture, step
    if (known := _thinned_known.get(picture)) is None:
        pairs = picture.pixels.reshape(height, width // 2, -1)
        some = np.empty((height // 2, width // 2, *picture.pixels.shape[2:]), picture.pixels.dtype)
        for place, (row, column) in enumerate(_SEEN_OF_EIGHT):
            channels = pairs.shape[2] // 2
            own = np.empty((height // 8, width // 2, channels), some.dtype)
            cv2.mixChannels([pairs[row::8]], [own], [n for c in range(channels) for n in (column * channels + c, c)])
            some[place::4] = own.reshape(some[place::4].shape)
        known = _thinned_known[picture] = picture.with_pixels(some)
    return known, step // 2


def _proof_of_diffuse_light(view: View, found: Singles, direct: float) -> str | None:
    """Check light without sun (h, w) against another way to it: bases are medians of cells, no filter is guided.

    Of the ground and of other things, at several ranges, the mean light of both ways agrees.
    """
    around = surroundings(view)
    if direct >= UNCHANGED or around.sky.all():
        return None
    light = _source_cells(view, around)
    base = light_of(cv2.medianBlur(np.rint(values_of(light) * 255.0).astype(np.uint8), _MEDIAN_CELLS) / 255.0)
    left = np.where(around.ground, *LEFT)
    power = (1.0 - left) * (direct - 1.0)
    exposure, views = views_of_scene(view)
    level = max(exposure * mean_light(views), 1e-3)
    other = light * np.clip((np.maximum(base, 1e-4) / level) ** power, *BOUNDS)
    sure = _surely(view, around) & ~around.sky & (light < 0.9)
    for low, high in pairwise(_RANGES_M):
        within = sure & (around.range_m >= low) & (around.range_m < high)
        for where in (within & around.ground, within & ~around.ground):
            if np.count_nonzero(where) < 2 * _LEAST_CELLS:
                continue
            ratio = float(found[where].mean()) / max(float(other[where].mean()), _ROUNDING)
            if abs(np.log(ratio)) > _WAYS and abs(found[where].mean() - other[where].mean()) > _ROUNDING:
                return f"{low:g} to {high:g} m away the light without sun is {ratio:.2f} of what it was to be"
    return None


def _surely(view: View, around: Surroundings) -> Mask:
    """Return which cells (h, w) do not look like the other: sky that is bright and above, and all else; cached.

    Clouds say sky, too, of what they do not reach; a cell next to sky may show both.
    """
    if (known := _sure_known.get(view)) is None:
        known = _sure_known[view] = _sure(_source_cells(view, around), around)
    return known


def _sure(light: Singles, around: Surroundings) -> Mask:
    sky, size = around.sky, np.ones((3, 3), np.uint8)
    if not sky.any():
        return np.ones(around.shape, bool)
    bright = (light > 0.8 * quantile(light[sky], 0.7)) & (around.rays[..., 2] > 0.02)
    as_bytes = sky.view(np.uint8)
    return np.asarray(np.where(sky, (cv2.erode(as_bytes, size) != 0) & bright, cv2.dilate(as_bytes, size) == 0))


def _source_cells(view: View, around: Surroundings) -> Singles:
    """Return the brightness (h, w) of a source's cells, for means of many and for the sky, by some of its pixels."""
    return _cells_of(*_thinned(view.picture, around.depth.step_px), around.shape)


def _cells(view: View, around: Surroundings) -> Singles:
    return _cells_of(view.picture, around.depth.step_px, around.shape)


def _cells_of(picture: Picture, step: int, shape: tuple[int, int]) -> Singles:
    """Return the mean brightness (h, w) of cells: of light, not of samples, whose mean is darker where they differ.

    A veil takes that difference away with the contrast, and would seem to lighten what is full of edges. Cached.
    """
    known = _cells_known.setdefault(picture, {})
    if step not in known:
        known[step] = _mean_brightness(picture, shape, step)
    return known[step]


def _mean_brightness(picture: Picture, shape: tuple[int, int], step: int) -> Singles:
    """Add up the light of all samples in integers, rows first, its high and low bytes apart: bytes are fast to map."""
    pixels, (height, width) = picture.pixels, shape
    if pixels.dtype != np.uint8:
        pixels = (pixels >> 8).astype(np.uint8)
    bottom, right = height * step - pixels.shape[0], width * step - pixels.shape[1]
    if bottom or right:
        pixels = cv2.copyMakeBorder(pixels, 0, bottom, 0, right, cv2.BORDER_REPLICATE)
    cells, size = np.empty((height, width, *pixels.shape[2:]), np.float32), (width * step, *pixels.shape[2:])
    for first in range(0, height, _STRIPE_CELLS):
        some = pixels[first * step : (first + _STRIPE_CELLS) * step]
        high, low = (
            np.add.reduce(mapped_by_table(some, part).reshape(-1, step, np.prod(size)), axis=1, dtype=np.uint16)
            for part in _LIGHT_BYTES
        )
        rows = cv2.addWeighted(high, 256.0 / 65535.0 / step, low, 1.0 / 65535.0 / step, 0.0, dtype=cv2.CV_32F)
        here = cells[first : first + _STRIPE_CELLS]
        cv2.resize(rows.reshape(-1, *size), (width, len(here)), dst=here, interpolation=cv2.INTER_AREA)
    return cells if cells.ndim == 2 else grey(cells if picture.order == "rgb" else cells[..., ::-1])


def around_lidar(view: View) -> Cloud:
    """Return the cloud at whose LiDAR the air is centred, so that camera and LiDAR look into the same patches.

    Raises NotApplicable: there is none.
    """
    if not view.bundle.known_clouds:
        raise NotApplicable(f"{view.image.topic}: how far away what it shows is, no cloud tells")
    return view.bundle.known_clouds[0]


def polar(view: View, every: int) -> tuple[Floats, Floats]:
    """Return bearing and range over ground (h, w), around the LiDAR, of every so manieth cell each way."""
    to_lidar = np.asarray(view.bundle.transforms.lookup(around_lidar(view).frame_id, "base_link"))
    at = surroundings(view).points(every=every) @ to_lidar[:3, :3].T + to_lidar[:3, 3]
    return np.arctan2(at[..., 1], at[..., 0]), np.hypot(at[..., 0], at[..., 1])
