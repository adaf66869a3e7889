# SPDX-License-Identifier: Apache-2.0
"""Pictures after JPEG compression of low quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures


@dataclass(frozen=True)
class JpegCompressed(EachImage):
    """Encodes every picture as a JPEG and decodes it again, as over a slow link to the camera.

    Guaranteed: the picture loses detail or shows block edges more than before; its mean brightness stays within 2 % of
    full scale, and samples change by at most a fifth of full scale on average.
    """

    quality: float = param(20.0, low=1.0, high=95.0, neutral=95.0, help="libjpeg's quality; lower: more loss")
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random. Raises NotApplicable: samples of 16 bits, which JPEG does not hold."""
        if view.picture.pixels.dtype != np.uint8:
            raise NotApplicable(f"{view.image.topic}: {view.image.encoding} has 16 bits a sample, a JPEG 8")
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Code and decode."""
        _, data = cv2.imencode(".jpg", view.picture.pixels, [cv2.IMWRITE_JPEG_QUALITY, round(self.quality)])
        return np.asarray(cv2.imdecode(data, cv2.IMREAD_UNCHANGED))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Look for lost detail and for blocks."""
        detail = [measures.sharpness(view.picture) for view in (old, new)]
        blocks = [measures.blockiness(view.picture) for view in (old, new)]
        if detail[1] >= detail[0] and blocks[1] <= blocks[0]:
            return (
                f"detail went from {detail[0]:.4f} to {detail[1]:.4f}, blocks from {blocks[0]:.3f} to {blocks[1]:.3f}"
            )
        moved = abs(measures.brightness(new.picture) - measures.brightness(old.picture))
        difference = measures.mean_difference(old.picture, new.picture)
        return (
            f"brightness moved by {moved:.3f}, samples by {difference:.3f}"
            if moved > 0.02 or difference > 0.2
            else None
        )
