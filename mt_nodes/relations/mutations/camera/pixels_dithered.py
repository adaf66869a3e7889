# SPDX-License-Identifier: Apache-2.0
"""The camera sham: a change of pictures that must not matter to any stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.images.codecs import Pixels, decode, lossy, spread_px
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View, of_image
from mt_nodes.world.camera import measures

#: Length of the line of random bytes from which rows take theirs.
_LINE = 1 << 18
#: If pixels share samples (Bayer, YUV 4:2:2), one step in a sample gives up to so many steps in its neighbours, by
#: rounding.
_STEPS_SHARED = 4
#: A JPEG re-encoded at the best quality, without subsampling, is off by rounding only: colours to luma and back, and 64
#: coefficients per block. For noise, and a street, encoded at qualities 50, 90 and 95: 5 steps at most, on average 0.5.
_BEST = (cv2.IMWRITE_JPEG_QUALITY, 100, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444)
_STEPS_CODED, _MEAN_STEPS_CODED = 6, 1.0


@dataclass(frozen=True)
class PixelsDithered(EachImage):
    """Changes a random share of samples by one step of 8 bits up or down, far below any sensor's noise.

    Two pictures of the same scene by a real camera differ by more: read noise alone is about one step, and light comes
    in photons (shot noise; EMVA 1288 adds both). A step is 1/255 of full scale, at any depth; samples that would leave
    the scale stay. A JPEG is re-encoded at the best quality, because at its original quality one step could become a
    larger one.

    Guaranteed: no sample changes by more than one step (four if pixels share samples; for a JPEG six, and one on
    average).
    """

    role = "sham"

    share: float = param(
        0.25, low=0.01, high=1.0, neutral=0.01, help="share of the samples that change, half up, half down"
    )

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the key of the pattern, which is as large as the picture itself."""
        return {"pattern_key": int(rng.integers(2**62))}

    def apply_to_images(self, bundle: Bundle, draw: Draw) -> tuple[Bundle, Effects]:
        """Change samples if pixels share them, else colours, which are the samples."""
        own = {image.topic: self._own(image, of_image(draw, image)["pattern_key"]) for image in bundle.images}
        rest = replace(bundle, images=tuple(image for image in bundle.images if own[image.topic] is None))
        plain = {image.topic: image for image in super().apply_to_images(rest, draw)[0].images}
        return replace(bundle, images=tuple(own[i.topic] or plain[i.topic] for i in bundle.images)), Effects()

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Add the pattern to the colours."""
        return self._dithered(view.picture.pixels, draw["pattern_key"])

    def _own(self, image: Image, key: int) -> Image | None:
        """Return an image changed in the manner of its encoding; None if its samples are its colours."""
        if lossy(image):
            coded = cv2.imencode(".jpg", self._dithered(decode(image).pixels, key), _BEST)[1]
            return replace(image, compressed=coded.tobytes())
        if spread_px(image):
            samples = image.pixels.astype(image.pixels.dtype.newbyteorder("="), copy=False)
            return replace(image, pixels=self._dithered(samples, key).astype(image.pixels.dtype, copy=False))
        return None

    def _dithered(self, old: Pixels, key: int) -> Pixels:
        """Return samples with the pattern added; what would leave the scale stays."""
        chance = _chance(old.shape, key)
        half = round(128 * self.share)  # of 256 values so many go up, and as many down
        table = np.arange(256)
        up, down = (cv2.LUT(chance, goes.astype(np.uint8)) for goes in (table < half, table >= 256 - half))
        if old.dtype != np.uint8:
            step = np.asarray(np.iinfo(old.dtype).max // 255, dtype=old.dtype)
            up, down = up.astype(old.dtype) * step, down.astype(old.dtype) * step
        return np.asarray(cv2.subtract(cv2.add(old, up), down))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check the size of the differences; the base class proves that there are some."""
        coded = lossy(old.image)
        steps = _STEPS_CODED if coded else _STEPS_SHARED if spread_px(old.image) else 1
        most = measures.largest_difference(old.picture, new.picture)
        if most > 1.001 * steps / 255.0:
            return f"a sample differs by {most:.2%} of full scale, at most {steps} of 255 steps are allowed"
        mean = 255.0 * measures.mean_difference(old.picture, new.picture)
        if coded and mean > _MEAN_STEPS_CODED:
            return f"samples differ by {mean:.2f} steps on average, at most {_MEAN_STEPS_CODED:g} are allowed"
        return None


def _chance(shape: tuple[int, ...], key: int) -> npt.NDArray[np.uint8]:
    """Return random bytes in the shape of a picture: each row is a piece of one long line of bytes."""
    generator = np.random.Generator(np.random.PCG64(key))
    wide = int(np.prod(shape[1:]))
    line = np.frombuffer(generator.bytes(_LINE + wide), np.uint8)
    begins = generator.integers(0, _LINE + 1, shape[0])
    return np.lib.stride_tricks.sliding_window_view(line, wide)[begins].reshape(shape)
