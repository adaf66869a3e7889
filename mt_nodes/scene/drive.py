# SPDX-License-Identifier: Apache-2.0
"""A short drive that needs no download: a street, a 64-beam LiDAR, bundles at 10 Hz."""

from __future__ import annotations

from collections.abc import Iterator

from mt_nodes.frames import Bundle, Cloud
from mt_nodes.scene.lidar import LidarModel, hdl_64e
from mt_nodes.scene.raycast import scan
from mt_nodes.scene.street import EGO_SPEED_MPS, Street
from mt_nodes.seeds import generator
from mt_nodes.transforms import Transform, TransformTree, pose_matrix

CLOUD_TOPIC = "/sensing/lidar/points"
START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
LIDAR_HEIGHT_M = 1.73


def generate_drive(bundles: int = 30, seed: int = 1, lidar: LidarModel | None = None) -> Iterator[Bundle]:
    """Yield the bundles of one drive: a cloud in frame ``velodyne`` and the transform from ``base_link``.

    The same arguments give the same bytes (same CPU type and versions); a longer drive begins with the shorter one's
    scenery. The LiDAR is a 64-beam one unless given. ``base_link`` lies on the ground below the sensor, x forward,
    y left, z up.
    """
    lidar = lidar or hdl_64e()
    mount = pose_matrix((0.0, 0.0, LIDAR_HEIGHT_M), (0.0, 0.0, 0.0, 1.0))
    transforms = TransformTree([Transform("base_link", "velodyne", mount)])
    street = Street(seed, bundles * PERIOD_NS * 1e-9)
    for index in range(bundles):
        time_s = index * PERIOD_NS * 1e-9
        origin = (EGO_SPEED_MPS * time_s, 0.0, LIDAR_HEIGHT_M)
        points = scan(street.mesh(time_s), origin, lidar, generator(seed, "lidar", 0, index, "scan"))
        stamp = START_NS + index * PERIOD_NS
        yield Bundle(0, index, stamp, (Cloud(CLOUD_TOPIC, stamp, "velodyne", points),), transforms=transforms)
