# SPDX-License-Identifier: Apache-2.0
"""A picture turned."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.camera.image_warped import Floats, ImageWarped


@dataclass(frozen=True)
class ImageRotated(ImageWarped):
    """Turns each picture about its middle, as a camera that is mounted with a little roll.

    CameraInfo stays: no intrinsics of a straight camera tell of a roll, which is a matter of the mount. Where the
    principal point is the middle and pixels are square, the picture is exactly that of the rolled camera, whose
    transform nobody corrected.

    Guaranteed: places have the brightness of those they came from, within half of what one pixel of shift makes.
    """

    angle_deg: float = param(
        1.0, low=-45.0, high=45.0, unit="°", neutral=0.0, help="what it shows turns anti-clockwise if above 0"
    )

    def __post_init__(self) -> None:
        if self.angle_deg == 0.0:
            raise UsageError("angle_deg: got 0, expected another: nothing would turn")

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the turn about the middle."""
        middle = (size[1] - 1.0) / 2.0, (size[0] - 1.0) / 2.0
        return np.vstack([cv2.getRotationMatrix2D(middle, self.angle_deg, 1.0), [0.0, 0.0, 1.0]])

    def origin(self, shown: Floats, size: tuple[int, int]) -> Floats:
        """Turn clockwise, as complex numbers (y points down)."""
        middle = complex((size[1] - 1.0) / 2.0, (size[0] - 1.0) / 2.0)
        arms = shown[:, 0] + 1j * shown[:, 1] - middle
        came = middle + arms * np.exp(1j * np.radians(self.angle_deg))
        return np.column_stack([came.real, came.imag])
