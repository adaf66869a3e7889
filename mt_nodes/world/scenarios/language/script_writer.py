# SPDX-License-Identifier: Apache-2.0
"""Writes a concrete scenario as a strict script of exactly that scenario."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Obstacle, Person, Pose, Scenario, Trigger
from mt_nodes.world.scenarios.language.formatting import WIDTH, format_script
from mt_nodes.world.scenarios.language.problems import ScenarioError
from mt_nodes.world.scenarios.language.scenario_builder import DURATION_S
from mt_nodes.world.scenarios.language.script_reading import read
from mt_nodes.world.scenarios.language.words import ANIMALS, EGOS, SHAPES, UNSAID

_KEYS = {
    "age_years": "age",
    "skin_tone": "skin",
    "compliance": "rule",
    "after_s": "after",
    "ego_within_m": "ego_within",
}
"""Attributes that the language calls otherwise."""
_FREE = ("status", "group")
"""Attributes that are any text."""


def script_of(scenario: Scenario, about: str = "") -> str:
    """Return a script with a single scenario that equals the given one: places by coordinates, headings from east.

    It is read back and compared before it is returned.
    ``about``: comment at its beginning.
    Raises UsageError: the language cannot express the scenario, or it is not playable; names the cause.
    """
    try:
        text = format_script(
            _comment(about) + "\n".join([*_Writer(scenario).statements(), *_claims(scenario)]), scenario.name
        )
    except ScenarioError as error:
        raise _unsayable(scenario, error.problems[0]) from error
    reading = read(text, scenario.name, strict=True)
    if reading.problems:
        raise _unsayable(scenario, reading.problems[0])
    (again,) = reading.scenarios
    if again.claims != scenario.claims:
        raise _unsayable(scenario, f"its claims: {'; '.join(claim.formula for claim in scenario.claims)}")
    for difference in _differences(scenario, replace(again, claims=scenario.claims), "scenario"):
        raise _unsayable(scenario, difference)
    return text


def _claims(scenario: Scenario) -> list[str]:
    """Return the statements of the claims about a scenario."""
    trace = [f"Trace t = EXE({scenario.name});"] if scenario.claims else []
    return [*trace, *(f"t |= {claim.formula};" for claim in scenario.claims)]


def _unsayable(scenario: Scenario, what: object) -> UsageError:
    return UsageError(f"scenario '{scenario.name}': got what the scenario language cannot say: {what}")


def _comment(about: str) -> str:
    lines = (part for line in about.splitlines() for part in textwrap.wrap(line, WIDTH))
    return "".join(f"// {line}\n" for line in lines)


class _Writer:
    """Writes the statements of one scenario; quotes words that are also names."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._names = {one.name for one in scenario.actors} | {one.name for one in scenario.obstacles} | {scenario.name}
        self._ego = next(name for name in ("ego", *(f"ego_{i}" for i in range(9999))) if name not in self._names)

    def statements(self) -> Iterator[str]:
        scenario = self._scenario
        yield f"{self._ego} = {self._av(scenario.ego)};"
        for actor in scenario.actors:
            yield f"{actor.name} = {self._actor(actor)};"
        for obstacle in scenario.obstacles:
            yield f"{obstacle.name} = {self._obstacle(obstacle)};"
        people, obstacles = [one.name for one in scenario.actors], [one.name for one in scenario.obstacles]
        parts = [f'load("{scenario.road}")', self._ego, "{}", _set(people), _set(obstacles)]
        more = list(self._more())
        parts += [_environment(scenario.environment), *([_set(more)] if more else [])]
        yield f"{scenario.name} = CreateScenario {{ {' '.join(f'{part};' for part in parts)} }};"

    def _more(self) -> Iterator[str]:
        for name, programme in self._scenario.signals.items():
            phases = (f"({self._word(colour)}, {_number(seconds)})" for colour, seconds in programme)
            yield f'Signal("{name}", {", ".join(phases)})'
        if self._scenario.duration_s != DURATION_S:
            yield f"Duration({_number(self._scenario.duration_s)})"

    def _word(self, word: str) -> str:
        return f'"{word}"' if word in self._names or not word.isidentifier() else word

    def _pose(self, pose: Pose) -> str:
        return f"{_place(pose.x_m, pose.y_m)}, {self._heading(pose)}"

    def _heading(self, pose: Pose) -> str:
        return f"{_number(pose.yaw_rad)} rad related to {self._word('EAST')}"

    def _av(self, ego: Ego) -> str:
        target = f"({self._pose(ego.target)})" if ego.target else ""
        model = min(EGOS, key=lambda name: len(_changed(ego.vehicle, EGOS[name])))
        kind = f"({self._word(model)})" if model != "car" else ""
        marks = {name: _number(value) for name, value in _changed(ego.vehicle, EGOS[model]).items()}
        return _call("AV", f"({self._pose(ego.start)}, {_number(ego.speed_mps)})", target, kind, _marked(marks))

    def _actor(self, actor: Actor) -> str:
        start = f"({self._pose(actor.start)}, {_number(actor.speed_mps)})"
        legs = [f"({_place(w.x_m, w.y_m)}, , {_number(w.speed_mps)})" for w in actor.waypoints]
        motion = f"Through({legs[0] if len(legs) == 1 else _row(legs)})" if legs else ""
        marks = _marked(self._marks(actor))
        if actor.person is not None:
            return _call("Person", start, motion, "", "", marks)
        return _call("Animal" if actor.kind in ANIMALS else "Actor", start, motion, "", marks)

    def _marks(self, actor: Actor) -> dict[str, str]:
        """Return the attributes of an actor: the kind, and everything that differs from the defaults."""
        person = actor.person or Person()
        marks = {"kind": self._word(actor.kind)}
        for name, value in {**_changed(person, Person()), **_changed(actor.trigger, Trigger())}.items():
            marks[_KEYS.get(name, name)] = f'"{value}"' if name in _FREE else self._value(value)
        if actor.kind == "wheelchair_user" and actor.person is not None and not person.mobility:
            marks["mobility"] = self._word(UNSAID)
        if actor.size_m is not None:
            marks["size"] = _row(map(_number, actor.size_m))
        if actor.mass_kg is not None:
            marks["mass"] = _number(actor.mass_kg)
        if actor.tone != Actor.tone:
            marks["tone"] = _number(actor.tone)
        if actor.obeys_signals != (person.compliance == "crossing_on_green"):
            marks["obeys_signals"] = self._word("yes" if actor.obeys_signals else "no")
        return marks

    def _value(self, value: str | float) -> str:
        return self._word(value) if isinstance(value, str) else _number(value)

    def _obstacle(self, one: Obstacle) -> str:
        measures = map(_number, one.size_m[: SHAPES.get(one.shape)])
        shape = _row((self._word(one.shape), *measures))
        return _call("Obstacle", _place(one.pose.x_m, one.pose.y_m), shape, self._heading(one.pose))


