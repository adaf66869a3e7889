# SPDX-License-Identifier: Apache-2.0
"""A generated drive: a street, a 64-beam LiDAR, optionally a camera, bundles at 10 Hz."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mt_nodes.base.seeds import generator
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.lidar import LidarModel, hdl_64e
from mt_nodes.world.scene.raycast import INTENSITY_CONVENTION, scan
from mt_nodes.world.scene.street import EGO_SPEED_MPS, Street

if TYPE_CHECKING:
    from mt_nodes.world.scene.camera_rendering import CameraSensor

CLOUD_TOPIC = "/sensing/lidar/points"
IMAGE_TOPIC = "/sensing/camera/image"
CAMERA_INFO_TOPIC = "/sensing/camera/camera_info"
START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
LIDAR_HEIGHT_M = 1.73


def generate_drive(
    bundles: int = 30,
    seed: int = 1,
    lidar: LidarModel | None = None,
    camera: CameraSensor | None = None,
    bend_1pm: float = 0.0,
    only: Collection[int] | None = None,
) -> Iterator[Bundle]:
    """Yield the bundles of one drive: a cloud in frame ``velodyne``, perhaps an image, and transforms.

    The same arguments give the same bytes (same CPU type and versions); a longer drive begins with the shorter one's
    scenery. The LiDAR has 64 beams by default. ``base_link`` lies on the ground below the sensor, x forward, y left, z
    up.

    Args:
        camera: adds its images (``bgr8``) and its CameraInfo in the optical frame ``camera``; clouds are the same
            without it.
        bend_1pm: largest curvature of the road in 1/m, which bends left and right in turn; 0 for a straight one. The
            ego drives along the middle of its lane.
        only: numbers of the bundles to make; None: all.
    """
    lidar = lidar or hdl_64e()
    mount = pose_matrix((0.0, 0.0, LIDAR_HEIGHT_M), (0.0, 0.0, 0.0, 1.0))
    frames = [Transform("base_link", "velodyne", mount)]
    if camera is not None:
        frames.append(Transform("base_link", "camera", camera.mount))
    transforms = TransformTree(frames)
    reading = SensorReading.known(CLOUD_TOPIC, INTENSITY_CONVENTION)
    street = Street(seed, bundles * PERIOD_NS * 1e-9, bend_1pm)
    for index in range(bundles) if only is None else sorted(only):
        time_s = index * PERIOD_NS * 1e-9
        pieces, ego_m = street.pieces(time_s), EGO_SPEED_MPS * time_s
        mesh = street.road.on_road(meshes.merged(piece.mesh for piece in pieces), ego_m)
        points = scan(mesh, (ego_m, 0.0, LIDAR_HEIGHT_M), lidar, generator(seed, "lidar", 0, index, "scan"))
        stamp = START_NS + index * PERIOD_NS
        cloud = Cloud(CLOUD_TOPIC, stamp, "velodyne", points).read_as(reading)
        bundle = Bundle(0, index, stamp, (cloud,), transforms=transforms)
        if camera is not None:
            from mt_nodes.world.scene.camera_rendering import photograph  # OpenCV is for those who ask for pictures

            pixels = photograph(pieces, mesh, ego_m, camera, generator(seed, "camera", 0, index, "noise"))
            info = camera.info(CAMERA_INFO_TOPIC, stamp, "camera")
            image = Image(IMAGE_TOPIC, stamp, "camera", pixels, "bgr8")
            bundle = replace(bundle, images=(image,), camera_infos=(info,))
        yield bundle
