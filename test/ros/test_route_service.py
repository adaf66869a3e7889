# SPDX-License-Identifier: Apache-2.0
"""A route planner behind nav_msgs/srv/GetPlan, over real DDS."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import PoseStamped
from nav_msgs.srv import GetPlan
from rclpy.node import Node

from mt_nodes.base.errors import ExitCode
from mt_nodes.cli.main import main
from mt_nodes.data.hd_maps.lane_graph import LaneGraph
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node
from mt_nodes.runs.routes.route_files import borough
from mt_nodes.runs.routes.route_planner import LanePlanner
from mt_nodes.runs.routes.route_query import RoutePlace, RouteQuery

PLANNER = LanePlanner(LaneGraph.of(borough()), "goal_on_own_lane_behind")


def place(pose: PoseStamped) -> RoutePlace:
    at, turn = pose.pose.position, pose.pose.orientation
    return RoutePlace(at.x, at.y, 2.0 * math.atan2(turn.z, turn.w))


def plan(request: GetPlan.Request, response: GetPlan.Response) -> GetPlan.Response:
    assert request.start.header.frame_id == "map"
    points = PLANNER(RouteQuery(place(request.start), place(request.goal)))
    for x, y in [] if points is None else points:
        pose = PoseStamped()
        pose.pose.position.x, pose.pose.position.y = float(x), float(y)
        response.plan.poses.append(pose)
    return response


@contextmanager
def served(domain: int, answer: Callable[..., Any]) -> Iterator[None]:
    ros = SpinningContext(domain)
    node: Node = ros.add(plain_node, "planner_server")
    node.create_service(GetPlan, "/make_plan", answer)
    try:
        yield
    finally:
        ros.close()


def test_a_planner_behind_a_service_is_judged(
    domains: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domains[0]))
    command = ["experiment", "routes", "--planner", "ros:/make_plan", "--pairs", "25", "--json"]
    with served(domains[0], plan):
        assert main([*command, "--out", str(tmp_path / "out")]) == ExitCode.FAIL
    table = json.loads(capsys.readouterr().out)
    assert table["relations"]["route_destination_ahead"]["outcome"] == "FAIL"
    assert table["relations"]["route_by_another_place"]["outcome"] == "PASS"
    assert list(table["left_out"]) == ["route_road_closed"]


def test_a_service_that_is_not_there_is_refused(
    domains: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domains[0]))
    monkeypatch.setattr("mt_nodes.nodes.route_service.READY_S", 0.3)
    assert main(["experiment", "routes", "--planner", "ros:/make_plan"]) == ExitCode.USAGE
    assert f"nobody offers this nav_msgs/srv/GetPlan in domain {domains[0]}" in capsys.readouterr().err
