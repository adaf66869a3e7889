# SPDX-License-Identifier: Apache-2.0
"""Builds a plot from the parts of ``CreateScenario``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mt_nodes.world.scenarios.language import slots
from mt_nodes.world.scenarios.language.problems import Edit, Findings, Problem, Repair, Span, ValueRefusal
from mt_nodes.world.scenarios.language.slot_binding import ElidedItems
from mt_nodes.world.scenarios.language.values import (
    Duration,
    Ego,
    Group,
    Item,
    Members,
    ObstacleValue,
    Participant,
    Plot,
    Programme,
    Surroundings,
)

PARTS = {
    "vehicles": "a set of Vehicle",
    "people": "a set of Pedestrian, Person, Animal, Actor and Group",
    "obstacles": "a set of Obstacle",
    "environment": "an Environment; `{}` is 12:00 and clear",
    "more": "a set of Signal and Duration (*ours*)",
}
"""The parts of a scenario after map and ego, in order; those left out at the end are empty."""
_ORDER = tuple(PARTS)


@dataclass
class _Parts:
    participants: list[Participant | Group] = field(default_factory=list)
    obstacles: list[ObstacleValue] = field(default_factory=list)
    surroundings: Surroundings = field(default_factory=lambda: Surroundings(12.0, {}))
    programmes: list[Programme] = field(default_factory=list)
    duration_s: float | None = None
    names: set[str] = field(default_factory=set)


def plot(at: Span, items: Sequence[Item], findings: Findings) -> Plot:
    """Return the scenario with the given parts.

    Raises Refused: parts are missing, out of order, or of the wrong kind.
    """
    if len(items) < 2:
        raise ValueRefusal(Problem(at, f"{len(items)} part{'s' * (len(items) != 1)}", "a map and an ego at least"))
    road, ego = slots.road(items[0]), items[1].data
    if not isinstance(ego, Ego):
        raise slots.refused(items[1], "the ego, made by AV(…)")
    parts, position = _Parts(), 0
    for item in items[2:]:
        position = _part(parts, item, position, findings)
    people = tuple(_named_by_kind([ego, *parts.participants, *parts.obstacles]))
    movers = tuple(one for one in people if isinstance(one, Participant | Group))
    obstacles = tuple(one for one in people if isinstance(one, ObstacleValue))
    programmes = tuple(parts.programmes)
    return Plot(at, road, ego, movers, obstacles, parts.surroundings, programmes, parts.duration_s)


def _part(parts: _Parts, item: Item, position: int, findings: Findings) -> int:
    """Add a part, and return the position of the next."""
    if isinstance(item.data, ElidedItems):
        problem = Problem(item.at, "'...'", "each part, or nothing after the last", "taken for empty parts")
        findings.repaired(Repair(problem, (Edit(item.at.start, item.at.end, ""),)))
        return position
    members = list(_members(item))
    sorts = {_sort(member) for member in members} if members else set()
    if len(sorts) > 1:
        raise ValueRefusal(Problem(item.at, f"{' and '.join(sorted(sorts))} in one set", "a set of each"))
    place = _ORDER.index(sorts.pop()) if sorts else position
    if place >= len(_ORDER) or position >= len(_ORDER):
        raise ValueRefusal(Problem(item.at, "one part too many", f"at most a map, an ego and {', '.join(_ORDER)}"))
    if place < position:
        raise ValueRefusal(
            Problem(item.at, f"{_ORDER[place]} after {_ORDER[position - 1]}", f"parts as {', '.join(_ORDER)}")
        )
    if place > position:
        _skipped(item, position, place, findings)
    for member in members:
        name = getattr(member.data, "name", "")
        if name in parts.names:
            raise ValueRefusal(Problem(member.at, f"'{name}' twice in one scenario", "everybody once"))
        parts.names |= {name} - {""}
        _take(parts, member.data)
    return place + 1


def _skipped(item: Item, position: int, place: int, findings: Findings) -> None:
    left_out = ", ".join(_ORDER[position:place])
    problem = Problem(item.at, _ORDER[place], f"{left_out} first", f"taken for empty: '{{}};' for each of {left_out}")
    findings.repaired(Repair(problem, (Edit(item.at.start, item.at.start, "{}; " * (place - position)),)))


def _members(item: Item) -> Iterator[Item]:
    """Yield the members of a part: of a set, or an environment, with nested sets flattened."""
    if item.data is None:
        return
    if not isinstance(item.data, Members):
        yield item
        return
    for member in item.data.items:
        yield from _members(member)


def _sort(item: Item) -> str:
    data = item.data
    if isinstance(data, Participant):
        return "vehicles" if data.maker == "Vehicle" else "people"
    for types, sort in (((Group,), "people"), ((ObstacleValue,), "obstacles"), ((Surroundings,), "environment")):
        if isinstance(data, types):
            return sort
    if isinstance(data, Programme | Duration):
        return "more"
    raise slots.refused(item, "what takes part in a scenario, in a set")


def _take(parts: _Parts, data: Any) -> None:
    if isinstance(data, Participant | Group):
        parts.participants.append(data)
    elif isinstance(data, ObstacleValue):
        parts.obstacles.append(data)
    elif isinstance(data, Surroundings):
        parts.surroundings = data
    elif isinstance(data, Programme):
        parts.programmes.append(data)
    elif isinstance(data, Duration):
        parts.duration_s = data.seconds


def _named_by_kind(people: Sequence[Any]) -> Iterator[Any]:
    """Name participants without a name by their kind and a number."""
    names: set[str] = {one.name for one in people}
    for one in people:
        if one.name or isinstance(one, Ego):
            yield one
            continue
        base = getattr(one, "maker", type(one).__name__).lower()
        name = next(f"{base}_{i}" for i in range(1, len(people) + 2) if f"{base}_{i}" not in names)
        names.add(name)
        yield replace(one, name=name)
