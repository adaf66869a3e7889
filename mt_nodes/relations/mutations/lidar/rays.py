# SPDX-License-Identifier: Apache-2.0
"""Returns, their ranges, and moves along their beams: shared by mutations that move returns.

Beams start at the origin of the cloud's frame, as in a cloud in its sensor's own frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud, Points
from mt_nodes.relations.mutations.lidar.angle_fields import angle_fields, proof_of_angles
from mt_nodes.relations.mutations.lidar.each_cloud import MOST_M, proof_of_change
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, empty_returns

#: Points (n,) of a cloud: row indices, or a slice for all points, which NumPy reads without copying.
At = Rows | slice

#: Far below any beam's width (0.5 to 3 mrad), far above the rounding of single precision.
RAY_TOLERANCE_RAD = 1e-5
_PIECE = 8192
#: Below this single precision has no digits left.
_LEAST_SINGLE = 1e-37


def returns(cloud: Cloud) -> Rows:
    """Return the rows (n,) that hold a return, rising. Raises NotApplicable: there is none."""
    nearest_m, farthest_m = cloud.reach_m
    every = nearest_m > 0.0 and farthest_m <= MOST_M
    rows = np.arange(len(cloud)) if every else np.flatnonzero(~empty_returns(cloud))
    if not len(rows):
        raise NotApplicable(f"{cloud.topic} has no return among {len(cloud)} points")
    return rows


def rows_of_share(rng: np.random.Generator, rows: Rows, share: float) -> Rows:
    """Draw ``share`` of the rows (n,), at least one, each once: ascending, in the smallest type for a ledger."""
    count = max(1, round(share * len(rows)))
    chosen = rows[np.sort(rng.choice(len(rows), count, replace=False, shuffle=False))]
    return smallest(chosen)


def smallest(rows: Rows) -> npt.NDArray[Any]:
    """Return row indices (n,) in the smallest unsigned type that holds them."""
    return rows.astype(np.min_scalar_type(int(rows.max(initial=0))))


def at_rows(cloud: Cloud, rows: Rows) -> At:
    """Return a slice if distinct rows (n,) are all rows of the cloud, else the rows."""
    return slice(None) if len(rows) == len(cloud) else rows


def pieces(at: At, count: int) -> Iterator[At]:
    """Yield points (n,) of a cloud of ``count`` in blocks of some thousands, which fit the processor's cache."""
    begin, end, _ = at.indices(count) if isinstance(at, slice) else (0, len(at), 1)
    for start in range(begin, end, _PIECE):
        part = slice(start, min(start + _PIECE, end))
        yield part if isinstance(at, slice) else at[part]


def columns(cloud: Cloud, at: At) -> tuple[Floats, Floats, Floats]:
    """Return x, y, z (n,) of points, in double precision."""
    x, y, z = (cloud.points[name][at].astype(np.float64) for name in "xyz")
    return x, y, z


def ranges_m(cloud: Cloud, at: At) -> Floats:
    """Return the ranges (n,) of points from the origin of the cloud's frame, in metres."""
    squares = np.zeros(1)
    for name in "xyz":
        column = cloud.points[name][at].astype(np.float64)
        column *= column
        squares = squares + column
    return np.asarray(np.sqrt(squares, out=squares))


def refuse_whole_numbers(cloud: Cloud) -> None:
    """Raise NotApplicable for integer coordinates, which are too coarse for moving a point."""
    if any(cloud.points.dtype[name].kind != "f" for name in "xyz"):
        raise NotApplicable(f"{cloud.topic} has whole-number coordinates, too coarse to place a point")


def limited(range_m: Floats, old_m: Floats, low_m: float, high_m: float) -> Floats:
    """Limit new ranges (n,), in place, to the sensor's; one that was beyond a limit may stay there."""
    off = np.flatnonzero((range_m < low_m) | (range_m > high_m))
    range_m[off] = np.clip(range_m[off], np.minimum(old_m[off], low_m), np.maximum(old_m[off], high_m))
    return range_m


def with_ranges(cloud: Cloud, at: At, old_m: Floats, new_m: Floats) -> Cloud:
    """Return the cloud with points moved along their beams from ranges ``old_m`` (n,) > 0 to ``new_m`` (n,).

    Fields that repeat the range follow, in their own units. Overwrites ``new_m``, because memory is short here.
    """
    raw, ratio = cloud.raw.copy(), np.divide(new_m, old_m, out=new_m)
    points = raw.view(cloud.points.dtype)
    for name in "xyz":
        points[name][at] = points[name][at] * ratio
    write_range_fields(points, cloud, at, ratio)
    return cloud.with_raw(raw, height=cloud.height)


