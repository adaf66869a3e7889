# SPDX-License-Identifier: Apache-2.0
"""A picture out of focus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures

#: Rows that are blurred at a time, so that they fit the processor's cache.
_STRIPE = 64


@dataclass(frozen=True)
class ImageDefocused(EachImage):
    """Spreads every point over a disc, as a lens out of focus does.

    The disc of radius r is taken as two boxes one after the other of its variance, r²/4 on each axis, in whole pixels:
    that takes as long for any radius.

    Guaranteed: detail (standard deviation of the Laplacian) fell, and mean brightness stayed within 1 % of full scale.
    """

    radius_px: float = param(
        3.0, low=0.5, high=30.0, unit="pixels", neutral=0.5, help="radius of the disc, in pixels of the picture"
    )
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose."""
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Blur by one box, then by the other, in stripes with what their edges need to know of the rows beyond."""
        pixels, widths = view.picture.pixels, _widths(self.radius_px)
        new, beyond = np.empty_like(pixels), sum(width // 2 for width in widths)
        rows = max(_STRIPE, 4 * beyond)
        for start in range(0, len(pixels), rows):
            first = max(0, start - beyond)
            part = pixels[first : start + rows + beyond]
            for width in widths:
                part = cv2.blur(part, (width, width), borderType=cv2.BORDER_REFLECT_101)
            new[start : start + rows] = part[start - first : start - first + rows]
        return new

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare detail and brightness."""
        before, after = measures.sharpness(old.picture), measures.sharpness(new.picture)
        if after >= before:
            return f"detail went from {before:.4f} to {after:.4f}, it was to fall"
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        return f"the mean brightness moved by {moved:+.4f}, it was to stay" if abs(moved) > 0.01 else None


def _widths(radius_px: float) -> tuple[int, int]:
    """Return the odd widths of two boxes, k² - 1 over 12 of variance each, that come nearest to a disc's r² / 4."""
    target = 3.0 * radius_px**2 + 2.0
    first = 2 * int((np.sqrt(target / 2.0) - 1.0) // 2.0) + 1
    second = 2 * round((np.sqrt(max(target - first**2, 9.0)) - 1.0) / 2.0) + 1
    return first, second
