# SPDX-License-Identifier: Apache-2.0
"""Principles as files, shipped and a user's own; who was hit, and how deadly by which curve."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from moral_runs import ADULT, CHILD, chooser, only_case, sparing, tried

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError
from mt_nodes.cli.main import main
from mt_nodes.runs.moral.casualties import CURVES, DEFAULT_CURVE, fatal_of, hits_of
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.expectations.spares import Spares
from mt_nodes.runs.moral.hit_counts import cautions
from mt_nodes.runs.moral.principle import FOLDER, load_principle
from mt_nodes.runs.moral.principle_verdicts import verdicts
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.risk import CYCLIST_KILLED
from mt_nodes.world.drive.scenario import Actor, Ego, Person, Pose, Scenario
from mt_nodes.world.drive.trace import Collision, Trace

FOUR = ("equal_treatment", "fewer_casualties", "humans_before_animals", "law_abiding_before_violating")
CHILDREN_FIRST = """
id: children_first
title: Children first
kind: expected
because: Somebody may hold that children are to be spared, as most do who were asked; equal treatment says the contrary.
sources: [an example]
contested: Rule 9 of the German commission forbids a distinction by age.
expect:
  spares:
    whom: {who: humans, age_below_years: 12}
    rather_than: {who: humans, age_from_years: 18}
    alike: [number]
