# SPDX-License-Identifier: Apache-2.0
"""Clouds of made-up streets of which it is known what each return is of: what a LiDAR network is trained and tried on.

Each street is another one (:mod:`~mt_nodes.runs.models.labelled_streets`), and so is where the sensor is mounted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Singles
from mt_nodes.base.seeds import generator
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Cloud
from mt_nodes.runs.models.labelled_streets import StreetRoad, without_collisions
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.lidar import LidarModel, hdl_64e
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.raycast import INTENSITY_CONVENTION, cast, returns_of

#: Ground, houses and plants.
BACKGROUND, NOT_TOLD = -1, -2
_NOT_TOLD_HERE = 65535
_FIELDS = ("x", "y", "z", "intensity")
_LAYOUT = np.dtype([*((name, "<f4") for name in _FIELDS), ("owner", "<u2")])


@dataclass(frozen=True, eq=False)
class LabelledCloud:
    """A cloud in the frame of its sensor, and what is in it.

    Attributes:
        points: (N, 4) float32 x, y, z, intensity of 0..255.
        owner: (N,) row of the object that a return is of, :data:`BACKGROUND` for the rest, :data:`NOT_TOLD` where it is
            not known whether there is an object.
        centre_m: (M, 2) of each object. top_m: (M,) of each, from the sensor. yaw_rad: (M,).
        size_m: (M, 3) length, width, height.
        kind: (M,) place in :data:`CLASSES`.
        sensor_height_m: above the road.
    """

    points: Singles
    owner: Ints
    centre_m: Floats
    top_m: Floats
    yaw_rad: Floats
    kind: Ints
    size_m: Floats
    sensor_height_m: float

    def message(self, frame_id: str = "velodyne", raised_m: float = 0.0) -> Cloud:
        """Return it as a message that bears the owners, too: row + 1, 0 for the background (and for what
        a mutation adds), 65535 where that is not told.

        ``raised_m``: what is added to z, for a frame on the road.
        """
        rows = np.zeros(len(self.points), dtype=_LAYOUT)
        for i, field in enumerate(_FIELDS):
            rows[field] = self.points[:, i]
        rows["z"] += np.float32(raised_m)
        rows["owner"] = np.where(self.owner == NOT_TOLD, _NOT_TOLD_HERE, self.owner + 1)
        reading = SensorReading.known("/sensing/lidar/points", INTENSITY_CONVENTION)
        return Cloud("/sensing/lidar/points", 0, frame_id, rows).read_as(reading)

    def changed(self, message: Cloud) -> LabelledCloud:
        """Return it with the returns of a message that was made of :meth:`message`."""
        points = np.column_stack([message.points[field] for field in _FIELDS]).astype(np.float32)
        owner = message.points["owner"].astype(np.int64)
        return replace(self, points=points, owner=np.where(owner == _NOT_TOLD_HERE, NOT_TOLD, owner - 1))


def labelled_cloud(seed: int, index: int) -> LabelledCloud:
    """Return one cloud; the same numbers give the same one."""
    rng = generator(seed, "labelled_cloud", 0, index, "street")
    road = StreetRoad.drawn(rng)
    things = without_collisions([*road.parked(rng), *road.anywhere(rng)])
    slope = rng.normal(0.0, np.radians(0.6), 2)
    parts, background = (
        [_tilted(mesh, slope) for mesh in group]
        for group in ([thing.placed for thing in things], (mesh for _, mesh in [*road.ground(), *road.roadside(rng)]))
    )
    scene = meshes.merged([*parts, *background])
    owner_of = np.repeat(
        [*range(len(parts)), *[BACKGROUND] * len(background)], [len(mesh.triangles) for mesh in [*parts, *background]]
    )
    height_m, lidar = float(rng.uniform(1.55, 2.0)), _drawn_lidar(rng)
    points, owner = _scanned(scene, owner_of, height_m, lidar, rng)
    top = np.array([mesh.vertices_m[:, 2].max() for mesh in parts]) - height_m
    low, high = (np.array([extreme(m.vertices_m[:, :2]) for m in parts]).reshape(-1, 2) for extreme in _EXTREMES)
    kinds = np.array([thing.kind for thing in things], dtype=np.int64)
    yaw = np.array([thing.yaw_rad for thing in things])
    size = np.array([np.ptp(thing.mesh.vertices_m, axis=0) for thing in things]).reshape(-1, 3)
    return LabelledCloud(points, owner, (low + high) / 2.0, top, yaw, kinds, size, height_m)


_EXTREMES = (partial(np.min, axis=0), partial(np.max, axis=0))


def _drawn_lidar(rng: np.random.Generator) -> LidarModel:
    """A 64-beam sensor whose beams are a little off, now and then one of 32 beams."""
    model = hdl_64e()
    off = np.radians(rng.normal(0.0, 0.05, len(model.elevations_rad)))
    step = 2 if rng.random() < 0.1 else 1
    return replace(
        model,
        elevations_rad=tuple((np.array(model.elevations_rad) + off)[::step].tolist()),
        range_sigma_m=float(rng.uniform(0.01, 0.03)),
        dropout=float(rng.uniform(0.0, 0.15)),
    )


def _tilted(mesh: Mesh, slope: Floats) -> Mesh:
    """No road is level, and no vehicle either."""
    vertices = mesh.vertices_m.copy()
    vertices[:, 2] += vertices[:, :2] @ slope
    return replace(mesh, vertices_m=vertices)


def _scanned(
    scene: Mesh, owner_of: Ints, height_m: float, lidar: LidarModel, rng: np.random.Generator
) -> tuple[Singles, Ints]:
    range_m, triangle, cosine = cast(scene, (0.0, 0.0, height_m), lidar.directions)
    hit = np.isfinite(range_m)
    brightness = np.where(hit, scene.reflectivity[triangle] * cosine, 0.0)
    returns = returns_of(range_m, brightness, lidar, rng)
    # Which ray a return came by is told by its ring and its time.
    column = np.rint(returns["time"] / lidar.period_s * lidar.azimuths).astype(np.int64)
    ray = column * len(lidar.elevations_rad) + returns["ring"]
    points = np.column_stack([returns[name] for name in ("x", "y", "z", "intensity")]).astype(np.float32)
    return points, owner_of[triangle[ray]]