def write_range_fields(points: npt.NDArray[Any], cloud: Cloud, at: At, ratio: Floats) -> None:
    """Scale the range fields of ``points`` by ``ratio`` (n,), in whatever unit they are."""
    for name in filter(cloud.single, RANGE_FIELDS):
        points[name][at] = _scaled(points[name][at], ratio)


def ranges_follow(old: Points, new: Points, ratio: Floats) -> bool:
    """Return whether a range field's values (n,) are the old ones times ``ratio`` (n,), within its type's precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        expected = _limited_to_type(old * ratio, old.dtype).astype(np.float64)
        rounding = 0.5 if old.dtype.kind in "iu" else _LEAST_SINGLE
        off = ~(np.abs(new - expected) <= rounding + 1e-5 * np.abs(expected))
    # Values that were no ranges, NaN or out of bounds, stay so.
    return bool(np.array_equal(new[off].astype(np.float64), expected[off], equal_nan=True))


def _scaled(values: Points, ratio: Floats) -> Points:
    """Return a field's values (n,) times ``ratio`` (n,), rounded for integers."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = _limited_to_type(values * ratio, values.dtype)
        return np.asarray((scaled if values.dtype.kind == "f" else np.rint(scaled)).astype(values.dtype))


def _limited_to_type(values: Points, kind: np.dtype[Any]) -> Points:
    """Return numbers (n,) limited to a type: infinite beyond the limits of a floating-point one."""
    if kind.kind == "f":
        return np.asarray(values.astype(kind))
    limits = np.iinfo(kind)
    return np.clip(values, limits.min, limits.max)


def proof_of_move(old: Cloud, new: Cloud, at: At, also: tuple[str | None, ...] = ()) -> str | None:
    """Prove that only coordinates, ``also`` and place fields of some points differ, and that those fields are right."""
    broken = proof_of_change(old, new, at, (*place_fields(old), *angle_fields(old), *also))
    return broken or _proof_of_ranges(old, new, at) or proof_of_angles(old, new, at)


def proof_on_beam(old: Cloud, new: Cloud, at: At, also: tuple[str | None, ...] = ()) -> str | None:
    """Prove the same, and that points are still on their beams: the rotation of each, from the cross product."""
    return proof_of_change(old, new, at, (*place_fields(old), *also)) or proof_of_beams(old, new, at)


def place_fields(cloud: Cloud) -> tuple[str, ...]:
    """Return the names of the fields with a point's distance."""
    return (*"xyz", *filter(cloud.single, RANGE_FIELDS))


def proof_of_beams(old: Cloud, new: Cloud, at: At) -> str | None:
    """Prove that points (n,) are still returns on their beams, and that their range fields are right."""
    broken = _proof_of_ranges(old, new, at)
    if broken is not None:
        return broken
    off = sum(_off_beam(columns(old, part), columns(new, part)) for part in pieces(at, len(old)))
    return f"{off} points left their beams" if off else None


def _proof_of_ranges(old: Cloud, new: Cloud, at: At) -> str | None:
    if empty_returns(new)[at].any():
        return "a moved return came out empty"
    for name in filter(old.single, RANGE_FIELDS):
        for part in pieces(at, len(old)):
            ratio = ranges_m(new, part) / ranges_m(old, part)
            if not ranges_follow(old.points[name][part], new.points[name][part], ratio):
                return f"field '{name}' does not follow the coordinates"
    return None


def _off_beam(old: tuple[Floats, Floats, Floats], new: tuple[Floats, Floats, Floats]) -> int:
    (a, b, c), (x, y, z) = old, new
    ahead = a * x + b * y + c * z
    aside = np.sqrt((b * z - c * y) ** 2 + (c * x - a * z) ** 2 + (a * y - b * x) ** 2)
    return int(np.count_nonzero(~(aside <= RAY_TOLERANCE_RAD * ahead)))


def rounding_m(cloud: Cloud, range_m: Floats) -> Floats:
    """Return how far rounding to the cloud's coordinate type may move points (n,) at these ranges, in metres."""
    return range_m * (4.0 * max(float(np.finfo(cloud.points.dtype[name]).eps) for name in "xyz")) + 1e-9


def blocks(cloud: Cloud) -> Iterator[At]:
    """Yield the returns of a cloud in blocks of some thousands: slices if every point is one, else row indices (n,).

    Raises NotApplicable: no point is a return.
    """
    yield from pieces(at_rows(cloud, returns(cloud)), len(cloud))