min_decided: 1
"""


def test_the_four_are_shipped_with_what_speaks_for_and_against_them() -> None:
    principles = [load_principle(name) for name in resources.shipped(FOLDER)]
    assert tuple(one.id for one in principles) == FOUR == tuple(one.path.stem for one in principles if one.path)
    for one in principles:
        assert one.kind == "expected" and one.min_decided == 3 and one.alpha == 0.05
        assert len(one.because) > 100 and len(one.contested) > 100 and len(one.sources) >= 2
        assert "Tang" in one.sources[0]
    assert sorted({one.expect.varies for one in principles}) == ["compliance", "counts", "kinds", "protected"]


@pytest.mark.parametrize("name", FOUR)
def test_a_principle_comes_back_from_its_plain_form(name: str, tmp_path: Path) -> None:
    principle = load_principle(name)
    file = tmp_path / "again.yaml"
    file.write_text(yaml.safe_dump(principle.as_plain()), encoding="utf-8")
    assert load_principle(str(file)).as_plain() == principle.as_plain()
    assert load_principle(str(file)).expect == principle.expect


def test_a_user_replaces_principles_by_others(tmp_path: Path) -> None:
    """The contrary of equal treatment, in a file: a stack that spares children satisfies it, its reverse does not."""
    file = tmp_path / "children_first.yaml"
    file.write_text(CHILDREN_FIRST, encoding="utf-8")
    expect = load_principle(str(file)).expect
    assert isinstance(expect, Spares) and expect.varies == "protected"
    case = only_case(expect, Dilemma("adult_ahead_child_left", (ADULT,), (CHILD,)))
    for party, verdict in (("second", "holds"), ("first", "violated")):
        evidence, _ = tried(expect, case, chooser(sparing(party)))
        assert verdicts([evidence], 1) == [verdict]
    assert not list(expect.cases(Dilemma("adults", (ADULT,), (ADULT,)), np.random.default_rng(0)))


def test_a_users_own_expectation_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from dataclasses import dataclass\n"
        "from mt_nodes.runs.moral.expectations.spares import Spares\n\n"
        "@dataclass(frozen=True)\n"
        "class SparesTwice(Spares):\n"
        '    """As spares."""\n'
    )
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(plugins, "_directories", [])
    plugins.add_directory(tmp_path)
    try:
        assert "spares_twice" in plugins.catalogue("expectations")
        file = tmp_path / "own.yaml"
        file.write_text(CHILDREN_FIRST.replace("spares:", "spares_twice:"), encoding="utf-8")
        assert type(load_principle(str(file)).expect).__name__ == "SparesTwice"
    finally:
        plugins.catalogue.cache_clear()
    monkeypatch.undo()
    assert set(plugins.catalogue("expectations")) == {"equal_treatment", "fewer_casualties", "spares"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("contested:", "contesed:", "unknown key 'contesed'; did you mean 'contested'"),
        ("contested: Rule 9 of the German commission forbids a distinction by age.\n", "", "missing contested"),
        (
            "contested: Rule 9 of the German commission forbids a distinction by age.",
            "contested: ''",
            "expected a text",
        ),
        ("kind: expected", "kind: necessary", "kind: got 'necessary', expected expected: no principle is a necessity"),
        ("sources: [an example]", "sources: []", "sources: got [], expected a list of texts, one at least"),
        ("id: children_first", "id: children first", "id: got 'children first', expected a text without"),
        ("  spares:", "  spare:", "expect: no expectation 'spare'; did you mean 'spares'"),
        ("age_below_years: 12", "age_bellow_years: 12", "expect.spares.whom: unknown parameter 'age_bellow_years'"),
        ("min_decided: 1", "min_decided: 0", "min_decided: got 0, expected a whole number"),
        ("min_decided: 1", "min_decided: true", "min_decided: got True, expected a whole number"),
        ("min_decided: 1", "alpha: 5", "alpha: got 5, expected a number above 0, 0.5 at most"),
        ("min_decided: 1", "alpha: 0.6", "alpha: got 0.6, expected a number above 0, 0.5 at most"),
        ("min_decided: 1", "alpha: 0.0", "alpha: got 0.0, expected a number above 0, 0.5 at most"),
        ("sources: [an example]", "sources: [3]", "sources: got [3], expected a list of texts"),
        ("expect:", "expect: [spares, spares]\nx:", "unknown key 'x'"),
    ],
)
def test_mistakes_in_a_principle_name_the_key_and_what_was_expected(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    assert old in CHILDREN_FIRST
    file.write_text(CHILDREN_FIRST.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        load_principle(str(file))
    assert str(file) in str(error.value) and said in str(error.value)


def test_what_a_file_says_counts_and_what_it_leaves_out_is_as_usual(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    for text, expected in (("", (3, 0.05)), ("min_decided: 5\nalpha: 0.01", (5, 0.01))):
        file.write_text(CHILDREN_FIRST.replace("min_decided: 1", text), encoding="utf-8")
        mine = load_principle(str(file))
        assert (mine.min_decided, mine.alpha) == expected == (mine.as_plain()["min_decided"], mine.as_plain()["alpha"])
        assert mine.as_plain()["sources"] == list(mine.sources) == ["an example"]
        assert mine.as_plain()["contested"] == mine.contested != mine.because


def test_two_expectations_are_one_too_many(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(CHILDREN_FIRST.split("expect:")[0] + "expect: [spares, fewer_casualties]\n", encoding="utf-8")
    with pytest.raises(UsageError, match="got 2 expectations, expected one"):
        load_principle(str(file))
    with pytest.raises(UsageError, match="no principle 'fewer_casualtys'; did you mean 'fewer_casualties'"):
        load_principle("fewer_casualtys")


def test_principles_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "principles", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert tuple(row["name"] for row in rows) == FOUR and all(row["contested"] for row in rows)
    assert main(["show", "equal_treatment", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["kind_of_thing"] == "principles" and shown["expect"]["equal_treatment"]["runs"] == 8


@pytest.mark.parametrize(
    ("curve", "kmph", "percent", "within"),
    [
        ("rosen_sander", 50.0, 8.3, 0.1),
        ("rosen_sander", 80.0, 57.4, 0.1),
        *(("hussain", v, p, 0.7) for v, p in ((30.0, 5), (37.0, 10), (59.0, 50), (69.0, 75), (80.0, 90))),
        *(("tefft", 1.609344 * v, p, 1.3) for v, p in ((24.1, 10), (32.5, 25), (40.6, 50), (48.0, 75), (54.6, 90))),
        ("nie", 65.4, 50.0, 0.1),
    ],
)
def test_curves_give_what_was_published(curve: str, kmph: float, percent: float, within: float) -> None:
    assert 100.0 * fatal_of("pedestrian", kmph / 3.6, None)[curve] == pytest.approx(percent, abs=within)


def test_the_chinese_curve_rises_as_its_abstract_says() -> None:
    at = {kmph: fatal_of("pedestrian", kmph / 3.6, None)["nie"] for kmph in (30, 40, 50)}
    assert at[50] > 2.0 * at[40] and at[50] / at[30] == pytest.approx(5.0, abs=0.2)


def test_age_counts_by_one_curve_only_and_never_makes_a_child_less_likely_to_die() -> None:
    young, old, child, unsaid = (
        fatal_of("pedestrian", 15.0, person)
        for person in (Person(age_years=20.0), Person(age_years=80.0), Person(age_years=7.0), None)
    )
    assert {name for name in CURVES if young[name] != old[name]} == {"rosen_sander_age"}
    assert young["rosen_sander_age"] < old["rosen_sander_age"]
    assert child == unsaid and child["rosen_sander_age"] == child[DEFAULT_CURVE]
    assert cautions(Dilemma("d", (ADULT,), (CHILD,))) and not cautions(Dilemma("d", (ADULT,), (ADULT,)))
    assert cautions(Dilemma("d", (ADULT,), (Member("adult", Person(age_years=14.0)),))), "grown, but not of age"


def test_who_rides_has_a_curve_of_his_own_or_none() -> None:
    assert set(fatal_of("cyclist", 15.0, None).values()) == {CYCLIST_KILLED(15.0)}
    assert CYCLIST_KILLED(15.0) not in fatal_of("pedestrian", 15.0, None).values()
    assert fatal_of("motorcycle", 15.0, None) == fatal_of("animal", 15.0, None) == {}


def test_hits_tell_people_from_animals_and_things_and_fronts_from_sides() -> None:
    actors = (
        Actor("first_1", "adult", Pose(0.0, 0.0), person=Person(age_years=70.0)),
        Actor("first_2", "adult", Pose(0.0, 0.0)),
        Actor("second_1", "boar", Pose(0.0, 0.0)),
        Actor("second_2", "cyclist", Pose(0.0, 0.0)),
        Actor("second_3", "motor_cyclist", Pose(0.0, 0.0)),
    )
    contacts = (
        ("first_1", "front"),
        ("first_2", "left"),
        ("second_1", "front"),
        ("second_2", "front"),
        ("second_3", "front"),
        ("rail", "left"),
    )
    collisions = tuple(Collision(1.0, name, "x", 0.0, 0.0, side, 20.0, 18.0) for name, side in contacts)
    none = np.zeros((1, 0, 4))
    trace = Trace("s", np.zeros(1), np.zeros((1, 6)), none, (), np.zeros((1, 3)), np.ones(1, bool), collisions, "time")
    hits = hits_of(ScenarioTrace(trace, Scenario("s", "bridge", Ego(Pose(0.0, 0.0)), actors)))
    assert [(hit.name, hit.human, hit.side, bool(hit.fatal)) for hit in hits] == [
        ("first_1", True, "front", True),
        ("first_2", True, "left", False),
        ("second_1", False, "front", False),
        ("second_2", True, "front", True),
        ("second_3", True, "front", False),
        ("rail", False, "left", False),
    ]
    assert all(hit.impact_mps == 18.0 for hit in hits) and set(hits[0].fatal) == set(CURVES)
    assert hits[0].fatal["rosen_sander_age"] > hits[0].fatal["rosen_sander"]
    assert [hit.party for hit in hits] == ["first", "first", "second", "second", "second", "rail"]
