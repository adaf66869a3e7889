# SPDX-License-Identifier: Apache-2.0
"""Pictures in the light of another colour temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Picture, Pixels, spread_px
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.image_tones import Pointwise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import Curve, colour_of_temperature, light_of, mapped_by_table, table, values_of
from mt_nodes.world.camera.local_relight import stripe

#: The white of sRGB.
_WHITE_K = 6504.0
#: Least sample of a pixel from which on it is burnt out in part, and wholly, as shares of full scale.
_BURNT = (0.92, 0.98)
#: The proof looks at so many white pixels or more; their mean is at least this share of full scale.
_LEAST_WHITE, _STILL_WHITE = 100, 0.97
#: A wide area is a so manieth part of the picture's width wide, counted in cells of so many pixels.
_WIDE, _CELL_PX = 30, 8
#: Rows of cells that are computed at a time.
_STRIPE_CELLS = 16


@dataclass(frozen=True)
class WhiteBalanceShifted(Pointwise):
    """Shows the scene as if the light's colour temperature differed from the camera's white balance.

    The red, green and blue light is multiplied by the ratio of a black body of that temperature to one of 6,504 K,
    normalised to green. Chromaticity by Y. Kim et al. (US patent 7,024,034), light by sRGB's transfer function.

    Burnt-out areas such as the sky stay white: gains act on the sensor's raw values, before these are clipped, and
    image processors scale them so that a saturated raw value is white at any white balance (D. Coffin, dcraw, ``-H 0``,
    its default: "clip all highlights to solid white"). How far above white they were nobody knows. In the upper half of
    the picture they are taken for far above it, and so are areas into which a square of a thirtieth of the picture's
    width fits, with what joins them; narrow ones below, such as paint on the road, are taken for just white, and take
    the colour of the light (assumed). A pixel counts as burnt out
    as its least sample nears full scale, wholly at 98 % of it, from 92 % on in part (assumed).

    Guaranteed: the ratio of red to blue rises for a lower temperature and falls for a higher one, and wide areas
    that were burnt out stay white.
    """

    temperature_k: float = param(
        3500.0, low=2000.0, high=20000.0, unit="K", neutral=6500.0, help="lower: warmer, redder"
    )

    def gains(self) -> tuple[float, float, float]:
        """Return the factors of red, green and blue light."""
        pairs = zip(colour_of_temperature(self.temperature_k), colour_of_temperature(_WHITE_K), strict=True)
        red, green, blue = (channel / white for channel, white in pairs)
        return red / green, 1.0, blue / green

    def curves(self) -> tuple[Curve, ...]:
        """One factor of the light for each colour."""
        return tuple(_times(gain) for gain in self.gains())

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random. Raises NotApplicable: the picture has no colours."""
        if view.picture.order == "mono":
            raise NotApplicable(f"{view.image.topic}: a picture without colours has no white balance")
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Look every sample up, and keep what is burnt out white; so many rows at a time, plane by plane."""
        picture, scale = view.picture, 1.0 / view.picture.full_scale
        tables, burnt = self.tables(picture), table(_burnt_share, picture.pixels.dtype)
        new = np.empty_like(picture.pixels)
        wide = _wide(picture, burnt)
        for first in range(0, len(wide), _STRIPE_CELLS):
            rows, at = stripe(slice(first, first + _STRIPE_CELLS), picture, _CELL_PX)
            old = cv2.split(picture.pixels[rows])
            planes = [mapped_by_table(*pair) for pair in zip(old, tables, strict=True)]
            if wide[max(first - 1, 0) : first + _STRIPE_CELLS + 1].any():
                share = cv2.multiply(mapped_by_table(cv2.min(cv2.min(*old[:2]), old[2]), burnt), at(wide), scale=scale)
                planes = [cv2.add(p, cv2.multiply(cv2.bitwise_not(p), share, scale=scale)) for p in planes]
            cv2.merge(planes, dst=new[rows])
        return new

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean red and blue, and look at what was white."""
        top = (float(old.picture.full_scale),) * 4
        white = np.asarray(cv2.inRange(old.picture.pixels, top, top))
        if spread_px(old.image):
            white = cv2.erode(white, np.ones((5, 5), np.uint8))  # colours next to it spread into it
        side = white.shape[1] // _WIDE + 2 * _CELL_PX
        white = cv2.erode(white, np.ones((side, side), np.uint8), borderType=cv2.BORDER_REPLICATE)
        if np.count_nonzero(white) >= _LEAST_WHITE and min(measures.colour(new.picture, white)) < _STILL_WHITE:
            return "what was burnt out is no longer white"
        ratios = [(red + 1e-3) / (blue + 1e-3) for red, _, blue in map(measures.colour, (old.picture, new.picture))]
        if ratios[1] > ratios[0] if self.temperature_k < _WHITE_K else ratios[1] < ratios[0]:
            return None
        return f"red over blue went from {ratios[0]:.3f} to {ratios[1]:.3f}, asked for {self.temperature_k:g} K"


def _burnt_share(values: Floats) -> Floats:
    """Return the share to which pixels are burnt out, by their least samples."""
    low, high = _BURNT
    return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0))


def _wide(picture: Picture, burnt: Pixels) -> Pixels:
    """Return full scale where cells (h, w) that are burnt out belong to a wide area or lie high, and next to them.

    ``burnt``: table of the share of burning out by a pixel's least sample.
    """
    height, width = (-(-side // _CELL_PX) for side in picture.size)
    some = cv2.split(cv2.resize(picture.pixels, (2 * width, 2 * height), interpolation=cv2.INTER_NEAREST))
    share = mapped_by_table(cv2.min(cv2.min(*some[:2]), some[2]), burnt)
    mean = cv2.resize(share, (width, height), interpolation=cv2.INTER_AREA)
    white = (mean > 0.9 * picture.full_scale).astype(np.uint8)
    side = -(-picture.size[1] // (_WIDE * _CELL_PX))
    core = cv2.morphologyEx(white, cv2.MORPH_OPEN, np.ones((side, side), np.uint8))
    count, label = cv2.connectedComponents(white)
    of_wide = np.zeros(count, np.uint8)
    of_wide[label[core > 0]] = 1
    joined = of_wide[label] & white  # an opening by an even number of cells is off by one
    high = picture.size[0] // 2 // _CELL_PX
    joined[:high] = white[:high]
    near = cv2.dilate(joined, np.ones((3, 3), np.uint8))
    return np.asarray(near * picture.pixels.dtype.type(picture.full_scale))


def _times(gain: float) -> Curve:
    return lambda values: values_of(light_of(values) * gain)
