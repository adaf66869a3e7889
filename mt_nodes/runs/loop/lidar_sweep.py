# SPDX-License-Identifier: Apache-2.0
"""What the ego's LiDAR sees of a world that stands still for one revolution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Rows, Singles
from mt_nodes.data.messages import Points
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.runs.loop.world_weather import WorldWeather
from mt_nodes.world.drive.ground import PAINT
from mt_nodes.world.drive.scenery import Scenery
from mt_nodes.world.drive.solids import Solids, rays_of
from mt_nodes.world.scene.lidar import LidarModel
from mt_nodes.world.scene.raycast import returns_of


@dataclass(frozen=True, eq=False)
class Sweep:
    """One revolution of a LiDAR in a world.

    ``mount``: (4, 4) takes points of the sensor to the scenery's own frame (``map`` but for ``shift_m``).
    """

    scenery: Scenery
    moving: Solids
    lidar: LidarModel
    mount: Matrix
    weather: WorldWeather

    def points(self, rng: np.random.Generator) -> Points:
        """Return the cloud in the sensor's frame, as :func:`mt_nodes.world.scene.raycast.scan` makes it of a mesh."""
        return returns_of(*self.surfaces(), self.lidar, rng)

    def surfaces(self) -> tuple[Floats, Floats]:
        """Return range (N,) and brightness (N,) of what each ray meets, as :func:`returns_of` takes them."""
        rays = self._rays()
        hits = self.scenery.solids.cast(rays)
        range_m, normal = hits.range_m.astype(np.float64), hits.normal
        solid = np.where(np.isfinite(range_m), hits.triangle, 0)
        reflectivity = self.scenery.solids.reflectivity[solid]
        on_ground = np.isfinite(range_m) & (self.scenery.solids.of[solid] == 0)
        if len(self.moving):
            rows = self._towards_moving()
            nearer = self.moving.cast(rays[rows])
            before = nearer.range_m < range_m[rows]
            rows, at = rows[before], nearer.triangle[before]
            range_m[rows], normal[rows] = nearer.range_m[before], nearer.normal[before]
            reflectivity[rows], on_ground[rows] = self.moving.reflectivity[at], False
        cosine = np.abs(np.einsum("ij,ij->i", normal, rays[:, 3:])).astype(np.float64)
        ground = np.flatnonzero(on_ground & (range_m < 1.5 * self.lidar.range_max_m))
        reflectivity[ground] = self._of_ground(rays, ground, range_m[ground], cosine[ground], reflectivity[ground])
        return range_m, reflectivity * cosine

    def _rays(self) -> Singles:
        turn = np.eye(4)
        turn[:3, :3] = self.mount[:3, :3]
        return rays_of(self.mount[:3, 3], move(turn, self.lidar.directions))

    def _towards_moving(self) -> Ints:
        """Return rays (n,) of all columns in which a box around something that moves may be."""
        corners = self.moving.corners_m - self.mount[:3, 3]
        forward, left = self.mount[:2, 0], self.mount[:2, 1]
        ahead, aside = corners[..., :2] @ forward, corners[..., :2] @ left
        middle = np.arctan2(aside.mean(axis=1), ahead.mean(axis=1))
        off = np.angle(np.exp(1j * (np.arctan2(aside, ahead) - middle[:, None])))
        around = np.hypot(aside, ahead).min(axis=1) < np.ptp(corners[..., :2], axis=1).max(axis=1)
        # Columns turn clockwise from straight ahead; one more to each side for rounding.
        per_rad = self.lidar.azimuths / (2.0 * np.pi)
        begins = np.floor(-(middle + off.max(axis=1)) * per_rad).astype(int) - 1
        ends = np.ceil(-(middle + off.min(axis=1)) * per_rad).astype(int) + 1
        columns = np.zeros(self.lidar.azimuths, bool)
        for begin, end in zip(begins[~around], ends[~around], strict=True):
            columns[np.arange(begin, end + 1) % self.lidar.azimuths] = True
        if around.any():
            columns[:] = True
        beams = np.arange(len(self.lidar.elevations_rad))
        return np.asarray((np.flatnonzero(columns)[:, None] * len(beams) + beams).reshape(-1))

    def _of_ground(self, rays: Singles, rows: Rows, range_m: Floats, cosine: Floats, reflectivity: Floats) -> Floats:
        """Return the reflectivity (n,) of the ground that rows of rays hit, with what is painted on it, wet or dry."""
        along_m, shift_m = range_m.astype(np.float32), self.scenery.shift_m.astype(np.float32)
        # Column by column: NumPy takes several times as long over rows of two.
        x, y = (rays[:, i].take(rows) + rays[:, 3 + i].take(rows) * along_m + shift_m[i] for i in range(2))
        bare = reflectivity + self.scenery.ground.painted(x, y) * (PAINT - reflectivity)
        return np.asarray(bare * self.weather.wetted(cosine, bare))
