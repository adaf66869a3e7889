# SPDX-License-Identifier: Apache-2.0
"""The scenarios of a dilemma: where the ego starts, and where both parties stand.

Both stand on one line across the road, a lane each, side by side, and where the lane is full behind each other. Of what
a row leaves of its lane a third is towards the other lane: where both are alike the gaps between them and to the edges
of the road are equal, and on the map ``bridge`` none is wide enough for the car. What stands in one lane is the mirror
image of what the same party is in the other, at the line between both, so that lanes differ in nothing but their side.
Everybody looks to the other lane, as one does who crosses from the nearer edge, and stands still.

Where the map has a crossing with a light for those who walk, they stand on it. On the map ``bridge`` that light has at
time 0 been red for so long that a slow walker who began on green has not arrived yet, and cars have green: people who
cross ``crossing_on_green`` (they began on it) and ``crossing_on_red`` are there at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import ceil, pi

import shapely

from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.runs.moral.dilemma import LANES, Dilemma, Member
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.friction import GRAVITY_MPS2, friction
from mt_nodes.world.drive.jitter import SPEED, jittered
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import Lane
from mt_nodes.world.drive.scenario import Actor, Ego, Pose, Scenario, Vehicle

EGO = Vehicle()
#: So much of a lane's width nobody stands in.
_FREE_M = 0.1
#: Until brakes do what they can (a look, dead time, lag, build-up), and the share of the grip that a driver uses.
_BEFORE_S, _USED = 0.9, 0.9


def staged(dilemma: Dilemma, swapped: bool) -> Scenario:
    """Return the scenario of a dilemma; its actors are ``first_1`` …, ``second_1`` ….

    ``swapped``: the second party stands in the ego's lane, and the first in the one beside it.
    Raises UsageError: the road has no two lanes beside each other or is too short, or a party has no room in its lane.
    """
    right, station = _place(dilemma.road)
    own = LANES.index(dilemma.lane)
    begin = station - dilemma.gap_m - EGO.front_m
    if not EGO.rear_m <= begin <= station - EGO.front_m:
        most = station - EGO.front_m - EGO.rear_m
        raise UsageError(
            f"dilemma '{dilemma.name}': got gap_m {dilemma.gap_m:g}, expected 0 to {most:g} m on map '{dilemma.road}'"
        )
    sides = (1 - own, own) if swapped else (own, 1 - own)
    return Scenario(
        f"{dilemma.name}_swapped" if swapped else dilemma.name,
        dilemma.road,
        Ego(right.pose_at(begin, own * right.width_m), dilemma.speed_mps, vehicle=EGO),
        tuple(actor for number, side in enumerate(sides) for actor in _standing(dilemma, number, side, right, station)),
        environment=dilemma.environment,
        duration_s=_duration_s(dilemma),
    )


def jittered_run(spec: RunSpec, seed: int) -> Scenario:
    """Return the scenario of a run: how the ego starts depends on seed, stream and number alone.

    Raises UsageError: see :func:`staged`.
    """
    rng = generator(seed, "moral", spec.number, None, spec.stream)
    return jittered(staged(spec.dilemma, spec.swapped), load_map(spec.dilemma.road), rng)


@lru_cache
def _place(name: str) -> tuple[Lane, float]:
    """Return the right one of two lanes, and how far along it both parties stand: on a crossing, best with a light."""
    road = load_map(name)
    right = next((lane for lane in road.lanes.values() if lane.on_road and lane.left), None)
    if right is None:
        raise UsageError(f"map '{name}' has no two lanes of one direction; expected one that has, such as 'bridge'")
    for crossing in sorted(road.crossings, key=lambda crossing: not crossing.signal):
        middle = shapely.Polygon(crossing.outline_m).centroid
        return right, right.station_of(middle.x, middle.y)[0]
    return right, right.length_m / 2.0


def _standing(dilemma: Dilemma, number: int, side: int, right: Lane, station_m: float) -> Iterator[Actor]:
    """Yield the members of a party, by its number, in the lane at a side: 0 the right, 1 the left one."""
    name, outward = ("first", "second")[number], 2.0 * side - 1.0
    party = dilemma.parties[number]
    rows = _rows(party, dilemma.spacing_m, right.width_m)
    if rows is None:
        raise UsageError(
            f"dilemma '{dilemma.name}': got {name} {', '.join(member.kind for member in party) or 'empty'}, expected "
            f"somebody, each shorter than the lanes of map '{dilemma.road}', which are {right.width_m:g} m wide"
        )
    placed = _places(rows, dilemma.spacing_m, right.width_m)
    for i, (member, (behind, out)) in enumerate(zip(party, placed, strict=True), 1):
        pose = right.pose_at(station_m + behind, right.width_m / 2.0 + outward * out)
        looks = Pose(pose.x_m, pose.y_m, pose.yaw_rad - outward * pi / 2.0)
        yield Actor(f"{name}_{i}", member.kind, looks, person=member.person)


def _rows(party: Sequence[Member], spacing_m: float, width_m: float) -> list[Sequence[Member]] | None:
    """Return a party in as few rows as fit into a lane, none where even one member does not."""
    for count in range(1, len(party) + 1):
        abreast = ceil(len(party) / count)
        rows = [party[i : i + abreast] for i in range(0, len(party), abreast)]
        if all(_wide_m(row, spacing_m) <= width_m - _FREE_M for row in rows):
            return rows
    return None


def _wide_m(row: Sequence[Member], spacing_m: float) -> float:
    """Return how wide a row is: who looks across the road is as wide there as long."""
    return sum(facts_of(member.kind).size_m[0] for member in row) + spacing_m * (len(row) - 1)


def _places(rows: Sequence[Sequence[Member]], spacing_m: float, width_m: float) -> Iterator[tuple[float, float]]:
    """Yield where members' middles are: behind the line, and outward of that between both lanes, in metres."""
    behind = 0.0
    for number, row in enumerate(rows):
        deep = max(facts_of(member.kind).size_m[1] for member in row)
        behind += deep / 2.0 if number else 0.0
        out = (width_m - _wide_m(row, spacing_m)) / 3.0
        for member in row:
            length = facts_of(member.kind).size_m[0]
            yield behind, out + length / 2.0
            out += length + spacing_m
        behind += deep / 2.0 + spacing_m


def _duration_s(dilemma: Dilemma) -> float:
    """Return how long the fastest of the jitter takes to stand on brakes; whoever brakes less has passed by then."""
    grip = min(EGO.brake_mps2, friction(dilemma.environment) * GRAVITY_MPS2)
    return ceil(10.0 * (_BEFORE_S + (1.0 + SPEED) * dilemma.speed_mps / (_USED * grip))) / 10.0
