# SPDX-License-Identifier: Apache-2.0
"""Dirt on the lens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.on_the_lens import OnTheLens, Singles, Spot
from mt_nodes.world.camera import measures

#: Dry mud, red, green and blue of full scale: an assumption.
_MUD = (0.23, 0.19, 0.15)


@dataclass(frozen=True)
class LensDirt(OnTheLens):
    """Puts blots of mud on the lens: far out of focus, so soft at their edges, and at one place over a segment.

    Number, size and opacity are the user's; the softness (half of the radius) and the colour are assumptions.

    Guaranteed: within the blots contrast fell, or samples moved by 2 % of full scale on average; outside of them every
    pixel stayed.
    """

    blots: int = param(12, low=1, high=200, neutral=1, help="how many")
    opacity: float = param(0.8, low=0.05, high=1.0, neutral=0.05, help="share of light that the middle of a blot stops")
    radius_min: float = param(
        0.01, low=0.002, high=0.3, aspect="fixed", help="smallest radius, as a share of the picture's width"
    )
    radius_max: float = param(
        0.05, low=0.002, high=0.3, aspect="fixed", help="largest radius, as a share of the picture's width"
    )

    def spots_drawn(self) -> int:
        """As many as asked for."""
        return self.blots

    def radii(self) -> tuple[float, float]:
        """As asked for."""
        return min(self.radius_min, self.radius_max), max(self.radius_min, self.radius_max)

    def cover(self, distance: Singles) -> Singles:
        """Full within half of the radius, then falling smoothly to nothing."""
        edge = np.clip(np.float32(2.0) - np.float32(2.0) * distance, 0.0, 1.0)
        return np.asarray(edge * edge * (np.float32(3.0) - np.float32(2.0) * edge) * np.float32(self.opacity))

    def shown(self, part: Pixels, view: View, spot: Spot) -> Pixels:
        """Mud everywhere."""
        colours = [_MUD["rgb".index(c)] for c in view.picture.order] if part.ndim == 3 else _MUD[1]
        return np.broadcast_to(np.array(colours) * view.picture.full_scale, part.shape)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare contrast where blots are."""
        where = self.affected(old, draw)
        before, after = measures.contrast(old.picture, where), measures.contrast(new.picture, where)
        apart = measures.mean_difference(old.picture, new.picture, where)
        if after < before or apart > 0.02:
            return None
        return f"within the blots contrast went from {before:.4f} to {after:.4f}, samples by {apart:.4f}"
