# SPDX-License-Identifier: Apache-2.0
"""What rays measure of an object of the cloud after a rotation about the sensor.

A ray that hits the object at its new place, rotated back, hit it at its old one, or runs between rays that did. So it
gets the result of the nearest of the cloud's own rays there, at the same range: the visible side stays the same, and a
hole in the object stays a hole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.beams import Beams
from mt_nodes.world.scene.returns import lengths, places, returns_at
from mt_nodes.world.scene.scan_lines import scan_lines_of

#: A ray counts if it is this close to one of the cloud, in steps from ray to ray and from ring to ring: half a diagonal
#: is 0.71.
_NEAR_STEPS = 0.75
#: A ray without a return counts as the object's if returns of the object are within so many steps all around.
_AROUND_STEPS, _AROUND = 3.0, 4
#: Rays farther beside the object than this do not hit it, in azimuth and in elevation.
_MAY_STEPS, _NO_STEPS = np.array([3.0, 1.0]), np.zeros(2)
_ASIDE_RAD = 0.05
#: Nearly straight up or down: beyond, the tangent has no meaning.
_STEEPEST_RAD = 1.57
#: Azimuths of beams are in single precision.
_ROUNDING_RAD = 1e-5


@dataclass(frozen=True, eq=False)
class TurnedObjectView:
    """What rays measure of the object.

    ``row``: (n,) the return of the object that the ray would give, −1 for none. ``range_m``: (n,) its range.
    ``silent``: (n,) whether the ray ends at the object without a return; ``range_m`` is then approximate.
    """

    row: Rows
    range_m: Floats
    silent: Mask

    def of(self, rays: Mask) -> TurnedObjectView:
        """Return the results of some of the rays (n,)."""
        return TurnedObjectView(self.row[rays], self.range_m[rays], self.silent[rays])


@dataclass(frozen=True, eq=False)
class TurnedRays:
    """What a cloud's own rays measure of the rotated object.

    ``rows``: (n,) returns on rays that may hit it. ``own_m``: (n,) their ranges. ``result``: the result of each ray.
    """

    view: TurnedView
    turn_rad: float
    rows: Rows
    own_m: Floats
    result: TurnedObjectView


class TurnedView:
    """An object as the sensor sees it, rotated about the z axis of the cloud's frame."""

    def __init__(self, cloud: Cloud, thing: Rows) -> None:
        """Analyse an object, its returns at rows (n,).

        Raises NotApplicable: the beams of the cloud are unknown, or too few of them hit the object.
        """
        xyz = places(cloud, thing)
        mean, beams = xyz.mean(axis=0), scan_lines_of(cloud)
        self.bearing_rad = float(np.arctan2(mean[1], mean[0]))
        self.half_rad = float(np.abs(beams.azimuth_from(self.bearing_rad, thing)).max()) + _ASIDE_RAD
        own = self._angles(xyz, 0.0)
        self._cloud, self._step = cloud, ray_steps_rad(cloud, thing, own)
        self._low, self._high = own.min(axis=0) - _MAY_STEPS * self._step, own.max(axis=0) + _MAY_STEPS * self._step
        self._reach_rad = float(max(-self._low[0], self._high[0])) + _ROUNDING_RAD
        rows, _ = beams.within(self.bearing_rad, self._reach_rad + float(_MAY_STEPS[0] * self._step[0]))
        rows, points = returns_at(cloud, rows)
        near, flat = self._among(points, 0.0, _MAY_STEPS)
        is_thing = np.zeros(len(cloud), dtype=bool)
        is_thing[thing] = True
        self._rows, self._thing, self._range_m = rows[near], is_thing[rows[near]], lengths(points[near])
        self._tree = cKDTree(flat / self._step, compact_nodes=False, balanced_tree=False)

    def look(self, turn_rad: float) -> TurnedRays:
        """Return what the rays of the cloud's returns measure of the object rotated by an angle."""
        rows, _ = scan_lines_of(self._cloud).within(self.bearing_rad + turn_rad, self._reach_rad)
        rows, xyz = returns_at(self._cloud, rows)
        return TurnedRays(self, turn_rad, rows, lengths(xyz), self.at(xyz, turn_rad))

    def at(self, xyz: Floats, turn_rad: float) -> TurnedObjectView:
        """Return what rays in the directions of points (n, 3) measure of the object rotated by an angle."""
        row, range_m = np.full(len(xyz), -1), np.full(len(xyz), np.inf)
        silent = np.zeros(len(xyz), dtype=bool)
        may, back = self._among(xyz, turn_rad)
        distance, nearest = self._tree.query(back / self._step, distance_upper_bound=_NEAR_STEPS)
        sees = np.isfinite(distance)
        sees[sees] = self._thing[nearest[sees]]
        row[may[sees]], range_m[may[sees]] = self._rows[nearest[sees]], self._range_m[nearest[sees]]
        may, back = may[~np.isfinite(distance)], back[~np.isfinite(distance)]
        distance, nearest = self._tree.query(back / self._step, k=_AROUND, distance_upper_bound=_AROUND_STEPS)
        may, nearest = (found[np.isfinite(distance[:, -1])] for found in (may, nearest))
        quiet = self._thing[nearest].all(axis=1)
        silent[may[quiet]], range_m[may[quiet]] = True, self._range_m[nearest[quiet]].max(axis=1)
        return TurnedObjectView(row, range_m, silent)

    def _among(self, xyz: Floats, turn_rad: float, aside_steps: Floats = _NO_STEPS) -> tuple[Rows, Floats]:
        """Return which rays (n, 3) may hit the object, or are so many steps (2,) beside such, and their angles (k, 2).

        Slopes are compared first: that needs no angles.
        """
        more = aside_steps * self._step
        low, high = self._low - more, self._high + more
        x, y, z = xyz.T
        level, (least, most) = np.sqrt(x * x + y * y), np.tan(np.clip([low[1], high[1]], -_STEEPEST_RAD, _STEEPEST_RAD))
        may = np.flatnonzero((z >= least * level) & (z <= most * level))
        flat = self._angles(xyz[may], turn_rad)
        around, up = flat.T
        chosen = np.flatnonzero((around >= low[0]) & (around <= high[0]) & (up >= low[1]) & (up <= high[1]))
        return may[chosen], flat[chosen]

    def _angles(self, xyz: Floats, turn_rad: float) -> Floats:
        """Return azimuth from the object's centre and elevation (n, 2) of points (n, 3), rotated back by an angle."""
        x, y, z = xyz.T
        return np.stack([self._away(np.arctan2(y, x), turn_rad), np.arctan2(z, np.hypot(x, y))]).T

    def _away(self, azimuth_rad: npt.NDArray[np.floating], turn_rad: float = 0.0) -> Floats:
        away = azimuth_rad.astype(np.float64) - (self.bearing_rad + turn_rad)
        away -= 2 * np.pi * np.rint(away / (2 * np.pi))
        return away


def ray_steps_rad(cloud: Cloud, thing: Rows, flat: Floats) -> Floats:
    """Return the angles (2,) from ray to ray of one ring and from ring to ring.

    ``thing``: (n,) rows of an object's returns. ``flat``: (n, 2) their azimuth and elevation.
    Raises NotApplicable: fewer than two rings see the object.
    """
    ring = scan_lines_of(cloud).ring[thing].astype(np.int64) + 1
    order = Beams.order(ring, flat[:, 0])
    along = np.diff(flat[order, 0])[np.diff(ring[order]) == 0]
    along = along[(along > 1e-5) & (along < 0.02)]
    count = np.bincount(ring)
    rings = np.flatnonzero(count)
    up = np.diff(np.sort(np.bincount(ring, weights=flat[:, 1])[rings] / count[rings]))
    if not len(along) or len(rings) < 2:
        raise NotApplicable(f"{len(rings)} rings of {cloud.topic} see the thing, expected at least 2")
    return np.array([np.median(along), max(float(np.median(up)), 1e-4)])
