# SPDX-License-Identifier: Apache-2.0
"""Which sensors the ego carries, where, and on which topics they and the world speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.data.stack_topics import DEFAULT_INPUTS
from mt_nodes.data.transforms import EGO_FRAME, Matrix, Transform, TransformTree, pose_matrix
from mt_nodes.world.scene.drive import LIDAR_HEIGHT_M
from mt_nodes.world.scene.lidar import LidarModel, hdl_64e
from mt_nodes.world.scene.radar_model import RadarModel, front_radar

if TYPE_CHECKING:
    from mt_nodes.stacks.stack import Stack
    from mt_nodes.world.scene.camera_rendering import CameraSensor

#: Where the LiDAR stands: on the roof, so far before the rear axle (assumed, of a mid-size car).
LIDAR_FORWARD_M = 1.2
LIDAR_FRAME, CAMERA_FRAME, RADAR_FRAME = "velodyne", "camera", "radar"
#: Where the radar stands: in the front bumper (assumed, of a mid-size car).
RADAR_PLACE_M = (3.6, 0.0, 0.5)


@dataclass(frozen=True)
class Rig:
    """The ego's sensors, and the topic of each role that is told (see :data:`mt_nodes.data.stack_topics.INPUT_ROLES`).

    ``lidar``, ``camera``, ``radar``: None for none; a camera's calibration has a role of its own. ``topics``: topic by
    role; what has none is not told.
    """

    lidar: LidarModel | None = None
    camera: CameraSensor | None = None
    topics: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_INPUTS))
    radar: RadarModel | None = None

    @classmethod
    def for_stack(cls, stack: Stack, lidar: LidarModel | None = None, camera: CameraSensor | None = None) -> Rig:
        """Return the sensors that a stack takes: a front radar; unless given, a 64-beam LiDAR and its file's camera.

        Raises UsageError: it takes several sensors of one role.
        """
        topics = stack.topics
        if several := sorted(role for role, names in topics.items() if len(names) > 1):
            role = several[0]
            raise UsageError(
                f"stack {stack.name}: got {len(topics[role])} topics of {role} ({', '.join(topics[role])}), expected "
                "one: a world carries one LiDAR, one camera and one radar; give a stack file with one topic"
            )
        if "lidar" in topics and lidar is None:
            lidar = hdl_64e()
        if "camera" in topics and camera is None:
            camera = replace(windscreen_camera(), **stack.camera)
        return cls(
            lidar if "lidar" in topics else None,
            camera if "camera" in topics else None,
            {role: names[0] for role, names in topics.items()},
            front_radar() if "radar" in topics else None,
        )

    @property
    def lidar_mount(self) -> Matrix:
        """4×4 that takes points of the LiDAR's frame to ``base_link``."""
        return pose_matrix((LIDAR_FORWARD_M, 0.0, LIDAR_HEIGHT_M), (0.0, 0.0, 0.0, 1.0))

    @property
    def radar_mount(self) -> Matrix:
        """4×4 that takes places of the radar's frame to ``base_link``."""
        return pose_matrix(RADAR_PLACE_M, (0.0, 0.0, 0.0, 1.0))

    @property
    def mounts(self) -> TransformTree:
        """Where the sensors are on the ego: what of the frames does not move."""
        lidar = [Transform(EGO_FRAME, LIDAR_FRAME, self.lidar_mount)] if self.lidar else []
        camera = [Transform(EGO_FRAME, CAMERA_FRAME, self.camera.mount)] if self.camera else []
        radar = [Transform(EGO_FRAME, RADAR_FRAME, self.radar_mount)] if self.radar else []
        return TransformTree([*lidar, *camera, *radar])


def windscreen_camera() -> CameraSensor:
    """Return a camera of 1280 × 720 pixels and 70 degrees behind the windscreen (assumed, of a mid-size car)."""
    from mt_nodes.world.scene.camera_rendering import CameraSensor  # OpenCV is for those who ask for pictures

    return CameraSensor(1280, 720, 70.0, forward_m=1.7, height_m=1.4)
