# SPDX-License-Identifier: Apache-2.0
"""Returns with random offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.keyed_draws import cached, cut_normals, generator_of, new_key
from mt_nodes.relations.mutations.lidar.angle_fields import write_angles
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS
from mt_nodes.relations.mutations.lidar.rays import (
    At,
    at_rows,
    columns,
    limited,
    proof_of_move,
    proof_on_beam,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    rows_of_share,
    with_ranges,
    write_range_fields,
)

_CUT = 5.0
#: Points per block, which fit the processor's cache.
_PIECE = 1 << 13
Offsets = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PointsJittered(EachCloud):
    """Moves returns at random, along their beams or in space.

    Offsets are independent. ``gaussian``: normal with standard deviation ``size_m``, cut at five of them, as a sensor's
    range noise; ``uniform``: between ``-size_m`` and ``size_m``, as rounding errors; ``impulse``: ``size_m`` in one
    direction or the other, as a wrong peak of the echo.

    ``along_ray`` is possible sensor noise: the beam is known far better than the range, and a range stays within
    ``min_range_m`` to ``max_range_m`` (or where it was beyond). ``in_space`` moves x, y and z alike, which takes
    returns off their beams (an impulse has a random direction for each): the stress test of robustness benchmarks after
    Hendrycks and Dietterich (Dong et al., 3D_Corruptions_AD, CVPR 2023), which no sensor produces; a move beyond the
    limits is left out.

    Guaranteed: moves are within the bound, and along the beam where promised; range fields follow; nothing else
    changes.
    """

    distribution: str = param("gaussian", choices=("gaussian", "uniform", "impulse"), help="of the offsets")
    direction: str = param("along_ray", choices=("along_ray", "in_space"), help="where returns may go")
    size_m: float = param(
        0.02, low=1e-6, high=5.0, unit="m", neutral=1e-06, help="standard deviation, half width or length of moves"
    )
    share: float = param(1.0, low=0.0001, high=1.0, neutral=0.0001, help="share of the returns that are moved")
    min_range_m: float = param(
        0.5, low=0.01, high=10.0, unit="m", aspect="fixed", help="the sensor sees nothing nearer"
    )
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the returns (unless all move), and a key for their offsets."""
        refuse_whole_numbers(cloud)
        rows = returns(cloud)
        chosen: Draw = {} if self.share == 1.0 else {"rows": rows_of_share(rng, rows, self.share)}
        return {**chosen, "offset_key": new_key(rng)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move the drawn returns."""
        at, offsets = self._drawn(cloud, draw)
        if self.direction == "in_space":
            return self._shifted(cloud, at, offsets)
        old_m = ranges_m(cloud, at)
        new_m = old_m + offsets * np.float32(self.size_m)
        return with_ranges(cloud, at, old_m, limited(new_m, old_m, self.min_range_m, self.max_range_m))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure how far, and whether off the beam, each return moved."""
        at, offset = self._drawn(old, draw)
        broken = (proof_on_beam if self.direction == "along_ray" else proof_of_move)(old, new, at)
        if broken is not None:
            return broken
        parts = (self._wrong_place(old, new, part, offset[..., place]) for place, part in _parts(at, offset.shape[-1]))
        return next(filter(None, parts), None)

    def _wrong_place(self, old: Cloud, new: Cloud, at: At, offset: Offsets) -> str | None:
        """Return what is wrong with the places of points with drawn offsets (n,) or (3, n)."""
        before, after, offset_m = ranges_m(old, at), ranges_m(new, at), offset * np.float32(self.size_m)
        slack = rounding_m(old, before + self._most_m)
        if self.direction == "along_ray":
            moved, off = np.abs(after - before), np.abs(after - before - offset_m)
        else:
            moves = [b - a for a, b in zip(columns(old, at), columns(new, at), strict=True)]
            moved, off = _length(*moves), _length(*(m - o for m, o in zip(moves, offset_m, strict=True)))
        if not (moved <= self._most_m + slack).all():
            return f"a return moved by {moved.max():.3g} m, the bound is {self._most_m:.3g} m"
        low, high = np.minimum(before, self.min_range_m), np.maximum(before, self.max_range_m)
        if not ((after >= low - slack) & (after <= high + slack)).all():
            return f"ranges from {after.min():.2f} to {after.max():.2f} m leave the sensor's"
        at_limit = (before - low <= self._most_m) | (high - before <= self._most_m)
        wrong = (off > 2.0 * slack) & ~at_limit
        return f"{int(wrong.sum())} returns are not where they were drawn to go" if wrong.any() else None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of moved returns."""
        moved = (len(_moved(cloud, draws[cloud.topic])) for cloud in bundle.clouds)
        return Effects(numbers={"points_moved": float(sum(moved))})

    @property
    def _most_m(self) -> float:
        length = self.size_m * (_CUT if self.distribution == "gaussian" else 1.001)
        # Three axes are cut one by one; an impulse has its length in any direction, within rounding.
        return length if self.direction == "along_ray" or self.distribution == "impulse" else length * float(np.sqrt(3))

    def _shifted(self, cloud: Cloud, at: At, offsets: Offsets) -> Cloud:
        """Move points by offsets (3, n), and move those back that leave the sensor's range limits."""
        raw = cloud.raw.copy()
        points, moved = raw.view(cloud.points.dtype), cloud.with_raw(raw, height=cloud.height)
        for place, part in _parts(at, offsets.shape[-1]):
            for name, offset in zip("xyz", offsets, strict=True):
                points[name][part] += offset[place] * np.float32(self.size_m)
            new_m = ranges_m(moved, part)
            off = np.flatnonzero((new_m < self.min_range_m) | (new_m > self.max_range_m))
            rows = off + place.start if isinstance(part, slice) else part[off]
            old_m, new_m = ranges_m(cloud, rows), new_m[off]
            back = (new_m < np.minimum(self.min_range_m, old_m)) | (new_m > np.maximum(self.max_range_m, old_m))
            raw[rows[back]] = cloud.raw[rows[back]]
        if any(map(cloud.single, RANGE_FIELDS)):
            write_range_fields(points, cloud, at, ranges_m(moved, at) / ranges_m(cloud, at))
        write_angles(points, cloud, at)
        return moved

    def _drawn(self, cloud: Cloud, draw: Draw) -> tuple[At, Offsets]:
        """Return the moved points, and their offsets, see :func:`_offsets`."""
        rows = _moved(cloud, draw)
        axes = 1 if self.direction == "along_ray" else 3
        return at_rows(cloud, rows), _offsets(draw["offset_key"], len(rows), axes, self.distribution)


def _moved(cloud: Cloud, draw: Draw) -> Rows:
    """Return the points with a drawn offset."""
    return np.asarray(draw["rows"], dtype=np.int64) if "rows" in draw else returns(cloud)


@cached
def _offsets(key: int, count: int, axes: int, distribution: str) -> Offsets:
    """Return offsets (count,) along the beam, or (3, count) in space, in units of ``size_m``."""
    shape = (count,) if axes == 1 else (axes, count)
    if distribution == "gaussian":
        return cut_normals(key, count * axes, _CUT).reshape(shape)
    rng = generator_of(key)
    if distribution == "uniform":
        return np.asarray(rng.random(shape, dtype=np.float32) * 2.0 - 1.0, dtype=np.float32)
    normal = rng.standard_normal(shape, dtype=np.float32)
    if axes == 1:
        return np.copysign(np.float32(1.0), normal)
    return np.asarray(normal / np.maximum(np.linalg.norm(normal, axis=0), 1e-6), dtype=np.float32)


def _parts(at: At, count: int) -> Iterator[tuple[slice, At]]:
    """Yield blocks of ``count`` points: their indices among them, and their rows in the cloud."""
    for start in range(0, count, _PIECE):
        place = slice(start, min(start + _PIECE, count))
        yield place, place if isinstance(at, slice) else at[place]


def _length(x: Floats, y: Floats, z: Floats) -> Floats:
    return np.asarray(np.sqrt(x * x + y * y + z * z))
