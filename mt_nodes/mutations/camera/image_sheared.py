# SPDX-License-Identifier: Apache-2.0
"""A picture whose uprights lean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.errors import UsageError
from mt_nodes.mutations.camera.image_warped import Floats, ImageWarped
from mt_nodes.params import param
from mt_nodes.transforms import Matrix


@dataclass(frozen=True)
class ImageSheared(ImageWarped):
    """Shifts each row of a picture in proportion to its distance from the middle one, so that uprights lean.

    x' = x - shear · (y - m): the top goes to the right. Shear is one of the affine changes of DeepTest (Tian et al.,
    ICSE 2018). CameraInfo stays: its intrinsics have no skew, and no real camera of today has one worth mention.

    Guaranteed: places have the brightness of those they came from, within half of what one pixel of shift makes.
    """

    shear: float = param(0.02, low=-0.5, high=0.5, help="columns a row is shifted by for each row above the middle")

    def __post_init__(self) -> None:
        if self.shear == 0.0:
            raise UsageError("shear: got 0, expected another: nothing would lean")

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the shear about the middle row."""
        middle = (size[0] - 1.0) / 2.0
        return np.array([[1.0, -self.shear, self.shear * middle], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])

    def origin(self, shown: Floats, size: tuple[int, int]) -> Floats:
        """Shift rows back."""
        above = (size[0] - 1.0) / 2.0 - shown[:, 1]
        return np.column_stack([shown[:, 0] - self.shear * above, shown[:, 1]])
