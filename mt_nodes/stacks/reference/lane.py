# SPDX-License-Identifier: Apache-2.0
"""Lane detection: the road in a bird's-eye view, and the lane whose two lines are brightest in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.world.camera.model import CameraModel

#: The road ahead that is looked at: distances from the camera, offsets to the left, step across.
NEAR_M, FAR_M, ROWS, WIDE_M, STEP_M = 4.0, 20.0, 64, 5.0, 0.05
#: A line is so wide at the most, and is compared with the road so far to both sides of it.
_LINE_M, _ROAD_GAP_M = 0.15, 0.3
#: How far a lane may lie to the side (m), how it may point (rad) and bend (1/m): first guesses.
_OFFSETS = np.linspace(-1.2, 1.2, 13)
_HEADINGS = np.linspace(-0.24, 0.24, 17)
_BENDS = np.linspace(-0.024, 0.024, 13)
_ROUNDS = 4


@dataclass(frozen=True)
class LaneFit:
    """The middle of the lane by the distance x ahead of the camera: ``offset_m + heading * x + bend_1pm * x² / 2``.

    ``visible_share``: in which share of rows a line was found where it should be, 0 to 1, of the better of the two.
    """

    offset_m: float
    heading: float
    bend_1pm: float
    visible_share: float

    def left_m(self, x_m: npt.ArrayLike) -> Floats:
        """Return the offset (N,) of the middle to the left of the camera, at distances ``x_m`` (N,) ahead."""
        x = np.asarray(x_m, dtype=np.float64)
        return self.offset_m + self.heading * x + self.bend_1pm * x * x / 2.0


def road_from_above(paint: Singles, camera: CameraModel, height_m: float) -> Singles:
    """Return the bird's-eye view (ROWS, columns) of the road: far end first, left on the left; NaN out of sight.

    ``paint``: (H, W) brightness. ``camera``: looks level, ``height_m`` above a flat road.
    """
    x, y = _pixels(camera, height_m)
    return np.asarray(
        cv2.remap(paint, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=(np.nan,) * 4)
    )


def lines_in(road: Singles, least: float) -> Singles:
    """Return how much each place (ROWS, columns) looks like the middle of a line, from 0 to 1.

    It is brighter than the road to both of its sides by ``least`` (0.5) to twice as much (1), in the road's unit.
    """
    wide = max(1, round(_LINE_M / STEP_M))
    mean = np.asarray(cv2.blur(road, (wide, 1)))
    gap_columns = round(_ROAD_GAP_M / STEP_M)
    padded = np.pad(mean, ((0, 0), (gap_columns, gap_columns)), constant_values=np.nan)
    brighter = mean - np.fmax(padded[:, : -2 * gap_columns], padded[:, 2 * gap_columns :])
    return np.asarray(np.nan_to_num(np.clip(brighter / (2.0 * least), 0.0, 1.0)), dtype=np.float32)


def find_lane(lines: Singles, width_m: float) -> LaneFit:
    """Return the lane of a given width whose two lines fit the line-like places best.

    Every lane of a coarse grid is tried; the best is drawn, by weighted least squares, onto the lines near its own.
    """
    offset, heading, bend = _best_guess(lines, width_m)
    across, x = _across(), _distances()
    for round_ in range(_ROUNDS):
        gate_m = 0.5 / (round_ + 1)
        middle = offset + heading * x + bend * x * x / 2.0
        near = np.abs(across[None, :] - middle[:, None] - width_m / 2.0) < gate_m
        near_right = np.abs(across[None, :] - middle[:, None] + width_m / 2.0) < gate_m
        left, right = np.where(near, lines, 0.0), np.where(near_right, lines, 0.0)
        weight = np.concatenate([left.sum(axis=1), right.sum(axis=1)])
        if np.count_nonzero(weight > 0.3) < 6:
            break
        sums = np.concatenate([left @ (across - width_m / 2.0), right @ (across + width_m / 2.0)])
        offset, heading, bend = _fitted(np.tile(x, 2), sums / np.maximum(weight, 1e-9), np.minimum(weight, 2.0))
    visible_share = max(float(np.mean(side.max(axis=1) >= 0.5)) for side in (left, right))
    return LaneFit(offset, heading, bend, visible_share)


def _fitted(x: Floats, y: Floats, weight: Floats) -> tuple[float, float, float]:
    """Return the weighted parabola fit, regularised so that a few far places do not bend it."""
    columns = np.column_stack([np.ones_like(x), x, x * x / 2.0])
    stiff = np.diag([1e-6, 0.5, 1e3])
    solved = np.linalg.solve(columns.T @ (weight[:, None] * columns) + stiff, columns.T @ (weight * y))
    return float(solved[0]), float(solved[1]), float(solved[2])


def _best_guess(lines: Singles, width_m: float) -> tuple[float, float, float]:
    blurred = np.asarray(cv2.blur(lines, (7, 3)))
    padded = np.pad(blurred, ((0, 0), (1, 1)))
    total = np.zeros(len(_guesses(width_m)[0]), dtype=np.float32)
    parameters, columns = _guesses(width_m)
    rows = np.arange(0, ROWS, 2)
    for side in (0, 1):
        total += padded[rows[None, :], columns[:, side]].sum(axis=1)
    offset, heading, bend = parameters[int(np.argmax(total))]
    return float(offset), float(heading), float(bend)


@lru_cache(maxsize=4)
def _guesses(width_m: float) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the candidate lanes (G, 3), and the columns of their lines (G, 2, rows) in a padded road.

    Likelier ones come first: of equals the first is taken.
    """
    grid = np.stack(np.meshgrid(_OFFSETS, _HEADINGS, _BENDS, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = grid[np.argsort((np.abs(grid) / (1.2, 0.24, 0.024)).sum(axis=1), kind="stable")]
    x = _distances()[::2]
    middle = grid[:, :1] + grid[:, 1:2] * x + grid[:, 2:] * x * x / 2.0
    lines = np.stack([middle + width_m / 2.0, middle - width_m / 2.0], axis=1)
    column = np.rint((WIDE_M - lines) / STEP_M).astype(np.intp) + 1
    return grid, np.clip(column, 0, len(_across()) + 1)


def _distances() -> Floats:
    """Distances (ROWS,) from the camera, far end first; denser where a pixel covers less of the road."""
    return 1.0 / np.linspace(1.0 / FAR_M, 1.0 / NEAR_M, ROWS)


def _across() -> Floats:
    return np.arange(WIDE_M, -WIDE_M - STEP_M / 2.0, -STEP_M)


@lru_cache(maxsize=8)
def _pixels(camera: CameraModel, height_m: float) -> tuple[Singles, Singles]:
    x, y = (part.astype(np.float64) for part in np.meshgrid(_distances(), _across(), indexing="ij"))
    pixels = camera.project(np.stack([-y, np.full_like(x, height_m), x], axis=-1).reshape(-1, 3))
    shaped = pixels.reshape(*x.shape, 2).astype(np.float32)
    return np.ascontiguousarray(shaped[..., 0]), np.ascontiguousarray(shaped[..., 1])
