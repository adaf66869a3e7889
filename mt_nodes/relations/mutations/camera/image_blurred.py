# SPDX-License-Identifier: Apache-2.0
"""Pictures out of focus, and blurred by motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.camera.moving_view import MovingView, in_picture, places_px
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.depth import cell_px

#: Rows that are blurred at a time, so that they fit the processor's cache.
_STRIPE = 64
#: Largest radius of a disc that is one box.
_ONE_BOX_PX = 4.0


@dataclass(frozen=True)
class ImageDefocused(EachImage):
    """Spreads every point over a disc, as a lens out of focus does.

    The disc of radius r is approximated by box filters with its variance, r²/4 on each axis, in whole pixels: the cost
    does not depend on the radius. Up to 4 pixels it is one box, which there is as close to the disc as two are (the
    absolute differences sum to 0.21 to 0.34, those of two to 0.28 to 0.36); beyond, two, so that lamps stay round.

    Guaranteed: detail (standard deviation of the Laplacian) falls, and the mean brightness stays within 1 % of full
    scale.
    """

    radius_px: float = param(
        3.0, low=0.5, high=30.0, unit="pixels", neutral=0.5, help="radius of the disc, in pixels of the picture"
    )
    random: ClassVar[bool] = False

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Blur by one box, then by the other, in stripes that include the rows that their edges need."""
        pixels, widths = view.picture.pixels, _widths(self.radius_px)
        if len(widths) == 1:
            return np.asarray(cv2.blur(pixels, widths * 2, borderType=cv2.BORDER_REFLECT_101))
        new, beyond = np.empty_like(pixels), sum(width // 2 for width in widths)
        rows = max(_STRIPE, 4 * beyond)
        for start in range(0, len(pixels), rows):
            first = max(0, start - beyond)
            part = pixels[first : start + rows + beyond]
            for width in widths:
                part = cv2.blur(part, (width, width), borderType=cv2.BORDER_REFLECT_101)
            new[start : start + rows] = part[start - first : start - first + rows]
        return new

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare detail and brightness."""
        return _proof_of_blur(old, new, 0.01)


def _widths(radius_px: float) -> tuple[int, ...]:
    """Return the odd widths of boxes, each of variance (k² - 1) / 12, whose sum is nearest to a disc's r² / 4."""
    target = 3.0 * radius_px**2 + 2.0
    if radius_px <= _ONE_BOX_PX:
        return (max(3, 2 * round((np.sqrt(target - 1.0) - 1.0) / 2.0) + 1),)
    first = 2 * int((np.sqrt(target / 2.0) - 1.0) // 2.0) + 1
    second = 2 * round((np.sqrt(max(target - first**2, 9.0)) - 1.0) / 2.0) + 1
    return first, second


#: A picture whose pixels move less than this is not blurred.
_LEAST_PX = 1.0
#: Shorter paths do not count if they are the longest of their tile, which has so many cells to a side.
_SHORTEST_PX, _TILE_CELLS = 0.5, 8
#: Each halving doubles the number of averaged places; beyond 16 places more look the same.
_MOST_HALVINGS = 4
#: Stride of the cells that are checked for visible motion.
_PROBED_CELLS = 4
#: Longer paths are cut: beyond this a pixel is a smear anyway.
_LONGEST_PX = 40.0


@dataclass(frozen=True)
class ImageMotionBlurred(MovingView):
    """Blurs the picture as motion during the exposure does: near objects and edges most, far ahead least.

    Each pixel, at the range from the clouds, is projected from the camera's pose when the shutter opened; the picture
    is averaged along that path by halving: n steps average 2ⁿ pictures. Moving objects are blurred as if they stood.
    With ``range_m``, everything is as far away, and no cloud is needed: motion ahead is then a zoom by v t / range.

    Guaranteed: detail (standard deviation of the Laplacian) falls, most where the motion path is long, and the mean
    brightness stays within 2 % of full scale.
    """

    exposure_ms: float = param(20.0, low=0.1, high=200.0, unit="ms", neutral=0.1, help="time that the shutter is open")

    @property
    def seconds(self) -> float:
        """The exposure."""
        return self.exposure_ms * 1e-3

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random; take the ego's motion.

        Raises NotApplicable: range or pose of the camera is unknown, or no pixel moves by one.
        """
        draw = self.drawn_motion(view)
        path = self.path_px(view, draw, every=_PROBED_CELLS)
        longest = float(np.quantile(np.hypot(path[..., 0], path[..., 1]), 0.9))
        if longest < _LEAST_PX:
            raise NotApplicable(f"{view.image.topic}: nine of ten pixels move by less than {longest:.2f}, 1 is needed")
        return draw

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Average along the paths, halving the rest each time; tiles with short paths are done sooner."""
        path = _cut(self.path_px(view, draw)).astype(np.float32)
        size, new = view.picture.size, view.picture.pixels
        step_px = cell_px(size[1])
        full, at = in_picture(path, step_px, size), places_px(size)
        tiles = list(_tiles(np.hypot(path[..., 0], path[..., 1]), step_px, size))
        for step in range(1, 1 + max((steps for _, steps in tiles), default=0)):
            old, new = new, new.copy()
            for tile, steps in tiles:
                if step > steps:
                    continue
                # So that all halves together reach from one end of the path to the other, however many there are.
                back = cv2.scaleAdd(full[tile], 0.5**step / (1.0 - 0.5**steps), at[tile])
                moved = cv2.remap(old, back, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
                cv2.addWeighted(old[tile], 0.5, moved, 0.5, 0.0, dst=new[tile])
        return new

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that detail falls and brightness stays."""
        return _proof_of_blur(old, new, 0.02)


def _cut(path_px: Floats) -> Floats:
    """Return paths (h, w, 2) of at most the longest length."""
    length = np.maximum(np.hypot(path_px[..., 0], path_px[..., 1]), 1e-9)
    return np.asarray(path_px * np.minimum(1.0, _LONGEST_PX / length)[..., None])


def _tiles(length_px: Floats, step_px: int, size: tuple[int, int]) -> Iterator[tuple[tuple[slice, slice], int]]:
    """Yield tiles of a picture with equal numbers of halvings, and that number.

    ``length_px``: (h, w) of the paths, cell by cell. ``step_px``: width and height of a cell. ``size``: of the picture
    (height, width).
    """
    # Paths are interpolated between the centres of cells: neighbours count.
    longest = cv2.dilate(length_px, np.ones((3, 3), np.uint8))
    for axis in (0, 1):
        longest = np.maximum.reduceat(longest, range(0, longest.shape[axis], _TILE_CELLS), axis=axis)
    halvings = np.clip(np.ceil(np.log2(np.maximum(longest, _SHORTEST_PX) / 2.0)), 1, _MOST_HALVINGS)
    steps = np.where(longest < _SHORTEST_PX, 0, halvings)
    side = _TILE_CELLS * step_px
    for i, row in enumerate(steps.astype(np.int64)):
        begins = np.flatnonzero(np.diff(row, prepend=-1))
        for first, end in zip(begins, [*begins[1:], len(row)], strict=True):
            if row[first]:
                across = slice(int(first) * side, min(int(end) * side, size[1]))
                yield (slice(i * side, min((i + 1) * side, size[0])), across), int(row[first])


def _proof_of_blur(old: View, new: View, tolerance: float) -> str | None:
    """Prove that detail fell, and that the mean brightness stayed within a share of full scale."""
    before, after = measures.sharpness(old.picture), measures.sharpness(new.picture)
    if after >= before:
        return f"detail went from {before:.4f} to {after:.4f}, it was to fall"
    moved = measures.brightness(new.picture) - measures.brightness(old.picture)
    return f"the mean brightness moved by {moved:+.4f}, it was to stay" if abs(moved) > tolerance else None
