# SPDX-License-Identifier: Apache-2.0
"""Pictures out of focus, and blurred by motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.ego_speed import RATE, EgoSpeed, speed_in
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.depth import depth_of

#: Rows that are blurred at a time, so that they fit the processor's cache.
_STRIPE = 64


@dataclass(frozen=True)
class ImageDefocused(EachImage):
    """Spreads every point over a disc, as a lens out of focus does.

    The disc of radius r is approximated by two successive box filters with its variance, r²/4 on each axis, in whole
    pixels: the cost does not depend on the radius.

    Guaranteed: detail (standard deviation of the Laplacian) falls, and the mean brightness stays within 1 % of full
    scale.
    """

    radius_px: float = param(
        3.0, low=0.5, high=30.0, unit="pixels", neutral=0.5, help="radius of the disc, in pixels of the picture"
    )
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random."""
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Blur by one box, then by the other, in stripes that include the rows that their edges need."""
        pixels, widths = view.picture.pixels, _widths(self.radius_px)
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


def _widths(radius_px: float) -> tuple[int, int]:
    """Return the odd widths of two boxes, each of variance (k² - 1) / 12, whose sum is nearest to a disc's r² / 4."""
    target = 3.0 * radius_px**2 + 2.0
    first = 2 * int((np.sqrt(target / 2.0) - 1.0) // 2.0) + 1
    second = 2 * round((np.sqrt(max(target - first**2, 9.0)) - 1.0) / 2.0) + 1
    return first, second


Floats = npt.NDArray[np.float64]
#: Distance of the sky: it moves by rotation alone.
_FAR_M = 1e5
#: A picture whose pixels move less than this is not blurred.
_LEAST_PX = 1.0
#: Shorter paths do not count if they are the longest of their tile, which has so many cells to a side.
_SHORTEST_PX, _TILE_CELLS = 0.5, 8
#: Each halving doubles the number of averaged places; beyond 16 places more look the same.
_MOST_HALVINGS = 4
#: Stride of the cells that are checked for visible motion.
_PROBED_CELLS = 4
#: Speed of the vehicle in m/s where its motion is unknown (assumed: a town's limit of 50 km/h).
_DEFAULT_MPS = 15.0
#: Longer paths are cut: beyond this a pixel is a smear anyway.
_LONGEST_PX = 40.0


@dataclass(frozen=True)
class ImageMotionBlurred(EachImage):
    """Blurs the picture as motion during the exposure does: near objects and edges most, far ahead least.

    Each pixel, at the range from the clouds, is projected from the camera's pose when the shutter opened; the picture
    is averaged along that path by halving: n steps average 2ⁿ pictures. Moving objects are blurred as if they stood.

    Guaranteed: detail (standard deviation of the Laplacian) falls, most where the motion path is long, and the mean
    brightness stays within 2 % of full scale.
    """

    exposure_ms: float = param(20.0, low=0.1, high=200.0, unit="ms", neutral=0.1, help="time that the shutter is open")
    ego_speed_mps: float | None = param(
        None,
        low=-20.0,
        high=70.0,
        unit="m/s",
        aspect="fixed",
        help="speed of the vehicle, forward; unset: it moves and turns as recorded, 15 m/s where that is unknown",
    )
    yaw_rate_radps: float = param(
        0.0, low=-1.5, high=1.5, unit="rad/s", neutral=0.0, help="its turning, positive to the left, on top of that"
    )
    random: ClassVar[bool] = False

    @property
    def needs_motion(self) -> bool:
        """Whether the speed of the ego is not given."""
        return self.ego_speed_mps is None

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random; take the ego's motion.

        Raises:
            NotApplicable: range or pose of the camera is unknown, or no pixel moves by one.
        """
        draw = {} if self.ego_speed_mps is not None else EgoSpeed.of(view.bundle, None, _DEFAULT_MPS).draw()
        path = self._path_px(view, draw, every=_PROBED_CELLS)
        longest = float(np.quantile(np.hypot(path[..., 0], path[..., 1]), 0.9))
        if longest < _LEAST_PX:
            raise NotApplicable(f"{view.image.topic}: nine of ten pixels move by less than {longest:.2f}, 1 is needed")
        return draw

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Average along the paths, halving the rest each time; tiles with short paths are done sooner."""
        path = self._path_px(view, draw).astype(np.float32)
        size, new = view.picture.size, view.picture.pixels
        cells = depth_of(view.bundle, view.image, view.camera())
        full, at = cells.in_picture(path, size), _places(size)
        tiles = list(_tiles(np.hypot(path[..., 0], path[..., 1]), cells.step_px, size))
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

    def _path_px(self, view: View, draw: Draw, every: int = 1) -> Floats:
        """Return the displacement (h, w, 2) in pixels of each (or every n-th) cell since the shutter opened."""
        camera = view.camera()
        cells = depth_of(view.bundle, view.image, camera)
        some = np.s_[::every, ::every]
        far_m = np.minimum(cells.range_m[some], _FAR_M).reshape(-1, 1)
        points = camera.grid(cells.step_px)[some].reshape(-1, 3) * far_m
        shift, turn = np.eye(4), np.eye(4)
        shift[:3, 3], turn[:3, :3] = -self._shift(view, draw), self._turn(view, draw).T
        before = camera.project(move(turn @ shift, points)).reshape((*cells.range_m[some].shape, 2))
        path = np.nan_to_num(before - cells.middles_px()[some])
        length = np.maximum(np.hypot(path[..., 0], path[..., 1]), 1e-9)
        return np.asarray(path * np.minimum(1.0, _LONGEST_PX / length)[..., None])

    def _shift(self, view: View, draw: Draw) -> Floats:
        """Return the camera's position when the shutter opened (3,), in its current frame."""
        return -self._axes(view)[:, 0] * speed_in(draw, self.ego_speed_mps) * self.exposure_ms * 1e-3

    def _turn(self, view: View, draw: Draw) -> Floats:
        """Return the rotation (3, 3) of the camera's axes when the shutter opened relative to now."""
        turned = -(self.yaw_rate_radps + float(draw.get(RATE, 0.0))) * self.exposure_ms * 1e-3
        return np.asarray(Rotation.from_rotvec(self._axes(view)[:, 2] * turned).as_matrix())

    def _axes(self, view: View) -> Floats:
        """Return the vehicle's axes (3, 3), column by column, in the camera's frame."""
        try:
            return np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[:3, :3]
        except UnknownTransform as error:
            raise NotApplicable(f"{view.image.topic}: where the vehicle's front is, is not known: {error}") from error


@lru_cache(maxsize=2)
def _places(size: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Return x and y (H, W, 2) of the pixels of a picture (height, width)."""
    x, y = np.meshgrid(*(np.arange(side, dtype=np.float32) for side in reversed(size)))
    places = np.stack([x, y], axis=-1)
    places.flags.writeable = False
    return places


def _tiles(length_px: Floats, step_px: int, size: tuple[int, int]) -> Iterator[tuple[tuple[slice, slice], int]]:
    """Yield tiles of a picture with equal numbers of halvings, and that number.

    Args:
        length_px: (h, w) of the paths, cell by cell.
        step_px: width and height of a cell.
        size: of the picture (height, width).
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
