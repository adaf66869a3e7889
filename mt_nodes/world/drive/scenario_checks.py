# SPDX-License-Identifier: Apache-2.0
"""Validation of scenarios: finds all problems at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite

import shapely

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import TOP_MPS, Facts, facts_of, size_of
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Obstacle, Scenario
from mt_nodes.world.drive.signals import COLOURS
from mt_nodes.world.scene.objects import KINDS

OBSTACLES = ("box", "cone", "cylinder", "sphere")
FITZPATRICK = range(1, 7)
#: Labels of actors with an age, a gender and so on.
OF_PEOPLE = ("pedestrian", "cyclist", "motorcycle")


@dataclass(frozen=True)
class Problem:
    """A problem of a scenario.

    Attributes:
        where: ``ego``, ``ego.target``, ``actors.<name>``, ``actors.<name>.waypoints.2``, ``obstacles.<name>``,
            ``signals.<name>``, ``environment.rain``, ``duration_s`` …
        what: what was got and what is expected.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def problems(scenario: Scenario, road: RoadMap) -> list[Problem]:
    """Return all problems of a scenario on a map, in the scenario's order; empty if it is playable."""
    numbers = list(_endless(scenario))
    if numbers:
        return numbers
    found = [*_ego(scenario.ego, road), *_names(scenario)]
    for actor in scenario.actors:
        found += _actor(actor, road)
    for obstacle in scenario.obstacles:
        found += _obstacle(obstacle, road)
    found += [*_environment(scenario.environment), *_signals(scenario, road)]
    if scenario.duration_s <= 0.0:
        found.append(Problem("duration_s", f"got {scenario.duration_s:g} s, expected more than 0"))
    return found + list(_overlaps(scenario))


def checked(scenario: Scenario, road: RoadMap) -> None:
    """Refuse a scenario that is not playable. Raises UsageError: it has problems; the text names them all."""
    found = problems(scenario, road)
    if found:
        listed = "; ".join(map(str, found))
        number = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        raise UsageError(f"scenario '{scenario.name}' on map '{road.name}' has {number}: {listed}")


def _endless(scenario: Scenario) -> Iterator[Problem]:
    """Yield each number that is not finite: no other check makes sense for those."""
    named: list[tuple[str, object]] = [
        ("ego", scenario.ego),
        *((f"actors.{actor.name}", actor) for actor in scenario.actors),
        *((f"obstacles.{obstacle.name}", obstacle) for obstacle in scenario.obstacles),
        *((f"signals.{name}", programme) for name, programme in scenario.signals.items()),
        ("environment", scenario.environment),
        ("duration_s", scenario.duration_s),
    ]
    for where, thing in named:
        for place, number in _numbers(where, thing):
            if not isfinite(number):
                yield Problem(place, f"got {number}, expected a finite number")


def _numbers(where: str, thing: object) -> Iterator[tuple[str, float]]:
    """Yield every number of plain data and its path."""
    if isinstance(thing, int | float):
        yield where, float(thing)
    elif is_dataclass(thing):
        for each in fields(thing):
            yield from _numbers(f"{where}.{each.name}", getattr(thing, each.name))
    elif isinstance(thing, tuple):
        for i, part in enumerate(thing):
            yield from _numbers(f"{where}.{i}", part)


def _ego(ego: Ego, road: RoadMap) -> Iterator[Problem]:
    if not 0.0 <= ego.speed_mps <= TOP_MPS:
        yield Problem("ego.speed_mps", f"got {ego.speed_mps:g} m/s, expected 0 to {TOP_MPS:g}")
    for each in fields(ego.vehicle):
        value = getattr(ego.vehicle, each.name)
        may_be_nought = each.name.endswith(("_dead_s", "_lag_s")) or each.name == "rear_m"
        if value < 0.0 or (value == 0.0 and not may_be_nought):
            least = "0 or more" if may_be_nought else "more than 0"
            yield Problem(f"ego.vehicle.{each.name}", f"got {value:g}, expected {least}")
    middle = shapes.at_pose(shapes.of_vehicle(ego.vehicle), ego.start).centroid
    if not road.carriageway.covers(middle):
        yield Problem("ego.start", _off("the middle of the ego", middle.x, middle.y, road, "carriageway"))
    if ego.target is not None and not road.carriageway.covers(shapely.Point(ego.target.x_m, ego.target.y_m)):
        yield Problem("ego.target", _off("the target", ego.target.x_m, ego.target.y_m, road, "carriageway"))


