# SPDX-License-Identifier: Apache-2.0
"""Over- and under-exposure."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.pointwise import Pointwise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import Curve, light_of, values_of


@dataclass(frozen=True)
class ExposureChanged(Pointwise):
    """Multiplies the light by a power of two, as another time, aperture or gain does; what is too bright is white.

    Light is that of the sRGB transfer function (IEC 61966-2-1): a camera's own curve is not known. White stays white
    when the picture darkens less than it did in the scene: how much brighter it was, is not in a picture.

    Guaranteed: the mean brightness rose or fell as asked for, and over-exposed pictures have no less white.
    """

    stops: float = param(1.5, low=-6.0, high=6.0, unit="EV", neutral=0.0, help="power of two; below 0: under-exposed")

    def curves(self) -> tuple[Curve, ...]:
        """One factor of the light."""
        return (lambda values: values_of(light_of(values) * 2.0**self.stops),)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean brightnesses, and what is white."""
        before, after = measures.brightness(old.picture), measures.brightness(new.picture)
        if not (after > before if self.stops > 0.0 else after < before):
            return f"the mean brightness went from {before:.4f} to {after:.4f}, asked for {self.stops:+g} EV"
        white = [measures.share_at_least(view.picture, 0.99) for view in (old, new)]
        lost = self.stops > 0.0 and white[1] < white[0]
        return f"the share of white pixels fell from {white[0]:.4f} to {white[1]:.4f}" if lost else None
