# SPDX-License-Identifier: Apache-2.0
"""A picture shifted."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.image_warped import BORDERS, Floats, ImageWarped


@dataclass(frozen=True)
class ImageTranslated(ImageWarped):
    """Shifts each picture by a share of its own size.

    x' = x + right · W, y' = y + down · H. With ``intrinsics: follow`` the principal point goes along, and the picture
    is exactly that of a camera with a shifted sensor: a stack that reads CameraInfo finds everything where it was.
    With ``kept`` it is a camera that is told wrongly, as after a knock.

    Guaranteed: places have the brightness of those they came from, within half of what one pixel of shift makes.
    """

    right: float = param(0.02, low=-0.5, high=0.5, neutral=0.0, help="shift to the right, as a share of the width")
    down: float = param(0.0, low=-0.5, high=0.5, neutral=0.0, help="shift downward, as a share of the height")
    intrinsics: str = param("follow", choices=("follow", "kept"), help="whether CameraInfo is shifted, too")

    def __post_init__(self) -> None:
        if self.right == 0.0 and self.down == 0.0:
            raise UsageError("right and down: got 0 and 0, expected one of them not to be 0: nothing would move")

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the shift, in whole pixels."""
        right, down = self._shift_px(size)
        return np.array([[1.0, 0.0, right], [0.0, 1.0, down], [0.0, 0.0, 1.0]])

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Put what the border shows on the sides that the picture leaves, and cut off as much on the others."""
        height, width = view.picture.size
        right, down = map(int, self._shift_px((height, width)))
        above, below, left, beyond = max(0, down), max(0, -down), max(0, right), max(0, -right)
        wide = cv2.copyMakeBorder(view.picture.pixels, above, below, left, beyond, BORDERS[self.border])
        return np.asarray(wide[below : below + height, beyond : beyond + width])

    def origin(self, shown: Floats, size: tuple[int, int]) -> Floats:
        """Go back."""
        return np.asarray(shown - np.array(self._shift_px(size)))

    def follows(self) -> bool:
        """Whether the calibration is carried along."""
        return self.intrinsics == "follow"

    def _shift_px(self, size: tuple[int, int]) -> tuple[float, float]:
        """Return whole pixels, of which there is at least one where a shift is asked: nothing is interpolated."""
        shifts = ((self.right, size[1]), (self.down, size[0]))
        right, down = (float(np.copysign(max(1.0, round(abs(s) * n)), s)) if s else 0.0 for s, n in shifts)
        return right, down
