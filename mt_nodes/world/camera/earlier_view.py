# SPDX-License-Identifier: Apache-2.0
"""What earlier pictures show of the background that an object hides now: warped by the ego's motion and by depth.

A pixel of the background, at the range that is known or assumed behind the object, is projected into an earlier camera.
It counts if the depth measured then agrees so well that the place in the earlier picture is right to two pixels: then
nothing stood before it, and it is not something else that moved away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.data.images.codecs import Picture
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.standing_object import CameraGround, Flags

#: Largest error of a place in an earlier picture by its depth, in pixels.
_PLACE_PX = 2.0
#: Beyond this range everything is as far as the sky.
_SKY_M = 1e4
#: An earlier picture counts if it agrees with the present one around the hole: root mean square of samples, as a share
#: of full scale, after the mean difference. About five times the noise of a camera by day (1 % of full scale).
_AGREES = 0.05
#: Samples of ground in shadow are less than this share of those of lit ground.
_SHADOW = 0.86
#: Fewest pixels of the border to tell, and the greatest change of brightness between pictures.
_FEWEST, _LEVEL = 30, 0.12
#: OpenCV's maps have at most 32,767 rows.
_ROW = 1024
#: A surface is before another, or behind it, by this share of the range and so many metres.
_NEARER, _NEARER_M = 0.05, 0.5
#: Cells so high above the ground stand on it; an outline reaches so many cells.
_ABOVE_M, _NEIGHBOURS = 0.25, 5


@dataclass(frozen=True, eq=False)
class EarlierView:
    """An earlier picture of one camera.

    Attributes:
        from_now: (4, 4) from the camera's present frame to its former one.
        ground: the plane under the object, in the former frame.
    """

    picture: Picture
    camera: CameraModel
    depth: DepthMap
    from_now: Matrix
    ground: CameraGround

    @cached_property
    def standing_m(self) -> Singles:
        """Range (r, c) of the nearest cell above the ground among each cell's neighbours, infinite for none."""
        directions = self.camera.grid(self.depth.step_px).astype(np.float32)
        range_m = np.minimum(self.depth.range_m, np.float32(_SKY_M))
        height = self.ground.camera_m + range_m * (directions @ self.ground.up.astype(np.float32))
        standing = np.where(height > _ABOVE_M, self.depth.range_m, np.float32(np.inf))
        return np.asarray(cv2.erode(standing, np.ones((_NEIGHBOURS,) * 2, np.uint8)))

    def colours(self, points_m: Floats, ground: Flags) -> tuple[Singles, Flags]:
        """Return the colours (n, c) of points (n, 3) of the present camera's frame, and which it shows.

        Where a point is said to be ``ground`` (n,), the ground is where the plane is: no depth must agree.
        """
        there = move(self.from_now, points_m)
        cell, pixels, inside = self._cells(there)
        own_m = np.linalg.norm(there, axis=1)
        off_px = self._parallax_px * np.abs(1.0 / self.depth.range_m[cell] - 1.0 / own_m)
        clear = self.standing_m[cell] > (1.0 - _NEARER) * own_m - _NEARER_M
        return self._sampled(pixels), inside & clear & (ground | (off_px <= _PLACE_PX))

    def seen_through(self, points_m: Floats) -> Flags:
        """Return which points (n, 3) of the present frame were not there: what lies behind them was measured then."""
        there = move(self.from_now, points_m)
        cell, _, inside = self._cells(there)
        own_m = np.linalg.norm(there, axis=1)
        beyond = self.depth.range_m[cell] > (1.0 + _NEARER) * own_m + _NEARER_M
        return np.asarray(inside & self.depth.measured[cell] & beyond)

    @property
    def _parallax_px(self) -> float:
        """Pixels by which a point moves for each 1/m of its nearness."""
        return float(self.camera.k[0, 0] * np.linalg.norm(self.from_now[:3, 3]))

    def _cells(self, there: Floats) -> tuple[tuple[Rows, Rows], Floats, Flags]:
        pixels = self.camera.project(there)
        with np.errstate(invalid="ignore"):
            last = self.camera.width - 1, self.camera.height - 1
            inside = np.asarray(((pixels >= 0) & (pixels <= last)).all(axis=1))
        pixels = np.where(inside[:, None], pixels, 0.0)
        column, row = (pixels // self.depth.step_px).astype(np.int64).T
        return (row, column), pixels, inside

    def _sampled(self, pixels: Floats) -> Singles:
        image = self.picture.pixels
        padded = np.resize(pixels.astype(np.float32), (-(-len(pixels) // _ROW) * _ROW, 2)).reshape(-1, _ROW, 2)
        x, y = np.ascontiguousarray(padded[..., 0]), np.ascontiguousarray(padded[..., 1])
        sampled = cv2.remap(image, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        depth = image.shape[2] if image.ndim == 3 else 1
        return np.asarray(sampled, np.float32).reshape(-1, depth)[: len(pixels)] / np.float32(self.picture.full_scale)


@dataclass(frozen=True, eq=False)
class PictureBackground:
    """What is behind a hole: points (n, 3) that the pixels of it, and of its border, show, in the camera's frame.

    Attributes:
        hole, border: rows and columns (n, 2) of the window. hole_m, border_m: (n, 3) the points that they show.
        hole_ground, border_ground: (n,) which are ground.
    """

    hole: Rows
    hole_m: Floats
    hole_ground: Flags
    border: Rows
    border_m: Floats
    border_ground: Flags


def recall(pixels: Singles, views: tuple[EarlierView, ...], background: PictureBackground) -> Flags:
    """Write into pixels (h, w, c) what earlier pictures show of a hole; return where (h, w) they do.

    The newest picture that shows a pixel gives it, in the light of the present one. Ground darker than around the hole
    may be in the shadow of the object as it was then: it does not count.
    """
    recalled = np.zeros(pixels.shape[:2], bool)
    darkest = _darkest(pixels, background)
    for view in views:
        missing = ~recalled[tuple(background.hole.T)]
        if not missing.any():
            break
        level = _level(pixels, view, background)
        if level is None:
            continue
        colours, shown = view.colours(background.hole_m[missing], background.hole_ground[missing])
        colours += level
        shown &= ~background.hole_ground[missing] | (colours.mean(axis=1) > darkest)
        at = tuple(background.hole[missing][shown].T)
        pixels[at], recalled[at] = colours[shown], True
    return recalled


def _darkest(pixels: Singles, background: PictureBackground) -> float:
    """Return the least sample value of lit ground around a hole."""
    ground = pixels[tuple(background.border[background.border_ground].T)]
    return _SHADOW * float(np.median(ground)) if len(ground) else 0.0


def _level(pixels: Singles, view: EarlierView, background: PictureBackground) -> Singles | None:
    """Return how much brighter (c,) the present picture is around a hole; None if the two do not agree there."""
    if len(background.border) < _FEWEST:
        return None
    own = pixels[tuple(background.border.T)]
    before, shown = view.colours(background.border_m, background.border_ground)
    if shown.sum() < _FEWEST:
        return None
    apart = own[shown] - before[shown]
    level = np.median(apart, axis=0)
    rest = np.abs(apart - level)
    # Of edges, half a pixel of misplacement is a large difference: the greatest tenth does not count.
    rest = np.minimum(rest, np.quantile(rest, 0.9, axis=0))
    agrees = float(np.sqrt((rest**2).mean())) <= _AGREES and np.abs(level).max() <= _LEVEL
    return level.astype(np.float32) if agrees else None
