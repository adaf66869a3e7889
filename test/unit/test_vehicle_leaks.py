# SPDX-License-Identifier: Apache-2.0
"""Ways by which a test could reach an actuator are found in the graph, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mt_nodes.base.safety_settings import Actuators
from mt_nodes.runs.vehicle.leaks import (
    ACTION_CLIENT,
    ACTION_SERVER,
    CLIENT,
    PUBLISHER,
    SERVER,
    SUBSCRIPTION,
    GraphEndpoint,
    LeakQuery,
    leaks_in_arm,
    leaks_in_live,
)

COMMAND = "ackermann_msgs/msg/AckermannDriveStamped"
ACTUATORS = Actuators(
    topics=("/vehicle/command/*",),
    types=("can_msgs/msg/Frame",),
    services=("/vehicle/engage",),
    actions=("/park",),
)
WATCHED = LeakQuery(ACTUATORS, observers=("/rosbag2_recorder", "/rviz*"), outputs=("/detections",))
PLANNER = GraphEndpoint("/planner", PUBLISHER, "/vehicle/command/drive", COMMAND)
OURS = ("/mt_mutator",)


@pytest.mark.parametrize(
    "bad",
    [
        GraphEndpoint("/driver", SUBSCRIPTION, "/vehicle/command/drive", COMMAND),
        GraphEndpoint("/planner", SUBSCRIPTION, "/vehicle/command/brake", "std_msgs/msg/Float32"),
        GraphEndpoint("/can", SUBSCRIPTION, "/to_can", "can_msgs/msg/Frame"),
        GraphEndpoint("/gate", SERVER, "/vehicle/engage", "std_srvs/srv/SetBool"),
        GraphEndpoint("/valet", ACTION_SERVER, "/park", "x_msgs/action/Park"),
        GraphEndpoint("/rviz", SERVER, "/vehicle/engage", "std_srvs/srv/SetBool"),
    ],
)
def test_who_would_act_on_a_command_has_no_place_in_an_arm(bad: GraphEndpoint) -> None:
    (leak,) = leaks_in_arm({PLANNER, bad}, WATCHED, OURS)
    assert leak.startswith(str(bad))


@pytest.mark.parametrize(
    "good",
    [
        PLANNER,
        GraphEndpoint("/mt_mutator", SUBSCRIPTION, "/vehicle/command/drive", COMMAND),
        GraphEndpoint("/rosbag2_recorder", SUBSCRIPTION, "/vehicle/command/drive", COMMAND),
        GraphEndpoint("/rviz_1", SUBSCRIPTION, "/vehicle/command/drive", COMMAND),
        GraphEndpoint("/planner", SUBSCRIPTION, "/vehicle/speed", "std_msgs/msg/Float32"),
        GraphEndpoint("/planner", CLIENT, "/vehicle/engage", "std_srvs/srv/SetBool"),
        GraphEndpoint("/planner", SERVER, "/planner/get_parameters", "rcl_interfaces/srv/GetParameters"),
    ],
)
def test_who_only_commands_or_looks_on_may_be_in_an_arm(good: GraphEndpoint) -> None:
    assert leaks_in_arm({good}, WATCHED, OURS) == []


@pytest.mark.parametrize(
    "new",
    [
        GraphEndpoint("/planner", PUBLISHER, "/vehicle/command/brake", COMMAND),
        GraphEndpoint("/bridge", PUBLISHER, "/detections", "vision_msgs/msg/Detection3DArray"),
        GraphEndpoint("/bridge", PUBLISHER, "/to_can", "can_msgs/msg/Frame"),
        GraphEndpoint("/somebody", CLIENT, "/vehicle/engage", "std_srvs/srv/SetBool"),
        GraphEndpoint("/somebody", ACTION_CLIENT, "/park", "x_msgs/action/Park"),
    ],
)
def test_who_commands_in_the_live_domain_and_was_not_there_before_is_a_leak(new: GraphEndpoint) -> None:
    before = {PLANNER}
    (leak,) = leaks_in_live({PLANNER, new}, before, WATCHED, OURS)
    assert leak.startswith(str(new)) and "not there before" in leak
    assert leaks_in_live({PLANNER, new}, {PLANNER, new}, WATCHED, OURS) == []


def test_a_second_one_of_the_same_name_is_a_leak() -> None:
    """A second instance of a stack is called as the first one is; so it is when it comes to the live domain."""
    twin = replace(PLANNER, number=2)
    (leak,) = leaks_in_live({PLANNER, twin}, {PLANNER}, WATCHED, OURS)
    assert leak.startswith("/planner publishes /vehicle/command/drive") and "number 2 of that name" in leak


def test_who_listens_or_publishes_something_else_may_come_to_the_live_domain() -> None:
    new = {
        GraphEndpoint("/rviz", SUBSCRIPTION, "/vehicle/command/drive", COMMAND),
        GraphEndpoint("/camera", PUBLISHER, "/image", "sensor_msgs/msg/Image"),
        GraphEndpoint("/mt_mutator", SUBSCRIPTION, "/points", "sensor_msgs/msg/PointCloud2"),
    }
    assert leaks_in_live(new | {PLANNER}, {PLANNER}, WATCHED, OURS) == []


@pytest.mark.parametrize("role", [PUBLISHER, SERVER, CLIENT])
def test_a_node_of_ours_that_does_more_than_listen_is_a_leak_even_if_it_was_there_before(role: str) -> None:
    one = GraphEndpoint("/mt_mutator", role, "/anything", "std_msgs/msg/Bool")
    (leak,) = leaks_in_live({one}, {one}, WATCHED, OURS)
    assert "may listen only" in leak


def test_what_has_left_and_comes_again_elsewhere_is_new() -> None:
    other = GraphEndpoint("/planner_2", PUBLISHER, PLANNER.name, COMMAND)
    assert leaks_in_live({other}, {PLANNER}, WATCHED, OURS)
    assert leaks_in_live({PLANNER}, {PLANNER}, WATCHED, OURS) == []
