# SPDX-License-Identifier: Apache-2.0
"""Shot and read noise of an image sensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import light_of, mapped_by_table, values_of

#: Writes samples (h, w) with the noise of a part of the field into an array.
Write = Callable[[Pixels, tuple[slice, slice], Pixels], None]

#: Rows per position in the noise field; few enough for the processor's cache.
_STRIPE = 32
#: How much larger than a stripe the field of normal numbers is, in pixels: the number of possible positions.
_PLAY = 128
#: One standard deviation in the field's integers.
_UNIT = 32.0
#: An estimate of noise from n samples is off by about 1 / sqrt(n) of itself, and by more if the existing noise is not
#: normal: a rise by this share, and by so many times the former, is detectable.
_RISE, _RISE_SIGMA = 0.05, 4.0
#: Luma's share of the noise of three independent channels (ITU-R BT.601's weights).
_OF_LUMA = float(np.sqrt(0.299**2 + 0.587**2 + 0.114**2))
#: Side of the square, in pixels, from which noise is estimated.
_ENOUGH_PX = 256


@dataclass(frozen=True)
class SensorNoise(EachImage):
    """Adds shot noise and read-out noise, different in every frame.

    The count of a sample that stands for e electrons is off by sqrt(e + read²) (Poisson's variance, taken as normal,
    and a normal read noise: EMVA 1288's linear camera model); electrons are proportional to the light of the sRGB
    transfer function. ``gain_spread`` adds noise in proportion to the light itself, as the speckle of coherent light is
    (J. W. Goodman, "Speckle Phenomena in Optics", 2007: its contrast is σ / I). Channels are independent. Stripes of 32
    rows take their noise from one field of normal numbers, each at its own position: repetitions do not line up.

    Guaranteed: the noise estimated from the picture (median of differences from 3 x 3 medians) rises, and the mean
    brightness stays within 2 % of full scale except for what black and white cut off.
    """

    full_well_e: float = param(
        1500.0, low=3.0, high=100000.0, unit="electrons", neutral=100000.0, help="electrons at white; fewer: more noise"
    )
    read_noise_e: float = param(
        8.0, low=0.0, high=200.0, unit="electrons", neutral=0.0, help="standard deviation of reading out"
    )
    gain_spread: float = param(
        0.0, low=0.0, high=1.0, neutral=0.0, help="standard deviation of each sample's light, as a share of it: speckle"
    )

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> int:
        """Choose the field of noise of a segment: its key."""
        return int(rng.integers(2**62))

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Choose where in the field each stripe begins.

        Raises NotApplicable: the picture is so noisy, and so small, that more noise would not be detectable.
        """
        middle = view.picture.with_pixels(_middle(view.picture.pixels))
        before, added = measures.noise(middle), float(self._deviation(np.array(measures.brightness(middle))))
        added *= 1.0 if view.picture.order == "mono" else _OF_LUMA
        if np.hypot(before, added) <= before * (1.0 + _RISE + _RISE_SIGMA / np.sqrt(np.prod(view.picture.size))):
            found = f"its noise of {before:.3f} of full scale hides noise of {added:.3f}"
            raise NotApplicable(f"{view.image.topic}: {found}; expected a larger picture or a less noisy one")
        stripes = -(-view.picture.size[0] // _STRIPE)
        places = rng.integers(0, _PLAY, (stripes, 2), dtype=np.uint8)
        return {"noise_key": int(rng.integers(2**62)) if state is None else state, "places_px": places}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Add noise stripe by stripe."""
        pixels = view.picture.pixels
        channels = pixels.shape[2] if pixels.ndim == 3 else 1
        top = view.picture.full_scale
        of_values = top * self._deviation(np.arange(top + 1) / top)
        add = _adding_bytes if pixels.dtype == np.uint8 else _adding_words
        size = _STRIPE + _PLAY, (view.picture.size[1] + _PLAY) * channels
        write, out = add(of_values, draw["noise_key"], size), np.empty_like(pixels)
        for i, (down, right) in enumerate(draw["places_px"].astype(np.int64)):
            rows = slice(i * _STRIPE, (i + 1) * _STRIPE)
            flat = pixels[rows].reshape(len(pixels[rows]), -1)
            own = np.s_[down : down + len(flat), right * channels : right * channels + flat.shape[1]]
            write(flat, own, out[rows].reshape(flat.shape))
        return out

    def _deviation(self, value: Floats) -> Floats:
        """Return the standard deviations of samples by value, all in shares of full scale."""
        light = light_of(value)
        variance_e2 = (
            light * self.full_well_e + self.read_noise_e**2 + (self.gain_spread * light * self.full_well_e) ** 2
        )
        sigma = np.sqrt(variance_e2) / self.full_well_e
        return np.asarray((values_of(light + sigma) - values_of(light - sigma)) / 2.0)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Estimate noise again, and compare mean brightnesses."""
        before, after = measures.noise(old.picture), measures.noise(new.picture)
        if after <= before:
            return f"the noise went from {before:.5f} to {after:.5f} of full scale, it was to rise"
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        return f"the mean brightness moved by {moved:+.4f}, it was to stay" if abs(moved) > 0.02 else None


def _middle(pixels: Pixels) -> Pixels:
    """Return the centre of a picture, as large as the noise estimate needs."""
    rows, columns = (
        slice(max(0, n - _ENOUGH_PX) // 2, max(0, n - _ENOUGH_PX) // 2 + _ENOUGH_PX) for n in pixels.shape[:2]
    )
    return np.ascontiguousarray(pixels[rows, columns])


def _adding_bytes(of_values: Floats, key: int, size: tuple[int, int]) -> Write:
    """Return what adds noise to bytes: what is above and what is below zero apart, so that all are bytes.

    Deviations of values (256,) are as fine as a 255th of the largest.
    """
    above, below = _halves(key, *size)
    most = min(float(of_values.max()), 255.0)
    deviations = np.rint(np.minimum(of_values, 255.0) * (255.0 / most)).astype(np.uint8)

    def write(samples: Pixels, own: tuple[slice, slice], out: Pixels) -> None:
        of_samples, scale = mapped_by_table(samples, deviations), most / (255.0 * _UNIT)
        cv2.add(samples, cv2.multiply(of_samples, above[own], scale=scale), dst=out)
        cv2.subtract(out, cv2.multiply(of_samples, below[own], scale=scale), dst=out)

    return write


def _adding_words(of_values: Floats, key: int, size: tuple[int, int]) -> Write:
    """Return what adds noise to samples of 16 bits, of deviations (65536,), in single precision."""
    field, deviations = _field(key, *size), of_values.astype(np.float32)

    def write(samples: Pixels, own: tuple[slice, slice], out: Pixels) -> None:
        noise = cv2.multiply(deviations[samples], field[own].astype(np.float32), scale=1.0 / _UNIT)
        cv2.add(samples, noise, dst=out, dtype=cv2.CV_16U)

    return write


@lru_cache(maxsize=4)
def _field(key: int, rows: int, columns: int) -> npt.NDArray[np.int16]:
    """Return normal numbers (rows, columns) in units of a 32nd of their standard deviation."""
    numbers = np.random.default_rng(key).standard_normal((rows, columns), dtype=np.float32)
    return np.asarray(np.rint(numbers * np.float32(_UNIT)).astype(np.int16))


@lru_cache(maxsize=4)
def _halves(key: int, rows: int, columns: int) -> tuple[Pixels, Pixels]:
    """Return how far numbers of the field (rows, columns) are above 0, and how far below."""
    field = _field(key, rows, columns)
    return np.clip(field, 0, 255).astype(np.uint8), np.clip(-field, 0, 255).astype(np.uint8)
