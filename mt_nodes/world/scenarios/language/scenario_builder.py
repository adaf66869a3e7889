# SPDX-License-Identifier: Apache-2.0
"""Builds a concrete scenario from a plot: coordinates, kinds, ways and sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.world.drive import scenario_checks
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.map_mirror import MIRRORED
from mt_nodes.world.drive.maps import MAPS, is_map, is_map_file, load_map
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Obstacle, Person, Pose, Scenario, Trigger, Waypoint
from mt_nodes.world.scenarios.language.places import Places, offset_left
from mt_nodes.world.scenarios.language.problems import Problem, Span, ValueRefusal
from mt_nodes.world.scenarios.language.values import Group, LanePlace, Participant, Plot, State, Surroundings
from mt_nodes.world.scenarios.language.words import PEOPLE, UNSAID

_BEYOND_M = 20.0

DURATION_S = 20.0
CHILD_YEARS, ELDERLY_YEARS = 13.0, 65.0
"""Who is younger is a child, who is as old or older elderly, as far as their mesh goes."""
_T = TypeVar("_T")


def build(plot: Plot, tell: Callable[[ValueRefusal], None], road: RoadMap | None = None) -> Scenario | None:
    """Return the scenario of a plot, or None after reporting every problem.

    ``tell``: receives each problem. ``road``: the map, instead of the one that the plot names.
    """
    road = road or _or_report(tell, partial(_road, plot))
    if road is None:
        return None
    places = Places(road, plot.ego)
    ego = _or_report(tell, partial(_ego, places))
    if ego is None:
        return None
    actors = _or_report(tell, partial(_actors, places, plot, tell))
    obstacles = _or_report(tell, lambda: tuple(_obstacles(places, plot)))
    if actors is None or obstacles is None:
        return None
    surroundings, duration = _environment(plot.surroundings), plot.duration_s or DURATION_S
    signals = {programme.signal: programme.phases for programme in plot.programmes}
    scenario = Scenario(plot.name, road.name, ego, actors, obstacles, surroundings, duration, signals)
    problems = scenario_checks.problems(scenario, road)
    for problem in problems:
        tell(ValueRefusal(_placed(problem, plot)))
    return None if problems else scenario


def _or_report(tell: Callable[[ValueRefusal], None], make: Callable[[], _T]) -> _T | None:
    try:
        return make()
    except ValueRefusal as refusal:
        tell(refusal)
        return None


def _road(plot: Plot) -> RoadMap:
    name = plot.road.name
    if is_map_file(name):
        return _road_of_file(name, plot)
    if not is_map(name.removesuffix(MIRRORED)):
        raise ValueRefusal(Problem(plot.road.at, f"the map '{name}'", "a map that is there", suggest(name, MAPS)))
    return load_map(name)


def _road_of_file(name: str, plot: Plot) -> RoadMap:
    try:
        return load_map(name)
    except UsageError as error:
        raise ValueRefusal(Problem(plot.road.at, f"the map '{name}'", f"one that can be read: {error}")) from error


def _ego(places: Places) -> Ego:
    ego = places.ego
    target = None if ego.target is None else places.pose(ego.target, ego.at, "AV")
    return Ego(places.ego_pose(), ego.start.speed_mps or 0.0, target, ego.vehicle)


def _actors(places: Places, plot: Plot, tell: Callable[[ValueRefusal], None]) -> tuple[Actor, ...] | None:
    duration = plot.duration_s or DURATION_S
    everybody = [one for member in plot.participants for one in _members(member)]
    actors = [_or_report(tell, partial(_actor, places, *one, duration)) for one in everybody]
    found = tuple(actor for actor in actors if actor is not None)
    return found if len(found) == len(actors) else None


def _members(one: Participant | Group) -> Iterator[tuple[Participant, float, str]]:
    """Yield the people of a group one by one: their model, their offset to the left, and their group."""
    if isinstance(one, Participant):
        yield one, 0.0, ""
        return
    for k in range(one.count):
        yield replace(one.member, name=f"{one.name}_{k + 1}", at=one.at), k * one.spacing_m, one.name


def _actor(places: Places, one: Participant, left_m: float, group: str, duration_s: float) -> Actor:
    own, kind = one.attributes, _kind(one)
    pose = offset_left(places.pose(one.start, one.at, one.maker), left_m)
    speed = one.start.speed_mps or 0.0
    if one.motion is not None and one.motion.manner == "uniform":
        speed = one.motion.states[0].speed_mps or speed
    follows_rule = "yes" if own.get("rule") == "crossing_on_green" else "no"
    return Actor(
        name=one.name,
        kind=kind,
        start=pose,
        speed_mps=speed,
        waypoints=tuple(way(places, one, pose, left_m, speed, duration_s)),
        trigger=Trigger(own.get("after", 0.0), own.get("ego_within"), own.get("ego_within_s")),
        size_m=own.get("size") or _size(kind, one.looks.height_m),
        mass_kg=own.get("mass"),
        tone=own.get("tone", 0.5 if one.looks.tone is None else one.looks.tone),
        obeys_signals=own.get("obeys_signals", follows_rule) == "yes",
        person=_person(one, kind, group),
    )


def _kind(one: Participant) -> str:
    """Return the mesh of a participant: as specified; else by species, type of vehicle, mobility and age."""
    own = one.attributes
    if "kind" in own:
        return str(own["kind"])
    if one.maker == "Animal":
        return str(own.get("species", "deer"))
    if one.maker == "Vehicle":
        return one.looks.kind or "car"
    if own.get("mobility") == "wheelchair":
        return "wheelchair_user"
    age = own.get("age", CHILD_YEARS)
    return "child" if age < CHILD_YEARS else "elderly" if age >= ELDERLY_YEARS else "adult"


def _person(one: Participant, kind: str, group: str) -> Person | None:
    """Return the attributes of a pedestrian."""
    if one.maker not in ("Pedestrian", "Person"):
        return None
    own = one.attributes
    mobility = own.get("mobility") or ("wheelchair" if kind == "wheelchair_user" else "")
    return Person(
        age_years=own.get("age"),
        gender=own.get("gender") or PEOPLE.get(one.looks.model, ""),
        skin_tone=own.get("skin"),
        mobility="" if mobility == UNSAID else mobility,
        build=own.get("build", ""),
        status=own.get("status", ""),
        compliance=own.get("rule", ""),
        group=own.get("group", group),
    )


def _size(kind: str, height_m: float | None) -> tuple[float, float, float] | None:
    """Return the dimensions of a kind, scaled to a height."""
    if height_m is None:
        return None
    length, width, height = facts_of(kind).size_m
    return length * height_m / height, width * height_m / height, height_m


def _obstacles(places: Places, plot: Plot) -> Iterator[Obstacle]:
    for one in plot.obstacles:
        pose = places.pose(State(one.place, one.heading), one.at, "Obstacle")
        yield Obstacle(one.name, one.solid.shape, pose, one.solid.size_m)


def _environment(surroundings: Surroundings) -> Environment:
    """Return time and weather; clouds follow from the sun if they are not specified."""
    weather = dict(surroundings.weather)
    sunny = weather.pop("sunny", None)
    if sunny is not None:
        weather.setdefault("cloudiness", 1.0 - sunny)
    return Environment(surroundings.hour, **weather)


def _placed(problem: scenario_checks.Problem, plot: Plot) -> Problem:
    """Return a problem of the scenario check with its place in the script."""
    part, _, rest = problem.where.partition(".")
    name = rest.partition(".")[0]
    spans: dict[str, Span] = {one.signal: one.at for one in plot.programmes} if part == "signals" else {}
    for one in (*plot.participants, *plot.obstacles):
        spans |= {one.name: one.at}
        if isinstance(one, Group):
            spans |= {f"{one.name}_{k + 1}": one.at for k in range(one.count)}
    at = plot.ego.at if part == "ego" else spans.get(name, plot.at)
    return Problem(at, f"{problem.where}: {problem.what.removeprefix('got ')}")


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
