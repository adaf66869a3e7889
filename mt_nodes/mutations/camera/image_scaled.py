# SPDX-License-Identifier: Apache-2.0
"""A picture enlarged or reduced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.errors import UsageError
from mt_nodes.mutations.camera.image_warped import Floats, ImageWarped
from mt_nodes.params import param
from mt_nodes.transforms import Matrix


@dataclass(frozen=True)
class ImageScaled(ImageWarped):
    """Enlarges or reduces what each picture shows, about its middle; its size in pixels stays.

    x' - m = factor · (x - m). With ``intrinsics: follow`` focal lengths are multiplied by the factor and the principal
    point is carried along: exactly the picture of a longer or shorter lens (of the same distortion). With ``kept``
    everything seems nearer or farther than it is by the factor.

    Guaranteed: places have the brightness of those they came from, within half of what one pixel of shift makes.
    """

    factor: float = param(1.05, low=0.5, high=2.0, help="above 1: larger")
    intrinsics: str = param("follow", choices=("follow", "kept"), help="whether CameraInfo is scaled, too")

    def __post_init__(self) -> None:
        if self.factor == 1.0:
            raise UsageError("factor: got 1, expected another: nothing would change")

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the enlargement about the middle."""
        rest = (1.0 - self.factor) / 2.0
        x, y = rest * (size[1] - 1.0), rest * (size[0] - 1.0)
        return np.array([[self.factor, 0.0, x], [0.0, self.factor, y], [0.0, 0.0, 1.0]])

    def origin(self, shown: Floats, size: tuple[int, int]) -> Floats:
        """Shrink distances from the middle."""
        middle = np.array([size[1] - 1.0, size[0] - 1.0]) / 2.0
        return middle + (shown - middle) / self.factor

    def follows(self) -> bool:
        """Whether the calibration is carried along."""
        return self.intrinsics == "follow"
