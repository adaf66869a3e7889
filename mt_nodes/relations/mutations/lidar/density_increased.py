# SPDX-License-Identifier: Apache-2.0
"""A scan with a finer azimuth step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud, Points
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.added_points import added_rows, proof_of_addition, with_added
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import columns, ranges_m, refuse_whole_numbers, rounding_m, smallest
from mt_nodes.relations.mutations.lidar.ring_order import in_rings
from mt_nodes.world.scene.scan_lines import scan_lines_of

_PIECE = 1 << 13


@dataclass(frozen=True)
class DensityIncreased(EachCloud):
    """Adds returns between neighbours of a ring that lie on one surface: a finer azimuth step.

    Neighbours are successive returns in the scan of a ring (of a band of elevation, in a scan without rings), at most
    ``gap_deg`` apart. If their ranges differ by at most ``jump_m``, a surface connects them; the new return halves the
    angle between the two beams, and its range and intensity are the means of theirs. Nothing is added across a depth
    jump. All other fields are those of the earlier neighbour. An organised cloud has room only for an empty return
    right after the earlier neighbour, at its share of the way to the later one. Rings come from
    :func:`mt_nodes.world.scene.scan_lines.scan_lines_of`.

    Guaranteed: each new return lies on the line between two neighbouring old ones of a ring, across no depth jump;
    every old point remains byte for byte, in order.
    """

    share: float = param(
        0.25, low=0.0001, high=1.0, neutral=0.0001, help="share of the gaps on one surface that are filled"
    )
    jump_m: float = param(
        0.1, low=0.001, high=5.0, unit="m", aspect="fixed", help="ranges that differ by more are two surfaces"
    )
    gap_deg: float = param(
        1.0, low=0.01, high=10.0, unit="deg", aspect="fixed", help="returns farther apart are no neighbours"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose gaps."""
        refuse_whole_numbers(cloud)
        earlier, following = self._gaps(cloud)
        # Chosen first, so that only the chosen ones need checking.
        earlier = earlier[rng.random(len(earlier), dtype=np.float32) < self.share]
        later = following.take(earlier).astype(np.int64)
        chosen = np.concatenate([np.empty(0, bool), *self._on_one_surface(cloud, earlier, later)])
        if not chosen.any():
            raise NotApplicable(
                f"none of {len(earlier)} gaps chosen among those between neighbours in the rings of {cloud.topic} is "
                f"narrower than {self.gap_deg:g} degrees and within {self.jump_m:g} m in range"
                + (": an organised cloud has room at its empty returns only" if cloud.organised else "")
            )
        return {"earlier": smallest(earlier[chosen]), "later": smallest(later[chosen])}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Add a return in each drawn gap."""
        earlier, later = (draw[name].astype(np.int64) for name in ("earlier", "later"))
        return with_added(cloud, earlier + 1, *_between(cloud, earlier, later))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check each new return and its two neighbours."""
        earlier, later = (draw[name].astype(np.int64) for name in ("earlier", "later"))
        broken = proof_of_addition(old, new, earlier + 1)
        if broken is not None:
            return broken
        place = scan_lines_of(old).place
        if not len(earlier) or (place[earlier] != place[later]).any():
            return "a new return lies between two rings"
        added = added_rows(old, earlier + 1)
        pieces = (slice(start, start + _PIECE) for start in range(0, len(earlier), _PIECE))
        found = (self._off_line(old, new, earlier[piece], later[piece], added[piece]) for piece in pieces)
        return next((broken for broken in found if broken is not None), None)

    def _off_line(self, old: Cloud, new: Cloud, earlier: Rows, later: Rows, added: Rows) -> str | None:
        """Return what is wrong with the places of returns (n,) between two others."""
        near, far = ranges_m(old, earlier), ranges_m(old, later)
        if not (np.abs(near - far) <= self.jump_m + rounding_m(old, near + far)).all():
            return f"a new return lies in a depth jump of {np.abs(near - far).max():.2f} m"
        a, b = (np.stack(columns(old, rows)) for rows in (earlier, later))
        between = np.stack(columns(new, added))
        # Deviation from the straight line: an arc of this angle bends by r w²/8.
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

    def _gaps(self, cloud: Cloud) -> tuple[Rows, npt.NDArray[np.int32]]:
        """Return ascending rows (n,) with room before the next return of the ring; and that next return (N,), or −1."""
        rows, begins = in_rings(cloud)
        following = np.full(len(cloud), -1, dtype=np.int32)
        following[rows[:-1]] = rows[1:]
        following[rows[begins[1:] - 1]] = -1
        earlier = np.flatnonzero(following >= 0)
        if cloud.organised:
            room = empty_returns(cloud)[earlier + 1] & (following[earlier] // cloud.width == earlier // cloud.width)
            earlier = earlier[room]
        return earlier, following

    def _on_one_surface(self, cloud: Cloud, earlier: Rows, later: Rows) -> Iterator[Mask]:
        """Return which returns are close to the next one and on the same surface; in blocks of some thousands."""
        for start in range(0, len(earlier), _PIECE):
            piece = slice(start, start + _PIECE)
            some, others = (cloud.raw.take(rows[piece]).view(cloud.points.dtype) for rows in (earlier, later))
            near, far = _ranges_m(some), _ranges_m(others)
            distance = np.zeros_like(near)
            for name in "xyz":
                distance += np.square(np.subtract(others[name], some[name], dtype=distance.dtype))
            # The law of cosines with the half angle, in differences: its usual form would need double precision.
            step, half = far - near, math.sin(math.radians(self.gap_deg) / 2.0)
            yield (distance <= np.square(step) + 4.0 * half * half * near * far) & (np.abs(step) <= self.jump_m)


def _kind(points: Points) -> np.dtype[Any]:
    """Return the type of the computation: that of the coordinates, whose rounding the proof allows for."""
    return np.result_type(*(points.dtype[name] for name in "xyz"), np.float32)


def _ranges_m(points: Points) -> npt.NDArray[Any]:
    squares = np.zeros(len(points), _kind(points))
    for name in "xyz":
        column = points[name].astype(squares.dtype)
        squares += np.square(column, out=column)
    return np.asarray(np.sqrt(squares, out=squares))


def _between(cloud: Cloud, earlier: Rows, later: Rows) -> tuple[npt.NDArray[Any], Points | None]:
    """Return the midpoints (n, 3) between returns, one column on if organised, and their mean intensities (n,)."""
    some, others = (cloud.raw.take(rows).view(cloud.points.dtype) for rows in (earlier, later))
    near, far = _ranges_m(some), _ranges_m(others)
    part = np.asarray(1.0 / (later - earlier) if cloud.organised else 0.5, near.dtype)
    one, other, squares = (1 - part) / near, part / far, np.zeros_like(near)
    towards = np.empty((3, len(near)), near.dtype)
    for row, name in zip(towards, "xyz", strict=True):
        np.add(some[name] * one, others[name] * other, out=row)
        squares += np.square(row)
    towards *= ((1 - part) * near + part * far) / np.sqrt(squares, out=squares)
    return towards.T, _mean(cloud.intensity_field, some, others)


def _mean(name: str | None, some: Points, others: Points) -> Points | None:
    """Return the mean intensities (n,) of points (n,), or None when they have none."""
    if name is None:
        return None
    kind: np.dtype[Any] = some.dtype[name].newbyteorder("=")
    mean: npt.NDArray[Any] = (some[name].astype(np.float64) + others[name]) / 2.0
    return (mean if kind.kind == "f" else np.rint(mean)).astype(kind)
