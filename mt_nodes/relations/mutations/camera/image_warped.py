# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that move every pixel of a picture."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import CameraInfo
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.camera.picture_origin import differs_from_origin

#: OpenCV's border modes by name.
BORDERS = {"black": cv2.BORDER_CONSTANT, "edge": cv2.BORDER_REPLICATE, "mirror": cv2.BORDER_REFLECT_101}
_PROBES = 48


@dataclass(frozen=True)
class ImageWarped(EachImage):
    """Base: a 3×3 matrix moves every pixel; size, encoding and stamp stay.

    ``Effects.image_transforms`` is that matrix, so that checks move every expected box along.
    """

    border: str = param("black", choices=tuple(BORDERS), help="what is shown where the picture had nothing")

    random: ClassVar[bool] = False

    @abstractmethod
    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the 3×3 matrix that takes a pixel (x, y, 1) of a picture (height, width) to its new place."""

    @abstractmethod
    def origin(self, new_px: Floats, size: tuple[int, int]) -> Floats:
        """Return the old places of pixels (N, 2) of the new picture, computed independently of :meth:`matrix`."""

    def follows(self) -> bool:
        """Whether the calibration follows the picture."""
        return False

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Move every pixel, with bilinear interpolation."""
        height, width = size = view.picture.size
        matrix, how = self.matrix(size)[:2], BORDERS[self.border]
        return np.asarray(cv2.warpAffine(view.picture.pixels, matrix, (width, height), borderMode=how))

    def change_info(self, view: View, draw: Draw) -> CameraInfo | None:
        """Adapt the calibration, if it follows the picture."""
        info = view.info
        return info if info is None or not self.follows() else carried(info, self.matrix(view.picture.size), view)

    def describe_images(self, views: Mapping[str, View], draws: Mapping[str, Draw]) -> Effects:
        """Report the movement of the pixels."""
        matrices = {topic: self.matrix(view.picture.size) for topic, view in views.items()}
        mirrored = any(np.linalg.det(matrix) < 0.0 for matrix in matrices.values())
        return Effects(image_transforms=matrices, image_mirrored=mirrored)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare a grid with the original places."""
        height, width = old.picture.size
        x, y = np.linspace(1.0, width - 2.0, _PROBES), np.linspace(1.0, height - 2.0, _PROBES)
        new_px = np.rint(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))
        came = self.origin(new_px, (height, width))
        return differs_from_origin(old, new, new_px, came)


def carried(info: CameraInfo, matrix: Matrix, view: View) -> CameraInfo:
    """Return the calibration of a picture whose pixels were moved by a matrix of scale, shift and mirroring.

    k' = A k, p' = A p; a mirror also flips the camera's own x axis, which leaves radial distortion unchanged and flips
    the sign of tangential and thin-prism terms along x (and of a tilt about y): OpenCV's model with -x for x.
    """
    moved = _in_calibrated_pixels(matrix, info, view.picture.size)
    if moved[0, 0] > 0.0:
        return replace(info, k=moved @ info.k, p=moved @ info.p)
    turn, d = np.diag([-1.0, 1.0, 1.0]), info.d.copy()
    if info.distortion_model in ("plumb_bob", "rational_polynomial"):
        odd = [i for i in (3, 8, 9, 13) if i < len(d)]
        d[odd] = -d[odd]
    p = moved @ info.p @ np.diag([-1.0, 1.0, 1.0, 1.0])
    return replace(info, k=moved @ info.k @ turn, p=p, r=turn @ info.r @ turn, d=d)


def _in_calibrated_pixels(matrix: Matrix, info: CameraInfo, size: tuple[int, int]) -> Matrix:
    """Return the matrix in the pixel units of the calibration; its pictures may have been scaled."""
    scale = info.width / size[1] if info.width else 1.0
    shift = (scale - 1.0) / 2.0  # pixel centres lie at whole numbers, the picture's corner at -0.5
    to_calibrated = np.array([[scale, 0.0, shift], [0.0, scale, shift], [0.0, 0.0, 1.0]])
    return np.asarray(to_calibrated @ matrix @ np.linalg.inv(to_calibrated))
