# SPDX-License-Identifier: Apache-2.0
"""Ways and speeds of actors."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mt_nodes.world.drive.scenario import Pose, Waypoint
from mt_nodes.world.scenarios.language.places import Places, offset_left
from mt_nodes.world.scenarios.language.problems import Problem, ValueRefusal
from mt_nodes.world.scenarios.language.values import LanePlace, Participant, State

_BEYOND_M = 20.0


def way(
    places: Places, one: Participant, start: Pose, left_m: float, speed_mps: float, duration_s: float
) -> Iterator[Waypoint]:
    """Yield the waypoints of an actor; none: straight on.

    The speed of a state holds from there on, or on the way there if none holds yet. Vehicles follow the lanes between
    places on lanes, and without a motion their own lane; everybody else goes straight.
    ``start``: initial pose. ``left_m``: offset to the left of the states. ``speed_mps``: at the start. ``duration_s``:
    of the way without a motion.
    Raises Refused: there is no speed, or a place is not on the map.
    """
    states, legs = _states(places, one, start), one.motion is not None and one.motion.manner == "legs"
    drives = one.maker == "Vehicle"
    if drives and not states and speed_mps > 0.0:
        yield from (Waypoint(x, y, speed_mps) for x, y in places.onward(start, speed_mps * duration_s + _BEYOND_M))
    pose_before, on_lane = start, isinstance(one.start.place, LanePlace)
    for state in states:
        speed = state.speed_mps if legs else speed_mps or state.speed_mps
        if not speed:
            raise ValueRefusal(Problem(one.at, f"a way of '{one.name}' without a speed", "a speed above 0 to go it"))
        x, y = places.point(state, one.at, one.maker)
        pose = offset_left(Pose(x, y, start.yaw_rad), left_m)
        stays = drives and on_lane and isinstance(state.place, LanePlace)
        if stays:
            pose = places.pose(state, one.at, one.maker)
        points = places.between(pose_before, pose) if stays else [(pose.x_m, pose.y_m)]
        yield from (Waypoint(x, y, speed) for x, y in points)
        pose_before, on_lane = pose, isinstance(state.place, LanePlace)
        speed_mps = speed if state.speed_mps is None else state.speed_mps


def _states(places: Places, one: Participant, start: Pose) -> list[State]:
    """Return the states of a motion; a uniform motion's place counts unless it is the start."""
    states = list(one.motion.states) if one.motion else []
    if one.motion and one.motion.manner == "uniform":
        x, y = places.point(states[0], one.at, one.maker)
        states = [] if math.dist((x, y), (start.x_m, start.y_m)) < 0.01 else states
    return [*states, one.target] if one.target else states
