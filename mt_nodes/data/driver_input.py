# SPDX-License-Identifier: Apache-2.0
"""Input of a driver in the closed loop at one instant: the type to annotate a callable with."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import CameraInfo, Odometry
from mt_nodes.data.outputs import Detections, Path


class WorldInput(TypedDict):
    """State of a simulated world at one instant, as a map and perfect perception give it.

    Attributes:
        objects: all road users and obstacles, occluded or not, without errors; in ``base_link``: x ahead, y
            to the left, z up, from the ground below the middle of the rear axle. Their order is random each time.
        odometry: pose of the ego vehicle in ``map``, and its motion.
        route: the middle of the lane ahead, one pose per metre, in ``map``, with speed limits.
        signals: traffic lights with their stop lines, in ``map``.
        lanes: the lanes along the route, in ``map``.
    """

    objects: Detections
    odometry: Odometry
    route: Path
    signals: SignalStates
    lanes: Lanes


class DriverInput(WorldInput, total=False):
    """One instant, by role. A driver that is a Python file gets :class:`WorldInput`; a stack file can add sensors.

    Attributes:
        points: (N, 4) float32 x, y, z in metres and intensity, of the LiDAR, in its frame or in ``points_frame``.
        image: (H, W, 3) uint8, red, green, blue. camera_info: its calibration.
        radar: (N, 6) float32 x, y, z, range rate, strength, azimuth, as of
            :func:`mt_nodes.stacks.callable_host.as_radar`.
    """

    points: Singles
    image: npt.NDArray[np.uint8]
    camera_info: CameraInfo
    radar: Singles
