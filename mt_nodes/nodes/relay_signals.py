# SPDX-License-Identifier: Apache-2.0
"""How a relay hears the signals that permit a change of input: each value, and how long ago it was published."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node

from mt_nodes.field_paths import FieldPath
from mt_nodes.nodes import qos
from mt_nodes.nodes.by_fields import fields_of
from mt_nodes.nodes.messages import message_class
from mt_nodes.nodes.relay_topic import published_ns
from mt_nodes.vehicle.interlock import Signal


def listen_to(node: Node, row: Signal, heard: Callable[[Any, float], None]) -> None:
    """Give ``heard`` each value of a signal, None where a message has none, with its age in s.

    Raises:
        UsageError: the type has no such field.
    """
    path = FieldPath.parse(row.field, f"signal {row.topic}")
    path.type_in(row.type.replace("/msg/", "/"), fields_of, f"signal {row.topic}")

    def take(message: Any, info: Mapping[str, Any]) -> None:
        age_s = 1e-9 * (time.time_ns() - published_ns(info))
        try:
            value = path.of(message)
        except ValueError:  # a list that has no such place today says nothing
            value = None
        heard(value, age_s)

    node.create_subscription(message_class(row.type), row.topic, take, qos.LIVE_TAP)
