# SPDX-License-Identifier: Apache-2.0
"""Which pixels may show a body, which bodies a camera's rays hit, and which of these places are in shadow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.data.transforms import Matrix
from mt_nodes.world.drive.scenery import HOUSES, Scenery
from mt_nodes.world.drive.solids import Hits, Solids, rays_of
from mt_nodes.world.drive.sparse_rays import cast_sparingly, sampled_sparsely
from mt_nodes.world.scene.camera_rendering import CameraSensor

#: Near clipping plane: hulls may extend behind the camera.
_NEAR_M = 0.05

#: Start of rays to the sun before a surface; lowest height at which shadows matter.
_OFF_M, _BELOW_M, _LEAST_SINE = 0.03, -0.1, 1e-3


@dataclass(frozen=True, eq=False)
class WorldImage:
    """One picture of a world, in the scenery's own frame.

    Attributes:
        eye_m: (3,) position of the camera. turn: cosine and sine of the ego's yaw. to_sun: (3,) unit vector.
        narrow, moving_near, shadows_near: (H, W) pixels that may show posts, moving bodies, or their shadows.
    """

    scenery: Scenery
    moving: Solids
    sensor: CameraSensor
    eye_m: Singles
    turn: tuple[float, float]
    to_sun: Singles
    narrow: Mask
    moving_near: Mask
    shadows_near: Mask

    @classmethod
    def of(cls, scenery: Scenery, moving: Solids, sensor: CameraSensor, ego: Matrix, to_sun: Singles) -> WorldImage:
        """Find the pixels that may show moving bodies and their shadows.

        ``ego`` (4, 4) is ``base_link`` to the scenery's frame.
        """
        mount = ego @ sensor.mount
        corners, to_camera = moving.corners_m, np.asarray(np.linalg.inv(mount))
        fall = (corners[..., 2:] - _BELOW_M) / max(float(to_sun[2]), _LEAST_SINE) * to_sun
        shadows = np.concatenate([corners, corners - fall], axis=1)
        hulls = scenery.solids.corners_m[HOUSES + 1 :], corners, shadows
        near = [windows(corners, to_camera, sensor) for corners in hulls]
        return cls(scenery, moving, sensor, mount[:3, 3].astype(np.float32), (ego[0, 0], ego[1, 0]), to_sun, *near)


@dataclass(frozen=True, eq=False)
class BandHits:
    """Hits of the rays (N,) of a band of rows of a picture.

    Attributes:
        band: which rows. directions: (N, 3). range_m: (N,), infinite for the sky.
        triangle: (N,) of the scenery. standing_rows: (n,) rays that hit the scenery first.
        moving: hits of moving bodies. moving_rows: (k,) rays of these.
    """

    shot: WorldImage
    band: slice
    directions: Singles
    range_m: Singles
    triangle: Rows
    standing_rows: Rows
    moving: Hits
    moving_rows: Rows

    @classmethod
    def of(cls, shot: WorldImage, band: slice) -> BandHits:
        """Cast the rays."""
        x, y, z = _directions(shot.sensor)[:, band]
        c, s = np.float32(shot.turn[0]), np.float32(shot.turn[1])
        directions = np.stack([c * x - s * y, s * x + c * y, z], axis=-1).reshape(-1, 3)
        fine = shot.narrow[band].reshape(-1)
        range_m, triangle = cast_sparingly(shot.scenery.solids, shot.eye_m, directions, x.shape, fine)
        rows = np.flatnonzero(shot.moving_near[band])
        hits = shot.moving.cast(rays_of(shot.eye_m, directions.take(rows, axis=0)))
        before = np.flatnonzero(hits.range_m < range_m.take(rows))
        rows, hits = rows.take(before), hits.take(before)
        range_m[rows] = hits.range_m
        first = np.isfinite(range_m)
        first[rows] = False
        return cls(shot, band, directions, range_m, triangle, np.flatnonzero(first), hits, rows)

    def own_directions(self, rows: Rows) -> Singles:
        """Return the directions (3, n) of rays in ``base_link``."""
        return _directions(self.shot.sensor)[:, self.band].reshape(3, -1).take(rows, axis=1)

    def places(self, rows: Rows) -> Singles:
        """Return the end points (n, 3) of rays (n,)."""
        places = self.directions.take(rows, axis=0)
        places *= self.range_m.take(rows)[:, None]
        places += self.shot.eye_m
        return places

    def shaded(self, rows: Rows, places: Singles) -> Mask:
        """Return which (n,) of the end points (n, 3) of ascending rays (n,) are in shadow."""
        shot = self.shot
        rays = rays_of(places + np.float32(_OFF_M) * shot.to_sun, shot.to_sun)
        shape = shot.narrow[self.band].shape
        hidden = sampled_sparsely(rows, shape, lambda some: shot.scenery.solids.hides(rays.take(some, axis=0)))
        unsure = np.flatnonzero(shot.shadows_near[self.band].reshape(-1).take(rows) & ~hidden)
        hidden[unsure] = shot.moving.hides(rays.take(unsure, axis=0))
        return hidden


@lru_cache(maxsize=4)
def _directions(sensor: CameraSensor) -> Singles:
    """(3, H, W) of the pixels' rays in ``base_link``."""
    return np.ascontiguousarray(np.moveaxis(sensor.rays, 2, 0))


def windows(hulls_m: Floats, to_camera: Matrix, sensor: CameraSensor) -> Mask:
    """Return the pixels (H, W) of the rectangles around hulls of points (B, K, 3), one pixel more to each side.

    ``to_camera``: (4, 4) points to the camera's optical frame: x right, y down, z ahead.
    """
    visible = np.zeros((sensor.height, sensor.width), bool)
    middle = np.array([(sensor.width - 1) / 2.0, (sensor.height - 1) / 2.0])
    for points in hulls_m @ to_camera[:3, :3].T + to_camera[:3, 3]:
        before = _before(points)
        if not len(before):
            continue
        places = before[:, :2] / before[:, 2:] * sensor.focal_px + middle
        low, high = np.floor(places.min(axis=0)) - 1.0, np.ceil(places.max(axis=0)) + 2.0
        (left, top), (right, bottom) = np.clip([low, high], 0, (sensor.width, sensor.height)).astype(int).tolist()
        visible[top:bottom, left:right] = True
    return visible


def _before(points: Floats) -> Floats:
    """Return corners (n, 3) of the part of a hull in front of the camera."""
    ahead = points[:, 2] > _NEAR_M
    front, behind = points[ahead], points[~ahead]
    if not len(front) or not len(behind):
        return front
    share = (front[:, None, 2] - _NEAR_M) / (front[:, None, 2] - behind[None, :, 2])
    cut = front[:, None] + share[..., None] * (behind - front[:, None])
    return np.concatenate([front, cut.reshape(-1, 3)])
