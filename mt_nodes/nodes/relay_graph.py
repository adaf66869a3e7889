# SPDX-License-Identifier: Apache-2.0
"""What a relay looks for in the graph: strangers who publish its topics, signals that have several publishers."""

from __future__ import annotations

from collections.abc import Iterable

from rclpy.node import Node

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.runs.vehicle.baton import Baton

#: What the graph says in place of a name that has not come yet.
UNNAMED = "_NODE_NAME_UNKNOWN_"


def gid_of(node: Node, topic: str) -> bytes:
    """Return the GID of a node's own subscription of a topic.

    Raises InfrastructureError: the middleware does not tell.
    """
    name = node.get_name()
    rows = node.get_subscriptions_info_by_topic(topic)
    if mine := next((row for row in rows if row.node_name == name), None):
        return bytes(mine.endpoint_gid)
    raise InfrastructureError(f"the graph does not show that {name} subscribes to {topic}; use rmw_fastrtps_cpp")


def other_publishers(node: Node, topics: Iterable[str], baton: Baton) -> str:
    """Say who publishes topics and is no relay of this run, empty where nobody does.

    By GIDs: the name of a node may come later than its endpoints, and anybody may take it.
    """
    return "; ".join(filter(None, (_other_publishers_of(node, topic, baton) for topic in topics)))


def _other_publishers_of(node: Node, topic: str, baton: Baton) -> str:
    rows = node.get_publishers_info_by_topic(topic)
    others = [row for row in rows if not baton.is_kin(bytes(row.endpoint_gid))]
    names = ", ".join(f"{row.node_namespace.rstrip('/')}/{row.node_name}" for row in others)
    return f"{topic}: is published by {names}" if others else ""


def ambiguous_signal(node: Node, topics: Iterable[str]) -> str:
    """Say which signal has several publishers: one that still says yes would hide that another says no."""
    counts = {topic: node.count_publishers(topic) for topic in topics}
    return next((f"{topic}: is published {count} times" for topic, count in counts.items() if count > 1), "")
