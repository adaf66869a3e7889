# SPDX-License-Identifier: Apache-2.0
"""Kinds of values, by their names in ``Kind name = value;`` and in slots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mt_nodes.world.scenarios.language import slots
from mt_nodes.world.scenarios.language.values import (
    Duration,
    Ego,
    Group,
    Item,
    ObstacleValue,
    Participant,
    Plot,
    Programme,
    Surroundings,
)


@dataclass(frozen=True)
class Kind:
    """A kind of value: its name, and its constructor from a value as written."""

    make: Callable[[Item], Any]
    about: str


_MAKERS = {
    Participant: "Vehicle, Pedestrian, Person, Animal or Actor",
    Group: "Group",
    ObstacleValue: "Obstacle",
    Ego: "AV",
}
_MAKERS |= {Surroundings: "Environment", Programme: "Signal", Duration: "Duration", Plot: "CreateScenario"}


def _is(kind: type) -> Callable[[Item], Any]:
    def make(item: Item) -> Any:
        if not isinstance(item.data, kind):
            raise slots.refused(item, f"what {_MAKERS[kind]} makes")
        return item.data

    return make


KINDS = {
    "Number": Kind(slots.number, "a number; metres, metres per second, seconds"),
    "String": Kind(slots.text, 'a text in "quotes"'),
    "Position": Kind(slots.place, '`(x, y)` east, north; `IMU(x, y)` ahead and left of the ego; `"lane" -> metres`'),
    "Heading": Kind(slots.heading, "an angle with its unit, `deg` or `rad`, and optionally `related to` a reference"),
    "State": Kind(slots.state, "`(position, heading, speed)`; the last two are optional"),
    "States": Kind(slots.states, "states in brackets, separated by commas"),
    "Motion": Kind(slots.motion, "`Uniform(state)` or `Waypoint(states)`"),
    "VehicleType": Kind(slots.vehicle_type, "`(kind, colour)`, a model or a kind alone"),
    "EgoType": Kind(slots.ego_type, "`(kind, colour)`, a model or a kind alone, among those of the ego"),
    "PedestrianType": Kind(slots.person_type, "`(height, colour)` or a model"),
    "Color": Kind(slots.colour, "a word, or red, green, blue in brackets, 0 to 255"),
    "Shape": Kind(slots.solid, "`(sphere, diameter)`, or `box`, `cone`, `cylinder` with length, width, height"),
    "Time": Kind(slots.hours, "hours and minutes, `9:30`, or `Hours(9.5)`"),
    "Weather": Kind(slots.weather, "`{rain: 0.5, fog: light}`, 0 to 1 or a word"),
    "Map": Kind(slots.road, '`load("name")`'),
    "Attributes": Kind(slots.marked, "`{key: value, …}`"),
    "Phase": Kind(slots.phase, "`(colour, seconds)`"),
    "Vehicle": Kind(_is(Participant), "a participant, made by `Vehicle`"),
    "Pedestrian": Kind(_is(Participant), "a participant, made by `Pedestrian`"),
    "Person": Kind(slots.member, "a participant, made by `Person` or `Pedestrian`"),
    "Animal": Kind(_is(Participant), "a participant, made by `Animal`"),
    "Actor": Kind(_is(Participant), "a participant, made by `Actor`"),
    "Group": Kind(_is(Group), "several people, made by `Group`"),
    "Obstacle": Kind(_is(ObstacleValue), "a static obstacle, made by `Obstacle`"),
    "AV": Kind(_is(Ego), "the ego vehicle, made by `AV`"),
    "Environment": Kind(_is(Surroundings), "made by `Environment`"),
    "Signal": Kind(_is(Programme), "made by `Signal`"),
    "Duration": Kind(_is(Duration), "made by `Duration`"),
    "Scenario": Kind(_is(Plot), "made by `CreateScenario`"),
}
"""Kinds of values by the name that stands in ``Kind name = value;``."""
