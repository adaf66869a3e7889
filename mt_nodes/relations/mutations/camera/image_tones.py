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
from mt_nodes.data.cdr.outgoing import unwritten_pixels
from mt_nodes.data.images.codecs import Picture, Pixels, spread_px
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import Curve, byte_translation, light_of, mapped_by_table, table, values_of


class Pointwise(EachImage):
    """Base: maps samples by a curve, one for all channels, or one each for red, green and blue."""

    random: ClassVar[bool] = False

    @abstractmethod
    def curves(self) -> tuple[Curve, ...]:
        """Return one curve, or those of red, green and blue; each maps values 0 to 1 to values."""

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Look every sample up."""
        return mapped_by_table(view.picture.pixels, *self.tables(view.picture), out=_outgoing(view))

    def tables(self, picture: Picture) -> list[Pixels]:
        """Return the curves as tables over samples: one, or one for each of a picture's channels, in their order."""
        tables = [table(curve, picture.pixels.dtype) for curve in self.curves()]
        if len(tables) == 3:
            # For a single channel, the green curve is nearest to perceived brightness.
            tables = [tables["rgb".index(c)] for c in picture.order] if picture.pixels.ndim == 3 else [tables[1]]
        return tables


def _outgoing(view: View) -> Pixels | None:
    """Return where to write the picture so that it need not be copied into a message; None where it is coded first."""
    plain, pixels = view.image.pixels, view.picture.pixels
    same = view.image.compressed is None and np.may_share_memory(plain, pixels)
    return unwritten_pixels(view.image) if same and (plain.shape, plain.dtype) == (pixels.shape, pixels.dtype) else None


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
            return mapped_by_table(pixels, np.clip(sums, 0, 255).astype(np.uint8), out=_outgoing(view))
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
