# SPDX-License-Identifier: Apache-2.0
"""Messages of a simulated world without ROS, of the default types of stack files.

Objects and routes are written by the conventions of the adapters of ``MarkerArray`` and ``Path``. Traffic lights are a
``MarkerArray`` as well, since no standard package has a message for them and any viewer shows markers: see
:class:`LightMarker`. So are lanes: see :func:`lane_markers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.markers import Cube, encode_cubes, encode_detections, encode_path
from mt_nodes.data.lanes import ALONG, ONCOMING, OWN, Lanes, SignalStates
from mt_nodes.data.messages import Odometry, WorldMessage
from mt_nodes.data.outputs import Detections, Path
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.stack_topics import WORLD_TYPES

#: Length along the lane, width and height of the bar that shows a stop line.
BAR_M = (0.3, 3.0, 0.05)
LIGHT_COLOURS = {"red": (0.84, 0.1, 0.1), "yellow": (0.95, 0.9, 0.25), "green": (0.0, 0.62, 0.45)}
DARK = (0.3, 0.3, 0.3)
LANE_COLOURS = {OWN: (0.0, 0.62, 0.45), ALONG: (0.0, 0.45, 0.7), ONCOMING: (0.84, 0.37, 0.0)}


class LightMarker(NamedTuple):
    """Marker of a light: ``ns`` is its name, ``text`` its colour, the pose its stop line."""

    name: str
    colour: str
    stop: tuple[float, float, float]

    @property
    def cube(self) -> Cube:
        """The bar at the stop line, as markers show it."""
        x, y, yaw = self.stop
        rgb = LIGHT_COLOURS.get(self.colour, DARK)
        return Cube(self.name, (x, y, 0.0), quaternion_of_yaw(yaw), BAR_M, rgb, self.colour)


def light_markers(signals: SignalStates) -> Iterator[LightMarker]:
    """Yield one marker per light."""
    for name, colour, (x, y, yaw) in zip(signals.name, signals.colour, signals.stop.tolist(), strict=True):
        yield LightMarker(str(name), str(colour), (x, y, yaw))


def lane_markers(lanes: Lanes) -> Iterator[Cube]:
    """Yield one band per piece of a lane: ``ns`` is its name, ``text`` its direction, x of the scale its width."""
    for strip in lanes.strips:
        size, rgb = (strip.width_m, 0.0, 0.0), LANE_COLOURS.get(strip.direction, DARK)
        line = tuple((x, y) for x, y in strip.middle_m.tolist())
        yield Cube(strip.name, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), size, rgb, strip.direction, line)


def encode_world_message(message: WorldMessage) -> bytes:
    """Return the CDR bytes of the message of :data:`~mt_nodes.data.stack_topics.WORLD_TYPES`."""
    data = message.stamped
    if isinstance(data, Detections):
        return encode_detections(data)
    if isinstance(data, Path):
        return encode_path(data)
    if isinstance(data, SignalStates):
        return encode_cubes(data.frame_id, data.stamp_ns, (light.cube for light in light_markers(data)))
    if isinstance(data, Lanes):
        return encode_cubes(data.frame_id, data.stamp_ns, lane_markers(data))
    return encode_odometry(data)


def encode_odometry(data: Odometry) -> bytes:
    """Return the CDR bytes of an ``Odometry``: pose on the ground, forward speed, yaw rate; covariances are 0."""
    types = codec.typestore().types
    vector, none = types["geometry_msgs/msg/Vector3"], np.zeros(36)
    turn = types["geometry_msgs/msg/Quaternion"](**dict(zip("xyzw", quaternion_of_yaw(data.yaw_rad), strict=True)))
    pose: Any = types["geometry_msgs/msg/Pose"](
        position=types["geometry_msgs/msg/Point"](x=data.x_m, y=data.y_m, z=0.0), orientation=turn
    )
    twist: Any = types["geometry_msgs/msg/Twist"](
        linear=vector(x=data.speed_mps, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=data.yaw_rate_radps)
    )
    message = types[WORLD_TYPES["odometry"]](
        header=codec.header_of(data.frame_id, data.stamp_ns or 0),
        child_frame_id=data.child_frame_id,
        pose=types["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=none),
        twist=types["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=none),
    )
    return codec.encode(WORLD_TYPES["odometry"], message)
