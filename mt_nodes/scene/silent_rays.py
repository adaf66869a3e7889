# SPDX-License-Identifier: Apache-2.0
"""Rays of a scan that brought no return: into the sky, or off a surface that threw none back.

A new object reflects them, too; without them it would lose what stands out against the sky.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.errors import NotApplicable
from mt_nodes.frames import Cloud
from mt_nodes.scene.beams import Beams, beams_of

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Neighbours of one ring this many azimuth steps apart have room for a ray between them.
_GAP_STEPS = 1.6
#: How far beside the window neighbours are looked for.
_ASIDE_RAD = 0.2
#: Returns of one ring nearer to each other than this are on one ray (a second echo).
_SAME_RAD = 1e-5
#: How far the elevation of a ring may differ between neighbours: by its noise, and by tilt with the azimuth.
_LEVEL_RAD, _TILT = 0.01, 0.06


@dataclass(frozen=True, eq=False)
class SilentRays:
    """Rays without a return within a window of azimuth.

    Attributes:
        rows: (n,) of an organised cloud: where the return would be. Of another: the return of the same ring after
            which it would come. direction: (n, 3) unit vectors. clear_m: (n,) how far the nearer neighbour on the ring
            sees, infinite where there is none: farther than that the ray may end at the same thing.
    """

    rows: Rows
    direction: Floats
    clear_m: Floats


def silent_rays(cloud: Cloud, bearing_rad: float, half_width_rad: float) -> SilentRays:
    """Return the silent rays within ``half_width_rad`` of a bearing, none where the beams cannot be told.

    In an organised cloud they are its empty returns; their azimuth is that of their column, their elevation that of
    their ring. Else they are the gaps between neighbours of one ring, filled at the ring's own azimuth step.
    """
    try:
        beams = beams_of(cloud)
    except NotApplicable:
        return _joined([])
    apart = beams.azimuth_rad - np.float32(bearing_rad)
    apart -= np.float32(2 * np.pi) * np.rint(apart / np.float32(2 * np.pi))
    if cloud.organised:
        return _of_columns(cloud, beams, bearing_rad, half_width_rad) if beams.source == "rows" else _joined([])
    return _of_gaps(cloud, beams, apart, bearing_rad, half_width_rad)


def _of_gaps(cloud: Cloud, beams: Beams, apart: npt.NDArray[np.float32], bearing: float, half: float) -> SilentRays:
    window = half + _ASIDE_RAD
    seen, ends = _seen(cloud, beams, apart, window), _ends(cloud, beams, apart, window)
    joined = [np.concatenate(pair) for pair in zip(seen, ends, strict=True)]
    order = np.lexsort((joined[0], joined[2]))
    at, rows, ring, elevation, reach = (column[order] for column in joined)
    gap = np.where(ring[1:] == ring[:-1], np.diff(at), 0.0)
    steps = gap[(gap > _SAME_RAD) & (gap < 0.02)]
    if not len(steps):
        return _joined([])
    step = float(np.median(steps))
    # Two returns of a ring that stand on different cones are not both where its beam was: nothing is between them.
    level = np.abs(np.diff(elevation)) <= _LEVEL_RAD + _TILT * gap
    left = np.flatnonzero((gap > _GAP_STEPS * step) & level)
    count = np.rint(gap[left] / step).astype(np.int64) - 1
    which = np.repeat(left, count)
    number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + 1
    share = number / (np.repeat(count, count) + 1)
    # Counted from the neighbour that was scanned first, after which they come.
    rising = rows[which] <= rows[which + 1]
    first, second = np.where(rising, which, which + 1), np.where(rising, which + 1, which)
    azimuth = at[first] + share * (at[second] - at[first])
    tilt = elevation[first] + share * (elevation[second] - elevation[first])
    chosen = np.abs(azimuth) <= half
    clear = np.minimum(reach[first], reach[second])[chosen]
    return SilentRays(rows[first][chosen], _unit(bearing + azimuth[chosen], tilt[chosen]), clear)


Seen = tuple[Floats, Rows, Rows, Floats, Floats]
"""Azimuth from the bearing, row, place of the ring, elevation and range (n,) of returns."""


def _seen(cloud: Cloud, beams: Beams, apart: npt.NDArray[np.float32], window: float) -> Seen:
    return _described(cloud, beams, apart, np.flatnonzero((np.abs(apart) <= window) & (beams.ring >= 0)))


def _ends(cloud: Cloud, beams: Beams, apart: npt.NDArray[np.float32], window: float) -> Seen:
    """Close every ring at both ends of the window by what is nearest there; beyond, nothing is in the way."""
    known = np.flatnonzero((beams.ring >= 0) & np.isfinite(apart))
    around = known[np.argsort(beams.place[known], kind="stable")]
    rings, starts = np.unique(beams.place[around], return_index=True)
    rows = around[np.concatenate([_nearest(apart[around], starts, end) for end in (-window, window)])]
    there = cloud.xyz[rows].any(axis=1)
    ends = np.repeat([-window, window], len(rings))[there]
    _, at, place, elevation, _ = _described(cloud, beams, apart, rows[there])
    return ends, at, place, elevation, np.full(len(ends), np.inf)


def _nearest(apart: npt.NDArray[np.float32], starts: Rows, end: float) -> Rows:
    """Return the place (k,) of the azimuth nearest to one, within each piece (k,) of ``apart`` (n,)."""
    off = apart - np.float32(end)
    off -= np.float32(2 * np.pi) * np.rint(off / np.float32(2 * np.pi))
    np.abs(off, out=off)
    least = np.repeat(np.minimum.reduceat(off, starts), np.diff(starts, append=len(off)))
    at = np.flatnonzero(off == least)
    return at[np.unique(np.searchsorted(starts, at, side="right"), return_index=True)[1]]


def _described(cloud: Cloud, beams: Beams, apart: npt.NDArray[np.float32], rows: Rows) -> Seen:
    xyz = cloud.xyz[rows].astype(np.float64)
    range_m = np.linalg.norm(xyz, axis=1)
    there = range_m > 0.0
    rows, xyz, range_m = rows[there], xyz[there], range_m[there]
    place = beams.place[rows].astype(np.int64)
    elevation = np.asarray(np.arcsin(xyz[:, 2] / range_m), dtype=np.float64)
    return apart[rows].astype(np.float64), rows, place, elevation, np.asarray(range_m, dtype=np.float64)


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
