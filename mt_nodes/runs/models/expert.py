# SPDX-License-Identifier: Apache-2.0
"""An expert who keeps to a lane by the map: what pictures are labelled with, and what a model is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from math import atan, tan

import numpy as np

from mt_nodes.data.outputs import Control
from mt_nodes.stacks.reference import traffic
from mt_nodes.stacks.reference.pursuit import Pursuit
from mt_nodes.stacks.reference.way import LanePath
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose, Scenario, Vehicle
from mt_nodes.world.drive.trace import EgoState

#: Aims so far ahead, as driving time and in metres; a camera sees the road there.
_AHEAD_S, _AHEAD_M = 0.6, (4.0, 14.0)
#: Comfortable across the road in bends and along it before them; so slow that a bend can be taken in its lane.
_ACROSS_MPS2, _SLOWING_MPS2 = 1.5, 1.5
#: Steering and brakes act so late; a speed that is said is driven so much later.
_LATE_S, _SPEED_LATE_S = 0.15, 0.5
#: Curvature across the road is cut by what no car here drives.
_MOST_MPS2 = 8.0


@dataclass(frozen=True, eq=False)
class Expert:
    """Pure pursuit along a route, slow in bends; sees nobody and no light.

    The line that it keeps its rear axle on is where that runs when the front axle follows the middle of the lane. On a
    circle of radius R it lies R - sqrt(R² - L²), about L²/2 times the curvature, farther inside, for a wheelbase L
    (Pythagoras): so the vehicle's corners stay as far from the outer edge as its side from the inner one.
    """

    route: Route
    vehicle: Vehicle
    cruise_mps: float = 8.0

    @classmethod
    def of(cls, scenario: Scenario, road: RoadMap, cruise_mps: float = 8.0) -> Expert:
        """Return the one for the ego of a scenario."""
        return cls(Route(road, scenario.ego.start, scenario.ego.target), scenario.ego.vehicle, cruise_mps)

    def command(self, ego: EgoState) -> Control:
        """Return the speed that is wanted here and the steering of the road wheels, positive to the left."""
        pose, _ = self.route.ahead(Pose(ego.x_m, ego.y_m, ego.yaw_rad))
        way = LanePath(pose[:, :2], np.full(len(pose), np.inf))
        turning = ego.speed_mps * tan(ego.steering_rad) / self.vehicle.wheelbase_m
        pose_at_arrival = traffic.EgoPose(ego.x_m, ego.y_m, ego.yaw_rad, ego.speed_mps, turning).later(_LATE_S)
        pursuit = Pursuit(_AHEAD_S, *_AHEAD_M, _MOST_MPS2)
        station = float(way.place(np.array([[pose_at_arrival.x_m, pose_at_arrival.y_m]]))[0][0])
        bend = float(np.interp(station + pursuit.ahead_m(ego.speed_mps), way.stations_m, way.curvature_1pm))
        curvature = pursuit.curvature_1pm(way, pose_at_arrival, self.vehicle.wheelbase_m**2 / 2.0 * bend)
        allowed = way.allowed_mps(station + _SPEED_LATE_S * ego.speed_mps, _ACROSS_MPS2, _SLOWING_MPS2)
        steering = atan(self.vehicle.wheelbase_m * curvature)
        return Control(None, steering_rad=steering, speed_mps=min(self.cruise_mps, allowed))
