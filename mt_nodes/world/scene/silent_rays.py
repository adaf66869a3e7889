# SPDX-License-Identifier: Apache-2.0
"""Rays of a scan without a return: into the sky, or off a surface that reflected none back.

A new object reflects them, too; without them it would be incomplete against the sky.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.beams import Beams, beams_of
from mt_nodes.world.scene.returns import lengths, places

#: Neighbours of a ring this many azimuth steps apart have room for a ray between them.
_GAP_STEPS = 1.6
#: How far beside the window neighbours are searched.
_ASIDE_RAD = 0.2
#: Most rings have a return this close to an end of the window; the others are searched all around.
_END_RAD = 0.05
#: Returns of a ring closer to each other than this are on one ray (a second echo).
_SAME_RAD = 1e-5
#: A ring with fewer returns does not tell the azimuth of columns.
_FEWEST_COLUMNS = 16
#: Steps between neighbours of which the median is that of the sensor.
_STEP_SAMPLE = 4000
#: Largest difference in elevation between neighbours of a ring: noise, and tilt by azimuth.
_LEVEL_RAD, _TILT = 0.01, 0.06


@dataclass(frozen=True, eq=False)
class SilentRays:
    """Rays without a return within a window of azimuth.

    ``rows``: (n,) of an organised cloud: the place of the return. Of another: the return of the same ring after which
    it would come. ``direction``: (n, 3) unit vectors. ``clear_m``: (n,) range of the nearer neighbour on the ring,
    infinite without one: beyond it the ray may end at the same object.
    """

    rows: Rows
    direction: Floats
    clear_m: Floats

    def of(self, chosen: Mask) -> SilentRays:
        """Return some of the rays (n,)."""
        return SilentRays(self.rows[chosen], self.direction[chosen], self.clear_m[chosen])


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


def all_silent_rays(cloud: Cloud) -> SilentRays:
    """Return the silent rays of the whole revolution, none if the beams are unknown.

    As :func:`silent_rays`, in a fraction of the time: the returns of a ring come in the order in which it was scanned,
    so that nothing is sorted by azimuth, and only neighbours of gaps are looked at.
    """
    try:
        beams = beams_of(cloud)
    except NotApplicable:
        return _joined([])
    if cloud.organised:
        return _of_grid(cloud, beams)
    first, second, turn = _neighbours(beams)
    # A ring may be scanned either way; steps back are second echoes, or rings that begin anew.
    way = 1.0 if np.count_nonzero(turn > 0.0) * 2 >= len(turn) else -1.0
    turn *= np.float32(way)
    sample = turn[:: max(1, len(turn) // _STEP_SAMPLE)]
    steps = sample[(sample > _SAME_RAD) & (sample < 0.02)]
    if not len(steps):
        return _joined([])
    step = float(np.median(steps))
    gaps = np.flatnonzero(turn > _GAP_STEPS * step)
    return _between(cloud, beams, (first[gaps], second[gaps]), turn[gaps].astype(np.float64) * way, step)


def _of_grid(cloud: Cloud, beams: Beams) -> SilentRays:
    """Return the empty points of an organised cloud whose shorter side are rings, whatever names these.

    Elevation is the ring's. Azimuth is the column's plus the ring's offset, as beams fire one after the other: columns
    begin as in the fullest ring, and are mended once by all.
    """
    shape = (cloud.height, cloud.width)
    azimuth, order = beams.azimuth_rad.reshape(shape), np.arange(len(cloud)).reshape(shape)
    x, y, z = (cloud.points[name].astype(np.float32).reshape(shape) for name in "xyz")
    ground = np.hypot(x, y)
    elevation, known = np.arctan2(z, ground), np.isfinite(ground + z) & (ground + np.abs(z) > 0.0)
    if cloud.height > cloud.width:
        azimuth, order, elevation, known = azimuth.T, order.T, elevation.T, known.T
    of_ring, of_column = known.sum(axis=1), np.maximum(known.sum(axis=0), 1)
    fullest = int(of_ring.argmax())
    if of_ring[fullest] < _FEWEST_COLUMNS:
        return _joined([])
    columns = np.flatnonzero(known[fullest])
    base = np.interp(np.arange(azimuth.shape[1]), columns, np.unwrap(azimuth[fullest, columns].astype(np.float64)))
    off = azimuth - base
    off = np.where(known, off - 2 * np.pi * np.rint(off / (2 * np.pi)), 0.0)
    offset = off.sum(axis=1) / np.maximum(of_ring, 1)
    base += np.where(known, off - offset[:, None], 0.0).sum(axis=0) / of_column
    tilt = np.where(known, elevation, 0.0).sum(axis=1) / np.maximum(of_ring, 1)
    # A row whose returns are neither on a cone nor a column apart is no ring.
    spread = [
        np.sqrt(np.where(known, np.square(error), 0.0).sum(axis=1) / np.maximum(of_ring, 1))
        for error in (elevation - tilt[:, None], off - offset[:, None])
    ]
    is_ring = (of_ring > 0) & (np.maximum(*spread) < _LEVEL_RAD)
    ring, column = np.nonzero(~known & is_ring[:, None])
    direction = _unit(base[column] + offset[ring], tilt[ring])
    return SilentRays(order[ring, column], direction, np.full(len(ring), np.inf))


def _neighbours(beams: Beams) -> tuple[Rows, Rows, Singles]:
    """Return rows (n,) of returns, those of the next ones of the same ring (n,), and the turn (n,) between them.

    The last one of a ring is followed by its first, a revolution on: −π to π, except there, where it is the rest.
    """
    ring = beams.ring
    rows = np.arange(len(ring)) if (ring[1:] >= ring[:-1]).all() else np.argsort(ring, kind="stable")
    known = (ring >= 0) & np.isfinite(beams.azimuth_rad)
    rows = rows if known.all() else rows[known[rows]]
    of, azimuth = ring[rows], beams.azimuth_rad[rows]
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    next_ = np.append(rows[1:], rows[:1])
    ends = np.append(starts[1:], len(rows)) - 1
    next_[ends] = rows[starts]
    turn = beams.azimuth_rad[next_] - azimuth
    turn -= np.float32(2 * np.pi) * np.rint(turn * np.float32(0.5 / np.pi))
    return rows, next_, turn


def _between(cloud: Cloud, beams: Beams, rows: tuple[Rows, Rows], gap: Floats, step: float) -> SilentRays:
    """Fill gaps (n,), signed angles, between two returns each of a ring with rays a step apart."""
    first, ends = rows[0], [places(cloud, some) for some in rows]
    reach = [np.maximum(lengths(xyz), 1e-9) for xyz in ends]
    elevation = [np.arcsin(np.clip(xyz[:, 2] / m, -1.0, 1.0)) for xyz, m in zip(ends, reach, strict=True)]
    # Two returns of a ring on different cones are not both on its beam: nothing is inserted between them.
    level = np.abs(elevation[1] - elevation[0]) <= _LEVEL_RAD + _TILT * np.abs(gap)
    count = np.where(level, np.rint(np.abs(gap) / step).astype(np.int64) - 1, 0)
    which = np.repeat(np.arange(len(gap)), count)
    number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + 1
    share = number / (np.repeat(count, count) + 1)
    azimuth = beams.azimuth_rad[first].astype(np.float64)[which] + share * gap[which]
    tilt = elevation[0][which] + share * (elevation[1] - elevation[0])[which]
    return SilentRays(first[which], _unit(azimuth, tilt), np.minimum(*reach)[which])


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


def _described(cloud: Cloud, beams: Beams, rows: Rows, aside: Singles) -> KnownReturns:
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
