# SPDX-License-Identifier: Apache-2.0
"""Pictures as networks take them: cropped, resized, YUV; the same in training and in the stack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param

Bytes = npt.NDArray[np.uint8]
#: Where OpenCV's Lanczos takes samples a pixel apart, whatever the scale, it is no filter: pictures are halved first.
_HALVES = 2.0


@dataclass(frozen=True)
class Preparation:
    """How a picture becomes what a network sees."""

    height_px: int = param(66, low=8, high=2160, unit="px", help="height of the network's input")
    width_px: int = param(200, low=8, high=4096, unit="px", help="width of the network's input")
    crop_top: float = param(0.0, low=0.0, high=0.9, help="share of the image height to crop at the top: sky")
    crop_bottom: float = param(0.0, low=0.0, high=0.9, help="share of the image height to crop at the bottom: bonnet")
    resize: str = param("area", choices=("area", "lanczos"), help="interpolation when images are reduced")

    def __post_init__(self) -> None:
        if self.crop_top + self.crop_bottom > 0.95:
            got = f"crop_top {self.crop_top:g} and crop_bottom {self.crop_bottom:g}"
            raise UsageError(f"got {got}, expected a twentieth of the picture's height to remain")

    def planes(self, rgb: Bytes) -> Bytes:
        """Return (3, height, width) luma and two of colour of a picture (H, W, 3), red, green, blue.

        Luma and colour are those of BT.601 as OpenCV has them, colour about 128.
        Raises ValueError: the picture has another shape or type.
        """
        import cv2

        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or 0 in rgb.shape:
            raise ValueError(f"got a picture {rgb.shape} of {rgb.dtype}, expected (H, W, 3) of uint8")
        height = rgb.shape[0]
        first = min(int(self.crop_top * height), height - 1)
        last = max(height - int(self.crop_bottom * height), first + 1)
        yuv = cv2.cvtColor(self._resized(rgb[first:last]), cv2.COLOR_RGB2YUV)
        return np.ascontiguousarray(np.asarray(yuv, dtype=np.uint8).transpose(2, 0, 1))

    def _resized(self, rgb: Bytes) -> Bytes:
        import cv2

        size = (self.width_px, self.height_px)
        if self.resize == "area":
            return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        while rgb.shape[0] >= _HALVES * self.height_px and rgb.shape[1] >= _HALVES * self.width_px:
            half = (rgb.shape[1] // 2, rgb.shape[0] // 2)
            rgb = np.asarray(cv2.resize(rgb, half, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_LANCZOS4), dtype=np.uint8)
