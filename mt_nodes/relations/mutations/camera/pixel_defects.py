# SPDX-License-Identifier: Apache-2.0
"""Dead and hot pixels, and salt-and-pepper noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Ints
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, OnEachCamera, View
from mt_nodes.relations.mutations.untouched import UNTOUCHED
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask


@dataclass(frozen=True)
class ImpulseNoise(EachImage):
    """Turns single pixels white or black, other ones in every frame: bit errors between sensor and stack.

    Guaranteed: exactly the drawn pixels change, each to black or white (except for what a lossy encoding does).
    """

    share: float = param(0.002, low=0.00001, high=0.3, neutral=1e-05, help="share of the pixels that are hit")
    white_share: float = param(
        0.5, low=0.0, high=1.0, aspect="fixed", help="share of those that turn white; the others turn black"
    )

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Choose a key for the places, and how many turn white."""
        height, width = view.picture.size
        count = max(1, int(rng.binomial(height * width, self.share)))
        return {
            "places_key": int(rng.integers(2**62)),
            "count": count,
            "white": int(rng.binomial(count, self.white_share)),
        }

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Set the pixels."""
        new = view.picture.pixels.copy()
        flat, places = new.reshape(new.shape[0] * new.shape[1], -1), _places(view, draw)
        flat[places[draw["white"] :]] = 0
        flat[places[: draw["white"]]] = view.picture.full_scale
        return new

    def affected(self, view: View, draw: Draw) -> Mask:
        """The pixels drawn."""
        mask = np.zeros(view.picture.size, np.uint8)
        mask.reshape(-1)[_places(view, draw)] = 255
        return mask

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check whether there is more black and more white than before."""
        for what, level in (("white", 0.9), ("not black", 0.1)):
            count = draw["white"] if what == "white" else draw["count"] - draw["white"]
            shares = [measures.share_at_least(view.picture, level, self.affected(old, draw)) for view in (old, new)]
            rose = shares[1] - shares[0] if what == "white" else shares[0] - shares[1]
            if count and rose < 0.0:
                return f"of the pixels drawn {shares[0]:.3f} were {what}, {shares[1]:.3f} are now"
        return None


def _places(view: View, draw: Draw) -> Ints:
    """Return the drawn pixels (n,) as indices in reading order; of repeated ones the first counts."""
    height, width = view.picture.size
    rng = np.random.default_rng(draw["places_key"])
    return rng.integers(0, height * width, size=int(draw["count"]))


@dataclass(frozen=True)
class PixelsDead(OnEachCamera):
    """Turns pixels and whole rows black, and other pixels white, the same ones in every frame of a segment.

    Guaranteed: exactly those pixels change, each to black or white (except for what a lossy encoding does).
    """

    dead: int = param(50, low=0, high=100000, neutral=0, help="single pixels that stay black")
    hot: int = param(50, low=0, high=100000, neutral=0, help="single pixels that stay white")
    dead_rows: int = param(1, low=0, high=200, neutral=0, help="rows that stay black")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Choose the broken rows and pixels by the segment's key.

        Raises NotApplicable: the picture is too small for them.
        """
        height, width = view.picture.size
        single = self.dead + self.hot
        if self.dead_rows >= height or single > height * width // 2 or not single + self.dead_rows:
            broken = f"{self.dead_rows} rows and {single} pixels"
            raise NotApplicable(f"{view.image.topic}: {broken} of {height} x {width} cannot be broken")
        own = np.random.default_rng(self.key(rng, view, state))
        rows = np.sort(own.choice(height, self.dead_rows, replace=False)).astype(np.int32)
        return {"rows": rows, "pixels": own.choice(height * width, single, replace=False).astype(np.int32)}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Set them."""
        new = view.picture.pixels.copy()
        flat = new.reshape(new.shape[0] * new.shape[1], -1)
        flat[draw["pixels"][: self.dead]] = 0
        flat[draw["pixels"][self.dead :]] = view.picture.full_scale
        new[draw["rows"]] = 0
        return new

    def affected(self, view: View, draw: Draw) -> Mask:
        """The broken pixels and rows."""
        mask = np.zeros(view.picture.size, np.uint8)
        mask.reshape(-1)[draw["pixels"]] = 255
        mask[draw["rows"]] = 255
        return mask

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the broken rows show nothing."""
        rows = np.zeros(old.picture.size, np.uint8)
        rows[draw["rows"]] = 255
        left = measures.brightness(new.picture, rows) if len(draw["rows"]) else 0.0
        return f"a brightness of {left:.3f} is left in dead rows" if left > 0.15 else None


@dataclass(frozen=True)
class ImageBlanked(EachImage):
    """Shows nothing but black in some pictures, as a camera whose sensor or link has failed while its driver goes on.

    Each picture is black with the probability ``share``, independently, as in "missing camera" of MultiCorrupt
    (T. Beemelmanns et al., IEEE IV 2024). A camera that sends nothing at all is ``frames_dropped``. Guaranteed: the
    drawn pictures are black throughout (but for what a lossy encoding leaves), the others are unchanged.
    """

    share: float = param(1.0, low=0.001, high=1.0, neutral=0.001, help="probability that a picture is black")

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Which pictures, unless all are."""
        return self.share < 1.0

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Toss a coin."""
        return {} if rng.random() < self.share else {UNTOUCHED: "chance left this picture as it is"}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Return black."""
        return np.zeros_like(view.picture.pixels)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Measure what light is left, at its brightest."""
        left = float(new.picture.luma().max()) / new.picture.full_scale
        return f"a brightness of {left:.3f} is left in a black picture" if left > 0.02 else None
