# SPDX-License-Identifier: Apache-2.0
"""A flatter or a harder picture."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.pointwise import Pointwise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import Curve


@dataclass(frozen=True)
class ContrastChanged(Pointwise):
    """Multiplies every sample's distance from a middle grey, cut off at black and white.

    Guaranteed: the standard deviation of the brightness fell with a gain below 1, to at most 2 % more than gain times
    its old value, or rose with one above 1, to no more than that.
    """

    gain: float = param(
        0.6, low=0.05, high=4.0, neutral=1.0, help="factor of the distance from middle grey; below 1: flatter"
    )
    middle: float = param(0.5, low=0.0, high=1.0, aspect="fixed", help="the grey that stays, as a share of full scale")

    def curves(self) -> tuple[Curve, ...]:
        """One straight line through the middle."""
        return (lambda values: self.middle + self.gain * (values - self.middle),)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare standard deviations."""
        before, after = measures.contrast(old.picture), measures.contrast(new.picture)
        most = 1.02 * self.gain * before + 0.5 / 255.0
        if after <= most and (after < before if self.gain < 1.0 else after > before):
            return None
        return f"the contrast went from {before:.4f} to {after:.4f}, asked for a factor of {self.gain:g}"
