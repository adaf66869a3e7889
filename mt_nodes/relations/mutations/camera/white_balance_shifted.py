# SPDX-License-Identifier: Apache-2.0
"""A wrong white balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.pointwise import Pointwise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import Curve, colour_of_temperature, light_of, values_of

#: The white of sRGB.
_WHITE_K = 6504.0


@dataclass(frozen=True)
class WhiteBalanceShifted(Pointwise):
    """Shows the scene as if its light had another colour temperature than the camera was balanced for.

    The light of red, green and blue is multiplied by what a black body of that temperature has of it, over what one of
    6,504 K has; green stays. Chromaticity by Y. Kim et al. (US patent 7,024,034), light by sRGB's transfer function.

    Guaranteed: red over blue rose for a lower temperature and fell for a higher one.
    """

    temperature_k: float = param(
        3500.0, low=2000.0, high=20000.0, unit="K", neutral=6500.0, help="lower: warmer, redder"
    )

    def gains(self) -> tuple[float, float, float]:
        """Return the factors of red, green and blue light."""
        pairs = zip(colour_of_temperature(self.temperature_k), colour_of_temperature(_WHITE_K), strict=True)
        red, green, blue = (there / white for there, white in pairs)
        return red / green, 1.0, blue / green

    def curves(self) -> tuple[Curve, ...]:
        """One factor of the light for each colour."""
        return tuple(_times(gain) for gain in self.gains())

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose.

        Raises:
            NotApplicable: the picture has no colours.
        """
        if view.picture.order == "mono":
            raise NotApplicable(f"{view.image.topic}: a picture without colours has no white balance")
        return {}

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean red and blue."""
        ratios = [(red + 1e-3) / (blue + 1e-3) for red, _, blue in map(measures.colour, (old.picture, new.picture))]
        if ratios[1] > ratios[0] if self.temperature_k < _WHITE_K else ratios[1] < ratios[0]:
            return None
        return f"red over blue went from {ratios[0]:.3f} to {ratios[1]:.3f}, asked for {self.temperature_k:g} K"


def _times(gain: float) -> Curve:
    return lambda values: values_of(light_of(values) * gain)
