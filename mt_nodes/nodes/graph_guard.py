# SPDX-License-Identifier: Apache-2.0
"""What a ROS graph holds, as one node of it sees, for :mod:`mt_nodes.vehicle.leaks`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from rclpy.action import get_action_client_names_and_types_by_node, get_action_server_names_and_types_by_node
from rclpy.node import Node

from mt_nodes.nodes.isolation import NOT_KNOWN_YET
from mt_nodes.vehicle import leaks
from mt_nodes.vehicle.leaks import Endpoint

#: What every node has, and nobody commands anything by.
_EVERYBODYS = ("/rosout", "/parameter_events")
#: An action is made of topics and services of this name below its own; who has this service, has the action.
_OF_ACTION = "/_action/"
_GOAL, _GOAL_TYPE = "/_action/send_goal", "_SendGoal"
#: Role of a service -> that of the action which is asked for by it.
_AS_ACTION = {leaks.SERVER: leaks.ACTION_SERVER, leaks.CLIENT: leaks.ACTION_CLIENT}
_ByNode = Callable[[str, str], list[tuple[str, list[str]]]]


def endpoints(node: Node) -> frozenset[Endpoint]:
    """Return what every node of a domain has, as far as it has been discovered by now."""
    owned = _of_nodes(node)
    counts = Counter([*_on_topics(node), *owned]) + _nobodys(node, owned)
    return frozenset(replace(one, number=n + 1) for one, count in counts.items() for n in range(count))


def _on_topics(node: Node) -> Iterator[Endpoint]:
    for name, _ in node.get_topic_names_and_types():
        if name in _EVERYBODYS or _OF_ACTION in name:
            continue
        for row in node.get_publishers_info_by_topic(name):
            yield Endpoint(_full(row.node_namespace, row.node_name), leaks.PUBLISHER, name, row.topic_type)
        for row in node.get_subscriptions_info_by_topic(name):
            yield Endpoint(_full(row.node_namespace, row.node_name), leaks.SUBSCRIPTION, name, row.topic_type)


def _of_nodes(node: Node) -> set[Endpoint]:
    """Return services and actions as nodes are said to have them: of nodes called alike, those of one."""
    asked: tuple[tuple[str, _ByNode], ...] = (
        (leaks.SERVER, node.get_service_names_and_types_by_node),
        (leaks.CLIENT, node.get_client_names_and_types_by_node),
        (leaks.ACTION_SERVER, lambda *who: get_action_server_names_and_types_by_node(node, *who)),
        (leaks.ACTION_CLIENT, lambda *who: get_action_client_names_and_types_by_node(node, *who)),
    )
    nodes = set(node.get_node_names_and_namespaces())
    return {one for name, namespace in nodes for role, ask in asked for one in _of_node(name, namespace, role, ask)}


def _nobodys(node: Node, owned: set[Endpoint]) -> Counter[Endpoint]:
    """Count services that are there and of none of these: their node is called as another one, or not known yet."""
    known = Counter((one.role, one.name) for one in owned)
    found: Counter[Endpoint] = Counter()
    for name, kinds in node.get_service_names_and_types():
        for role, count in ((leaks.SERVER, node.count_services(name)), (leaks.CLIENT, node.count_clients(name))):
            for one in _service(NOT_KNOWN_YET, role, name, kinds[0]):
                found[one] = count - known[one.role, one.name]
    return +found


def _of_node(name: str, namespace: str, role: str, ask: _ByNode) -> Iterator[Endpoint]:
    try:
        rows = ask(name, namespace)
    except RuntimeError:  # it has left since it was named
        return
    for what, types in rows:
        for kind in types:
            yield from _service(_full(namespace, name), role, what, kind)


def _service(node: str, role: str, name: str, kind: str) -> Iterator[Endpoint]:
    """Yield what a service is: itself, or an action; who only asks for its goals is no client of it by its topics."""
    if _OF_ACTION not in name:
        yield Endpoint(node, role, name, kind)
    elif name.endswith(_GOAL) and role in _AS_ACTION:
        yield Endpoint(node, _AS_ACTION[role], name.removesuffix(_GOAL), kind.removesuffix(_GOAL_TYPE))


def _full(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('/')}/{name}"
