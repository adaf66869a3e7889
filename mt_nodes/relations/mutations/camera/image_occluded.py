# SPDX-License-Identifier: Apache-2.0
"""A camera whose view is partly blocked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels, spread_px
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import OnEachCamera, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask

#: Corners of the polygon that is drawn.
_CORNERS = 9
#: Reflectance of the object towards the camera: near black, as it is in its own shadow (an assumption).
_BLACK = 0.04


@dataclass(frozen=True)
class ImageOccluded(OnEachCamera):
    """Covers part of the picture with something dark and opaque, such as a leaf or tape, throughout a segment.

    Guaranteed: the covered share of the picture is as requested, within a tenth of it or what the picture's edges cut
    off; the covered part is uniformly dark; outside it, no pixel changes.
    """

    share: float = param(0.1, low=0.005, high=0.6, neutral=0.005, help="share of the picture that is covered")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Choose a polygon by the segment's key: corners (n, 2), x and y in pixels."""
        own = np.random.default_rng(self.key(rng, view, state))
        height, width = view.picture.size
        angle = (np.arange(_CORNERS) + own.uniform(0.0, 0.6, _CORNERS)) * 2.0 * np.pi / _CORNERS
        reach = own.uniform(0.75, 1.25, _CORNERS)
        round_shape = np.stack([reach * np.cos(angle), reach * np.sin(angle)], axis=1)
        area = float(cv2.contourArea(round_shape.astype(np.float32)))
        shape = round_shape * np.sqrt(self.share * height * width / area)
        low, high = -shape.min(axis=0), (width, height) - shape.max(axis=0)
        middle = own.uniform(np.minimum(low, high), np.maximum(low, high))
        return {"corners_px": (middle + shape).astype(np.float32)}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Fill the polygon."""
        dark = (round(_BLACK * view.picture.full_scale),) * 3
        corners = [np.rint(draw["corners_px"]).astype(np.int32)]
        return np.asarray(cv2.fillPoly(view.picture.pixels.copy(), corners, dark))

    def affected(self, view: View, draw: Draw) -> Mask:
        """The polygon."""
        mask = np.zeros(view.picture.size, np.uint8)
        return np.asarray(cv2.fillPoly(mask, [np.rint(draw["corners_px"]).astype(np.int32)], (255,)))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Measure the covered area, and the remaining contrast in it."""
        where = self.affected(old, draw)
        share = float(np.count_nonzero(where)) / where.size
        inside = cv2.erode(where, np.ones((2 * spread_px(old.image) + 1,) * 2, np.uint8))
        left = measures.contrast(new.picture, inside) if inside.any() else 0.0
        if not 0.5 * self.share <= share <= 1.1 * self.share + 0.002:
            return f"{share:.3f} of the picture is covered, asked for {self.share:g}"
        return f"a contrast of {left:.4f} is left in what is covered" if left > 0.02 else None
