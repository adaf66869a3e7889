# SPDX-License-Identifier: Apache-2.0
"""Effect of attenuating and scattering air on pictures: Koschmieder's law over depth, in linear light."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.world.camera.light import Colour
from mt_nodes.world.camera.relight import blended, coarse_light, grey

Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
#: Light of the horizon if a picture shows no sky: that of an overcast day at usual exposure (assumed).
_NO_SKY = 0.6
#: Bounds of the air light: the night sky must not give a black veil, an overexposed sky not one of full scale.
_DARKEST, _BRIGHTEST = 0.02, 0.85
#: Bins of the transmitted share of light, for the proof.
_SHARES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
_LEAST_CELLS, _LEAST_CONTRAST = 200, 0.02
_STEADY = 0.1
#: Neighbouring cells whose transmitted shares differ by less than this show no edge.
_LEAST_STEP = 0.04
_SLACK, _ROUNDING = 0.15, 0.01


def air_light(view: View, tint: Colour, brightness: float = 1.0) -> Singles:
    """Return the light (3,), red, green, blue, of optically thick air of a tint, relative to the picture's own sky."""
    around = surroundings(view)
    light = grey(coarse_light(view.picture, around.range_m.shape, around.depth.step_px))
    sky = light[around.sky]
    bright = float(np.quantile(sky, 0.7)) if sky.size >= 0.005 * light.size else _NO_SKY
    colour = np.array(tint, np.float32)
    return np.asarray(brightness * np.clip(bright, _DARKEST, _BRIGHTEST) * colour / colour.max(), np.float32)


def veiled(view: View, passing: Floats, air: Singles, white: Floats | None = None) -> npt.NDArray[Any]:
    """Return the pixels of a view through air of which a share ``passing`` (h, w) of each cell's light arrives.

    I e^(-τ) + A (1 - e^(-τ)) in linear light (H. Koschmieder, "Theorie der horizontalen Sichtweite", 1924). A share
    ``white`` (h, w) of each cell is covered by something as bright as the thickest air.
    """
    around = surroundings(view)
    share, cover = passing.astype(np.float32), np.float32(0.0) if white is None else white.astype(np.float32)
    gain: Singles = share * (np.float32(1.0) - cover)
    return blended(view.picture, gain, air, around.depth.step_px, _LEAST_STEP)


def proof_of_veil(old: View, new: View, passing: Floats, air: Singles) -> str | None:
    """Check the contrast by transmission: it falls with the transmitted light, and far objects fade into the air.

    For each bin of cells with similar transmission, the deviation of the brightness is compared with transmission × its
    old value; bins with too little contrast do not count.
    """
    around = surroundings(old)
    shape, step = around.range_m.shape, around.depth.step_px
    before, after = (grey(coarse_light(v.picture, shape, step)) for v in (old, new))
    # Where range jumps within or next to a cell, a cell shows both.
    size = np.ones((3, 3), np.uint8)
    steady = cv2.dilate(passing, size) - cv2.erode(passing, size) < _STEADY
    whole = steady & (after < 0.9) & (before < 0.9)
    for low, high in pairwise(_SHARES):
        band = whole & (passing >= low) & (passing < high)
        if np.count_nonzero(band) < _LEAST_CELLS or before[band].std() < _LEAST_CONTRAST:
            continue
        expected = (before[band] * passing[band] + (1.0 - passing[band]) * float(grey(air[None])[0])).std()
        ratio = float(after[band].std() / max(float(expected), 1e-6))
        if not 1.0 - _SLACK < ratio < 1.0 + _SLACK and abs(after[band].std() - expected) > _ROUNDING:
            return f"where {low:.0%} to {high:.0%} of the light arrives contrast is {ratio:.2f} of what it was to be"
    return None


def proof_of_mean(old: View, new: View, passing: Floats, air: Singles, white: Floats) -> str | None:
    """Check the mean light by transmission: the transmitted share of the old light, and the air's for the rest.

    Single particles add contrast of their own, so contrast is no measure here.
    """
    around = surroundings(old)
    before, after = (grey(coarse_light(v.picture, around.range_m.shape, around.depth.step_px)) for v in (old, new))
    whole = (after < 0.9) & (before < 0.9)
    for low, high in pairwise((*_SHARES, 1.0)):
        band = whole & (passing >= low) & (passing < high)
        if np.count_nonzero(band) < _LEAST_CELLS:
            continue
        left = (passing * (1.0 - white))[band]
        expected = float((before[band] * left + (1.0 - left) * float(grey(air[None])[0])).mean())
        off = float(after[band].mean()) - expected
        if abs(off) > _SLACK * expected + _ROUNDING:
            return f"where {low:.0%} to {high:.0%} of the light arrives the mean light is off by {off:+.3f}"
    return None


def around_lidar(view: View) -> Cloud:
    """Return the cloud at whose LiDAR the air is centred, so that camera and LiDAR look into the same patches.

    Raises:
        NotApplicable: there is none.
    """
    if not view.bundle.known_clouds:
        raise NotApplicable(f"{view.image.topic}: how far away what it shows is, no cloud tells")
    return view.bundle.known_clouds[0]


def polar(view: View) -> tuple[Floats, Floats, Floats]:
    """Return bearing, range over ground, and range (h, w) of cells: the first two around the LiDAR."""
    around = surroundings(view)
    to_lidar = np.asarray(view.bundle.transforms.lookup(around_lidar(view).frame_id, "base_link"))
    at = around.points() @ to_lidar[:3, :3].T + to_lidar[:3, 3]
    return np.arctan2(at[..., 1], at[..., 0]), np.hypot(at[..., 0], at[..., 1]), around.range_m
