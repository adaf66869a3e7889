# SPDX-License-Identifier: Apache-2.0
"""What a graph holds is found whoever hides behind another one's name, or has half an action."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ros_support import Peer, until
from std_msgs.msg import String
from std_srvs.srv import SetBool

from mt_nodes.nodes.graph_guard import endpoints
from mt_nodes.nodes.isolation import NOT_KNOWN_YET
from mt_nodes.runs.vehicle.leaks import ACTION_CLIENT, ACTION_SERVER, CLIENT, PUBLISHER, SERVER, GraphEndpoint

SAYS = GraphEndpoint("/detector", PUBLISHER, "/says", "std_msgs/msg/String")


@pytest.fixture
def peers(ending: ExitStack, domains: Any) -> tuple[Peer, Peer, Peer]:
    """Two nodes that are called alike, and one that looks."""
    return Peer(ending, domains[0], "detector"), Peer(ending, domains[0], "detector"), Peer(ending, domains[0], "looks")


def named(look: Peer, name: str) -> set[GraphEndpoint]:
    return {one for one in endpoints(look.node) if one.name == name}


def test_a_second_publisher_of_the_same_node_name_is_another_one(peers: tuple[Peer, Peer, Peer]) -> None:
    first, second, look = peers
    first.node.create_publisher(String, "/says", 1)
    until(lambda: named(look, "/says") == {SAYS})
    second.node.create_publisher(String, "/says", 1)
    # Found before its name is: as nobody's first, for a moment.
    until(lambda: named(look, "/says") == {SAYS, replace(SAYS, number=2)})


def test_services_of_a_second_node_of_the_same_name_are_seen(peers: tuple[Peer, Peer, Peer]) -> None:
    """Asked by the name of a node, ROS tells of one of both."""
    *both, look = peers
    for number, one in enumerate(both):
        one.node.create_service(SetBool, f"/engage_{number}", lambda _, answer: answer)
        one.node.create_client(SetBool, f"/ask_{number}")
    for role, name in ((SERVER, "/engage"), (CLIENT, "/ask")):
        for number in range(2):
            until(lambda what=f"{name}_{number}", role=role: {one.role for one in named(look, what)} == {role})
            assert len(named(look, f"{name}_{number}")) == 1


def test_those_whom_only_their_number_tells_are_there() -> None:
    """A service's topics may be discovered later than that somebody has it, or under names that cannot be found."""
    node = SimpleNamespace(
        get_topic_names_and_types=list,
        get_service_names_and_types=lambda: [("/engage", ["std_srvs/srv/SetBool"])],
        get_subscriptions_info_by_topic=lambda topic, no_mangle: [],
        get_publishers_info_by_topic=lambda topic, no_mangle: [],
        count_services=lambda service: 2,
        count_clients=lambda service: 1,
    )
    nobody = GraphEndpoint(NOT_KNOWN_YET, SERVER, "/engage", "std_srvs/srv/SetBool")
    found = endpoints(node)  # type: ignore[arg-type]
    assert found == {nobody, replace(nobody, number=2), replace(nobody, role=CLIENT)}


def test_who_only_asks_for_goals_of_an_action_asks_for_the_action(peers: tuple[Peer, Peer, Peer]) -> None:
    """An action is made of topics and services, and some of them are enough to command something."""
    server, client, look = peers
    server.node.create_service(SetBool, "/park/_action/send_goal", lambda _, answer: answer)
    client.node.create_client(SetBool, "/park/_action/send_goal")
    until(lambda: {one.role for one in named(look, "/park")} == {ACTION_SERVER, ACTION_CLIENT})
    assert len(named(look, "/park")) == 2