def _number(value: float) -> str:
    return repr(value if isinstance(value, int) else float(value))


def _row(parts: Iterable[str]) -> str:
    return f"({', '.join(parts)})"


def _set(parts: Iterable[str]) -> str:
    return f"{{{', '.join(parts)}}}"


def _place(x_m: float, y_m: float) -> str:
    return _row((_number(x_m), _number(y_m)))


def _call(word: str, *slots: str) -> str:
    """Return a constructor with its slots; trailing empty ones are left out."""
    return f"{word}({', '.join(slots).rstrip(', ')})"


def _marked(marks: dict[str, str]) -> str:
    return _set(f"{key}: {value}" for key, value in marks.items()) if marks else ""


def _environment(environment: Environment) -> str:
    changed = _changed(environment, Environment())
    if not changed:
        return "{}"
    hour = changed.pop("hour", Environment.hour)
    return f"Environment({_time(hour)}, {_marked({name: _number(value) for name, value in changed.items()})})"


def _time(hour: float) -> str:
    """Return hours and minutes if exact, else hours."""
    minutes = round((hour - int(hour)) * 60.0)
    exact = hour < 24.0 and minutes < 60 and int(hour) + minutes / 60.0 == hour
    return f"{int(hour)}:{minutes:02d}" if exact else f"Hours({_number(hour)})"


def _changed(got: Any, usual: Any) -> dict[str, Any]:
    """Return the fields of plain data that differ from the defaults."""
    both = ((each.name, getattr(got, each.name), getattr(usual, each.name)) for each in fields(got))
    return {name: value for name, value, other in both if value != other}


def _differences(expected: Any, got: Any, where: str) -> Iterator[str]:
    """Yield each place at which two pieces of plain data differ."""
    if is_dataclass(expected) and type(expected) is type(got):
        for each in fields(expected):
            yield from _differences(getattr(expected, each.name), getattr(got, each.name), f"{where}.{each.name}")
    elif isinstance(expected, tuple) and isinstance(got, tuple) and len(expected) == len(got):
        for number, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from _differences(one, other, f"{where}.{getattr(one, 'name', number)}")
    elif expected != got:
        yield f"{where} is {expected!r}, and would be read as {got!r}"
