# SPDX-License-Identifier: Apache-2.0
"""Which relation a case is given: hard conditions, the least run first, the nearest of those, the same each time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rules import entry, index_by_letters, scene, some
from recordings import KITTI, needs_kitti

from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.rules.matching import CHOSEN, Choice, Matcher
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.parser import read_rule
from mt_nodes.rules.rule_sets import load_rule_set
from mt_nodes.rules.rule_store import Store
from mt_nodes.rules.scene import describe
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.statement_binding import edit_facts, gap
from mt_nodes.rules.store_entry import Entry
from mt_nodes.rules.validation import (
    Factor,
    Validation,
    logical_alignment,
    manipulation_verification,
    scenario_alignment,
)

#: One that applies to every scene in which the ego moves, several with one road, several with a condition.
MANY = [
    *(entry(element) for element in ("cyclist", "deer", "dog", "child", "senior")),
    *(entry(element, "crosswalk") for element in ("pedestrian", "senior", "child")),
    *(entry(element, "any_road", "speed_kmh > 50") for element in ("pedestrian", "livestock")),
    *(entry(element, "any_road", "not dark") for element in ("motorcyclist", "roller_skater")),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "rules.db", indexer=index_by_letters) as opened:
        yield opened


def reason(choice: Choice, index: int) -> str:
    return next(c.why for c in choice.candidates if c.index == index)


def test_the_nearest_of_those_that_apply_is_chosen_and_the_others_are_told_why(tmp_path: Path) -> None:
    with Store(tmp_path / "rules.db") as store:
        store.add(some())
        case = scene(("crosswalk",), speed_kmh=30.0, weather_clear=True, objects={"pedestrian": 2})
        choice = Matcher().choose(store, "case", case)
    assert choice.index == 3
    assert choice.why.startswith(CHOSEN)
    assert reason(choice, 1) == "'moving and speed_kmh > 50 and weather_clear' is false"
    assert reason(choice, 2) == "is for intersection, the case approaches crosswalk, any_road"
    assert reason(choice, 4) == "applies, but another that was run as often is nearer to the scene"
    assert choice.candidates[0].index == 3
    assert {c.index for c in choice.candidates} == {1, 2, 3, 4, 5}


def test_what_is_not_known_does_not_apply_and_says_what_is_missing(store: Store) -> None:
    store.add(some())
    choice = Matcher().choose(store, "case", scene(None, moving=None))
    assert choice.index is None
    assert [c.applies for c in choice.candidates] == [None] * 5
    assert "speed_kmh: nothing says it" in reason(choice, 1)
    assert "the road is not known" in reason(choice, 2)
    assert choice.why == "none of 5 relations applies; of 5 it is not known"


def test_no_behaviour_is_asked_of_an_ego_that_stands(store: Store) -> None:
    """The paper's failure: a green light says nothing to who has stopped."""
    store.add([entry("green_light", behaviour="keep_current"), entry("cyclist")])
    facts = {"path_clear": True, "has": frozenset()}
    assert Matcher().choose(store, "case", scene((), moving=False, **facts)).index is None
    assert Matcher().choose(store, "case", scene((), moving=True, **facts)).index is not None


def test_a_sign_binds_only_who_is_faster(store: Store) -> None:
    """The paper's other failure: a limit of 50 says nothing to who drives 30."""
    store.add([entry("speed_limit_sign")])
    matcher = Matcher(edit_facts=lambda one: {"sign_value_kmh": 50.0})
    assert matcher.choose(store, "case", scene((), speed_kmh=30.0)).index is None
    assert matcher.choose(store, "case", scene((), speed_kmh=60.0)).index == 1
    assert Matcher().choose(store, "case", scene((), speed_kmh=60.0)).index is None


