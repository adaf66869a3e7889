# SPDX-License-Identifier: Apache-2.0
"""A picture as in a mirror."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.image_warped import Floats, ImageWarped


@dataclass(frozen=True)
class ImageMirrored(ImageWarped):
    """Swaps left and right of each picture: a stack steers to the other side.

    x' = W - 1 - x. With ``intrinsics: follow`` the principal point goes along (cx' = W - 1 - cx), and what distortion
    and stereo base have along x changes its sign: this is the picture that a camera takes of the mirrored world. Where
    the camera stands is left as it is, so it is a picture of that world only for a camera in the middle of the vehicle
    that looks straight ahead. Text and signs are mirrored, too.

    Guaranteed: every pixel has the value of the one on the other side, as exactly as the encoding holds it.
    """

    intrinsics: str = param("follow", choices=("follow", "kept"), help="whether CameraInfo is mirrored, too")

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the reflection."""
        return np.array([[-1.0, 0.0, size[1] - 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])

    def origin(self, shown: Floats, size: tuple[int, int]) -> Floats:
        """Count columns from the other side."""
        columns = np.arange(size[1])[::-1]
        return np.column_stack([columns[shown[:, 0].astype(np.int64)], shown[:, 1]]).astype(np.float64)

    def follows(self) -> bool:
        """Whether the calibration is carried along."""
        return self.intrinsics == "follow"

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Swap columns, which interpolates nothing."""
        return np.asarray(cv2.flip(view.picture.pixels, 1))
