# SPDX-License-Identifier: Apache-2.0
"""What a ROS graph holds, as one node of it sees, for :mod:`mt_nodes.runs.vehicle.leaks`.

A name says nothing of who bears it. So nodes of ours are known by their DDS participant, which is the first part of the
id of each endpoint. Of services ROS tells no ids; but a service is a pair of topics (``rq/NAMERequest``,
``rr/NAMEReply``; design.ros2.org, "Topic and Service name mapping to DDS"), and who reads requests serves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from uuid import uuid4

from rclpy.node import Node
from rclpy.topic_endpoint_info import TopicEndpointInfo
from std_msgs.msg import Empty

from mt_nodes.nodes import qos
from mt_nodes.nodes.introduction import PARTICIPANT_BYTES
from mt_nodes.nodes.isolation import NOT_KNOWN_YET
from mt_nodes.runs.vehicle import leaks
from mt_nodes.runs.vehicle.leaks import GraphEndpoint

#: What every node has, and nobody commands anything by.
_EVERYBODYS = ("/rosout", "/parameter_events")
#: An action is made of topics and services of this name below its own; who has this service, has the action.
_OF_ACTION = "/_action/"
_GOAL, _GOAL_TYPE = "/_action/send_goal", "_SendGoal"
#: Role of a service -> that of the action which is asked for by it.
_AS_ACTION = {leaks.SERVER: leaks.ACTION_SERVER, leaks.CLIENT: leaks.ACTION_CLIENT}
_NOBODY = GraphEndpoint(NOT_KNOWN_YET, "", "", "")


@dataclass(frozen=True)
class Ours:
    """Nodes of ours in a domain: their full names, and the participants that they belong to."""

    names: frozenset[str] = frozenset()
    participants: frozenset[bytes] = frozenset()

    def called(self, info: TopicEndpointInfo) -> str:
        """Return how the node of an endpoint is called; who only bears a name of ours is called differently."""
        name = f"{info.node_namespace.rstrip('/')}/{info.node_name}"
        if NOT_KNOWN_YET in name:
            return NOT_KNOWN_YET
        if name in self.names and bytes(info.endpoint_gid[:PARTICIPANT_BYTES]) not in self.participants:
            return f"{name}, which is none of ours,"
        return name


def participant(node: Node) -> bytes:
    """Return which DDS participant a node belongs to: seen on a subscription of a name that nobody else has."""
    topic = f"/mt_nodes/participant_{uuid4().hex}"
    probe = node.create_subscription(Empty, topic, lambda message: None, qos.LIVE_TAP)
    try:
        return bytes(node.get_subscriptions_info_by_topic(topic)[0].endpoint_gid[:PARTICIPANT_BYTES])
    finally:
        node.destroy_subscription(probe)


def _everything(name: str, kind: str) -> bool:
    return True


def endpoints(
    node: Node, ours: Ours | None = None, concerns: Callable[[str, str], bool] = _everything
) -> frozenset[GraphEndpoint]:
    """Return what every node of a domain has, as far as it has been discovered by now.

    Args:
        ours: nodes that nobody else may pass for. concerns: which names and types are looked at; fewer take less time.
    """
    ours = ours or Ours()
    counts = Counter([*_on_topics(node, ours, concerns), *_on_services(node, ours, concerns)])
    return frozenset(replace(one, number=n + 1) for one, count in counts.items() for n in range(count))


def _on_topics(node: Node, ours: Ours, concerns: Callable[[str, str], bool]) -> Iterator[GraphEndpoint]:
    for name, kinds in node.get_topic_names_and_types():
        if name in _EVERYBODYS or _OF_ACTION in name or not any(concerns(name, kind) for kind in kinds):
            continue
        for row in node.get_publishers_info_by_topic(name):
            yield GraphEndpoint(ours.called(row), leaks.PUBLISHER, name, row.topic_type)
        for row in node.get_subscriptions_info_by_topic(name):
            yield GraphEndpoint(ours.called(row), leaks.SUBSCRIPTION, name, row.topic_type)


def _on_services(node: Node, ours: Ours, concerns: Callable[[str, str], bool]) -> Iterator[GraphEndpoint]:
    for service, kinds in node.get_service_names_and_types():
        for kind in kinds[:1]:
            for role in (leaks.SERVER, leaks.CLIENT):
                for one in _service(role, service, kind):
                    if concerns(one.name, one.type):
                        yield from (replace(one, node=who) for who in _who(node, ours, role, service))


def _service(role: str, name: str, kind: str) -> Iterator[GraphEndpoint]:
    """Yield what a service is: itself, or an action; who only asks for its goals is no client of it by its topics."""
    if _OF_ACTION not in name:
        yield replace(_NOBODY, role=role, name=name, type=kind)
    elif name.endswith(_GOAL):
        action, kind = name.removesuffix(_GOAL), kind.removesuffix(_GOAL_TYPE)
        yield replace(_NOBODY, role=_AS_ACTION[role], name=action, type=kind)


def _who(node: Node, ours: Ours, role: str, service: str) -> list[str]:
    """Name who serves, or calls; those whom only their number tells are not known."""
    requests = f"rq{service}Request"
    if role == leaks.SERVER:
        found, count = node.get_subscriptions_info_by_topic(requests, no_mangle=True), node.count_services(service)
    else:
        found, count = node.get_publishers_info_by_topic(requests, no_mangle=True), node.count_clients(service)
    names = [ours.called(row) for row in found]
    return names + [NOT_KNOWN_YET] * (count - len(names))
