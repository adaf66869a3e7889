# SPDX-License-Identifier: Apache-2.0
"""Whether a collision can be avoided: a dilemma requires that the car, at the limit of its tyres, must hit somebody.

avoidable    one of some 260 hard manoeuvres (:mod:`mt_nodes.world.drive.manoeuvres`), driven by the very plant of the
             world, touches nobody and nothing until it stands or the scenario's time is over.
unavoidable  none does, and even a car that is freer than any real one could not
(:mod:`mt_nodes.world.drive.reachable`). presumed     none does, but that is not proved: a manoeuvre that was not tried
might.

Everything counts that the ego can touch in the world: actors, obstacles, posts. Contacts after it has come to rest do
not: who walks into a standing car is not hit by it. Where the road must not be left (``off_road`` false), a manoeuvre
that leaves the carriageway avoids nothing, and what it would have met beyond is not looked at. The road is left by the
middle of the car, as in the world; where there are parapets by the first of its corners (``whole``).

Actors may depend on the ego. Those who only wait for it (triggers) are moved by each manoeuvre as it triggers them,
exactly. Drivers who obey signals keep away from the ego, and people who obey them may be triggered before a light: with
one of these each manoeuvre has a motion of the others of its own, also exact, but slower by some seconds. In the proof
whoever is not sure to move so whatever the ego does counts as not being there, which is on the safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.collisions import Body, Contacts
from mt_nodes.world.drive.friction import GRAVITY_MPS2, friction
from mt_nodes.world.drive.manoeuvres import extremes
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.reachable import Moving, nowhere_left_s
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.rollout import STEP_S, Others, driven, others, start_of
from mt_nodes.world.drive.scenario import Scenario, Vehicle
from mt_nodes.world.drive.scenario_checks import checked

Steps = npt.NDArray[np.intp]

#: The proof uses every second instant: a car at 50 m/s moves 1 m in between, and nobody slips through.
_EVERY = 2
#: Bodies farther apart than this do not touch, for any rounding of their corners.
_ROUNDED_M = 1e-6


class Avoidability(str, Enum):
    """Whether a collision is avoidable."""

    AVOIDABLE = "avoidable"
    UNAVOIDABLE = "unavoidable"
    PRESUMED = "presumed unavoidable"


@dataclass(frozen=True)
class ManoeuvreResult:
    """Result of one manoeuvre.

    Attributes:
        hits: names of the bodies that it hits, in order. leaves_road: it leaves the carriageway, if that is forbidden.
    """

    name: str
    hits: tuple[str, ...]
    leaves_road: bool = False


@dataclass(frozen=True)
class Avoidance:
    """Whether a collision is avoidable, and whom each manoeuvre hits.

    ``manoeuvre``: the first manoeuvre that avoids everybody, empty if there is none. ``reason``: in words.
    """

    answer: Avoidability
    manoeuvre: str
    reason: str
    tried: tuple[ManoeuvreResult, ...]

    @cached_property
    def choices(self) -> tuple[frozenset[str], ...]:
        """Return the minimal sets of victims: those of manoeuvres on the road that contain no other such set.

        One empty set: nobody need be hit. Two or more: there is a choice.
        """
        hit = {frozenset(one.hits) for one in self.tried if not one.leaves_road}
        return tuple(sorted((one for one in hit if not any(other < one for other in hit)), key=sorted))


def avoidance(
    scenario: Scenario,
    road: RoadMap | None = None,
    *,
    begins_s: float = 0.0,
    off_road: bool = False,
    whole: bool = False,
    prove: bool = True,
    share: float = 1.0,
) -> Avoidance:
    """Return whether a collision is avoidable from the start of a scenario.

    ``road``: map instead of the scenario's own. ``begins_s``: how long the ego rolls straight on first: the least that
    a stack needs to detect the actors. ``off_road``: the carriageway may be left. ``whole``: if not, all of the car
    must stay on it, not only its centre. ``prove``: otherwise a collision that no manoeuvre avoids is presumed.
    ``share``: of the tyres' limit that manoeuvres use; with less than all of it "avoidable" is still exact, and a proof
    still uses all of it.
    Raises UsageError: the map does not exist, or the scenario has problems.
    """
    road = road or load_map(scenario.road)
    checked(scenario, road)
    most = friction(scenario.environment) * GRAVITY_MPS2
    moves = extremes(scenario.ego.vehicle, share * most)
    egos = driven(scenario, moves, begins_s)
    stand = _stands(egos)
    leave = np.full(len(stand), len(egos)) if off_road else _leaves(scenario.ego.vehicle, egos, stand, road, whole)
    until = np.minimum(stand, leave)
    moved, contacts = others(scenario, road, egos, until), Contacts(scenario, road)
    standing = [np.broadcast_to(row, (len(egos), 1, 4)) for row in contacts.standing]
    outline, bodies = shapes.of_vehicle(scenario.ego.vehicle), contacts.bodies
    rows = zip(bodies, [*moved.rows, *standing], strict=True)
    touched = [_first_contact(outline, egos, body, of, until) for body, of in rows]
    tried = _tried(moves.names, [body.name for body in bodies], touched, leave <= stand, len(egos))
    found = next((one.name for one in tried if not one.hits and not one.leaves_road), "")
    if found:
        return Avoidance(Avoidability.AVOIDABLE, found, f"'{found}' touches nobody", tried)
    sure = _sure_bodies(bodies, moved, standing)
    left_s = _nowhere_left_s(scenario, begins_s, sure, None if off_road else road, whole) if prove else None
    if left_s is None:
        reason = f"none of {len(tried)} manoeuvres avoids everybody; that no other does is not proved"
        return Avoidance(Avoidability.PRESUMED, "", reason, tried)
    reason = f"after {left_s:.2f} s a car pushed by {most:.2f} m/s² any way it likes is nowhere clear of everybody"
    return Avoidance(Avoidability.UNAVOIDABLE, "", reason, tried)


def _nowhere_left_s(
    scenario: Scenario, begins_s: float, sure: Sequence[Moving], road: RoadMap | None, whole: bool
) -> float | None:
    """Return :func:`mt_nodes.world.drive.reachable.nowhere_left_s` for a scenario."""
    vehicle, most = scenario.ego.vehicle, friction(scenario.environment) * GRAVITY_MPS2
    # The first actuator responds after whole steps, as in the plant.
    dead_s = min(round(dead / STEP_S) for dead in (vehicle.drive_dead_s, vehicle.steering_dead_s)) * STEP_S
    return nowhere_left_s(vehicle, start_of(scenario), most, begins_s + dead_s, sure, _EVERY * STEP_S, road, whole)


def _sure_bodies(bodies: Sequence[Body], moved: Others, standing: Sequence[Floats]) -> list[Moving]:
    rows = [*(one if sure else None for one, sure in zip(moved.rows, moved.sure, strict=True)), *standing]
    found = zip(bodies, rows, strict=True)
    return [Moving(body.corners_m, one[::_EVERY, 0]) for body, one in found if one is not None]


def _tried(
    moves: Sequence[str], names: Sequence[str], touched: Sequence[Steps], leaves: Mask, never: int
) -> tuple[ManoeuvreResult, ...]:
    """Return the result of each manoeuvre; ``touched`` is for each body (M,) the step of the first contact."""
    first = np.array(touched, dtype=np.intp).reshape(len(names), len(moves))
    order = np.argsort(first, axis=0, kind="stable")
    return tuple(
        ManoeuvreResult(move, tuple(names[i] for i in order[:, m] if first[i, m] < never), bool(leaves[m]))
        for m, move in enumerate(moves)
    )


def _stands(egos: Floats) -> Steps:
    """Return (M,) the step at which each stands, or the last."""
    stands = egos[..., 3] == 0.0
    return np.where(stands.any(axis=0), stands.argmax(axis=0), len(egos) - 1)


def _leaves(vehicle: Vehicle, egos: Floats, stand: Steps, road: RoadMap, whole: bool) -> Steps:
    """Return (M,) the step at which each leaves a road, or one after the last."""
    shapely.prepare(road.carriageway)
    middle = np.array([((vehicle.front_m - vehicle.rear_m) / 2.0, 0.0)])
    k, m = np.nonzero(np.arange(len(egos))[:, None] <= stand)
    rows, leave = egos[k, m], np.full(egos.shape[1], len(egos))
    for corner in shapes.of_vehicle(vehicle) if whole else middle:
        x, y = _placed_points(corner[None], rows)
        off = ~shapely.contains_xy(road.carriageway, x[:, 0], y[:, 0])
        np.minimum.at(leave, m[off], k[off])
    return leave


def _first_contact(outline_m: Floats, egos: Floats, body: Body, rows: Floats, until: Steps) -> Steps:
    """Return (M,) the step at which the ego, moving on the road, touches a body; one after the last if never."""
    middle = float(outline_m[:, 0].mean())
    reach = np.hypot(*(outline_m[0] - (middle, 0.0))) + np.hypot(*body.corners_m.T).max()
    x, y, yaw = (egos[..., i] for i in range(3))
    near = np.hypot(x + middle * np.cos(yaw) - rows[..., 0], y + middle * np.sin(yaw) - rows[..., 1]) < reach
    near &= np.arange(len(egos))[:, None] <= until
    k, m = np.nonzero(near)
    ego, other = egos[k, m], rows[k, m if rows.shape[1] > 1 else 0]
    close = ~(_separated(outline_m, ego, body.corners_m, other) | _separated(body.corners_m, other, outline_m, ego))
    k, m, ego, other = k[close], m[close], ego[close], other[close]
    first, step = np.full(egos.shape[1], len(egos)), 1
    while len(k):  # the earliest of each that nobody looked at yet, and twice as many the next time
        now = _place_among(m) < step
        touch = shapely.intersects(_placed(outline_m, ego[now]), _placed(body.corners_m, other[now]))
        np.minimum.at(first, m[now][touch], k[now][touch])
        left = ~now & (first[m] == len(egos))
        k, m, ego, other, step = k[left], m[left], ego[left], other[left], 2 * step
    return first


def _separated(own_m: Floats, own: Floats, others_m: Floats, others: Floats) -> Mask:
    """Return (n,) whether one body at poses (n, 3 or more) lies on one side of another's bounding box."""
    x, y = _placed_points(others_m, others)
    x, y = x - own[:, 0, None], y - own[:, 1, None]
    c, s = np.cos(own[:, 2, None]), np.sin(own[:, 2, None])
    ahead, left = c * x + s * y, c * y - s * x
    low, high = own_m.min(axis=0) - _ROUNDED_M, own_m.max(axis=0) + _ROUNDED_M
    separated = (ahead.min(axis=1) > high[0]) | (ahead.max(axis=1) < low[0])
    return np.asarray(separated | (left.min(axis=1) > high[1]) | (left.max(axis=1) < low[1]))


def _place_among(groups: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return (n,) how many of the same group come before each."""
    order = np.argsort(groups, kind="stable")
    _, start, count = np.unique(groups[order], return_index=True, return_counts=True)
    place = np.empty(len(groups), np.intp)
    place[order] = np.arange(len(groups)) - np.repeat(start, count)
    return place


def _placed(corners_m: Floats, rows: Floats) -> npt.NDArray[np.object_]:
    """Return (n,) :func:`mt_nodes.world.drive.shapes.placed` for many poses (n, 3 or more)."""
    return np.asarray(shapely.polygons(np.stack(_placed_points(corners_m, rows), axis=-1)))


def _placed_points(points_m: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return x and y (n, K) of points (K, 2) of a body's own frame for many poses (n, 3 or more)."""
    c, s = np.cos(rows[:, 2, None]), np.sin(rows[:, 2, None])
    x = rows[:, 0, None] + c * points_m[:, 0] - s * points_m[:, 1]
    return x, rows[:, 1, None] + s * points_m[:, 0] + c * points_m[:, 1]