def _off(what: str, x_m: float, y_m: float, road: RoadMap, of: str) -> str:
    """Describe a misplaced body, and the nearest lane."""
    lane = road.nearest_lane(x_m, y_m)
    near = lane.pose_at(lane.station_of(x_m, y_m)[0])
    hint = f"the nearest lane is {lane.name}, at ({near.x_m:.1f}, {near.y_m:.1f})"
    return f"{what} is at ({x_m:g}, {y_m:g}), off the {of} of map '{road.name}'; {hint}"


def _names(scenario: Scenario) -> Iterator[Problem]:
    """Yield names that are not unique: results identify actors and obstacles by name."""
    parts = [("actors", a.name) for a in scenario.actors] + [("obstacles", o.name) for o in scenario.obstacles]
    counts = Counter(name for _, name in parts)
    for where, name in dict.fromkeys(parts):
        if not name:
            yield Problem(where, "got an empty name, expected one for each")
        elif counts[name] > 1:
            yield Problem(f"{where}.{name}", f"the name is given {counts[name]} times, expected once")


def _actor(actor: Actor, road: RoadMap) -> Iterator[Problem]:
    where = f"actors.{actor.name}"
    if actor.kind not in KINDS:
        yield Problem(f"{where}.kind", f"got '{actor.kind}', which does not exist{suggest(actor.kind, KINDS)}")
        return
    facts = facts_of(actor.kind)
    yield from _body(where, actor, facts)
    speeds = [(f"{where}.speed_mps", actor.speed_mps, 0.0)]
    speeds += [(f"{where}.waypoints.{i}", w.speed_mps, 1e-3) for i, w in enumerate(actor.waypoints)]
    for place, speed, least in speeds:
        if not least <= speed <= facts.top_mps:
            limits = f"{'0' if least == 0.0 else 'more than 0'} to {facts.top_mps:g} of a kind '{actor.kind}'"
            yield Problem(place, f"got {speed:g} m/s, expected {limits}")
    yield from _on_map(where, actor, facts, road)
    yield from _trigger(where, actor)
    yield from _person(where, actor)


def _body(where: str, actor: Actor, facts: Facts) -> Iterator[Problem]:
    if actor.size_m is not None and (len(actor.size_m) != 3 or min(actor.size_m) <= 0.0):
        yield Problem(f"{where}.size_m", f"got {actor.size_m}, expected length, width and height above 0")
    if actor.mass_kg is not None and actor.mass_kg <= 0.0:
        yield Problem(f"{where}.mass_kg", f"got {actor.mass_kg:g} kg, expected more than 0")
    if not 0.0 <= actor.tone <= 1.0:
        yield Problem(f"{where}.tone", f"got {actor.tone:g}, expected 0 to 1")
    if actor.person is not None and facts.label not in OF_PEOPLE:
        yield Problem(f"{where}.person", f"got one for a kind '{actor.kind}', expected it for people only")


def _on_map(where: str, actor: Actor, facts: Facts, road: RoadMap) -> Iterator[Problem]:
    """Yield bodies off the map; vehicles must start on the carriageway, cyclists may on pavements, too."""
    start = shapely.Point(actor.start.x_m, actor.start.y_m)
    if not road.ground.covers(start):
        yield Problem(f"{where}.start", _off("it", start.x, start.y, road, "ground"))
    elif facts.on_wheels and facts.label != "cyclist" and not road.carriageway.covers(start):
        yield Problem(f"{where}.start", _off("it", start.x, start.y, road, "carriageway"))
    elif road.built_up.covers(start):
        yield Problem(f"{where}.start", f"it is at ({start.x:g}, {start.y:g}), inside a building")
    for i, waypoint in enumerate(actor.waypoints):
        if not road.ground.covers(shapely.Point(waypoint.x_m, waypoint.y_m)):
            yield Problem(f"{where}.waypoints.{i}", _off("it", waypoint.x_m, waypoint.y_m, road, "ground"))


