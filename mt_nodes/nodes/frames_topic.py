# SPDX-License-Identifier: Apache-2.0
"""``/tf`` and ``/tf_static`` of bundles, where ``tf2_msgs`` is installed: it is not among the pip packages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from mt_nodes.data.cdr.codec import TF
from mt_nodes.data.message_headers import set_header
from mt_nodes.data.messages import Bundle
from mt_nodes.data.rotations import quaternion_of
from mt_nodes.data.transforms import Transform
from mt_nodes.nodes import qos
from mt_nodes.nodes.message_classes import available, message_class


class FramesTopic:
    """Says where frames are: those that stand once more only when they have changed."""

    def __init__(self, node: Node) -> None:
        self._topics: dict[bool, Any] = {}
        self._standing: tuple[Transform, ...] = ()
        if available(TF):
            kind = message_class(TF)
            self._topics[False] = node.create_publisher(kind, "/tf", qos.REPLAY)
            self._topics[True] = node.create_publisher(kind, "/tf_static", qos.LATCHED)

    def publish(self, bundle: Bundle) -> None:
        """Say where the frames of a bundle are; nothing where the type is missing."""
        if not self._topics:
            return
        standing = tuple(t for t in bundle.transforms.transforms if t.static)
        if standing != self._standing:
            self._standing = standing
            self._topics[True].publish(tf_message(standing, bundle.stamp_ns))
        moving = [t for t in bundle.transforms.transforms if not t.static]
        self._topics[False].publish(tf_message(moving, bundle.stamp_ns))


def tf_message(transforms: Iterable[Transform], stamp_ns: int) -> Any:
    """Return the ``tf2_msgs/TFMessage`` of transforms."""
    return message_class(TF)(transforms=[_stamped(each, stamp_ns) for each in transforms])


def _stamped(transform: Transform, stamp_ns: int) -> TransformStamped:
    message = TransformStamped(child_frame_id=transform.child)
    set_header(message.header, transform.parent, stamp_ns)
    to, rotation = message.transform.translation, message.transform.rotation
    to.x, to.y, to.z = map(float, transform.matrix[:3, 3])
    rotation.x, rotation.y, rotation.z, rotation.w = quaternion_of(transform.matrix[:3, :3])
    return message
