# SPDX-License-Identifier: Apache-2.0
"""A scan with more returns in each ring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.effects import Effects
from mt_nodes.errors import NotApplicable
from mt_nodes.frames import Bundle, Cloud, Points
from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.lidar.added_points import added_rows, proof_of_addition, with_added
from mt_nodes.mutations.lidar.each_cloud import EachCloud
from mt_nodes.mutations.lidar.placement import empty_returns
from mt_nodes.mutations.lidar.rays import Floats, Rows, columns, ranges_m, refuse_whole_numbers, rounding_m, smallest
from mt_nodes.mutations.lidar.ring_order import in_rings
from mt_nodes.params import param
from mt_nodes.scene.beams import beams_of

_PIECE = 1 << 13


@dataclass(frozen=True)
class DensityIncreased(EachCloud):
    """Puts returns between neighbours of one ring that lie on one surface: a finer step of azimuth.

    Neighbours are returns that follow each other in the scan of one ring, at most ``gap_deg`` apart. Where their
    ranges differ by no more than ``jump_m``, a surface runs from one to the other; the new return halves the angle
    between the two beams, and its range and intensity are the mean of theirs. Across a depth jump nothing is known,
    and nothing is put. All other fields are those of the earlier neighbour. In an organised cloud only an empty
    return right behind the earlier neighbour can be filled, by its share of the way to the later one. Rings are told by
    :func:`mt_nodes.scene.beams.beams_of`.

    Guaranteed: each new return lies between two old ones of one ring, on the line that joins them, which crosses no
    depth jump; every old point is there byte for byte, in its order.
    """

    share: float = param(0.25, low=0.0001, high=1.0, help="share of the gaps on one surface that are filled")
    jump_m: float = param(0.1, low=0.001, high=5.0, unit="m", help="ranges that differ by more are two surfaces")
    gap_deg: float = param(1.0, low=0.01, high=10.0, unit="deg", help="returns farther apart are no neighbours")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose gaps."""
        refuse_whole_numbers(cloud)
        earlier, later = self._gaps(cloud)
        chosen = np.flatnonzero(rng.random(len(earlier), dtype=np.float32) < self.share)
        if not len(chosen):
            raise NotApplicable(
                f"none of {len(earlier)} gaps between neighbours on one surface of {cloud.topic} is to be filled"
            )
        return {"earlier": smallest(earlier[chosen]), "later": smallest(later[chosen])}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Put a return into each gap drawn."""
        earlier, later = (draw[name].astype(np.int64) for name in ("earlier", "later"))
        return with_added(cloud, earlier + 1, _between(cloud, earlier, later), _intensity(cloud, earlier, later))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Look at each new return and the two that it lies between."""
        earlier, later = (draw[name].astype(np.int64) for name in ("earlier", "later"))
        broken = proof_of_addition(old, new, earlier + 1)
        if broken is not None:
            return broken
        place = beams_of(old).place
        if not len(earlier) or (place[earlier] != place[later]).any():
            return "a new return lies between two rings"
        added = added_rows(old, earlier + 1)
        pieces = (slice(start, start + _PIECE) for start in range(0, len(earlier), _PIECE))
        found = (self._off_line(old, new, earlier[piece], later[piece], added[piece]) for piece in pieces)
        return next((broken for broken in found if broken is not None), None)

    def _off_line(self, old: Cloud, new: Cloud, earlier: Rows, later: Rows, added: Rows) -> str | None:
        """Tell what is wrong with where returns (n,) are put between two others."""
        near, far = ranges_m(old, earlier), ranges_m(old, later)
        if not (np.abs(near - far) <= self.jump_m + rounding_m(old, near + far)).all():
            return f"a new return lies in a depth jump of {np.abs(near - far).max():.2f} m"
        a, b = (np.stack(columns(old, rows)) for rows in (earlier, later))
        between = np.stack(columns(new, added))
        # How far off the straight line: an arc of this angle bends by r w²/8.
        line, way = b - a, between - a
        part = (way * line).sum(axis=0) / np.maximum((line * line).sum(axis=0), 1e-12)
        off = np.sqrt(((way - part * line) ** 2).sum(axis=0))
        bend = np.maximum(near, far) * np.radians(self.gap_deg) ** 2 / 8.0 + self.jump_m * np.radians(self.gap_deg)
        if not (off <= bend + rounding_m(old, near + far)).all():
            return f"a new return is {off.max():.3g} m off the line between its neighbours"
        return None if ((part > -0.1) & (part < 1.1)).all() else "a new return does not lie between its neighbours"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Count the new returns."""
        return Effects(numbers={"points_added": float(sum(len(draw["earlier"]) for draw in draws.values()))})

    def _gaps(self, cloud: Cloud) -> tuple[Rows, Rows]:
        """Return the earlier and the later row (n,) of every gap that can be filled, the earlier ones rising."""
        rows, begins = in_rings(cloud)
        following = np.full(len(cloud), -1, dtype=np.int32)
        # Piece by piece, which takes little memory and stays in the processor's cache.
        for start in range(0, len(rows) - 1, _PIECE):
            piece = rows[start : start + _PIECE + 1]
            fits = ~begins[start + 1 : start + len(piece)] & self._neighbours(cloud, piece)
            following[piece[:-1][fits]] = piece[1:][fits]
        earlier = np.flatnonzero(following >= 0)
        if cloud.organised:
            earlier = earlier[earlier < len(cloud) - 1]
            room = empty_returns(cloud)[earlier + 1] & (following[earlier] // cloud.width == earlier // cloud.width)
            earlier = earlier[room & (following[earlier] > earlier)]
        return earlier, following[earlier].astype(np.int64)

    def _neighbours(self, cloud: Cloud, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Tell which returns (n - 1,) the next one of ``rows`` (n,) is near to, and on one surface with."""
        # Whole points first: a ring's are far apart in memory.
        points = cloud.raw.take(rows).view(cloud.points.dtype)
        squares, product = np.zeros(len(rows)), np.zeros(len(rows) - 1)
        for name in "xyz":
            column = points[name].astype(np.float64)
            product += column[1:] * column[:-1]
            squares += np.square(column, out=column)
        range_m = np.sqrt(squares, out=squares)
        near = product >= np.cos(np.radians(self.gap_deg)) * range_m[1:] * range_m[:-1]
        return np.asarray(near & (np.abs(np.diff(range_m)) <= self.jump_m))


