# SPDX-License-Identifier: Apache-2.0
"""Which bundles show one scene: while the ego stands or creeps, the next bundle is nearly the one before.

A scene begins with a bundle, the anchor, and lasts while the ego is within half a metre of where it was then. How far
it moved is read off the first cloud: the edges of upright things (corners, poles, people) are paired with all those of
the anchor within reach, and the displacement on which most pairs agree is that of the world against the ego. Walls
along the road and the ground, which look alike from anywhere, have no say in it, and passing traffic is outvoted.
Without a cloud a scene lasts while a small grey picture of the first image stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Bundle, Cloud, Image

#: Largest motion of the ego vehicle within a scene, by votes on a grid of ``CELL_M``.
SAME_PLACE_M, CELL_M = 0.5, 0.2
#: Largest displacement in cells that is measured; a larger one is another scene.
REACH_CELLS = 10
#: Fewest edges of a cloud that give a displacement, and fewest that must agree on it.
LEAST_EDGES, LEAST_SHARE = 8, 0.4
#: Largest mean absolute difference of two images of one scene, as a share of full scale.
SAME_PICTURE = 0.012
#: Points that are read of a cloud, their slope and range, and columns around the sensor.
_POINTS, _LOWEST_SLOPE, _NEAREST_M, _FARTHEST_M, _COLUMNS = 8_000, -0.035, 2.5, 40.0, 720
#: An edge is nearer by so much than the column beside it.
_STEP_M = 0.6
#: A step counts less by so many times that by which the column on the other side is nearer: walls recede by both.
_WALL = 2.0
#: Of a sensor's columns that are no more than so many of these apart one is beside the other.
_WIDEST = 5
#: Rows of a picture, about, before squares of so many pixels are averaged.
_ROWS, _SQUARE = 64, 4

T = TypeVar("T")
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SceneView:
    """Compared contents of a bundle: edges (2, N) in metres of a cloud, or a grey image (H, W), by topic."""

    topic: str
    edges_m: Floats | None = None
    picture: Floats | None = None


class Scenes:
    """Assigns scenes to the source bundles of episodes, in order, from their contents alone."""

    def __init__(self) -> None:
        self._anchor: SceneView | None = None
        self._first = self._last = (-1, -1)

    def placed(self, bundle: Bundle) -> Bundle:
        """Return a bundle with the number of the first bundle of its scene, if that is an earlier one."""
        number, view = (bundle.episode, bundle.index), view_of(bundle)
        is_next = self._last[0] == number[0] and self._last[1] < number[1]
        self._last = number
        if is_next and self._anchor is not None and view is not None and alike(self._anchor, view):
            return replace(bundle, scene=self._first[1])
        self._anchor, self._first = view, number
        return bundle


def in_scenes(readings: Iterable[Bundle | T]) -> Iterator[Bundle | T]:
    """Yield the readings of episodes, each bundle with its scene."""
    scenes = Scenes()
    for found in readings:
        yield scenes.placed(found) if isinstance(found, Bundle) else found


def view_of(bundle: Bundle) -> SceneView | None:
    """Return the compared contents of a bundle: of its first cloud, else of its first image; None without."""
    for cloud in bundle.clouds[:1]:
        if (found := edges_m(cloud)).shape[1] >= LEAST_EDGES:
            return SceneView(cloud.topic, edges_m=found)
    for image in bundle.images[:1]:
        if (small := picture(image)) is not None:
            return SceneView(image.topic, picture=small)
    return None


def alike(one: SceneView, other: SceneView) -> bool:
    """Return whether two views are of one scene."""
    if one.topic != other.topic:
        return False
    if one.edges_m is not None and other.edges_m is not None:
        moved = displacement_m(one.edges_m, other.edges_m)
        return moved is not None and moved < SAME_PLACE_M
    if one.picture is None or other.picture is None or one.picture.shape != other.picture.shape:
        return False
    return float(np.abs(one.picture - other.picture).mean()) <= SAME_PICTURE


def edges_m(cloud: Cloud) -> Floats:
    """Return x and y (2, N) of the edges of what stands up around a sensor whose z axis points up.

    Of the points above the ground the nearest of each column of half a degree counts; it is an edge where nothing is
    beside it, or something that is farther away.
    """
    few = cloud.points[:: max(1, -(-len(cloud) // _POINTS))]
    x, y, z = (np.ascontiguousarray(few[name], dtype=np.float32) for name in "xyz")
    # A damaged cloud has coordinates whose square is no float, or that are none themselves; they are too far away.
    with np.errstate(over="ignore", invalid="ignore"):
        flat = np.sqrt(x * x + y * y)
        upright = np.flatnonzero((z > _LOWEST_SLOPE * flat) & (flat > _NEAREST_M) & (flat < _FARTHEST_M))
    x, y, flat = x[upright], y[upright], flat[upright]
    turn = np.float32(_COLUMNS / (2.0 * np.pi))
    column = ((np.arctan2(y, x) + np.float32(np.pi)) * turn).astype(np.uint32) % _COLUMNS
    # Sorted by column and, within one, by range in millimetres: the first of each is the nearest.
    order = np.sort(column << 16 | (flat * np.float32(1e3)).astype(np.uint32))
    columns = order >> 16
    first = np.flatnonzero(np.diff(columns, prepend=_COLUMNS))
    hit_columns, nearest = columns[first].astype(np.intp), (order[first] & 0xFFFF) * np.float32(1e-3)
    at = np.flatnonzero(_steps_m(hit_columns, nearest) > _STEP_M)
    angle, nearest = (hit_columns[at] + 0.5) / turn - np.pi, nearest[at]
    return np.stack([nearest * np.cos(angle), nearest * np.sin(angle)]).astype(np.float32)


def _steps_m(hit_columns: npt.NDArray[np.intp], nearest: Floats) -> Floats:
    """Return how much farther away the farther neighbour of each column is, infinite where nothing is seen there.

    A wall at a flat angle recedes from column to column, so that the step by which one neighbour is nearer counts
    against that of the other. Nor is it an edge that a sensor of fewer columns leaves some empty: such edges stay where
    they are in the cloud while the ego moves.
    """
    apart = np.diff(hit_columns, append=hit_columns[:1] + _COLUMNS)
    usual = min(max(2.0, 1.5 * np.partition(apart, len(apart) // 2)[len(apart) // 2]), _WIDEST) if len(apart) else 0.0
    after = np.where(apart <= usual, np.roll(nearest, -1) - nearest, np.float32(np.inf))
    before = np.where(np.roll(apart, 1) <= usual, np.roll(nearest, 1) - nearest, np.float32(np.inf))
    return np.maximum(before, after) + np.float32(_WALL) * np.minimum(np.minimum(before, after), 0.0)


def displacement_m(before_m: Floats, after_m: Floats) -> float | None:
    """Return the displacement from one cloud to another, to about ``CELL_M``, by a vote of the edges.

    Args:
        before_m, after_m: edges (2, N) and (2, M).

    Returns:
        None where too few agree: they moved out of reach, or the sensor turned.
    """
    size = 2 * REACH_CELLS + 1
    old, new = (_cells(edges) for edges in (before_m, after_m))
    moved = [np.subtract.outer(new[axis], old[axis]).ravel() + np.int16(REACH_CELLS) for axis in (0, 1)]
    # A negative number is a large one without its sign.
    near = np.flatnonzero((moved[0].view(np.uint16) < size) & (moved[1].view(np.uint16) < size))
    votes = np.bincount(moved[0][near].astype(np.intp) * size + moved[1][near], minlength=size * size)
    padded = np.pad(votes.reshape(size, size), 1)
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    around = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    best = int(around.argmax())
    if around.flat[best] < LEAST_SHARE * min(old.shape[1], new.shape[1]):
        return None
    return CELL_M * float(np.hypot(best // size - REACH_CELLS, best % size - REACH_CELLS))


def _cells(edges_m: Floats) -> npt.NDArray[np.int16]:
    """Return the cells (2, K) of edges, each once: many edges of one bush must not outvote a street."""
    x, y = np.rint(edges_m / np.float32(CELL_M)).astype(np.int32)
    found = np.unique(x << 16 | (y & 0xFFFF))
    return np.stack([found >> 16, found & 0xFFFF]).astype(np.int16)


def picture(image: Image) -> Floats | None:
    """Return an image as a small grey picture (H, W), 0 to 1; None if it cannot be read."""
    pixels = image.pixels
    if image.compressed is not None:
        import cv2  # a drive without compressed pictures needs no OpenCV

        coded = np.frombuffer(image.compressed, dtype=np.uint8)
        decoded = cv2.imdecode(coded, cv2.IMREAD_REDUCED_GRAYSCALE_8) if len(coded) else None
        if decoded is None:
            return None
        pixels = np.asarray(decoded)
    if pixels.dtype.kind != "u" or min(pixels.shape[:2], default=0) < _SQUARE:
        return None
    step = max(1, min(pixels.shape[:2]) // _ROWS)
    few = pixels[::step, ::step].astype(np.float32)
    few = few.mean(axis=2) if few.ndim == 3 else few
    rows, columns = (length // _SQUARE for length in few.shape)
    squares = few[: rows * _SQUARE, : columns * _SQUARE].reshape(rows, _SQUARE, columns, _SQUARE)
    return np.asarray(squares.mean(axis=(1, 3)) / np.float32(np.iinfo(pixels.dtype).max), dtype=np.float32)