def test_what_cannot_be_run_is_refused_whatever_the_scene(store: Store) -> None:
    """Nor is it asked what the change would be that cannot be made."""
    store.add([entry("cyclist"), entry("deer")])
    facts = {"cyclist": {"lead_gap_m": 5.0}}
    matcher = Matcher(
        refuse=lambda one: "no mesh" if one.statement.element == "deer" else "",
        edit_facts=lambda one: facts[one.statement.element],
    )
    choice = matcher.choose(store, "case", scene())
    assert choice.index == 1
    assert reason(choice, 2) == "cannot be run: no mesh"


def test_region_and_origin_narrow_the_choice(store: Store) -> None:
    store.add([entry("cyclist"), entry("deer", region="california"), entry("dog", origin="a-model")])
    for matcher, seen in (
        (Matcher(), {1, 2, 3}),
        (Matcher(region="germany"), {1, 3}),
        (Matcher(origins=("a-model",)), {3}),
    ):
        assert {c.index for c in matcher.choose(store, "case", scene()).candidates} == seen


def test_the_least_often_run_comes_before_the_nearest(store: Store) -> None:
    store.add([entry("cyclist"), entry("deer")])
    nearest, other = (c.index for c in Matcher().choose(store, "case", scene()).candidates)
    store.count([nearest, nearest])
    choice = Matcher().choose(store, "case", scene())
    assert choice.index == other
    assert reason(choice, nearest) == "applies, but was run 2 times, others less often"


@settings(max_examples=20)
@given(
    roads=st.sampled_from(((), ("crosswalk",), None)),
    speed=st.sampled_from((None, 30.0, 80.0)),
    dark=st.sampled_from((None, True, False)),
    seed=st.integers(0, 99),
)
def test_every_relation_that_applies_is_used_before_one_is_used_twice(
    tmp_path_factory: pytest.TempPathFactory,
    roads: tuple[str, ...] | None,
    speed: float | None,
    dark: bool | None,
    seed: int,
) -> None:
    path = tmp_path_factory.mktemp("matching") / "rules.db"
    case = scene(roads, speed_kmh=speed, dark=dark)
    with Store(path, indexer=index_by_letters) as store:
        store.add(MANY)
        matcher = Matcher(seed=seed)
        applies = {c.index for c in matcher.choose(store, "0", case).candidates if c.applies}
        assert len(applies) >= 5
        for lap in (1, 2):
            choices = matcher.plan(store, {f"{lap}-{i}": case for i in range(len(applies))})
            assert sorted(c.index or 0 for c in choices) == sorted(applies)
        assert {e.index: e.executions for e in store.entries()} == {
            e.index: 2 * (e.index in applies) for e in store.entries()
        }


def test_equals_are_drawn_by_the_seed_and_the_case_alone(store: Store) -> None:
    """Two regions say the same: nothing but the lot tells them apart."""
    store.add([entry("cyclist", region=f"land_{i}") for i in range(6)])
    by_case = [Matcher(seed=3).choose(store, f"case-{i}", scene()).index for i in range(30)]
    assert by_case == [Matcher(seed=3).choose(store, f"case-{i}", scene()).index for i in range(30)]
    assert by_case != [Matcher(seed=4).choose(store, f"case-{i}", scene()).index for i in range(30)]
    assert len(set(by_case)) == 6


def test_a_plan_is_counted_at_once_or_not_at_all(store: Store) -> None:
    store.add(MANY)

    def breaks(one: object) -> str:
        calls.append(one)
        if len(calls) > len(MANY):
            raise KeyboardInterrupt
        return ""

    calls: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        Matcher(refuse=breaks).plan(store, {"a": scene(), "b": scene()})
    assert {one.executions for one in store.entries()} == {0}
    used = Counter(c.index for c in Matcher().plan(store, {"a": scene(), "b": scene()}))
    assert used == Counter({one.index: one.executions for one in store.entries() if one.executions})


