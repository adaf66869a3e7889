# SPDX-License-Identifier: Apache-2.0
"""Pictures mirrored, turned, shifted, scaled or sheared."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.image_warped import BORDERS, ImageWarped


@dataclass(frozen=True)
class ImageMirrored(ImageWarped):
    """Swaps left and right of each picture: a stack should steer to the other side.

    x' = W - 1 - x. With ``intrinsics: follow`` the principal point is mirrored (cx' = W - 1 - cx), and terms of
    distortion and stereo baseline along x change sign: this is the picture of a camera in the mirrored world. The
    camera's mount is unchanged, so this holds only for a camera in the middle of the vehicle that looks straight ahead.
    Text and signs are mirrored, too.

    Guaranteed: every pixel has the value of its mirror image, within the precision of the encoding.
    """

    intrinsics: str = param("follow", choices=("follow", "kept"), help="whether CameraInfo is mirrored, too")

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say that other sensors are not mirrored."""
        others = [role for role in ("lidar", "radar") if role in inputs]
        mirrors = "image_mirrored mirrors the scene in pictures alone"
        return f"{mirrors}: the {' and the '.join(others)} would go on to show it as it was" if others else ""

    def matrix(self, size: tuple[int, int]) -> Matrix:
        """Return the reflection."""
        return np.array([[-1.0, 0.0, size[1] - 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])

    def origin(self, new_px: Floats, size: tuple[int, int]) -> Floats:
        """Count columns from the other side."""
        columns = np.arange(size[1])[::-1]
        return np.column_stack([columns[new_px[:, 0].astype(np.int64)], new_px[:, 1]]).astype(np.float64)

    def follows(self) -> bool:
        """Whether the calibration is carried along."""
        return self.intrinsics == "follow"

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Swap columns, which interpolates nothing."""
        return np.asarray(cv2.flip(view.picture.pixels, 1))


@dataclass(frozen=True)
class ImageRotated(ImageWarped):
    """Rotates each picture about its centre, as a camera mounted with a small roll.

    CameraInfo stays: a roll is part of the mount, not of the intrinsics. If the principal point is the centre and
    pixels are square, this is exactly the picture of the rolled camera with an uncorrected transform.

    Guaranteed: every place has the brightness of the place it came from, within half of what a shift by one pixel
    changes.
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

    def origin(self, new_px: Floats, size: tuple[int, int]) -> Floats:
        """Rotate clockwise, as complex numbers (y points down)."""
        middle = complex((size[1] - 1.0) / 2.0, (size[0] - 1.0) / 2.0)
        arms = new_px[:, 0] + 1j * new_px[:, 1] - middle
        came = middle + arms * np.exp(1j * np.radians(self.angle_deg))
        return np.column_stack([came.real, came.imag])


@dataclass(frozen=True)
class ImageTranslated(ImageWarped):
    """Shifts each picture by a share of its size.

    x' = x + right · W, y' = y + down · H. With ``intrinsics: follow`` the principal point is shifted, too: exactly the
    picture of a camera with a shifted sensor, in which a stack that reads CameraInfo finds everything at its place.
    With ``kept`` the calibration is wrong, as after a knock.

    Guaranteed: every place has the brightness of the place it came from, within half of what a shift by one pixel
    changes.
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
        """Fill the vacated sides with the border, and cut off the others."""
        height, width = view.picture.size
        right, down = map(int, self._shift_px((height, width)))
        above, below, left, beyond = max(0, down), max(0, -down), max(0, right), max(0, -right)
        wide = cv2.copyMakeBorder(view.picture.pixels, above, below, left, beyond, BORDERS[self.border])
        return np.asarray(wide[below : below + height, beyond : beyond + width])

    def origin(self, new_px: Floats, size: tuple[int, int]) -> Floats:
        """Go back."""
        return np.asarray(new_px - np.array(self._shift_px(size)))

    def follows(self) -> bool:
        """Whether the calibration is carried along."""
        return self.intrinsics == "follow"

    def _shift_px(self, size: tuple[int, int]) -> tuple[float, float]:
        """Return whole pixels, at least one if a shift is requested: nothing is interpolated."""
        shifts = ((self.right, size[1]), (self.down, size[0]))
        right, down = (float(np.copysign(max(1.0, round(abs(s) * n)), s)) if s else 0.0 for s, n in shifts)
        return right, down


#: Tolerance of places in pixels, as in OpenCV's general method, which rounds to 1/32 pixel.
_FINEST_PX = 1.0 / 64.0
#: How many places to cut the picture are tried.
_CUTS = 64


@dataclass(frozen=True)
class ImageScaled(ImageWarped):
    """Enlarges or reduces the content of each picture about its centre; its size in pixels stays.

    x' - m = factor · (x - m). With ``intrinsics: follow`` focal lengths are multiplied by the factor and the principal
    point is adapted: exactly the picture of a longer or shorter lens (of the same distortion). With ``kept`` everything
    appears nearer or farther by the factor.

    Guaranteed: every place has the brightness of the place it came from, within half of what a shift by one pixel
    changes.
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
        """Resize a cut of the picture, if one fits: half the time of moving pixels one by one."""
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

    def origin(self, new_px: Floats, size: tuple[int, int]) -> Floats:
        """Shrink distances from the middle."""
        middle = np.array([size[1] - 1.0, size[0] - 1.0]) / 2.0
        return middle + (new_px - middle) / self.factor

    def follows(self) -> bool:
        """Whether the calibration is carried along."""
        return self.intrinsics == "follow"


def _cut(side: int, factor: float) -> tuple[int, int, int] | None:
    """Return the part of a side (begin, end) whose enlargement starts the new picture at a whole pixel, and that pixel.

    Pixel x of an enlarged cut that starts at a comes from (x + 0.5) / factor - 0.5 + a; pixel x of a picture enlarged
    about its centre m comes from m + (x - m) / factor: the latter begins at factor (side / 2 - a) - side / 2 of the
    former. None if that is close to an integer for no a.
    """
    begins = int(np.floor((side - side / factor) / 2.0)) - 1 - np.arange(_CUTS)
    first = factor * (side / 2.0 - begins) - side / 2.0
    for at in np.flatnonzero(np.abs(first - np.rint(first)) < _FINEST_PX)[:1]:
        begin, pixel = int(begins[at]), round(float(first[at]))
        return begin, begin + int(np.ceil((pixel + side) / factor)) + 2, pixel
    return None


@dataclass(frozen=True)
class ImageSheared(ImageWarped):
    """Shifts each row of a picture in proportion to its distance from the middle row, so that vertical edges lean.

    x' = x - shear · (y - m): the top moves to the right. Shear is one of the affine changes of DeepTest (Tian et al.,
    ICSE 2018). CameraInfo stays: its intrinsics have no skew, and that of today's cameras is negligible.

    Guaranteed: every place has the brightness of the place it came from, within half of what a shift by one pixel
    changes.
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
        """Shift row by row, with linear interpolation: all pixels of a row have the same fractional shift."""
        pixels = view.picture.pixels
        height, width = view.picture.size
        came = self.shear * (np.arange(height) - (height - 1.0) / 2.0)
        first, reach = np.floor(came).astype(np.int64), int(np.abs(came).max()) + 2
        wide = cv2.copyMakeBorder(pixels, 0, 0, reach, reach, BORDERS[self.border]).reshape(height, 1, -1)
        new, samples = np.empty_like(pixels), pixels[0, 0].size
        begin, length = ((first + reach) * samples).tolist(), width * samples
        for old, row, at, share in zip(wide, new.reshape(height, 1, -1), begin, (came - first).tolist(), strict=True):
            left_pixels, right_pixels = old[:, at : at + length], old[:, at + samples : at + samples + length]
            cv2.addWeighted(left_pixels, 1.0 - share, right_pixels, share, 0.0, dst=row)
        return new

    def origin(self, new_px: Floats, size: tuple[int, int]) -> Floats:
        """Shift rows back."""
        above = (size[0] - 1.0) / 2.0 - new_px[:, 1]
        return np.column_stack([new_px[:, 0] - self.shear * above, new_px[:, 1]])
