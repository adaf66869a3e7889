# SPDX-License-Identifier: Apache-2.0
"""Constructors of the language, ``AV(…)``, ``Person(…)`` …: their slots, and how they make values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.scenario import Vehicle
from mt_nodes.world.scenarios.language import slots
from mt_nodes.world.scenarios.language.problems import Problem, Span, ValueRefusal
from mt_nodes.world.scenarios.language.values import (
    AttributeValues,
    Coordinate,
    Duration,
    Ego,
    Group,
    Hours,
    Item,
    Looks,
    Motion,
    ObstacleValue,
    Participant,
    Programme,
    RoadValue,
    Solid,
    Surroundings,
)
from mt_nodes.world.scenarios.language.words import ATTRIBUTES, EGOS

CROWD = 200
"""No group has more people."""


@dataclass(frozen=True)
class Slot:
    """A slot: its name, the kind of value, and whether it may be empty."""

    name: str
    kind: str
    needed: bool = False


@dataclass(frozen=True)
class Function:
    """A constructor.

    ``make``: from its place and the slots' values by name (None if empty). ``more``: the last slot takes any number of
    values, as a tuple. strict: whether it is published; else it is our addition.
    """

    slots: tuple[Slot, ...]
    make: Callable[[Span, Mapping[str, Any]], Any]
    about: str
    more: bool = False
    published: bool = True


_MARKED = Slot("attributes", "Attributes")
_ACTOR = (Slot("start", "State", True), Slot("motion", "Motion"), Slot("target", "State"))


def _participant(maker: str) -> Callable[[Span, Mapping[str, Any]], Participant]:
    def make(at: Span, slot: Mapping[str, Any]) -> Participant:
        marked = attributes(slot["attributes"], maker)
        if maker == "Actor" and "kind" not in marked:
            raise ValueRefusal(Problem(at, "an Actor without a kind", "{kind: …} among its attributes"))
        looks = slot.get("type") or Looks()
        return Participant(at, maker, slot["start"], slot["motion"], slot["target"], looks, marked)

    return make


def _ego(at: Span, slot: Mapping[str, Any]) -> Ego:
    own = EGOS[slot["type"].model] if slot["type"] else Vehicle()
    return Ego(at, slot["start"], slot["target"], replace(own, **attributes(slot["attributes"], "AV")))


def _group(at: Span, slot: Mapping[str, Any]) -> Group:
    count = slot["count"]
    if count != int(count) or not 1 <= count <= CROWD:
        raise ValueRefusal(Problem(at, f"{count:g} people", f"a whole number of 1 to {CROWD}"))
    return Group(at, int(count), slot["person"], attributes(slot["attributes"], "Group").get("spacing", 0.8))


def _obstacle(at: Span, slot: Mapping[str, Any]) -> ObstacleValue:
    return ObstacleValue(at, slot["position"], slot["shape"] or Solid("box", (1.0, 1.0, 1.0)), slot["heading"])


def _environment(at: Span, slot: Mapping[str, Any]) -> Surroundings:
    return Surroundings(slot["time"].hours if slot["time"] else 12.0, slot["weather"] or {})


def _hours(at: Span, slot: Mapping[str, Any]) -> Hours:
    return Hours(slots.within(Item(slot["hours"], at), 0.0, 24.0, "a time of day", "hours"))


def _coordinate(frame: str) -> Callable[[Span, Mapping[str, Any]], Coordinate]:
    return lambda at, slot: Coordinate(slot["x"], slot["y"], frame)


def _wgs84(at: Span, slot: Mapping[str, Any]) -> Coordinate:
    raise ValueRefusal(Problem(at, "WGS84 coordinates", "ENU ones", "the maps have no geographic origin"))


def _random(at: Span, slot: Mapping[str, Any]) -> Motion:
    raise ValueRefusal(
        Problem(at, "the motion Random", "Uniform or Waypoint", "draw its places: Waypoint with range(…)")
    )


def _uniform(at: Span, slot: Mapping[str, Any]) -> Motion:
    return Motion("uniform", (slot["state"],))


def _waypoints(at: Span, slot: Mapping[str, Any]) -> Motion:
    return Motion("waypoints", slot["states"])


def _legs(at: Span, slot: Mapping[str, Any]) -> Motion:
    return Motion("legs", slot["states"])


def _duration(at: Span, slot: Mapping[str, Any]) -> Duration:
    return Duration(slots.within(Item(slot["seconds"], at), 0.1, 3600.0, "a duration", "s"))


_METRES = (Slot("x", "Number", True), Slot("y", "Number", True), Slot("z", "Number"))
_WAYPOINT = Function((Slot("states", "States", True),), _waypoints, "moves from one state to the next")
_UNIFORM = Function(
    (Slot("state", "State", True),), _uniform, "moves with the state's speed, to its position if that is ahead"
)

FUNCTIONS = {
    "load": Function((Slot("name", "String", True),), lambda at, s: RoadValue(s["name"], at), "the map with this name"),
    "AV": Function(
        (Slot("start", "State", True), Slot("target", "State"), Slot("type", "EgoType"), _MARKED),
        _ego,
        "the ego vehicle; its position is the middle of its rear axle",
    ),
    "Vehicle": Function(
        (*_ACTOR, Slot("type", "VehicleType"), _MARKED),
        _participant("Vehicle"),
        "another vehicle; without a motion it follows its lane at its initial speed",
    ),
    "Pedestrian": Function(
        (*_ACTOR, Slot("type", "PedestrianType"), _MARKED),
        _participant("Pedestrian"),
        "a pedestrian; without a motion they walk straight on, over the crossing if they stand at one",
    ),
    "Person": Function(
        (*_ACTOR, Slot("type", "PedestrianType"), _MARKED),
        _participant("Person"),
        "same as Pedestrian, for scripts about attributes",
        published=False,
    ),
    "Animal": Function((*_ACTOR, _MARKED), _participant("Animal"), "an animal, by default a deer", published=False),
    "Actor": Function(
        (*_ACTOR, _MARKED),
        _participant("Actor"),
        "any moving object, of the given `kind`; it moves straight, regardless of lanes",
        published=False,
    ),
    "Group": Function(
        (Slot("count", "Number", True), Slot("person", "Person", True), _MARKED),
        _group,
        "copies of a person side by side, the first at that person's position",
        published=False,
    ),
    "Obstacle": Function(
        (Slot("position", "Position", True), Slot("shape", "Shape"), Slot("heading", "Heading")),
        _obstacle,
        "a static obstacle, by default a box; the heading is *ours*",
    ),
    "Environment": Function((Slot("time", "Time"), Slot("weather", "Weather")), _environment, "time and weather"),
    "Hours": Function(
        (Slot("hours", "Number", True),), _hours, "a time of day in hours since midnight", published=False
    ),
    "ENU": Function(
        _METRES, _coordinate("ENU"), "a position on the map, east and north; the height is that of the ground"
    ),
    "IMU": Function(_METRES, _coordinate("IMU"), "a position relative to the ego's start, ahead and to the left"),
    "WGS84": Function(_METRES, _wgs84, "refused: the maps have no geographic origin"),
    **dict.fromkeys(("Waypoint", "waypoint", "WP", "wp", "W", "w"), _WAYPOINT),
    **dict.fromkeys(("Uniform", "uniform", "U", "u"), _UNIFORM),
    "Through": Function(
        (Slot("states", "States", True),),
        _legs,
        "as Waypoint, but each state's speed applies on the way to it",
        published=False,
    ),
    "Random": Function(
        (Slot("state", "State"),), _random, "refused: draw the positions instead, as in Waypoint with range(…)"
    ),
    "Signal": Function(
        (Slot("name", "String", True), Slot("phases", "Phase", True)),
        lambda at, s: Programme(at, s["name"], s["phases"]),
        "the phases of a traffic light of the map, in order, from the beginning",
        more=True,
        published=False,
    ),
    "Duration": Function(
        (Slot("seconds", "Number", True),), _duration, "the maximum duration of the scenario", published=False
    ),
}


def attributes(marked: AttributeValues | None, maker: str) -> dict[str, Any]:
    """Return attributes of a constructed value, each of its own type.

    Raises Refused: an attribute is unknown there, or its value is not what it takes.
    """
    known = {key for key, attribute in ATTRIBUTES.items() if maker in attribute.of}

    def make(key: str, item: Item) -> Any:
        if key not in known:
            raise ValueRefusal(Problem(item.at, f"'{key}'", f"an attribute of {maker}", suggest(key, known)))
        return _attribute(key, item)

    return slots.each(marked, make) if marked else {}


def _attribute(key: str, item: Item) -> Any:
    attribute = ATTRIBUTES[key]
    if isinstance(attribute.takes, tuple):
        return slots.word(item, attribute.takes, f"a value of {key}")
    if attribute.takes == "text":
        return slots.text(item)
    if attribute.takes == "size":
        parts = getattr(item.data, "items", ())
        if len(parts) != 3:
            raise slots.refused(item, "length, width and height, as (0.5, 0.5, 1.2)")
        return tuple(slots.within(part, attribute.low, attribute.high, "a measure", "m") for part in parts)
    value = slots.within(item, attribute.low, attribute.high, f"a value of {key}", attribute.unit)
    if attribute.takes == "whole" and value != int(value):
        raise slots.refused(item, f"a whole number of {attribute.low:g} to {attribute.high:g}")
    return int(value) if attribute.takes == "whole" else value
