# SPDX-License-Identifier: Apache-2.0
"""Scenarios as scripts: what is written means the scenario again, to the last digit, or is refused by name."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario_texts import FOLDER, SHIPPED, actor, first, only, scene

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.moral.dilemma_stage import staged
from mt_nodes.runs.moral.pool import load_pool, published
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.scenario import (
    Actor,
    Ego,
    Environment,
    Obstacle,
    Person,
    Pose,
    Scenario,
    Trigger,
    Vehicle,
    Waypoint,
)
from mt_nodes.world.scenarios.language import format_script, load_scenarios, read, script_of
from mt_nodes.world.scenarios.language.words import ATTRIBUTES, BUILDS, EGOS, GENDERS, MOBILITIES, RULES

EGO_START = Ego(Pose(20.0, 0.0), 11.0)
PLAIN = Scenario("plain", "straight", EGO_START, (Actor("deer", "deer", Pose(60.0, 1.0)),))


def reread(scenario: Scenario) -> Scenario:
    """Return what the script of a scenario means, read strictly."""
    return only(script_of(scenario), strict=True)


@pytest.mark.parametrize("path", [*SHIPPED, *sorted((FOLDER / "good").glob("*.scenario"))])
def test_scripts_of_scenarios_mean_them_again(path: Path, tmp_path: Path) -> None:
    for scenario in load_scenarios(path, seed=3):
        text = script_of(scenario, f"Was {path.name}.")
        (tmp_path / "again.scenario").write_text(text, encoding="utf-8")
        assert load_scenarios(tmp_path / "again.scenario", strict=True) == (scenario,)
        assert text.startswith(f"// Was {path.name}.\n")
        assert format_script(text) == text


@pytest.mark.parametrize("swapped", [False, True])
def test_shipped_dilemmas_can_be_written(swapped: bool) -> None:
    for dilemma in (*published(), *load_pool()[::10]):
        scenario = staged(dilemma, swapped)
        assert reread(scenario) == scenario


KINDS = tuple(ATTRIBUTES["kind"].takes)
OF_PEOPLE = [kind for kind in KINDS if facts_of(kind).label in ("pedestrian", "cyclist", "motorcycle")]
WORDS_OF_THE_LANGUAGE = ("car", "ego", "EAST", "yes", "female", "range", "pi", "adult", "red", "box", "deer", "rad")
share, some = st.floats(0.0, 1.0), st.floats(0.0, 1e4)


@st.composite
def _people(draw: st.DrawFn) -> Person:
    text = st.text(st.characters(codec="utf-8", exclude_characters='"\n'), max_size=9)
    return Person(
        age_years=draw(st.none() | st.floats(0.0, 130.0)),
        gender=draw(st.sampled_from(("", *GENDERS))),
        skin_tone=draw(st.none() | st.integers(1, 6)),
        mobility=draw(st.sampled_from(("", *MOBILITIES[:-1]))),
        build=draw(st.sampled_from(("", *BUILDS))),
        status=draw(text),
        compliance=draw(st.sampled_from(("", *RULES))),
        group=draw(text),
    )


@st.composite
def _actors(draw: st.DrawFn, name: str, place: int) -> Actor:
    kind = draw(st.sampled_from(KINDS))
    start = Pose(60.0 + 14.0 * place + draw(share), draw(st.floats(-0.5, 3.0)), draw(st.floats(-7.0, 7.0)))
    speeds = st.floats(0.0, 12.0)
    ways = st.builds(Waypoint, st.floats(0.0, 200.0), st.floats(-4.0, 4.0), st.floats(0.1, 12.0))
    return Actor(
        name,
        kind,
        start,
        draw(speeds),
        tuple(draw(st.lists(ways, max_size=3))),
        Trigger(draw(some), draw(st.none() | some), draw(st.none() | some)),
        draw(st.none() | st.tuples(*[st.floats(0.01, 3.0)] * 3)),
        draw(st.none() | st.floats(0.1, 1e5)),
        draw(share),
        draw(st.booleans()),
        draw(_people()) if kind in OF_PEOPLE and draw(st.booleans()) else None,
    )


@st.composite
def _scenarios(draw: st.DrawFn) -> Scenario:
    names = draw(st.lists(st.sampled_from((*WORDS_OF_THE_LANGUAGE, *"abcdef")), min_size=2, max_size=7, unique=True))
    vehicle = draw(st.sampled_from(list(EGOS.values())))
    changed = draw(st.sampled_from([each.name for each in fields(Vehicle)]))
    vehicle = replace(vehicle, **{changed: getattr(vehicle, changed) * draw(st.floats(0.9, 1.1))})
    target = draw(st.none() | st.builds(Pose, st.floats(200.0, 300.0), st.floats(-1.0, 1.0), st.floats(-3.0, 3.0)))
    ego = Ego(replace(EGO_START.start, yaw_rad=draw(st.floats(-0.1, 0.1))), draw(st.floats(0.0, 70.0)), target, vehicle)
    shapes = st.sampled_from((("sphere", (0.7, 0.7, 0.7)), ("box", (1.0, 0.3, 2.0)), ("cone", (0.4, 0.5, 0.7))))
    solid = draw(shapes)
    obstacle = Obstacle(names[1], solid[0], Pose(40.0, draw(share), draw(st.floats(-4.0, 4.0))), solid[1])
    hour = draw(st.floats(0.0, 24.0) | st.integers(0, 1439).map(lambda minute: minute // 60 + minute % 60 / 60.0))
    return Scenario(
        names[0],
        draw(st.sampled_from(("straight", "straight_mirrored"))),
        ego,
        tuple(draw(_actors(name, place)) for place, name in enumerate(names[2:])),
        (obstacle,) if draw(st.booleans()) else (),
        Environment(hour, *(draw(share) for _ in range(5))),
        draw(st.floats(0.1, 3600.0)),
        {"walk": (("red", draw(st.floats(0.1, 100.0))), ("green", 3.0))} if draw(st.booleans()) else {},
    )


@settings(max_examples=25)
@given(_scenarios())
def test_any_scenario_that_can_be_said_survives(scenario: Scenario) -> None:
    if scenario.road == "straight_mirrored":
        actors = tuple(replace(one, start=replace(one.start, y_m=-one.start.y_m)) for one in scenario.actors)
        scenario = replace(scenario, actors=actors)
    assert reread(scenario) == scenario


def with_(**changes: Any) -> Scenario:
    """Return the plain scenario with something else about its actor, who is a woman unless said otherwise."""
    usual: dict[str, Any] = {"kind": "adult", "person": Person(gender="female")}
    return replace(PLAIN, actors=(replace(PLAIN.actors[0], **{**usual, **changes}),))


UNSAYABLE = [
    (replace(PLAIN, name="two words"), "two words"),
    (replace(PLAIN, name="deer"), "'deer' a second time"),
    (replace(PLAIN, road="nowhere"), "the map 'nowhere'"),
    (
        replace(PLAIN, obstacles=(Obstacle("o", "sphere", Pose(90.0, 0.0), (1.0, 1.0, 2.0)),)),
        "scenario.obstacles.o.size_m",
    ),
    (replace(PLAIN, duration_s=1e6), "duration"),
    (with_(person=Person(gender="woman")), "gender"),
    (with_(person=Person(status='a "fine" one')), "'fine'"),
    (with_(start=Pose(60.0, 99.0)), "actors.deer.start"),
    (with_(mass_kg=float("nan")), "nan"),
]


@pytest.mark.parametrize(("scenario", "what"), UNSAYABLE)
def test_what_cannot_be_said_is_refused_by_name(scenario: Scenario, what: str) -> None:
    with pytest.raises(UsageError, match=f"scenario '{scenario.name}'") as caught:
        script_of(scenario)
    assert what in str(caught.value)


def test_a_wheelchair_may_say_nothing_of_its_user() -> None:
    for person in (Person(), None):
        silent = with_(kind="wheelchair_user", person=person)
        assert reread(silent) == silent
    assert actor("Person((60, 1), , , , {kind: wheelchair_user})").person == Person(mobility="wheelchair")


# What the language got for it.


def test_each_leg_has_its_own_speed() -> None:
    one = actor("Actor(((60, 1), , 3), Through((((70, 1), , 2), ((80, 1), , 5))), , {kind: dog})")
    assert (one.kind, one.speed_mps, [w.speed_mps for w in one.waypoints]) == ("dog", 3.0, [2.0, 5.0])
    assert "a way" in str(first(scene("Actor(((60, 1), , 3), Through(((70, 1))), , {kind: dog})")))


def test_actors_go_straight_and_have_a_kind() -> None:
    assert actor('Actor(("lane_1" -> 60, , 3), , , {kind: car})').waypoints == ()
    assert actor('Vehicle(("lane_1" -> 60, , 3), , , (car))').waypoints != ()
    assert "an Actor without a kind" in str(first(scene("Actor((60, 1))")))


def test_obstacles_may_be_turned_and_hours_need_no_minutes() -> None:
    text = 'ego = AV(("lane_1" -> 20, , 8));\n' + (
        's = CreateScenario { load("straight"); ego; {}; {}; '
        "{Obstacle((60, 0), (box, 1, 2, 1), 0.25 rad related to EAST)}; Environment(Hours(9.3), {fog: 0.1}); };"
    )
    scenario = only(text, strict=True)
    assert (scenario.obstacles[0].pose.yaw_rad, scenario.environment.hour) == (0.25, 9.3)
    assert read(text.replace("9.3", "24.1")).problems
