# SPDX-License-Identifier: Apache-2.0
"""Taps of what a live system tells of its frames and of the ego's motion: ``/tf``, ``/tf_static`` and odometry.

No tap can hold a publisher back: all are best effort, but that of the latched ``/tf_static``, which would not be heard
late otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from rclpy.clock import Clock, ClockType
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

from mt_nodes.base.errors import MtError
from mt_nodes.data.cdr import codec
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.ego.published_motion import ODOMETRY_TYPE
from mt_nodes.data.messages import Wire
from mt_nodes.data.transform_buffer import TransformBuffer
from mt_nodes.data.transforms import TransformTree
from mt_nodes.nodes import qos
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.raw_subscription import subscribe_raw

#: How often it is looked for odometry, s: a node that tells of it may come late.
LOOK_EVERY_S = 0.5
#: What is published below it is a follow-up's, or ours.
OWN_TOPICS = "/mt/"
#: Topics of transforms, whether theirs are static, and how they are tapped.
TRANSFORM_TOPICS = {"/tf": (False, qos.LIVE_BURSTS), "/tf_static": (True, qos.LATCHED)}


class FrameTaps:
    """Hears frames, where ``tf2_msgs`` is installed, and odometry.

    Args:
        node: in the live domain, spun by somebody else.
        fixed: the user's file, which stands above what is heard.
        motion: whether odometry is heard, too.

    Attributes:
        track: what estimates the ego's motion from what is heard.
    """

    def __init__(self, node: Node, fixed: TransformTree, *, motion: bool = True) -> None:
        self.track = EgoTrack()
        self._node, self._frames = node, TransformBuffer(fixed)
        self._odometry: set[str] = set()
        for topic, (static, profile) in TRANSFORM_TOPICS.items() if available(codec.TF) else ():
            subscribe_raw(node, codec.TF, topic, self.take_frames(static), profile)
        if motion:
            node.create_timer(LOOK_EVERY_S, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def at(self, stamp_ns: int) -> TransformTree:
        """Return what is known by now of an instant; a frame that nobody has told of is not in it."""
        return self._frames.at(stamp_ns)

    def take_frames(self, static: bool) -> Callable[[bytes], None]:
        """Return what takes in serialized ``tf2_msgs/TFMessage``; one that cannot be understood tells of no frame."""

        def take(data: bytes) -> None:
            with suppress(MtError):  # what is not known is told of the pairs that need it
                transforms = codec.transforms_from_msg(codec.decode(codec.TF, data), static)
                self._frames.add(transforms)
                if not static:
                    self.track.add_transforms(transforms, time.monotonic())

        return take

    def _look(self) -> None:
        for topic, types in self._node.get_topic_names_and_types():
            if ODOMETRY_TYPE in types and topic not in self._odometry and not topic.startswith(OWN_TOPICS):
                self._odometry.add(topic)
                self._tap_odometry(topic)

    def _tap_odometry(self, topic: str) -> None:
        def take(data: bytes) -> None:
            self.track.take(Wire(topic, ODOMETRY_TYPE, 0, data, came_s=time.monotonic()))

        try:
            subscribe_raw(self._node, ODOMETRY_TYPE, topic, take, qos.LIVE_BURSTS)
        except rclpy_implementation.RCLError as error:  # a security policy does not name it; there are other sources
            self._node.get_logger().warning(f"{topic} tells of no ego motion: it cannot be subscribed to: {error}")
