# SPDX-License-Identifier: Apache-2.0
"""Another tone curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.pointwise import Pointwise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import Curve


@dataclass(frozen=True)
class GammaChanged(Pointwise):
    """Raises every sample to a power: black and white stay, what lies between darkens (above 1) or brightens.

    Guaranteed: the mean brightness fell for a gamma above 1 and rose below it, and where there was black or white,
    there still is, within a tenth of full scale.
    """

    gamma: float = param(1.5, low=0.2, high=5.0, neutral=1.0, help="the power; above 1: darker between black and white")

    def curves(self) -> tuple[Curve, ...]:
        """One power."""
        return (lambda values: np.power(values, self.gamma),)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare mean brightnesses, black and white."""
        before, after = measures.brightness(old.picture), measures.brightness(new.picture)
        if not (after < before if self.gamma > 1.0 else after > before):
            return f"the mean brightness went from {before:.4f} to {after:.4f}, asked for a gamma of {self.gamma:g}"
        ends = [measures.ends(view.picture) for view in (old, new)]
        moved = max(
            (abs(after - before) for before, after in zip(*ends, strict=True) if before in (0.0, 1.0)), default=0.0
        )
        return f"black or white moved by {moved:.3f}, they were to stay" if moved > 0.1 else None
