# SPDX-License-Identifier: Apache-2.0
"""A brighter or darker picture."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.pointwise import Pointwise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import Curve


@dataclass(frozen=True)
class BrightnessChanged(Pointwise):
    """Adds the same to every sample, cut off at black and white: what a display's brightness knob does.

    For what a camera's aperture, gain or time do, which multiply light, see ``exposure_changed``.

    Guaranteed: the mean brightness moved the way asked for, by at most what was added and at least a tenth of that.
    """

    offset: float = param(
        0.15, low=-0.9, high=0.9, neutral=0.0, help="what is added, as a share of full scale; below 0: darker"
    )

    def curves(self) -> tuple[Curve, ...]:
        """One straight line of slope 1."""
        return (lambda values: values + self.offset,)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Add whole samples: what the curve says to half of one, eight times as fast as looking every sample up."""
        added = round(abs(self.offset) * view.picture.full_scale)
        change = cv2.add if self.offset > 0.0 else cv2.subtract
        return np.asarray(change(view.picture.pixels, (added,) * 4))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean brightnesses."""
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        share = moved / self.offset if self.offset else 0.0
        slack = 1.0 / (255.0 * abs(self.offset)) if self.offset else 0.0
        if 0.1 <= share <= 1.0 + slack:
            return None
        return f"the mean brightness moved by {moved:+.3f}, asked for {self.offset:+.3f} and at least a tenth of it"
