# SPDX-License-Identifier: Apache-2.0
"""Subscriptions to serialized messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from mt_nodes.nodes.message_classes import message_class


def subscribe_raw(
    node: Node,
    type_name: str,
    topic: str,
    received: Callable[..., object],
    profile: QoSProfile,
    *,
    with_info: bool = False,
    **more: Any,
) -> Subscription:
    """Subscribe to a topic, and hand over its messages as they were serialized.

    What has no bytes is no message, for each begins with a header of four. Fast DDS gives such a sample, without a
    time or a number, to readers that have just joined (seen in 1 of 20 starts of a relay on a loaded machine).

    Args:
        received: called with the bytes, and, ``with_info``, with what the middleware says about them.
        more: further arguments of ``create_subscription``.
    """

    def take(data: bytes) -> None:
        if data:
            received(data)

    def take_with_info(data: bytes, info: Any) -> None:
        if data:
            received(data, info)

    taking = take_with_info if with_info else take
    return node.create_subscription(message_class(type_name), topic, taking, profile, raw=True, **more)
