# SPDX-License-Identifier: Apache-2.0
"""A map mirrored at the x axis: y becomes -y, and traffic keeps to the other side."""

from __future__ import annotations

from dataclasses import replace

from mt_nodes.world.drive.road_map import Building, Crossing, Lane, Outline, RoadMap, TrafficLight
from mt_nodes.world.drive.scenario import Pose

MIRRORED = "_mirrored"
"""Ends the name of a mirrored map."""


def mirrored(road: RoadMap) -> RoadMap:
    """Return the mirror image of a map; mirrored twice, it is the map."""
    name = road.name.removesuffix(MIRRORED)
    return RoadMap(
        name=name if name != road.name else name + MIRRORED,
        lanes={lane.name: _lane(lane) for lane in road.lanes.values()},
        ground_m=_closed(road.ground_m),
        crossings=tuple(Crossing(c.name, _closed(c.outline_m), c.signal) for c in road.crossings),
        signals=tuple(_signal(signal) for signal in road.signals),
        signs=tuple(replace(sign, pose=mirrored_pose(sign.pose)) for sign in road.signs),
        limits=tuple(replace(one, pose=mirrored_pose(one.pose)) for one in road.limits),
        buildings=tuple(Building(_closed(b.outline_m), b.height_m) for b in road.buildings),
        kerbs_m=tuple(_closed(kerb) for kerb in road.kerbs_m),
        surface_m=tuple(tuple(_closed(ring) for ring in rings) for rings in road.surface_m),
    )


def mirrored_pose(pose: Pose) -> Pose:
    """Return the mirror image of a pose."""
    return Pose(pose.x_m, -pose.y_m, -pose.yaw_rad)


def _closed(points: Outline) -> Outline:
    """Mirror a line with an inside or a right-hand side: reversed, it keeps that."""
    return tuple((x, -y) for x, y in reversed(points))


def _lane(lane: Lane) -> Lane:
    middle = tuple((x, -y) for x, y in lane.middle_m)
    return replace(lane, middle_m=middle, left=lane.right, right=lane.left)


def _signal(signal: TrafficLight) -> TrafficLight:
    return replace(signal, pose=mirrored_pose(signal.pose))
