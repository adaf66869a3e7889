# SPDX-License-Identifier: Apache-2.0
"""Pictures with changed brightness, contrast, exposure, tone curve or colours."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Picture, Pixels, spread_px
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import (
    Curve,
    Floats,
    byte_translation,
    colour_of_temperature,
    light_of,
    mapped_by_table,
    table,
    values_of,
)


class Pointwise(EachImage):
    """Base: maps samples by a curve, one for all channels, or one each for red, green and blue."""

    random: ClassVar[bool] = False

    @abstractmethod
    def curves(self) -> tuple[Curve, ...]:
        """Return one curve, or those of red, green and blue; each maps values 0 to 1 to values."""

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random."""
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Look every sample up."""
        pixels, curves = view.picture.pixels, self.curves()
        tables = [table(curve, pixels.dtype) for curve in curves]
        if len(tables) == 3:
            # For a single channel, the green curve is nearest to perceived brightness.
            tables = [tables["rgb".index(c)] for c in view.picture.order] if pixels.ndim == 3 else [tables[1]]
        return mapped_by_table(pixels, *tables)


@dataclass(frozen=True)
class BrightnessChanged(Pointwise):
    """Adds a constant to every sample, clipped at black and white, like a display's brightness control.

    Aperture, gain and exposure time of a camera multiply light instead: see ``exposure_changed``.

    Guaranteed: the mean brightness changes in the requested direction, by at most the constant and at least a tenth of
    it.
    """

    offset: float = param(
        0.15, low=-0.9, high=0.9, neutral=0.0, help="what is added, as a share of full scale; below 0: darker"
    )

    def curves(self) -> tuple[Curve, ...]:
        """One straight line of slope 1."""
        return (lambda values: values + self.offset,)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Add integers: the curve to within half a step."""
        pixels, added = view.picture.pixels, round(abs(self.offset) * view.picture.full_scale)
        if pixels.dtype == np.uint8 and byte_translation() is not None:
            sums = np.arange(256) + (added if self.offset > 0.0 else -added)
            return mapped_by_table(pixels, np.clip(sums, 0, 255).astype(np.uint8))
        change = cv2.add if self.offset > 0.0 else cv2.subtract
        # As one channel: OpenCV then has one number to add instead of a pattern of four.
        return np.asarray(change(pixels.reshape(len(pixels), -1), float(added))).reshape(pixels.shape)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean brightnesses."""
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        share = moved / self.offset if self.offset else 0.0
        slack = 1.0 / (255.0 * abs(self.offset)) if self.offset else 0.0
        if 0.1 <= share <= 1.0 + slack:
            return None
        return f"the mean brightness moved by {moved:+.3f}, asked for {self.offset:+.3f} and at least a tenth of it"


@dataclass(frozen=True)
class ContrastChanged(Pointwise):
    """Multiplies every sample's distance from a mid grey, clipped at black and white.

    Guaranteed: with a gain below 1 the standard deviation of the brightness falls, to at most 2 % more than gain times
    its old value; with one above 1 it rises, to no more than that.
    """

    gain: float = param(
        0.6, low=0.05, high=4.0, neutral=1.0, help="factor of the distance from middle grey; below 1: flatter"
    )
    middle: float = param(0.5, low=0.0, high=1.0, aspect="fixed", help="the grey that stays, as a share of full scale")

    def curves(self) -> tuple[Curve, ...]:
        """One straight line through the middle."""
        return (lambda values: self.middle + self.gain * (values - self.middle),)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare standard deviations."""
        before, after = measures.contrast(old.picture), measures.contrast(new.picture)
        most = 1.02 * self.gain * before + 0.5 / 255.0
        if after <= most and (after < before if self.gain < 1.0 else after > before):
            return None
        return f"the contrast went from {before:.4f} to {after:.4f}, asked for a factor of {self.gain:g}"


@dataclass(frozen=True)
class ExposureChanged(Pointwise):
    """Multiplies the light by a power of two, as exposure time, aperture or gain do; overexposed pixels are white.

    Light follows the sRGB transfer function (IEC 61966-2-1), because the camera's own curve is unknown. White stays
    white in a darkened picture: the picture does not tell how bright it was.

    Guaranteed: the mean brightness rises or falls as requested, and an overexposed picture has no less white than
    before.
    """

    stops: float = param(1.5, low=-6.0, high=6.0, unit="EV", neutral=0.0, help="power of two; below 0: under-exposed")

    def curves(self) -> tuple[Curve, ...]:
        """One factor of the light."""
        return (lambda values: values_of(light_of(values) * 2.0**self.stops),)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean brightnesses, and what is white."""
        before, after = measures.brightness(old.picture), measures.brightness(new.picture)
        if not (after > before if self.stops > 0.0 else after < before):
            return f"the mean brightness went from {before:.4f} to {after:.4f}, asked for {self.stops:+g} EV"
        white = [measures.share_at_least(view.picture, 0.99) for view in (old, new)]
        lost = self.stops > 0.0 and white[1] < white[0]
        return f"the share of white pixels fell from {white[0]:.4f} to {white[1]:.4f}" if lost else None


@dataclass(frozen=True)
class GammaChanged(Pointwise):
    """Raises every sample to a power: midtones darken above 1 and brighten below it; black and white stay.

    Guaranteed: the mean brightness falls for a gamma above 1 and rises for one below it; black and white areas stay
    black and white, within a tenth of full scale.
    """

    gamma: float = param(1.5, low=0.2, high=5.0, neutral=1.0, help="the power; above 1: darker between black and white")

    def curves(self) -> tuple[Curve, ...]:
        """One power."""
        return (lambda values: np.power(values, self.gamma),)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean brightnesses, black and white."""
        before, after = measures.brightness(old.picture), measures.brightness(new.picture)
        if not (after < before if self.gamma > 1.0 else after > before):
            return f"the mean brightness went from {before:.4f} to {after:.4f}, asked for a gamma of {self.gamma:g}"
        ends = [measures.ends(view.picture) for view in (old, new)]
        moved = max(
            (abs(after - before) for before, after in zip(*ends, strict=True) if before in (0.0, 1.0)), default=0.0
        )
        return f"black or white moved by {moved:.3f}, they were to stay" if moved > 0.1 else None


