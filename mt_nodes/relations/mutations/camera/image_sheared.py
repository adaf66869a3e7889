# SPDX-License-Identifier: Apache-2.0
"""A picture whose uprights lean."""

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
class ImageSheared(ImageWarped):
    """Shifts each row of a picture in proportion to its distance from the middle one, so that uprights lean.

    x' = x - shear · (y - m): the top goes to the right. Shear is one of the affine changes of DeepTest (Tian et al.,
    ICSE 2018). CameraInfo stays: its intrinsics have no skew, and no real camera of today has one worth mention.

    Guaranteed: places have the brightness of those they came from, within half of what one pixel of shift makes.
    """

    shear: float = param(
        0.02, low=-0.5, high=0.5, neutral=0.0, help="columns a row is shifted by for each row above the middle"
    )

    def __post_init__(self) -> None:
        if self.shear == 0.0:
            raise UsageError("shear: got 0, expected another: nothing would lean")

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the shear about the middle row."""
        middle = (size[0] - 1.0) / 2.0
        return np.array([[1.0, -self.shear, self.shear * middle], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Shift row by row, with linear interpolation: within a row every pixel lies as far between two of the old."""
        pixels = view.picture.pixels
        height, width = view.picture.size
        came = self.shear * (np.arange(height) - (height - 1.0) / 2.0)
        first, reach = np.floor(came).astype(np.int64), int(np.abs(came).max()) + 2
        wide = cv2.copyMakeBorder(pixels, 0, 0, reach, reach, BORDERS[self.border]).reshape(height, 1, -1)
        new, samples = np.empty_like(pixels), pixels[0, 0].size
        begin, length = ((first + reach) * samples).tolist(), width * samples
        for old, row, at, share in zip(wide, new.reshape(height, 1, -1), begin, (came - first).tolist(), strict=True):
            here, beside = old[:, at : at + length], old[:, at + samples : at + samples + length]
            cv2.addWeighted(here, 1.0 - share, beside, share, 0.0, dst=row)
        return new

    def origin(self, shown: Floats, size: tuple[int, int]) -> Floats:
        """Shift rows back."""
        above = (size[0] - 1.0) / 2.0 - shown[:, 1]
        return np.column_stack([shown[:, 0] - self.shear * above, shown[:, 1]])
