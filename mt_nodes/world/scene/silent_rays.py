# SPDX-License-Identifier: Apache-2.0
"""Rays of a scan without a return: into the sky, or off a surface that reflected none back.

A new object reflects them, too; without them it would be incomplete against the sky.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.beams import Beams, beams_of
from mt_nodes.world.scene.returns import lengths, places

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Neighbours of a ring this many azimuth steps apart have room for a ray between them.
_GAP_STEPS = 1.6
#: How far beside the window neighbours are searched.
_ASIDE_RAD = 0.2
#: Most rings have a return this close to an end of the window; the others are searched all around.
_END_RAD = 0.05
#: Returns of a ring closer to each other than this are on one ray (a second echo).
_SAME_RAD = 1e-5
#: Largest difference in elevation between neighbours of a ring: noise, and tilt by azimuth.
_LEVEL_RAD, _TILT = 0.01, 0.06


@dataclass(frozen=True, eq=False)
class SilentRays:
    """Rays without a return within a window of azimuth.

    Attributes:
        rows: (n,) of an organised cloud: the place of the return. Of another: the return of the same ring after which
            it would come. direction: (n, 3) unit vectors. clear_m: (n,) range of the nearer neighbour on the ring,
            infinite without one: beyond it the ray may end at the same object.
    """

    rows: Rows
    direction: Floats
    clear_m: Floats


def silent_rays(cloud: Cloud, bearing_rad: float, half_width_rad: float) -> SilentRays:
    """Return the silent rays within ``half_width_rad`` of a bearing, none if the beams are unknown.

    In an organised cloud they are its empty returns, with the azimuth of their column and the elevation of their ring.
    Else they are the gaps between neighbours of a ring, filled at the ring's own azimuth step.
    """
    try:
        beams = beams_of(cloud)
    except NotApplicable:
        return _joined([])
    if cloud.organised:
        return _of_columns(cloud, beams, bearing_rad, half_width_rad) if beams.source == "rows" else _joined([])
    return _of_gaps(cloud, beams, bearing_rad, half_width_rad)


def _of_gaps(cloud: Cloud, beams: Beams, bearing: float, half: float) -> SilentRays:
    window = half + _ASIDE_RAD
    known = _described(cloud, beams, *beams.within(bearing, window))
    ends = (_end(cloud, beams, bearing, side) for side in (-window, window))
    joined = [np.concatenate(parts) for parts in zip(known, *ends, strict=True)]
    order = beams.order(joined[2], joined[0])
    at, rows, ring, elevation, reach = (column[order] for column in joined)
    gap = np.where(ring[1:] == ring[:-1], np.diff(at), 0.0)
    steps = gap[(gap > _SAME_RAD) & (gap < 0.02)]
    if not len(steps):
        return _joined([])
    step = float(np.median(steps))
    # Two returns of a ring on different cones are not both on its beam: nothing is inserted between them.
    level = np.abs(np.diff(elevation)) <= _LEVEL_RAD + _TILT * gap
    left = np.flatnonzero((gap > _GAP_STEPS * step) & level)
    count = np.rint(gap[left] / step).astype(np.int64) - 1
    which = np.repeat(left, count)
    number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + 1
    share = number / (np.repeat(count, count) + 1)
    # Relative to the neighbour that was scanned first, after which they come.
    rising = rows[which] <= rows[which + 1]
    first, second = np.where(rising, which, which + 1), np.where(rising, which + 1, which)
    azimuth = at[first] + share * (at[second] - at[first])
    tilt = elevation[first] + share * (elevation[second] - elevation[first])
    chosen = np.abs(azimuth) <= half
    clear = np.minimum(reach[first], reach[second])[chosen]
    return SilentRays(rows[first][chosen], _unit(bearing + azimuth[chosen], tilt[chosen]), clear)


KnownReturns = tuple[Floats, Rows, Rows, Floats, Floats]
"""Azimuth from the bearing, row, ring, elevation and range (n,) of returns whose ring is known."""


def _end(cloud: Cloud, beams: Beams, bearing: float, side: float) -> KnownReturns:
    """Close every ring at one end of the window with the nearest return there; beyond, nothing is in the way."""
    rows, off = beams.within(bearing + side, _END_RAD)
    elsewhere = np.setdiff1d(beams.rings, beams.ring[rows])
    if len(elsewhere):
        more = np.flatnonzero(beams.of_rings(elsewhere))
        rows, off = np.append(rows, more), np.append(off, beams.azimuth_from(bearing + side, more))
    ring, off = beams.ring[rows], np.abs(off)
    order = beams.order(ring, off)
    nearest = order[np.flatnonzero(np.diff(ring[order], prepend=-1))]
    _, at, of, elevation, _ = _described(cloud, beams, rows[nearest], off[nearest])
    return np.full(len(at), side), at, of, elevation, np.full(len(at), np.inf)


def _described(cloud: Cloud, beams: Beams, rows: Rows, aside: npt.NDArray[np.float32]) -> KnownReturns:
    xyz = places(cloud, rows)
    range_m, ring = lengths(xyz), beams.ring[rows].astype(np.int64)
    valid = (range_m > 0.0) & (ring >= 0)
    elevation = np.arcsin(xyz[valid, 2] / range_m[valid])
    return aside[valid].astype(np.float64), rows[valid], ring[valid], elevation, range_m[valid]


def _of_columns(cloud: Cloud, beams: Beams, bearing: float, half: float) -> SilentRays:
    xyz = cloud.xyz.astype(np.float64)
    known = np.isfinite(xyz).all(axis=1) & (xyz != 0.0).any(axis=1)
    column = np.arange(len(cloud)) % cloud.width
    east, north = (
        np.bincount(column[known], weights=f(beams.azimuth_rad[known]), minlength=cloud.width) for f in (np.cos, np.sin)
    )
    of_column = np.where((east != 0.0) | (north != 0.0), np.arctan2(north, east), np.nan)
    empty = np.flatnonzero(~known)
    azimuth, tilt = of_column[column[empty]], beams.elevations_rad[beams.place[empty]]
    inside = np.cos(azimuth - bearing) >= np.cos(half)
    inside &= np.isfinite(tilt)
    rows = empty[inside]
    return SilentRays(rows, _unit(azimuth[inside], tilt[inside]), np.full(len(rows), np.inf))


def _unit(azimuth: Floats, elevation: Floats) -> Floats:
    flat = np.cos(elevation)
    return np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])


def _joined(parts: list[SilentRays]) -> SilentRays:
    nothing = SilentRays(np.empty(0, dtype=np.int64), np.empty((0, 3)), np.empty(0))
    columns = zip(*(vars(part).values() for part in (nothing, *parts)), strict=True)
    return SilentRays(*(np.concatenate(column) for column in columns))