#: The white of sRGB.
_WHITE_K = 6504.0
#: Least sample of a pixel from which on it is burnt out in part, and wholly, as shares of full scale.
_BURNT = (0.92, 0.98)
#: The proof looks at so many white pixels or more; their mean is at least this share of full scale.
_LEAST_WHITE, _STILL_WHITE = 100, 0.97
#: A wide area is a so manieth part of the picture's width wide, counted in cells of so many pixels.
_WIDE, _CELL_PX = 30, 8


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
        """Look every sample up, and keep what is burnt out white."""
        pixels, new = view.picture.pixels, super().change_image(view, draw)
        least = cv2.min(cv2.min(*cv2.split(pixels)[:2]), cv2.extractChannel(pixels, 2))
        bright = np.flatnonzero(cv2.reduce(least, 1, cv2.REDUCE_MAX) > _BURNT[0] * view.picture.full_scale)
        if not bright.size:
            return new
        rows = slice(int(bright[0]), int(bright[-1]) + 1)
        share = mapped_by_table(least[rows], table(_burnt_share, pixels.dtype))
        share = cv2.multiply(share, _wide(share, view.picture, rows.start), scale=1.0 / view.picture.full_scale)
        white, scale = view.picture.full_scale, 1.0 / view.picture.full_scale
        missing = cv2.subtract((float(white),) * 4, new[rows])
        new[rows] = cv2.add(new[rows], cv2.multiply(missing, cv2.merge((share,) * 3), scale=scale))
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


def _wide(share: Pixels, picture: Picture, first_row: int) -> Pixels:
    """Return full scale (h, w) where burnt-out pixels belong to a wide area or lie high, 0 elsewhere, with soft edges.

    ``share``: (h, w) of burning out, from the first row on.
    """
    full_scale, high = picture.full_scale, max(0, (picture.size[0] // 2 - first_row) // _CELL_PX)
    height, width = (max(1, -(-side // _CELL_PX)) for side in share.shape)
    burnt = (cv2.resize(share, (width, height), interpolation=cv2.INTER_AREA) > 0.9 * full_scale).astype(np.uint8)
    side = -(-share.shape[1] // (_WIDE * _CELL_PX))
    core = cv2.morphologyEx(burnt, cv2.MORPH_OPEN, np.ones((side, side), np.uint8))
    _, label = cv2.connectedComponents(burnt)
    joined = np.isin(label, np.unique(label[core > 0])) & (burnt > 0)
    joined[:high] = burnt[:high] > 0
    near = cv2.dilate(joined.astype(np.uint8), np.ones((3, 3), np.uint8))
    return np.asarray(cv2.resize(near * share.dtype.type(full_scale), share.shape[::-1]))


def _times(gain: float) -> Curve:
    return lambda values: values_of(light_of(values) * gain)


@dataclass(frozen=True)
class SaturationChanged(EachImage):
    """Multiplies every colour's distance from the grey of its brightness (BT.601); 0 removes all colour.

    Guaranteed: the spread of red, green and blue changes by the factor if it is to fall, and rises if it is to rise;
    the mean brightness stays, within 2 % of full scale where colours are cut off.
    """

    factor: float = param(0.3, low=0.0, high=3.0, neutral=1.0, help="factor of the distance from grey; below 1: paler")
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random. Raises NotApplicable: the picture has no colours."""
        if measures.saturation(view.picture) == 0.0:
            raise NotApplicable(f"{view.image.topic}: the picture has no colours")
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Mix the picture with its own grey."""
        grey = cv2.cvtColor(view.picture.luma(), cv2.COLOR_GRAY2BGR)
        return np.asarray(cv2.addWeighted(view.picture.pixels, self.factor, grey, 1.0 - self.factor, 0.0, dst=grey))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare spreads of the channels and mean brightnesses."""
        before, after = measures.saturation(old.picture), measures.saturation(new.picture)
        # Mosaics and shared colours add false colours along edges.
        slack = 4.0 if spread_px(old.image) else 1.5
        most = self.factor * before + slack / 255.0
        if after > most or not (after < before if self.factor < 1.0 else after > before):
            return f"the saturation went from {before:.4f} to {after:.4f}, asked for a factor of {self.factor:g}"
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        return f"the mean brightness moved by {moved:+.4f}, it was to stay" if abs(moved) > 0.02 else None
