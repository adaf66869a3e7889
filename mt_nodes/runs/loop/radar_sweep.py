# SPDX-License-Identifier: Apache-2.0
"""What the ego's radar detects of a world at one instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Points
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.world.drive.scenery import GROUND, HOUSES, Scenery
from mt_nodes.world.drive.solids import Solids, rays_of
from mt_nodes.world.scene.radar_model import GROUND_M0, HOUSE_M0, POLE_M0, RadarModel, backscatter, detect


@dataclass(frozen=True, eq=False)
class RadarSweep:
    """One measurement of a radar in a world.

    Attributes:
        labels: class of each moving body, for its cross-section. velocity_mps: (B, 2) of each, along the map's axes.
        mount: (4, 4) takes places of the sensor to the scenery's own frame (``map`` but for ``shift_m``).
        own_mps: (2,) velocity of the sensor, along the map's axes.
    """

    scenery: Scenery
    moving: Solids
    labels: Sequence[str]
    velocity_mps: Floats
    radar: RadarModel
    mount: Matrix
    own_mps: Floats

    def points(self, rng: np.random.Generator) -> Points:
        """Return the detections in the sensor's frame, as :func:`mt_nodes.world.scene.radar_model.detect` does."""
        own = self.radar.rays[0]
        turn = np.eye(4)
        turn[:3, :3] = self.mount[:3, :3]
        rays = rays_of(self.mount[:3, 3], move(turn, own))
        hits = self.scenery.solids.cast(rays)
        range_m = hits.range_m.astype(np.float64)
        body = self.scenery.solids.of[np.where(np.isfinite(range_m), hits.triangle, 0)]
        returned = np.select([body == GROUND, body == HOUSES], [GROUND_M0, HOUSE_M0], POLE_M0)
        velocity = np.zeros((len(own), 2))
        if len(self.moving):
            nearer = self.moving.cast(rays)
            rows = np.flatnonzero(nearer.range_m < range_m)
            who = self.moving.of[nearer.triangle[rows]]
            range_m[rows], velocity[rows] = nearer.range_m[rows], self.velocity_mps[who]
            returned[rows] = np.array([backscatter(label) for label in self.labels])[who]
        hit = np.flatnonzero(np.isfinite(range_m))
        rate = ((velocity[hit] - self.own_mps) * rays[hit, 3:5]).sum(axis=1)
        return detect(self.radar, own[hit], range_m[hit], returned[hit], rate, rng)
