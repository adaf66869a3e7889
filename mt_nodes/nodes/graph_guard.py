# SPDX-License-Identifier: Apache-2.0
"""What a ROS graph holds, as one node of it sees, for :mod:`mt_nodes.vehicle.leaks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rclpy.action import get_action_client_names_and_types_by_node, get_action_server_names_and_types_by_node
from rclpy.node import Node

from mt_nodes.vehicle import leaks
from mt_nodes.vehicle.leaks import Endpoint

#: What every node has, and nobody commands anything by.
_EVERYBODYS = ("/rosout", "/parameter_events")
#: An action is made of topics and services of this name below its own.
_OF_ACTION = "/_action/"
_ByNode = Callable[[str, str], list[tuple[str, list[str]]]]


def endpoints(node: Node) -> frozenset[Endpoint]:
    """Return what every node of a domain has, as far as it has been discovered by now."""
    return frozenset(_endpoints(node))


def _endpoints(node: Node) -> Iterator[Endpoint]:
    for name, _ in node.get_topic_names_and_types():
        if name in _EVERYBODYS or _OF_ACTION in name:
            continue
        for row in node.get_publishers_info_by_topic(name):
            yield Endpoint(_full(row.node_namespace, row.node_name), leaks.PUBLISHER, name, row.topic_type)
        for row in node.get_subscriptions_info_by_topic(name):
            yield Endpoint(_full(row.node_namespace, row.node_name), leaks.SUBSCRIPTION, name, row.topic_type)
    asked: tuple[tuple[str, _ByNode], ...] = (
        (leaks.SERVER, node.get_service_names_and_types_by_node),
        (leaks.CLIENT, node.get_client_names_and_types_by_node),
        (leaks.ACTION_SERVER, lambda *who: get_action_server_names_and_types_by_node(node, *who)),
        (leaks.ACTION_CLIENT, lambda *who: get_action_client_names_and_types_by_node(node, *who)),
    )
    for name, namespace in set(node.get_node_names_and_namespaces()):
        for role, ask in asked:
            yield from _of_node(name, namespace, role, ask)


def _of_node(name: str, namespace: str, role: str, ask: _ByNode) -> Iterator[Endpoint]:
    try:
        rows = ask(name, namespace)
    except RuntimeError:  # it has left since it was named
        return
    for what, types in rows:
        if _OF_ACTION not in what:
            yield from (Endpoint(_full(namespace, name), role, what, kind) for kind in types)


def _full(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('/')}/{name}"