def test_choosing_from_few_looks_at_the_nearest_few_only(store: Store) -> None:
    store.add(MANY)
    choice = Matcher(limit=3).choose(store, "case", scene())
    assert len(choice.candidates) == 3
    assert [c.index for c in choice.candidates] == [
        c.index for c in Matcher().choose(store, "case", scene()).candidates[:3]
    ]


def test_a_choice_is_plain_data(store: Store) -> None:
    store.add(some())
    choice = Matcher(seed=5).choose(store, "case", scene((), has=frozenset({"deer"})))
    plain = json.loads(json.dumps(choice.as_plain()))
    assert (plain["case"], plain["seed"], plain["index"], plain["why"]) == ("case", 5, choice.index, choice.why)
    assert len(plain["candidates"]) == 5
    assert plain["scene"]["has"] == {"value": ["deer"], "source": "a test says so"}


def test_an_empty_store_gives_nothing(store: Store) -> None:
    assert Matcher().plan(store, {"case": scene()})[0].index is None


@needs_kitti
def test_the_recorded_drive_is_given_relations_of_the_shipped_rules(tmp_path: Path) -> None:
    """Of what nobody knows of that drive (roads, weather, lights), nothing is asked."""
    ontology, rules = load_ontology(), load_rule_set("germany")
    readings = [read_rule(rule.text, ontology, rule.id) for rule in rules.rules.values()]
    recorded = list(BagSource(KITTI, require=("camera", "lidar"), limit=3))
    matcher = Matcher(
        region="germany",
        refuse=lambda one: gap(one.statement, ontology, one.region),
        edit_facts=lambda one: edit_facts(one.statement, ontology, one.region),
    )
    with Store(tmp_path / "rules.db") as store:
        store.add(Entry(said, "germany") for reading in readings for said in reading.statements)
        case = describe(recorded)
        choices = matcher.plan(store, {f"case-{i}": case for i in range(4)})
        chosen = [one for one in store.entries() if one.executions]
    assert len(chosen) == len(choices) == 4
    assert {one.statement.road for one in chosen} == {"any_road"}
    unclear = [c for c in choices[0].candidates if "weather_clear" in c.text]
    assert unclear and not any(c.applies for c in unclear)
    assert all(c.why for c in choices[0].candidates)


@pytest.mark.parametrize(
    ("scenario", "manipulation", "logical", "valid"),
    [
        (True, True, True, True),
        (True, False, None, False),
        (None, True, True, None),
        (True, True, None, None),
        (False, True, True, False),
    ],
)
def test_a_follow_up_is_valid_where_all_three_factors_hold(
    scenario: bool | None, manipulation: bool | None, logical: bool | None, valid: bool | None
) -> None:
    made = Validation(*(Factor(holds, "so") for holds in (scenario, manipulation, logical)))
    assert made.valid is valid
    assert made.as_plain()["logical"] == {"holds": logical, "source": "so"}


def test_factors_say_where_they_are_from() -> None:
    said = Statement("crosswalk", "adds", "pedestrian", "slow_down", "", "speed_kmh > 20")
    there, elsewhere, nowhere = scene(("crosswalk",), speed_kmh=30.0), scene(), scene(None)
    assert scenario_alignment(said, there, there) == Factor(True, "a test says so")
    assert scenario_alignment(said, there, elsewhere).holds is False
    assert scenario_alignment(said, there, elsewhere).source.startswith("follow-up: is for crosswalk")
    assert scenario_alignment(said, nowhere, there).holds is None
    assert logical_alignment(said, "", there, {}).holds is True
    assert logical_alignment(said, "not dark", there, {}).holds is None
    assert logical_alignment(said, "", there, {"speed_kmh": 10.0}).holds is False
    assert manipulation_verification().holds is True
    assert manipulation_verification("a pixel too many").source.endswith("a pixel too many")
    unseen = manipulation_verification(detected=False, look="pixels that changed")
    assert (unseen.holds, "not seen" in unseen.source) == (False, True)
    assert manipulation_verification("broken", detected=True).holds is False
