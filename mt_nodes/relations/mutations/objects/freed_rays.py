# SPDX-License-Identifier: Apache-2.0
"""Rays without a return in a cloud from which an object was taken: those that went to it, and all other silent ones."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.returns import lengths, places
from mt_nodes.world.scene.scan_lines import scan_lines_of
from mt_nodes.world.scene.silent_rays import SilentRays, silent_rays

#: A ray without a return beside an object reaches as far as its neighbour on the object, and this much farther.
_DEEPER_M = 0.5
#: How far beside the object the return is looked for after which a new one comes.
_ASIDE_RAD = 0.3
#: A new return is at the elevation of the return after which it comes, but for this, and the frame's tilt by azimuth.
_LEVEL_RAD, _TILT = 0.008, 0.05


def freed_rays(old: Cloud, lost: Rows, window: tuple[float, float]) -> SilentRays:
    """Return the rays without a return in a cloud (``old`` without the ``lost`` returns (n,) of an object).

    Rays that went to the object are free as far as it was, and beyond. ``rows`` are those of the new cloud: the place
    in an organised one, else the return after which a new one comes.
    ``window``: bearing and half width of the azimuths, in radians, within which other silent rays are looked for.
    """
    silent, at = silent_rays(old, *window), places(old, lost)
    direction = np.concatenate([at / lengths(at)[:, None], silent.direction])
    clear_m = np.concatenate([np.full(len(lost), np.inf), silent.clear_m + _DEEPER_M])
    if old.organised:
        return SilentRays(np.concatenate([lost, silent.rows]), direction, clear_m)
    rows = _before(old, lost, np.concatenate([lost, silent.rows]), window)
    order = np.argsort(rows, kind="stable")
    rows, direction, clear_m = rows[order], direction[order], clear_m[order]
    level = (rows >= 0) & _level(old, np.maximum(rows, 0), direction)
    after = rows[level] - np.searchsorted(np.sort(lost), rows[level])
    return SilentRays(after, direction[level], clear_m[level])


def _before(old: Cloud, lost: Rows, rows: Rows, window: tuple[float, float]) -> Rows:
    """Return the last remaining return of the same ring up to each row (n,), -1 where there is none nearby."""
    lines, (bearing, half) = scan_lines_of(old), window
    near, _ = lines.within(bearing, half + _ASIDE_RAD)
    near = near[np.lexsort((near, lines.ring[near]))]
    ring, stays = lines.ring[near], np.isin(near, lost, invert=True)
    last = np.maximum.accumulate(np.where(stays, np.arange(len(near)), -1))
    before = np.where((last >= 0) & (ring[last] == ring), near[last], -1)
    by_row = np.argsort(near)
    at = np.minimum(np.searchsorted(near[by_row], rows), len(near) - 1)
    return np.asarray(np.where(near[by_row][at] == rows, before[by_row][at], -1))


def _level(old: Cloud, rows: Rows, direction: Floats) -> Mask:
    """Return which directions (n, 3) are on the ring of the returns after which they come."""
    x, y, z = direction.T
    a, b, c = places(old, rows).T
    aside = np.abs(np.arctan2(a * y - b * x, a * x + b * y))
    off = np.abs(np.arctan2(z, np.hypot(x, y)) - np.arctan2(c, np.hypot(a, b)))
    return np.asarray(off <= _LEVEL_RAD + _TILT * aside)
