# SPDX-License-Identifier: Apache-2.0
"""Paler or stronger colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels, spread_px
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures


@dataclass(frozen=True)
class SaturationChanged(EachImage):
    """Multiplies every colour's distance from the grey of its brightness (BT.601); 0 takes all colour away.

    Guaranteed: the spread of red, green and blue changed by the factor where it falls, and rose where it is to rise;
    the mean brightness stayed, within 2 % of full scale where colours are cut off.
    """

    factor: float = param(0.3, low=0.0, high=3.0, neutral=1.0, help="factor of the distance from grey; below 1: paler")
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose.

        Raises:
            NotApplicable: the picture has no colours.
        """
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
        # Mosaics and shared colours show false ones of their own along edges.
        slack = 4.0 if spread_px(old.image) else 1.5
        most = self.factor * before + slack / 255.0
        if after > most or not (after < before if self.factor < 1.0 else after > before):
            return f"the saturation went from {before:.4f} to {after:.4f}, asked for a factor of {self.factor:g}"
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        return f"the mean brightness moved by {moved:+.4f}, it was to stay" if abs(moved) > 0.02 else None