def _between(cloud: Cloud, earlier: Rows, later: Rows) -> Floats:
    """Return the new points (n, 3): half way, or one column on in an organised cloud, in angle and in range."""
    part = 1.0 / (later - earlier) if cloud.organised else np.full(len(earlier), 0.5)
    some, others = (cloud.with_raw(cloud.raw.take(rows)) for rows in (earlier, later))
    near, far = ranges_m(some, slice(None)), ranges_m(others, slice(None))
    towards, one, other = np.empty((3, len(earlier))), (1.0 - part) / near, part / far
    for row, name in zip(towards, "xyz", strict=True):
        row[:] = some.points[name] * one + others.points[name] * other
    towards *= ((1.0 - part) * near + part * far) / np.sqrt((towards * towards).sum(axis=0))
    return towards.T


def _intensity(cloud: Cloud, earlier: Rows, later: Rows) -> Points | None:
    """Return the mean intensities (n,), or None when the cloud has none."""
    name = cloud.intensity_field
    if name is None:
        return None
    kind: np.dtype[Any] = cloud.points.dtype[name].newbyteorder("=")
    mean: npt.NDArray[Any] = (cloud.points[name][earlier].astype(np.float64) + cloud.points[name][later]) / 2.0
    return (mean if kind.kind == "f" else np.rint(mean)).astype(kind)
