# SPDX-License-Identifier: Apache-2.0
"""Values of a script; places and headings stay as written until a scenario names the map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mt_nodes.world.drive.scenario import Vehicle
from mt_nodes.world.scenarios.language.problems import Span


@dataclass(frozen=True)
class Item:
    """A value and its place; ``data`` is None for an empty slot."""

    data: Any
    at: Span


@dataclass(frozen=True)
class Word:
    """A word of the language, such as ``red``; ``unknown`` is the message for an unknown word."""

    name: str
    unknown: str = ""


@dataclass(frozen=True)
class TraceName:
    """The trace of a scenario, by that scenario's name, or what the keys in brackets select of it."""

    scenario: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Values:
    """Values in parentheses, interpreted by their slot."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class Members:
    """A set."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class AttributeValues:
    """Attributes by name."""

    pairs: Mapping[str, Item]


@dataclass(frozen=True)
class Hours:
    """A time of day, from midnight."""

    hours: float


@dataclass(frozen=True)
class Coordinate:
    """Metres in a frame: ``ENU`` (the map's) or ``IMU`` (forward, left of the ego's start)."""

    x_m: float
    y_m: float
    frame: str = "ENU"


@dataclass(frozen=True)
class LanePlace:
    """A place in the middle of a lane, by its distance from the lane's beginning."""

    lane: str
    station_m: float
    at: Span = field(compare=False)


Place = Coordinate | LanePlace


@dataclass(frozen=True)
class Heading:
    """An angle to the left of a reference: a place's lane, somebody, ``EGO``, ``EAST``; None: the present lane."""

    rad: float
    reference: LanePlace | Ego | Participant | str | None = None


@dataclass(frozen=True)
class State:
    """A place, a heading and a speed; None: not specified."""

    place: Place
    heading: Heading | None = None
    speed_mps: float | None = None


@dataclass(frozen=True)
class Motion:
    """A motion: ``uniform`` with a state's speed, by ``waypoints``, or in ``legs`` with a speed each."""

    manner: str
    states: tuple[State, ...]


@dataclass(frozen=True)
class Looks:
    """Appearance of a vehicle or person.

    Attributes:
        kind: of the catalogue of objects, empty if not specified. model: name in a table of models, or empty.
        height_m: of a person. tone: 0..1.
    """

    kind: str = ""
    model: str = ""
    height_m: float | None = None
    tone: float | None = None


@dataclass(frozen=True)
class Solid:
    """Shape and length, width, height of an obstacle."""

    shape: str
    size_m: tuple[float, float, float]


@dataclass(frozen=True)
class RoadValue:
    """A map by its name."""

    name: str
    at: Span = field(compare=False)


@dataclass(frozen=True)
class Ego:
    """The ego vehicle."""

    at: Span = field(compare=False)
    start: State
    target: State | None
    vehicle: Vehicle
    name: str = ""


@dataclass(frozen=True)
class Participant:
    """An actor; ``maker`` is its constructor: Vehicle, Pedestrian, Person, Animal, Actor."""

    at: Span = field(compare=False)
    maker: str
    start: State
    motion: Motion | None
    target: State | None
    looks: Looks
    attributes: Mapping[str, Any]
    name: str = ""


@dataclass(frozen=True)
class Group:
    """People like one, side by side."""

    at: Span = field(compare=False)
    count: int
    member: Participant
    spacing_m: float
    name: str = ""


@dataclass(frozen=True)
class ObstacleValue:
    """An obstacle; ``maker``: its name if it has no other."""

    maker: ClassVar[str] = "standing"
    at: Span = field(compare=False)
    place: Place
    solid: Solid
    heading: Heading | None = None
    name: str = ""


@dataclass(frozen=True)
class Surroundings:
    """Time of day and weather; weather that is not specified is none."""

    hour: float
    weather: Mapping[str, float]


@dataclass(frozen=True)
class Programme:
    """Colours of a traffic light and their durations, in turn."""

    at: Span = field(compare=False)
    signal: str
    phases: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Duration:
    """The longest duration of a scenario."""

    seconds: float


@dataclass(frozen=True)
class Plot:
    """A scenario before its places have coordinates on the map."""

    at: Span = field(compare=False)
    road: RoadValue
    ego: Ego
    participants: tuple[Participant | Group, ...]
    obstacles: tuple[ObstacleValue, ...]
    surroundings: Surroundings
    programmes: tuple[Programme, ...]
    duration_s: float | None
    name: str = ""


Named = Ego | Participant | Group | ObstacleValue | Plot


def named(data: Any, name: str) -> Any:
    """Return a value with a name; one with a name keeps it."""
    return replace(data, name=name) if isinstance(data, Named) and not data.name else data


def described(data: Any) -> str:
    """Return the name of a value in messages."""
    for types, call in _DESCRIPTIONS:
        if isinstance(data, types):
            return call(data)
    return "nothing"


_DESCRIPTIONS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (float, lambda d: f"the number {d:g}"),
    (str, lambda d: f'the text "{d}"'),
    (Word, lambda d: f"the unknown name '{d.name}'" if d.unknown else f"'{d.name}'"),
    (Values, lambda d: f"{len(d.items)} value{'s' * (len(d.items) != 1)} in brackets"),
    (Members, lambda _: "a set"),
    (AttributeValues, lambda _: "attributes"),
    (Hours, lambda _: "a time of day"),
    ((Coordinate, LanePlace), lambda _: "a position"),
    (Heading, lambda _: "a heading"),
    (State, lambda _: "a state"),
    (Motion, lambda _: "a motion"),
    (Looks, lambda _: "a type"),
    (Solid, lambda _: "a shape"),
    (RoadValue, lambda d: f"the map '{d.name}'"),
    (Ego, lambda _: "the ego"),
    (Participant, lambda d: f"a{'n' * (d.maker[0] in 'AEIOU')} {d.maker}"),
    (Group, lambda _: "a group"),
    (ObstacleValue, lambda _: "an obstacle"),
    (Surroundings, lambda _: "an environment"),
    (Programme, lambda _: "a signal"),
    (Duration, lambda _: "a duration"),
    (Plot, lambda _: "a scenario"),
)
