# SPDX-License-Identifier: Apache-2.0
"""LiDAR scans of a mesh."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.data.messages import Points
from mt_nodes.world.scene.lidar import LidarModel
from mt_nodes.world.scene.meshes import Mesh

#: The layout of the velodyne driver: x, y, z, intensity, ring, time, packed.
VELODYNE_LAYOUT = np.dtype(
    [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")]
)

#: A retro-reflector reaches the top of the intensity scale; a white diffuse surface at normal incidence stays well
#: below.
INTENSITY_FULL_SCALE = 255.0
INTENSITY_CONVENTION = "hdl_64e"


def scan(mesh: Mesh, origin_m: tuple[float, float, float], lidar: LidarModel, rng: np.random.Generator) -> Points:
    """Return one revolution as points of :data:`VELODYNE_LAYOUT` in the sensor frame, in firing order.

    The sensor stands at ``origin_m`` of the mesh's frame with parallel axes. The world is frozen for the whole
    revolution, so the cloud is free of motion distortion. Noise moves a point along its ray only. Intensity is
    255 × reflectivity × cosine of incidence, range-compensated: the convention :data:`INTENSITY_CONVENTION`.
    """
    range_m, triangle, cosine = cast(mesh, origin_m, lidar.directions)
    brightness = np.zeros(len(range_m))
    hit = np.isfinite(range_m)
    brightness[hit] = mesh.reflectivity[triangle[hit]] * cosine[hit]
    return returns_of(range_m, brightness, lidar, rng)


def returns_of(range_m: Floats, brightness: Floats, lidar: LidarModel, rng: np.random.Generator) -> Points:
    """Return a LiDAR's points of :data:`VELODYNE_LAYOUT` in the sensor frame for the hits of its rays.

    ``range_m``: (N,) along each of the LiDAR's directions, infinite without a hit. ``brightness``: (N,) reflectivity
    times cosine of incidence there.
    """
    noisy = range_m + rng.normal(0.0, lidar.range_sigma_m, len(range_m))
    kept = rng.random(len(range_m)) >= lidar.dropout
    rows = np.flatnonzero(np.isfinite(range_m) & (noisy >= lidar.range_min_m) & (noisy <= lidar.range_max_m) & kept)
    least = lidar.sensitivity * (range_m.take(rows) / lidar.range_max_m) ** 2
    rows = rows[brightness.take(rows) >= least]
    points, noisy = np.empty(len(rows), dtype=VELODYNE_LAYOUT), noisy.take(rows)
    for axis, name in enumerate("xyz"):  # column by column: NumPy takes several times as long over rows of three
        points[name] = lidar.directions[:, axis].take(rows) * noisy
    points["intensity"] = np.round(INTENSITY_FULL_SCALE * brightness.take(rows))
    points["ring"], points["time"] = lidar.rings.take(rows), lidar.times_s.take(rows)
    return points


def cast(mesh: Mesh, origin_m: tuple[float, float, float], directions: Floats) -> tuple[Floats, Ints, Floats]:
    """Cast rays (N, 3) from one origin to the first triangle.

    Returns:
        range in metres (N,), infinite without a hit; triangle index (N,), 0 without a hit; cosine of the angle between
            ray and surface normal (N,).
    """
    scene = open3d().t.geometry.RaycastingScene()
    vertices = (mesh.vertices_m - origin_m).astype(np.float32)
    scene.add_triangles(tensor(vertices), tensor(mesh.triangles))
    rays = np.zeros((len(directions), 6), dtype=np.float32)
    rays[:, 3:] = directions
    answer = scene.cast_rays(tensor(rays))
    range_m = answer["t_hit"].numpy().astype(np.float64)
    triangle = np.where(np.isfinite(range_m), answer["primitive_ids"].numpy(), 0).astype(np.int64)
    cosine = np.abs(np.einsum("ij,ij->i", answer["primitive_normals"].numpy(), rays[:, 3:])).astype(np.float64)
    return range_m, triangle, cosine
