# SPDX-License-Identifier: Apache-2.0
"""Which things the rays of a camera's pixels meet, and which of these places the sun does not reach."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mt_nodes.drive.scenery import Scenery
from mt_nodes.drive.solids import Hits, Rows, Singles, Solids
from mt_nodes.drive.windows import windows
from mt_nodes.scene.camera_rendering import CameraSensor
from mt_nodes.transforms import Matrix

Mask = npt.NDArray[np.bool_]
#: Rays to the sun begin so far before a surface; shadows are looked for down to a little below the road.
_OFF_M, _BELOW_M, _LEAST_SINE = 0.03, -0.1, 1e-3


@dataclass(frozen=True, eq=False)
class Shot:
    """One picture of a world, in the scenery's own frame.

    Attributes:
        ego: (4, 4) takes points of ``base_link`` there. to_sun: (3,) unit vector.
        moving_near, shadows_near: (H, W) pixels that may show something that moves, or its shadow.
    """

    scenery: Scenery
    moving: Solids
    sensor: CameraSensor
    ego: Matrix
    to_sun: Singles
    moving_near: Mask
    shadows_near: Mask

    @classmethod
    def of(cls, scenery: Scenery, moving: Solids, sensor: CameraSensor, ego: Matrix, to_sun: Singles) -> Shot:
        """Find where what moves may be seen, and where its shadow, which lies between it and the ground."""
        corners, to_camera = moving.corners_m, np.asarray(np.linalg.inv(ego @ sensor.mount))
        fall = (corners[..., 2:] - _BELOW_M) / max(float(to_sun[2]), _LEAST_SINE) * to_sun
        shadows = np.concatenate([corners, corners - fall], axis=1)
        near, shaded = (windows(hulls, to_camera, sensor) for hulls in (corners, shadows))
        return cls(scenery, moving, sensor, ego, to_sun, near, shaded)


@dataclass(frozen=True, eq=False)
class Look:
    """What the rays (N,) of a band of rows of a picture meet.

    Attributes:
        band: which rows. rays: (N, 6). range_m: (N,), infinite for the sky.
        standing: what they meet of the scenery. standing_rows: (n,) which rays meet that first.
        moving: what some meet of what moves. moving_rows: (k,) which rays these are.
    """

    shot: Shot
    band: slice
    rays: Singles
    range_m: Singles
    standing: Hits
    standing_rows: Rows
    moving: Hits
    moving_rows: Rows

    @classmethod
    def of(cls, shot: Shot, band: slice) -> Look:
        """Cast the rays."""
        ego = shot.ego
        x, y, z = _directions(shot.sensor)[:, band].reshape(3, -1)
        rays = np.empty((len(x), 6), np.float32)
        rays[:, :3], rays[:, 5] = (ego @ shot.sensor.mount)[:3, 3], z
        c, s = np.float32(ego[0, 0]), np.float32(ego[1, 0])
        rays[:, 3], rays[:, 4] = c * x - s * y, s * x + c * y
        standing = shot.scenery.solids.cast(rays)
        range_m = standing.range_m.copy()
        rows = np.flatnonzero(shot.moving_near[band])
        hits = shot.moving.cast(rays.take(rows, axis=0))
        before = np.flatnonzero(hits.range_m < range_m.take(rows))
        rows, hits = rows.take(before), hits.take(before)
        range_m[rows] = hits.range_m
        first = np.isfinite(range_m)
        first[rows] = False
        return cls(shot, band, rays, range_m, standing, np.flatnonzero(first), hits, rows)

    def directions(self, rows: Rows) -> Singles:
        """Return the directions (3, n) of rays in ``base_link``."""
        return _directions(self.shot.sensor)[:, self.band].reshape(3, -1).take(rows, axis=1)

    def places(self, rows: Rows) -> Singles:
        """Return where rays (n,) end (n, 3)."""
        rays = self.rays.take(rows, axis=0)
        return np.asarray(rays[:, :3] + rays[:, 3:] * self.range_m.take(rows)[:, None])

    def shaded(self, rows: Rows, places: Singles) -> Mask:
        """Return which (n,) of the places (n, 3) that rays (n,) end at lie in a shadow."""
        shot = self.shot
        rays = np.empty((len(rows), 6), np.float32)
        rays[:, :3] = places + np.float32(_OFF_M) * shot.to_sun
        rays[:, 3:] = shot.to_sun
        hidden = shot.scenery.solids.hides(rays)
        unsure = np.flatnonzero(shot.shadows_near[self.band].reshape(-1).take(rows) & ~hidden)
        hidden[unsure] = shot.moving.hides(rays.take(unsure, axis=0))
        return hidden


@lru_cache(maxsize=4)
def _directions(sensor: CameraSensor) -> Singles:
    """(3, H, W) of the pixels' rays in ``base_link``."""
    return np.ascontiguousarray(np.moveaxis(sensor.rays, 2, 0))
