# SPDX-License-Identifier: Apache-2.0
"""A picture enlarged or reduced."""

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

#: Places may be off by so many pixels, as in OpenCV's general way, which rounds them to the 32nd of one.
_FINEST_PX = 1.0 / 64.0
#: So many places to cut the picture at are tried.
_CUTS = 64


@dataclass(frozen=True)
class ImageScaled(ImageWarped):
    """Enlarges or reduces what each picture shows, about its middle; its size in pixels stays.

    x' - m = factor · (x - m). With ``intrinsics: follow`` focal lengths are multiplied by the factor and the principal
    point is carried along: exactly the picture of a longer or shorter lens (of the same distortion). With ``kept``
    everything seems nearer or farther than it is by the factor.

    Guaranteed: places have the brightness of those they came from, within half of what one pixel of shift makes.
    """

    factor: float = param(1.05, low=0.5, high=2.0, neutral=1.0, help="above 1: larger")
    intrinsics: str = param("follow", choices=("follow", "kept"), help="whether CameraInfo is scaled, too")

    def __post_init__(self) -> None:
        if self.factor == 1.0:
            raise UsageError("factor: got 1, expected another: nothing would change")

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the enlargement about the middle."""
        rest = (1.0 - self.factor) / 2.0
        x, y = rest * (size[1] - 1.0), rest * (size[0] - 1.0)
        return np.array([[self.factor, 0.0, x], [0.0, self.factor, y], [0.0, 0.0, 1.0]])

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Resize a cut of the picture, which takes half the time of carrying pixels one by one, where one fits."""
        height, width = view.picture.size
        down, across = _cut(height, self.factor), _cut(width, self.factor)
        if down is None or across is None:
            return super().change_image(view, draw)
        (top, bottom, row), (left, right, column) = down, across
        part = view.picture.pixels[max(0, top) : bottom, max(0, left) : right]
        beyond = max(0, -top), max(0, bottom - height), max(0, -left), max(0, right - width)
        if any(beyond):
            part = cv2.copyMakeBorder(part, *beyond, BORDERS[self.border])
        large = cv2.resize(part, None, fx=self.factor, fy=self.factor)
        return np.asarray(large[row : row + height, column : column + width])

    def origin(self, shown: Floats, size: tuple[int, int]) -> Floats:
        """Shrink distances from the middle."""
        middle = np.array([size[1] - 1.0, size[0] - 1.0]) / 2.0
        return middle + (shown - middle) / self.factor

    def follows(self) -> bool:
        """Whether the calibration is carried along."""
        return self.intrinsics == "follow"


def _cut(side: int, factor: float) -> tuple[int, int, int] | None:
    """Return what of a side (begin, end), enlarged, shows the new picture beginning with a whole pixel, and which.

    Pixel x of an enlarged cut from a on comes from (x + 0.5) / factor - 0.5 + a, that of a picture enlarged about its
    middle m from m + (x - m) / factor: the latter begins at factor (side / 2 - a) - side / 2 of the former. None where
    that is next to a whole number for no a.
    """
    begins = int(np.floor((side - side / factor) / 2.0)) - 1 - np.arange(_CUTS)
    first = factor * (side / 2.0 - begins) - side / 2.0
    for at in np.flatnonzero(np.abs(first - np.rint(first)) < _FINEST_PX)[:1]:
        begin, pixel = int(begins[at]), round(float(first[at]))
        return begin, begin + int(np.ceil((pixel + side) / factor)) + 2, pixel
    return None
