# SPDX-License-Identifier: Apache-2.0
"""A generated drive: a street, a 64-beam LiDAR, optionally a camera and a radar, bundles at 10 Hz."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mt_nodes.base.seeds import generator
from mt_nodes.data.cdr.world_messages import encode_odometry
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, Cloud, Image, Odometry, Points, Wire
from mt_nodes.data.radar import Radar
from mt_nodes.data.stack_topics import WORLD_TYPES
from mt_nodes.data.transforms import EGO_FRAME, Transform, TransformTree, pose_matrix
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.lidar import LidarModel, hdl_64e
from mt_nodes.world.scene.radar_model import GROUND_M0, HOUSE_M0, POLE_M0, RadarModel, backscatter, detect
from mt_nodes.world.scene.raycast import INTENSITY_CONVENTION, cast, scan
from mt_nodes.world.scene.road import Road
from mt_nodes.world.scene.street import EGO_SPEED_MPS, GROUND, HOUSE, PERSON, POLE, VEHICLE, Piece, Street

if TYPE_CHECKING:
    from mt_nodes.world.scene.camera_rendering import CameraSensor

CLOUD_TOPIC = "/sensing/lidar/points"
IMAGE_TOPIC = "/sensing/camera/image"
CAMERA_INFO_TOPIC = "/sensing/camera/camera_info"
RADAR_TOPIC = "/sensing/radar/points"
START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
LIDAR_HEIGHT_M = 1.73
#: Where the ego is: the true pose of ``base_link`` in ``odom``.
ODOMETRY_TOPIC = "/odom"
_BACKSCATTER = {
    GROUND: GROUND_M0,
    HOUSE: HOUSE_M0,
    POLE: POLE_M0,
    VEHICLE: backscatter("car"),
    PERSON: backscatter("pedestrian"),
}
#: Where the radar stands: in the front bumper (assumed, of a mid-size car whose LiDAR is in the middle of its roof).
RADAR_PLACE_M = (2.0, 0.0, 0.5)


def generate_drive(
    bundles: int = 30,
    seed: int = 1,
    lidar: LidarModel | None = None,
    camera: CameraSensor | Sequence[CameraSensor] | None = None,
    bend_1pm: float = 0.0,
    only: Collection[int] | None = None,
    radar: RadarModel | None = None,
) -> Iterator[Bundle]:
    """Yield the bundles of one drive: a cloud in frame ``velodyne``, perhaps an image, odometry, and transforms.

    The same arguments give the same bytes (same CPU type and versions); a longer drive begins with the shorter one's
    scenery. The LiDAR has 64 beams by default. ``base_link`` lies on the ground below the sensor, x forward, y left, z
    up.

    Args:
        camera: adds its images (``bgr8``) and its CameraInfo in its optical frame, ``camera``; of a rig, those of each.
            Clouds are the same without them.
        bend_1pm: largest curvature of the road in 1/m, which bends left and right in turn; 0 for a straight one. The
            ego drives along the middle of its lane.
        only: numbers of the bundles to make; None: all.
        radar: adds its detections in frame ``radar``; clouds and images are the same without it.
    """
    lidar = lidar or hdl_64e()
    mount = pose_matrix((0.0, 0.0, LIDAR_HEIGHT_M), (0.0, 0.0, 0.0, 1.0))
    frames = [Transform("base_link", "velodyne", mount)]
    cameras = () if camera is None else tuple(camera) if isinstance(camera, Sequence) else (camera,)
    frames += [Transform("base_link", one.name, one.mount) for one in cameras]
    if radar is not None:
        frames.append(Transform("base_link", "radar", pose_matrix(RADAR_PLACE_M, (0.0, 0.0, 0.0, 1.0))))
    transforms = TransformTree(frames)
    reading = SensorReading.known(CLOUD_TOPIC, INTENSITY_CONVENTION)
    street, track = Street(seed, bundles * PERIOD_NS * 1e-9, bend_1pm), EgoTrack()
    for index in range(bundles) if only is None else sorted(only):
        time_s = index * PERIOD_NS * 1e-9
        pieces, ego_m = street.pieces(time_s), EGO_SPEED_MPS * time_s
        mesh = street.road.on_road(meshes.merged(piece.mesh for piece in pieces), ego_m)
        points = scan(mesh, (ego_m, 0.0, LIDAR_HEIGHT_M), lidar, generator(seed, "lidar", 0, index, "scan"))
        stamp = START_NS + index * PERIOD_NS
        cloud = Cloud(CLOUD_TOPIC, stamp, "velodyne", points).read_as(reading)
        odometry = _odometry(street.road, ego_m, stamp)
        track.take(odometry)
        bundle = Bundle(*(0, index, stamp, (cloud,)), transforms=transforms, wires=(odometry,), track=track)
        for number, one in enumerate(cameras):
            from mt_nodes.world.scene.camera_rendering import photograph  # OpenCV is for those who ask for pictures

            noise = generator(seed, one.name, 0, index, f"noise.{number}" if number else "noise")
            image_topic, info_topic = one.topics
            image = Image(image_topic, stamp, one.name, photograph(pieces, mesh, ego_m, one, noise), "bgr8")
            info = one.info(info_topic, stamp, one.name)
            bundle = replace(bundle, images=(*bundle.images, image), camera_infos=(*bundle.camera_infos, info))
        if radar is not None:
            found = _sensed(pieces, mesh, ego_m, street, radar, generator(seed, "radar", 0, index, "scan"))
            bundle = replace(bundle, radars=(Radar(RADAR_TOPIC, stamp, "radar", found),))
        yield bundle


def _odometry(road: Road, ego_m: float, stamp_ns: int) -> Wire:
    """Return the odometry of an ego that follows the road."""
    pose, rate = road.pose(ego_m), EGO_SPEED_MPS * road.curvature_1pm(ego_m)
    odometry = Odometry("odom", stamp_ns, *pose, EGO_SPEED_MPS, rate, EGO_FRAME)
    return Wire(ODOMETRY_TOPIC, WORLD_TYPES["odometry"], stamp_ns, encode_odometry(odometry))


def _sensed(
    pieces: Sequence[Piece],
    mesh: meshes.Mesh,
    ego_m: float,
    street: Street,
    radar: RadarModel,
    rng: np.random.Generator,
) -> Points:
    """Return the detections of the radar; ``mesh`` is that of the pieces on the road."""
    direction = radar.rays[0]
    ahead_m, left_m, up_m = RADAR_PLACE_M
    range_m, triangle, _ = cast(mesh, (ego_m + ahead_m, left_m, up_m), direction)
    hit = np.flatnonzero(np.isfinite(range_m))
    own = np.repeat(np.arange(len(pieces)), [len(piece.mesh.triangles) for piece in pieces])[triangle[hit]]
    velocity = np.stack([street.velocity(piece, ego_m) for piece in pieces]) - np.array([EGO_SPEED_MPS, 0.0, 0.0])
    doppler = np.einsum("ij,ij->i", velocity[own], direction[hit])
    returned = np.array([_BACKSCATTER[piece.kind] for piece in pieces])[own]
    return detect(radar, direction[hit], range_m[hit], returned, doppler, rng)
