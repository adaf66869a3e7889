# SPDX-License-Identifier: Apache-2.0
"""Converters from written values to the contents of slots, with errors that say what is expected."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from mt_nodes.base.errors import suggest
from mt_nodes.world.scenarios.language.problems import Problem, ValueRefusal
from mt_nodes.world.scenarios.language.values import (
    AttributeValues,
    Coordinate,
    Heading,
    Hours,
    Item,
    LanePlace,
    Looks,
    Members,
    Motion,
    Participant,
    Place,
    RoadValue,
    Solid,
    State,
    Values,
    Word,
    described,
)
from mt_nodes.world.scenarios.language.words import COLOURS, EGOS, LEVELS, LIGHTS, PEOPLE, SHAPES, VEHICLES, WEATHER

_T = TypeVar("_T")
FASTEST_MPS = 100.0
"""Faster is taken for a slip: 360 km/h."""


def refused(item: Item, expected: str, hint: str = "") -> ValueRefusal:
    """Return the error with what was got and what was expected."""
    unknown = item.data.unknown if isinstance(item.data, Word) else ""
    return ValueRefusal(Problem(item.at, described(item.data), expected, hint or unknown))


def number(item: Item) -> float:
    """Return a number."""
    if not isinstance(item.data, float):
        raise refused(item, "a number")
    return item.data


def within(item: Item, low: float, high: float, what: str, unit: str = "") -> float:
    """Return a number within inclusive bounds."""
    value = item.data
    if not isinstance(value, float) or not low <= value <= high:
        raise refused(item, f"{what} of {low:g} to {high:g}{unit and ' ' + unit}")
    return value


def text(item: Item) -> str:
    """Return a text; a word counts as one."""
    if isinstance(item.data, Word) and not item.data.unknown:
        return item.data.name
    if not isinstance(item.data, str):
        raise refused(item, 'a text in "quotes"')
    return item.data


def word(item: Item, known: Collection[str], what: str) -> str:
    """Return one of some words, written with or without quotes."""
    got = item.data.name if isinstance(item.data, Word) else item.data
    if not isinstance(got, str) or got not in known:
        hint = suggest(got, known) if isinstance(got, str) else f"known: {', '.join(sorted(known))}"
        raise refused(item, what, hint)
    return got


def place(item: Item) -> Place:
    """Return a position."""
    data = item.data
    if isinstance(data, Coordinate | LanePlace):
        return data
    if isinstance(data, Values) and len(data.items) in (2, 3) and all(isinstance(i.data, float) for i in data.items):
        return Coordinate(data.items[0].data, data.items[1].data)
    if isinstance(data, Values) and len(data.items) == 1:  # brackets around it
        return place(data.items[0])
    raise refused(item, 'a position, as (10.0, -2.5) or "lane_1" -> 20.0')


def heading(item: Item) -> Heading:
    """Return a heading."""
    if isinstance(item.data, Values) and len(item.data.items) == 1:
        return heading(item.data.items[0])
    if not isinstance(item.data, Heading):
        raise refused(item, "a heading, as 90 deg", "an angle needs its unit" if isinstance(item.data, float) else "")
    return item.data


def state(item: Item) -> State:
    """Return a state: a position, optionally followed by a heading and a speed."""
    data = item.data
    if isinstance(data, State):
        return data
    if isinstance(data, Values) and data.items and not fits(place, item):
        return _state(item, data.items)
    if fits(place, item):
        return State(place(item))
    raise refused(item, "a state: (position, heading, speed)")


def _state(item: Item, parts: tuple[Item, ...]) -> State:
    if len(parts) > 3:
        raise refused(item, "at most a position, a heading and a speed")
    if len(parts) == 1 and isinstance(parts[0].data, State | Values):
        return state(parts[0])
    where = place(parts[0])
    facing = heading(parts[1]) if len(parts) > 1 and parts[1].data is not None else None
    speed = (
        within(parts[2], 0.0, FASTEST_MPS, "a speed", "m/s") if len(parts) > 2 and parts[2].data is not None else None
    )
    return State(where, facing, speed)


def states(item: Item) -> tuple[State, ...]:
    """Return a list of states in brackets; of one only, further brackets do not matter."""
    if isinstance(item.data, Values) and item.data.items and not (fits(state, item) or _of_one_state(item.data)):
        return tuple(state(part) for part in item.data.items)
    return (state(item),)


def _of_one_state(row: Values) -> bool:
    """Whether a row, right or wrong, is no list of states: a speed, a heading or an empty slot stands in it."""
    return any(part.data is None or isinstance(part.data, float | Heading) for part in row.items)


def motion(item: Item) -> Motion:
    """Return a motion."""
    if not isinstance(item.data, Motion):
        raise refused(item, "a motion: Waypoint(states) or Uniform(state)")
    return item.data


def colour(item: Item) -> float:
    """Return the tone of a colour, 0 to 1: its luma by the weights of ITU-R BT.601."""
    data = item.data
    if isinstance(data, Values) and len(data.items) == 3:
        rgb = tuple(within(part, 0.0, 255.0, "a colour's part") for part in data.items)
    else:
        rgb = COLOURS[word(item, COLOURS, "a colour")]
    return float(round((0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]) / 255.0, 6))


def _inside(item: Item) -> tuple[Item, ...]:
    """Return the parts of a type: those in brackets, or the value alone."""
    return item.data.items if isinstance(item.data, Values) and item.data.items else (item,)


def vehicle_type(item: Item) -> Looks:
    """Return the type of a vehicle: a kind or a model, and a colour if it is said."""
    parts = _inside(item)
    if isinstance(item.data, Looks):
        return item.data
    if len(parts) > 2:
        raise refused(item, "a vehicle's type: (kind, colour)")
    if len(parts) == 1 and isinstance(parts[0].data, Values | Looks):
        return vehicle_type(parts[0])
    model = word(parts[0], VEHICLES, "a kind or model of vehicle")
    return Looks(VEHICLES[model], model, tone=colour(parts[1]) if len(parts) > 1 else None)


def ego_type(item: Item) -> Looks:
    """Return the type of the ego."""
    looks = vehicle_type(item)
    if looks.model not in EGOS:
        raise refused(item, "a kind of car that the ego can be", f"known: {', '.join(sorted(EGOS))}")
    return looks


def person_type(item: Item) -> Looks:
    """Return the type of a pedestrian: a model, or height and colour."""
    parts = _inside(item)
    if isinstance(item.data, Looks):
        return item.data
    if len(parts) == 1 and isinstance(parts[0].data, Values | Looks):
        return person_type(parts[0])
    if len(parts) == 1 and not isinstance(parts[0].data, float):
        return Looks(model=word(parts[0], PEOPLE, "a model of pedestrian"))
    if len(parts) > 2:
        raise refused(item, "a pedestrian's type: (height, colour) or a model")
    height = within(parts[0], 0.4, 2.5, "a height", "m")
    return Looks(height_m=height, tone=colour(parts[1]) if len(parts) > 1 else None)


def solid(item: Item) -> Solid:
    """Return the shape of an obstacle; the measure of a sphere is its diameter."""
    if isinstance(item.data, Solid):
        return item.data
    parts = _inside(item)
    shape = word(parts[0], SHAPES, "a shape")
    if len(parts) != 1 + SHAPES[shape]:
        raise refused(item, f"{SHAPES[shape]} measure{'s' * (SHAPES[shape] > 1)} of a {shape}")
    measures = [within(part, 0.01, 50.0, "a measure", "m") for part in parts[1:]]
    length, width, height = measures * 3 if len(measures) == 1 else measures
    return Solid(shape, (length, width, height))


def hours(item: Item) -> Hours:
    """Return a time of day."""
    if not isinstance(item.data, Hours):
        raise refused(item, "a time of day, as 9:30")
    return item.data


def weather(item: Item) -> dict[str, float]:
    """Return numbers of 0 to 1 by kind of weather."""
    if not isinstance(item.data, AttributeValues):
        if isinstance(item.data, Members) and not item.data.items:
            return {}
        raise refused(item, "weather, as {rain: 0.5, fog: light}")
    return each(item.data, _weather)


def _weather(key: str, part: Item) -> float:
    if key not in WEATHER:
        raise ValueRefusal(Problem(part.at, f"'{key}'", "a kind of weather", suggest(key, WEATHER)))
    level = part.data.name if isinstance(part.data, Word) else ""
    return LEVELS[level] if level in LEVELS else within(part, 0.0, 1.0, "light, middle, heavy or a number")


def each(marked: AttributeValues, make: Callable[[str, Item], _T]) -> dict[str, _T]:
    """Return what is made of each attribute, or raise with all that is wrong with any."""
    found: dict[str, _T] = {}
    problems: list[Problem] = []
    for key, part in marked.pairs.items():
        try:
            found[key] = make(key, part)
        except ValueRefusal as refusal:
            problems += refusal.problems
    if problems:
        raise ValueRefusal(*problems)
    return found


def road(item: Item) -> RoadValue:
    """Return a map."""
    if not isinstance(item.data, RoadValue):
        raise refused(item, 'a map, as load("straight")')
    return item.data


def marked(item: Item) -> AttributeValues:
    """Return attributes."""
    if not isinstance(item.data, AttributeValues):
        raise refused(item, "attributes, as {age: 7}")
    return item.data


def phase(item: Item) -> tuple[str, float]:
    """Return a colour of a traffic light and how long it shines."""
    if not isinstance(item.data, Values) or len(item.data.items) != 2:
        raise refused(item, "a colour and its seconds, as (red, 20)")
    shown_s = within(item.data.items[1], 0.1, 1e4, "a time", "s")
    return word(item.data.items[0], LIGHTS, "a light's colour"), shown_s


def member(item: Item) -> Participant:
    """Return one person, of whom a group has several."""
    if not isinstance(item.data, Participant) or item.data.maker not in ("Person", "Pedestrian"):
        raise refused(item, "a Person or Pedestrian")
    return item.data


def fits(make: Callable[[Item], Any], item: Item) -> bool:
    """Whether a value can be of a kind."""
    try:
        make(item)
    except ValueRefusal:
        return False
    return True
