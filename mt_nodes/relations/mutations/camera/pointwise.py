# SPDX-License-Identifier: Apache-2.0
"""What mutations have in common that give each sample a new value for its old one, wherever in the picture it is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera.light import Curve, looked_up, table


class Pointwise(EachImage):
    """Sends samples through a curve, the same for all channels, or one for red, green and blue each."""

    random: ClassVar[bool] = False

    @abstractmethod
    def curves(self) -> tuple[Curve, ...]:
        """Return one curve, or those of red, green and blue; from values to values, 0 to 1."""

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose."""
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Look every sample up."""
        pixels, curves = view.picture.pixels, self.curves()
        tables = [table(curve, pixels.dtype) for curve in curves]
        if len(tables) == 3:
            # Without colour, green is nearest to what the eye calls bright.
            tables = [tables["rgb".index(c)] for c in view.picture.order] if pixels.ndim == 3 else [tables[1]]
        return looked_up(pixels, *tables)
