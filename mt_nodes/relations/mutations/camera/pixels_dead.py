# SPDX-License-Identifier: Apache-2.0
"""Dead and hot pixels, and dead rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask


@dataclass(frozen=True)
class PixelsDead(EachImage):
    """Leaves pixels and whole rows black, and other pixels white, the same ones at every frame of a segment.

    Guaranteed: those pixels and no others changed, each is black or white now (but for what a lossy encoding does).
    """

    dead: int = param(50, low=0, high=100000, neutral=0, help="single pixels that stay black")
    hot: int = param(50, low=0, high=100000, neutral=0, help="single pixels that stay white")
    dead_rows: int = param(1, low=0, high=200, neutral=0, help="rows that stay black")

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> int:
        """Choose what is broken for a segment: a key."""
        return int(rng.integers(2**62))

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Choose the broken rows and pixels by the segment's key.

        Raises:
            NotApplicable: the picture is too small for them.
        """
        height, width = view.picture.size
        single = self.dead + self.hot
        if self.dead_rows >= height or single > height * width // 2 or not single + self.dead_rows:
            broken = f"{self.dead_rows} rows and {single} pixels"
            raise NotApplicable(f"{view.image.topic}: {broken} of {height} x {width} cannot be broken")
        own = np.random.default_rng(int(rng.integers(2**62)) if state is None else state)
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
        """Look at the broken rows: nothing is to be seen there."""
        rows = np.zeros(old.picture.size, np.uint8)
        rows[draw["rows"]] = 255
        left = measures.brightness(new.picture, rows) if len(draw["rows"]) else 0.0
        return f"a brightness of {left:.3f} is left in dead rows" if left > 0.15 else None