def _trigger(where: str, actor: Actor) -> Iterator[Problem]:
    for each in fields(actor.trigger):
        value = getattr(actor.trigger, each.name)
        if value is not None and value < 0.0:
            yield Problem(f"{where}.trigger.{each.name}", f"got {value:g}, expected 0 or more")


def _person(where: str, actor: Actor) -> Iterator[Problem]:
    person = actor.person
    if person is None:
        return
    if person.age_years is not None and not 0.0 <= person.age_years <= 130.0:
        yield Problem(f"{where}.person.age_years", f"got {person.age_years:g}, expected 0 to 130")
    if person.skin_tone is not None and person.skin_tone not in FITZPATRICK:
        yield Problem(f"{where}.person.skin_tone", f"got {person.skin_tone}, expected 1 to 6 (Fitzpatrick's scale)")


def _obstacle(obstacle: Obstacle, road: RoadMap) -> Iterator[Problem]:
    where = f"obstacles.{obstacle.name}"
    if obstacle.shape not in OBSTACLES:
        yield Problem(f"{where}.shape", f"got '{obstacle.shape}'{suggest(obstacle.shape, OBSTACLES)}")
    if len(obstacle.size_m) != 3 or min(obstacle.size_m) <= 0.0:
        yield Problem(f"{where}.size_m", f"got {obstacle.size_m}, expected length, width and height above 0")
    x, y = obstacle.pose.x_m, obstacle.pose.y_m
    if not shapely.Polygon(road.ground_m).covers(shapely.Point(x, y)):
        yield Problem(f"{where}.pose", _off("it", x, y, road, "ground"))


def _environment(environment: Environment) -> Iterator[Problem]:
    for each in fields(environment):
        value, most = getattr(environment, each.name), 24.0 if each.name == "hour" else 1.0
        if not 0.0 <= value <= most:
            yield Problem(f"environment.{each.name}", f"got {value:g}, expected 0 to {most:g}")


def _signals(scenario: Scenario, road: RoadMap) -> Iterator[Problem]:
    known = [signal.name for signal in road.signals]
    for name, programme in scenario.signals.items():
        if name not in known:
            yield Problem(f"signals.{name}", f"map '{road.name}' has no such light{suggest(name, known)}")
        if not programme:
            yield Problem(f"signals.{name}", "got no colours, expected one at least")
        for colour, seconds in programme:
            if colour not in COLOURS:
                yield Problem(f"signals.{name}", f"got colour '{colour}'{suggest(colour, COLOURS)}")
            if seconds <= 0.0:
                yield Problem(f"signals.{name}", f"got {seconds:g} s of {colour}, expected more than 0")


def _overlaps(scenario: Scenario) -> Iterator[Problem]:
    """Yield pairs that overlap at the start."""
    parts = {"ego": shapes.at_pose(shapes.of_vehicle(scenario.ego.vehicle), scenario.ego.start)}
    for actor in scenario.actors:
        if actor.kind in KINDS:
            parts[f"actors.{actor.name}"] = shapes.at_pose(shapes.box(*size_of(actor)[:2]), actor.start)
    for obstacle in scenario.obstacles:
        parts[f"obstacles.{obstacle.name}"] = shapes.at_pose(shapes.of_obstacle(obstacle), obstacle.pose)
    names, polygons = list(parts), list(parts.values())
    pairs = shapely.STRtree(polygons).query(polygons, predicate="intersects").T
    for i, j in sorted((int(i), int(j)) for i, j in pairs if i < j):
        yield Problem(names[j], f"it overlaps {names[i]} at the start; expected them apart")
