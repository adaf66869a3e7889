# SPDX-License-Identifier: Apache-2.0
"""A picture as a network takes it, and the way back from its pixels to those of the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.network_file import Tensor, TensorPort
from mt_nodes.base.params import param

_RESIZE = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}


@dataclass(frozen=True)
class PictureForm:
    """How a picture is made into the network's input: (value − mean) / spread of each colour, 0..255 before."""

    size: tuple[int, ...] = param((), low=1, help="width and height that the network takes; empty: what its file says")
    fit: str = param(
        "stretch",
        choices=("stretch", "letterbox", "corner"),
        help="stretch, or keep the shape: in the middle (letterbox) or in the upper left corner, the rest grey",
    )
    resize: str = param("linear", choices=("linear", "area"), help="how a picture is made smaller")
    crop: tuple[float, ...] = param(
        (0.0, 0.0, 0.0, 0.0), low=0.0, high=0.9, help="shares cut off first: left, above, right, below"
    )
    order: str = param("rgb", choices=("rgb", "bgr", "yuv"), help="of the colours")
    mean: tuple[float, ...] = param((0.0,), help="of each colour in the order above, 0..255; or one for all")
    spread: tuple[float, ...] = param((255.0,), low=1e-6, help="of each colour, or one for all")
    layout: str = param("nchw", choices=("nchw", "nhwc"), help="colours before rows and columns, or after")
    grey: int = param(114, low=0, high=255, help="of what is beside a picture that keeps its shape")

    def tensor(self, image: npt.NDArray[np.uint8], size: tuple[int, int]) -> tuple[Tensor, Placement]:
        """Return the input (1, 3, H, W) or (1, H, W, 3) float32 of a picture (H, W, 3) of red, green, blue.

        ``size``: width and height that the network takes.
        """
        part, corner = self._cropped(image)
        placed = self._placement(part.shape[:2], size)
        width, height = self._fitted(part.shape[1::-1], placed.scale)
        small = cv2.resize(part, (width, height), interpolation=_RESIZE[self.resize])
        if (width, height) != size:
            left, upper = (round(offset) for offset in placed.offset)
            edges = (upper, size[1] - height - upper, left, size[0] - width - left)
            small = cv2.copyMakeBorder(small, *edges, cv2.BORDER_CONSTANT, value=(self.grey,) * 3)
        placed = replace(placed, corner=corner)
        colours = cv2.cvtColor(small, cv2.COLOR_RGB2YUV) if self.order == "yuv" else small
        colours = colours[..., ::-1] if self.order == "bgr" else colours
        numbers = (colours.astype(np.float32) - np.array(self.mean, np.float32)) / np.array(self.spread, np.float32)
        return (numbers[None] if self.layout == "nhwc" else numbers.transpose(2, 0, 1)[None]), placed

    def size_of(self, port: TensorPort | None, picture: tuple[int, int], where: str) -> tuple[int, int]:
        """Return the width and height that a network takes: as its file says, as given, or those of the picture.

        Raises UsageError: both say something, and not the same.
        """
        file_size = _file_size(port, self.layout, where)
        given = tuple(self.size)
        if given and len(given) != 2:
            raise UsageError(f"{where}: picture.size: got {list(given)}, expected [width, height]")
        if given and any(a is not None and a != b for a, b in zip(file_size, given, strict=True)):
            raise UsageError(
                f"{where}: picture.size: got {list(given)}, but its file says width and height {file_size}"
            )
        width, height = given or file_size
        return width or picture[0], height or picture[1]

    def _cropped(self, image: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], tuple[int, int]]:
        """Return what is left of a picture, and its left upper corner there."""
        if len(self.crop) != 4 or self.crop[0] + self.crop[2] >= 0.95 or self.crop[1] + self.crop[3] >= 0.95:
            raise UsageError(f"picture.crop: got {list(self.crop)}, expected four shares that leave something")
        height, width = image.shape[:2]
        left, upper, right, lower = (
            round(s * n) for s, n in zip(self.crop, (width, height, width, height), strict=True)
        )
        return image[upper : height - lower, left : width - right], (left, upper)

    def _fitted(self, size: tuple[int, ...], scale: tuple[float, float]) -> tuple[int, int]:
        """Return width and height in the input: YOLOX (corner) cuts fractions of a pixel off, the others round them."""
        whole: Callable[[float], int] = int if self.fit == "corner" else round
        # A share that is whole but for its last digit is whole.
        width, height = (whole(round(edge * share, 6)) for edge, share in zip(size, scale, strict=True))
        return width, height

    def _placement(self, shape: tuple[int, ...], size: tuple[int, int]) -> Placement:
        height, width = shape[:2]
        scale = (size[0] / width, size[1] / height)
        if self.fit == "stretch":
            return Placement(scale, (0.0, 0.0))
        both = min(scale)
        if self.fit == "corner":
            return Placement((both, both), (0.0, 0.0))
        # Whole pixels, as people's letterboxes have it: what is left over goes to the right and below.
        free = (size[0] - round(width * both), size[1] - round(height * both))
        return Placement((both, both), (float(round(free[0] / 2 - 0.1)), float(round(free[1] / 2 - 0.1))))


@dataclass(frozen=True)
class Placement:
    """Where a picture lies in a network's input: (its pixels − ``corner``) · ``scale`` + ``offset``, (x, y) each."""

    scale: tuple[float, float]
    offset: tuple[float, float]
    corner: tuple[int, int] = (0, 0)

    def back(self, edges: Floats) -> Floats:
        """Return boxes (M, 4) of the input as boxes of the picture, whose pixel centres lie at whole numbers."""
        scale, offset = np.tile(self.scale, 2), np.tile(self.offset, 2)
        return np.asarray((edges - offset) / scale + np.tile(self.corner, 2) - 0.5)


def _file_size(port: TensorPort | None, layout: str, where: str) -> tuple[int | None, int | None]:
    if port is None:
        return None, None
    if len(port.shape) != 4:
        raise UsageError(
            f"{where}: its input '{port.name}' has the shape {port.shape}, expected four sizes, a picture's"
        )
    _, a, b, c = port.shape
    return (c, b) if layout == "nchw" else (b, a)
