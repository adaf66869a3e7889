# SPDX-License-Identifier: Apache-2.0
"""Moves a scenario and its map as a whole: rotated, shifted, mirrored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import atan2, cos, sin
from typing import TYPE_CHECKING

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.scenario import Actor, Pose, Scenario, StoryEvent

if TYPE_CHECKING:
    from mt_nodes.world.drive.road_map import Lane, Outline, RoadMap


@dataclass(frozen=True)
class Carry:
    """A motion of the plane: x' = R(turn) F x + (x_m, y_m), where F swaps the sign of y if ``mirrored``.

    A yaw becomes turn + yaw, with a mirror turn - yaw.
    """

    turn_rad: float = 0.0
    x_m: float = 0.0
    y_m: float = 0.0
    mirrored: bool = False

    @classmethod
    def mirror(cls, axis: Pose) -> Carry:
        """Return the mirror whose axis goes through a pose in the direction of its yaw."""
        turned = cls(2.0 * axis.yaw_rad, mirrored=True)
        x, y = turned.places(np.array([[axis.x_m, axis.y_m]]))[0].tolist()
        return replace(turned, x_m=axis.x_m - x, y_m=axis.y_m - y)

    @classmethod
    def between(cls, start: Pose, end: Pose) -> Carry:
        """Return the motion from one pose to the other, without a mirror."""
        turned = cls(end.yaw_rad - start.yaw_rad)
        x, y = turned.places(np.array([[start.x_m, start.y_m]]))[0].tolist()
        return replace(turned, x_m=end.x_m - x, y_m=end.y_m - y)

    @property
    def side(self) -> float:
        """-1 if left and right are swapped, else 1: the factor for steering."""
        return -1.0 if self.mirrored else 1.0

    @property
    def stays(self) -> bool:
        """Whether nothing moves."""
        return self == Carry()

    def places(self, xy: Floats) -> Floats:
        """Return the new places (N, 2)."""
        if self.stays:
            return xy
        c, s = cos(self.turn_rad), sin(self.turn_rad)
        x, y = xy[:, 0], xy[:, 1] * self.side
        return np.column_stack([c * x - s * y + self.x_m, s * x + c * y + self.y_m])

    def yaws(self, yaw_rad: Floats) -> Floats:
        """Return the new directions (N,), within ±π."""
        if self.stays:
            return yaw_rad
        turned = self.turn_rad + self.side * yaw_rad
        return np.asarray(np.arctan2(np.sin(turned), np.cos(turned)))

    def pose(self, pose: Pose) -> Pose:
        """Return the new pose."""
        (x, y), (yaw,) = self.places(np.array([[pose.x_m, pose.y_m]]))[0], self.yaws(np.array([pose.yaw_rad]))
        return Pose(float(x), float(y), float(yaw))

    def then(self, later: Carry) -> Carry:
        """Return this motion followed by another."""
        x, y = later.places(np.array([[self.x_m, self.y_m]]))[0].tolist()
        turn = later.turn_rad + later.side * self.turn_rad
        return Carry(atan2(sin(turn), cos(turn)), x, y, self.mirrored != later.mirrored)


def carried_scenario(scenario: Scenario, carry: Carry) -> Scenario:
    """Return a scenario with everything in it moved; for its map see :func:`carried_road`."""
    ego = scenario.ego
    return replace(
        scenario,
        ego=replace(ego, start=carry.pose(ego.start), target=ego.target and carry.pose(ego.target)),
        actors=tuple(carried_actor(actor, carry) for actor in scenario.actors),
        obstacles=tuple(replace(one, pose=carry.pose(one.pose)) for one in scenario.obstacles),
        events=tuple(_carried_event(event, carry) for event in scenario.events),
    )


def _carried_event(event: StoryEvent, carry: Carry) -> StoryEvent:
    aside = None if event.aside_m is None else carry.side * event.aside_m
    when = tuple(
        tuple(replace(one, place=one.place and carry.pose(one.place)) for one in group) for group in event.when
    )
    return replace(event, aside_m=aside, when=when)


def carried_actor(actor: Actor, carry: Carry) -> Actor:
    """Return an actor with moved start and waypoints."""
    places = carry.places(np.array([(w.x_m, w.y_m) for w in actor.waypoints]).reshape(-1, 2)).tolist()
    waypoints = tuple(replace(w, x_m=x, y_m=y) for w, (x, y) in zip(actor.waypoints, places, strict=True))
    return replace(actor, start=carry.pose(actor.start), waypoints=waypoints)


def carried_road(road: RoadMap, carry: Carry) -> RoadMap:
    """Return a map with everything on it moved; a mirror swaps left and right lanes.

    Outlines stay counter-clockwise, and pavements to the right of their kerbs, so a mirror reverses both.
    """

    def line(points: Outline, backwards: bool = False) -> Outline:
        moved = [(x, y) for x, y in carry.places(np.array(points, dtype=np.float64)).tolist()]
        return tuple(moved[::-1] if backwards else moved)

    def lane(one: Lane) -> Lane:
        sides = (one.right, one.left) if carry.mirrored else (one.left, one.right)
        return replace(one, middle_m=line(one.middle_m), left=sides[0], right=sides[1])

    return replace(
        road,
        lanes={name: lane(one) for name, one in road.lanes.items()},
        ground_m=line(road.ground_m, carry.mirrored),
        crossings=tuple(replace(c, outline_m=line(c.outline_m, carry.mirrored)) for c in road.crossings),
        signals=tuple(replace(s, pose=carry.pose(s.pose)) for s in road.signals),
        signs=tuple(replace(s, pose=carry.pose(s.pose)) for s in road.signs),
        limits=tuple(replace(one, pose=carry.pose(one.pose)) for one in road.limits),
        buildings=tuple(replace(b, outline_m=line(b.outline_m, carry.mirrored)) for b in road.buildings),
        kerbs_m=tuple(line(kerb, carry.mirrored) for kerb in road.kerbs_m),
        surface_m=tuple(tuple(line(ring, carry.mirrored) for ring in rings) for rings in road.surface_m),
    )
