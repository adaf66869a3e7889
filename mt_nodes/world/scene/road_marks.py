# SPDX-License-Identifier: Apache-2.0
"""Outlines of road markings: x along the road, y to the left, metres.

Stripes of a crosswalk are 0.5 m wide with equal gaps, a stop line is 0.5 m deep, lines are 0.12 m wide: usual sizes on
German roads. Symbols are those of Californian roads by eye, elongated along the road as there; their sizes are assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Outline = npt.NDArray[np.float64]
Point = tuple[float, float]

_STRIPE_M, _GAP_M, _BAR_M, _LINE_M, _DASH_M = 0.5, 0.5, 0.5, 0.12, 6.0
_STROKE_M, _AHEAD, _ASIDE = 0.12, 2.6, 0.8


@dataclass(frozen=True)
class MarkPlace:
    """Place of paint: from ``low_m`` to ``high_m`` ahead, its centre ``left_m`` to the left, and its width."""

    low_m: float
    high_m: float
    left_m: float
    width_m: float

    @property
    def sides_m(self) -> tuple[float, float]:
        """Its right and its left side."""
        return self.left_m - self.width_m / 2.0, self.left_m + self.width_m / 2.0


@dataclass(frozen=True)
class Marks:
    """Outlines (n, 2) of white and of yellow paint."""

    white: tuple[Outline, ...] = ()
    yellow: tuple[Outline, ...] = ()


def crosswalk(at: MarkPlace) -> Marks:
    """Return stripes along the road, side by side."""
    low, high = at.sides_m
    starts = np.arange(low, high - 0.5 * _STRIPE_M, _STRIPE_M + _GAP_M).tolist()
    return Marks(tuple(_box(at.low_m, at.high_m, y, y + _STRIPE_M) for y in starts))


def stop_line(at: MarkPlace) -> Marks:
    """Return a bar across the road."""
    return Marks((_box(at.low_m, at.low_m + _BAR_M, *at.sides_m),))


def lane_lines(at: MarkPlace) -> Marks:
    """Return broken lines on both sides."""
    return Marks(tuple(dash for y in at.sides_m for dash in _dashes(at, y)))


def bike_lane(at: MarkPlace) -> Marks:
    """Return a lane between two lines with a bicycle and an arrow on it."""
    symbols = [*_bicycle(at.low_m + 2.0, at.left_m), *_arrow(at.low_m + 5.2, at.left_m)]
    return Marks((*(_line(at, y) for y in at.sides_m), *symbols))


def hov_lane(at: MarkPlace) -> Marks:
    """Return the diamonds of a carpool lane, and its lines."""
    starts = np.arange(at.low_m + 1.0, at.high_m - 3.6, 12.0).tolist()
    return Marks((*(_line(at, y) for y in at.sides_m), *(part for x in starts for part in _diamond(x, at.left_m))))


def shared_lane(at: MarkPlace) -> Marks:
    """Return a bicycle under two chevrons: cars and bicycles share the lane."""
    chevrons = [
        _stroke((x - 0.5, at.left_m + side * 0.5), (x, at.left_m))
        for x in (at.low_m + 4.2, at.low_m + 5.0)
        for side in (1, -1)
    ]
    return Marks((*_bicycle(at.low_m + 1.6, at.left_m), *chevrons))


def center_left_turn(at: MarkPlace) -> Marks:
    """Return a middle lane from which both directions turn left: yellow lines, broken inside, arrows face to face."""
    right, left = at.sides_m
    lines = [_line(at, right), _line(at, left), *_dashes(at, right + 0.25), *_dashes(at, left - 0.25)]
    arrows = [*_turning(at.low_m + 2.5, at.left_m, 1.0), *_turning(at.low_m + 8.5, at.left_m, -1.0)]
    return Marks(tuple(arrows), tuple(lines))


MARKS: dict[str, Callable[[MarkPlace], Marks]] = {
    "crosswalk": crosswalk,
    "stop_line": stop_line,
    "lane_lines": lane_lines,
    "bike_lane": bike_lane,
    "hov_lane": hov_lane,
    "shared_lane": shared_lane,
    "center_left_turn": center_left_turn,
}


def _box(x0: float, x1: float, y0: float, y1: float) -> Outline:
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def _line(at: MarkPlace, y_m: float) -> Outline:
    return _box(at.low_m, at.high_m, y_m - _LINE_M / 2, y_m + _LINE_M / 2)


def _dashes(at: MarkPlace, y_m: float) -> list[Outline]:
    starts = np.arange(at.low_m, at.high_m, 2.0 * _DASH_M).tolist()
    return [_box(x, min(x + _DASH_M, at.high_m), y_m - _LINE_M / 2, y_m + _LINE_M / 2) for x in starts]


def _stroke(a: Point, b: Point) -> Outline:
    """Return a straight stroke between two points."""
    along = np.subtract(b, a)
    across = np.array([-along[1], along[0]]) * _STROKE_M / 2.0 / np.hypot(*along)
    return np.array([a + across, b + across, b - across, a - across])


def _strokes(points: Sequence[Point]) -> list[Outline]:
    return [_stroke(a, b) for a, b in pairwise(points)]


def _bicycle(x_m: float, y_m: float) -> list[Outline]:
    """Return a bicycle that rides to the left, seen by who comes along the road; its middle is at a place."""

    def placed(up: float, right: float) -> Point:
        return x_m + _AHEAD * up, y_m - _ASIDE * right

    turn = np.linspace(0.0, 2.0 * np.pi, 13)
    rims = [
        [placed(0.24 * float(np.sin(t)) - 0.3, 0.24 * float(np.cos(t)) + side * 0.42) for t in turn]
        for side in (-1.0, 1.0)
    ]
    saddle, head, crank = placed(0.22, 0.15), placed(0.25, -0.25), placed(-0.3, 0.02)
    frame = [
        [placed(-0.3, -0.42), head, saddle, crank, head],
        [crank, placed(-0.3, 0.42), saddle],
        [placed(0.36, -0.2), head],
    ]
    bars = [[placed(0.36, -0.36), placed(0.36, -0.14)], [placed(0.3, 0.04), placed(0.3, 0.27)]]
    return [part for points in (*rims, *frame, *bars) for part in _strokes(points)]


def _arrow(x_m: float, y_m: float) -> list[Outline]:
    """Return an arrow along the road that begins at a place, 2 m long."""
    tip = np.array([[x_m + 2.0, y_m], [x_m + 1.1, y_m + 0.35], [x_m + 1.1, y_m - 0.35]])
    return [_stroke((x_m, y_m), (x_m + 1.15, y_m)), tip]


def _turning(x_m: float, y_m: float, side: float) -> list[Outline]:
    """Return an arrow that turns left for traffic along the road (``side`` 1) or against it (-1)."""
    shaft = _strokes([(x_m - side, y_m - 0.3 * side), (x_m + 0.8 * side, y_m - 0.3 * side), (x_m + side, y_m)])
    tip = [[x_m + side, y_m + 0.65 * side], [x_m + 1.7 * side, y_m], [x_m + 0.3 * side, y_m]]
    return [*shaft, np.array(tip)]


def _diamond(x_m: float, y_m: float) -> list[Outline]:
    """Return a rhombus of strokes that begins at a place, 3.6 m long and 1 m wide."""
    corners = [(x_m, y_m), (x_m + 1.8, y_m + 0.5), (x_m + 3.6, y_m), (x_m + 1.8, y_m - 0.5), (x_m, y_m)]
    return _strokes(corners)
