# SPDX-License-Identifier: Apache-2.0
"""Asks a route planner for its plan by the service ``nav_msgs/srv/GetPlan``, which moves no vehicle."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.srv import GetPlan

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.rotations import quaternion_of_rpy
from mt_nodes.data.transforms import MAP_FRAME
from mt_nodes.nodes.spinning_context import SpinningContext, quiet_node
from mt_nodes.runs.routes.route_query import RoutePlace, RouteQuery

READY_S, ANSWER_S = 10.0, 30.0


class RouteService:
    """A planner behind a service, in the domain of ``ROS_DOMAIN_ID``.

    ``name``: of the service, such as ``/make_plan``.
    Raises UsageError: the name is not absolute, or nobody offers the service.
    """

    #: The request has no place for closed roads.
    closes_roads = False

    def __init__(self, name: str) -> None:
        if not name.startswith("/") or name == "/":
            raise UsageError(f"--planner ros:{name}: expected the absolute name of a service, such as ros:/make_plan")
        self._name, domain = name, int(os.environ.get("ROS_DOMAIN_ID", "0"))
        self._context = SpinningContext(domain)
        self._node = self._context.add(quiet_node, "mt_route_client")
        self._client = self._node.create_client(GetPlan, name)
        if not self._client.wait_for_service(READY_S):
            self.close()
            raise UsageError(f"--planner ros:{name}: nobody offers this nav_msgs/srv/GetPlan in domain {domain}")

    def __call__(self, query: RouteQuery) -> Floats:
        """Return the points (N, 2) of the plan; none if it is empty. Raises InfrastructureError: no answer came."""
        request = GetPlan.Request(start=_pose(query.start), goal=_pose(query.goal))
        answered, future = threading.Event(), self._client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        if not answered.wait(ANSWER_S):
            raise InfrastructureError(f"{self._name} gave no answer within {ANSWER_S:g} s")
        if self._context.failure:
            raise InfrastructureError(self._context.failure)
        poses: list[Any] = future.result().plan.poses
        points = [(pose.pose.position.x, pose.pose.position.y) for pose in poses]
        return np.array(points, dtype=np.float64).reshape(-1, 2)

    def close(self) -> None:
        """Leave the ROS graph."""
        self._context.close()


def _pose(place: RoutePlace) -> PoseStamped:
    pose = PoseStamped()
    pose.header.frame_id = MAP_FRAME
    pose.pose.position.x, pose.pose.position.y = place.xy_m
    x, y, z, w = quaternion_of_rpy(0.0, 0.0, place.yaw_rad)
    o = pose.pose.orientation
    o.x, o.y, o.z, o.w = float(x), float(y), float(z), float(w)
    return pose
