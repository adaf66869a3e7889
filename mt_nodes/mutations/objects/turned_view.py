# SPDX-License-Identifier: Apache-2.0
"""What rays would see of a thing of the cloud if it stood elsewhere on a circle about the sensor.

A ray that meets the thing at its new place, turned back, is a ray that met it at its old one, or runs between some that
did. So it sees what the nearest of the cloud's own rays saw there, at the same range: the side that faces the sensor
stays the one that was seen, and a hole in the thing stays a hole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from mt_nodes.errors import NotApplicable
from mt_nodes.frames import Cloud
from mt_nodes.mutations.lidar.placement import empty_returns
from mt_nodes.scene.beams import beams_of

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

#: A ray is seen for when it is this near to one of the cloud, in steps from ray to ray and from ring to ring: half a
#: diagonal is 0.71.
_NEAR_STEPS = 0.75
#: What brought no return between returns of the thing, all within so many steps, was the thing.
_AROUND_STEPS, _AROUND = 3.0, 4
_ASIDE_RAD = 0.05


@dataclass(frozen=True, eq=False)
class Seen:
    """What rays see of the thing.

    Attributes:
        row: (n,) the return of the thing that the ray would bring, −1 for none. range_m: (n,) how far away.
        silent: (n,) whether the ray ends at the thing without a return; ``range_m`` is then about where.
    """

    row: Rows
    range_m: Floats
    silent: npt.NDArray[np.bool_]


class TurnedView:
    """A thing as the sensor sees it, turned about the z axis of the cloud's frame."""

    def __init__(self, cloud: Cloud, thing: Rows) -> None:
        """Look at a thing, its returns at rows (n,).

        Raises:
            NotApplicable: the beams of the cloud cannot be told, or too few of them see the thing.
        """
        xyz = cloud.xyz[thing].astype(np.float64)
        mean = xyz.mean(axis=0)
        self.bearing_rad = float(np.arctan2(mean[1], mean[0]))
        away = self._away(beams_of(cloud).azimuth_rad)
        self.half_rad = float(np.abs(away[thing]).max()) + _ASIDE_RAD
        rows = np.flatnonzero(np.abs(away) <= self.half_rad)
        rows = rows[~empty_returns(cloud)[rows]]
        self._step = self._steps(cloud, thing, self.angles(xyz, 0.0))
        flat = self.angles(cloud.xyz[rows].astype(np.float64), 0.0)
        tilt = np.arctan2(xyz[:, 2], np.hypot(xyz[:, 0], xyz[:, 1]))
        self._low, self._high = tilt.min() - self._step[1], tilt.max() + self._step[1]
        near = (flat[:, 1] >= self._low - self._step[1]) & (flat[:, 1] <= self._high + self._step[1])
        is_thing = np.zeros(len(cloud), dtype=bool)
        is_thing[thing] = True
        self._rows, self._thing = rows[near], is_thing[rows[near]]
        self._range_m = np.linalg.norm(cloud.xyz[self._rows].astype(np.float64), axis=1)
        self._tree = cKDTree(flat[near] / self._step, compact_nodes=False, balanced_tree=False)

    def rays(self, cloud: Cloud, turn_rad: float) -> Rows:
        """Return the rows (n,) of returns on rays that may see the thing when it is turned."""
        rows = np.flatnonzero(np.abs(self._away(beams_of(cloud).azimuth_rad, turn_rad)) <= self.half_rad)
        return rows[~empty_returns(cloud)[rows]]

    def at(self, xyz: Floats, turn_rad: float) -> Seen:
        """Return what rays in the directions of points (n, 3) see of the thing turned by an angle."""
        back = self.angles(xyz, turn_rad)
        row, range_m = np.full(len(xyz), -1), np.full(len(xyz), np.inf)
        silent = np.zeros(len(xyz), dtype=bool)
        may = np.flatnonzero(
            (back[:, 1] >= self._low) & (back[:, 1] <= self._high) & (np.abs(back[:, 0]) <= self.half_rad)
        )
        apart, nearest = self._tree.query(back[may] / self._step, distance_upper_bound=_NEAR_STEPS)
        sees = np.isfinite(apart)
        sees[sees] = self._thing[nearest[sees]]
        row[may[sees]], range_m[may[sees]] = self._rows[nearest[sees]], self._range_m[nearest[sees]]
        may = may[~np.isfinite(apart)]
        apart, nearest = self._tree.query(back[may] / self._step, k=_AROUND)
        quiet = (apart[:, -1] <= _AROUND_STEPS) & self._thing[nearest].all(axis=1)
        silent[may[quiet]], range_m[may[quiet]] = True, self._range_m[nearest[quiet]].max(axis=1)
        return Seen(row, range_m, silent)

    def angles(self, xyz: Floats, turn_rad: float) -> Floats:
        """Return azimuth from the thing's middle and elevation (n, 2) of points (n, 3), turned back by an angle."""
        x, y, z = xyz.T
        return np.column_stack([self._away(np.arctan2(y, x), turn_rad), np.arctan2(z, np.hypot(x, y))])

    def _away(self, azimuth_rad: npt.NDArray[np.floating], turn_rad: float = 0.0) -> Floats:
        away = azimuth_rad.astype(np.float64) - (self.bearing_rad + turn_rad)
        away -= 2 * np.pi * np.rint(away / (2 * np.pi))
        return away

    def _steps(self, cloud: Cloud, thing: Rows, flat: Floats) -> Floats:
        """Return the angles (2,) from ray to ray of one ring and from ring to ring; ``flat`` (n, 2) is the thing's."""
        place = beams_of(cloud).place[thing].astype(np.int64)
        order = np.lexsort((flat[:, 0], place))
        along = np.diff(flat[order, 0])[np.diff(place[order]) == 0]
        along = along[(along > 1e-5) & (along < 0.02)]
        rings, number = np.unique(place, return_inverse=True)
        tilt = np.bincount(number, weights=flat[:, 1]) / np.bincount(number)
        up = np.diff(np.sort(tilt))
        if not len(along) or len(rings) < 2:
            raise NotApplicable(f"{len(rings)} rings of {cloud.topic} see the thing, expected at least 2")
        return np.array([np.median(along), max(float(np.median(up)), 1e-4)])
