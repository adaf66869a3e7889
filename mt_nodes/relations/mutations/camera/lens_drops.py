# SPDX-License-Identifier: Apache-2.0
"""Water drops on the lens."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.on_the_lens import OnTheLens, Singles, Spot
from mt_nodes.world.camera import measures

#: Darkening of a drop's rim, where it sends light away from the lens.
_RIM = 0.35


@dataclass(frozen=True)
class LensDrops(OnTheLens):
    """Puts drops of water on the lens: each shows the surroundings upside down, small and out of focus.

    A drop is a strong, short lens: it is taken as one that shows ``view_widths`` of its own width, turned by half a
    turn, blurred, and darker at its rim. Places, sizes and that picture of a drop are assumptions, not a measured
    drop's optics; drops stay where they are over a segment.

    Guaranteed: within the drops samples differ by 1 % of full scale or more on average, outside of them every pixel
    stayed.
    """

    drops: int = param(25, low=1, high=300, neutral=1, help="how many")
    radius_min: float = param(
        0.006, low=0.002, high=0.2, aspect="fixed", help="smallest radius, as a share of the picture's width"
    )
    radius_max: float = param(
        0.03, low=0.002, high=0.2, aspect="fixed", help="largest radius, as a share of the picture's width"
    )
    view_widths: float = param(
        4.0, low=1.0, high=20.0, aspect="fixed", help="how wide a drop's view is, in its own widths"
    )

    def spots_drawn(self) -> int:
        """As many as asked for."""
        return self.drops

    def radii(self) -> tuple[float, float]:
        """As asked for."""
        return min(self.radius_min, self.radius_max), max(self.radius_min, self.radius_max)

    def cover(self, distance: Singles) -> Singles:
        """Full, with an edge of a tenth of the radius."""
        return np.asarray(np.clip((np.float32(1.0) - distance) * np.float32(10.0), 0.0, 1.0))

    def shown(self, part: Pixels, view: View, spot: Spot) -> Pixels:
        """The picture around, turned by half a turn, blurred, with a dark rim."""
        pixels = view.picture.pixels
        height, width = part.shape[:2]
        # Column 0 shows what is farthest to the right, the last one what is farthest to the left; so do rows.
        right, bottom = (
            (part.start + part.stop) / 2.0 + self.view_widths * side / 2.0
            for part, side in ((spot.columns, width), (spot.rows, height))
        )
        left, top = right - self.view_widths * (width - 1), bottom - self.view_widths * (height - 1)
        first_row, first_column = (max(0, int(end) - 8) for end in (top, left))
        near = pixels[first_row : int(bottom) + 8, first_column : int(right) + 8]
        # Without this, picking one pixel in four would sparkle.
        soft = cv2.blur(near, (2 * int(self.view_widths) + 1,) * 2)
        back = np.array([[-self.view_widths, 0.0, right - first_column], [0.0, -self.view_widths, bottom - first_row]])
        how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        seen = cv2.warpAffine(soft, back, (width, height), flags=how, borderMode=cv2.BORDER_REFLECT_101)
        rim = np.float32(1.0) - np.float32(_RIM) * (np.float32(1.0) - spot.cover)
        return np.asarray(seen * (rim if seen.ndim == 2 else rim[..., None]))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare samples where drops are."""
        apart = measures.mean_difference(old.picture, new.picture, self.affected(old, draw))
        return None if apart >= 0.01 else f"within the drops samples differ by {apart:.4f} of full scale, expected 0.01"
