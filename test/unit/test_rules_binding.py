# SPDX-License-Identifier: Apache-2.0
"""Relations of statements: mutations and conditions of the rule, and each behaviour is judged by its own check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, plain
from mt_nodes.base.plugins import name_of
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.conditions.source_conditions import KnownToBe
from mt_nodes.relations.relation import load_relation
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.parser import read_rule
from mt_nodes.rules.rule_sets import RuleSet, load_rule_set, shipped_rule_sets
from mt_nodes.rules.statement import ADDS, ON_ROAD, ON_ROADSIDE, REPLACES, Statement
from mt_nodes.rules.statement_binding import bind, bind_all, edit_facts, gap, relation_id

ONTOLOGY = load_ontology()
GERMANY, CALIFORNIA = load_rule_set("germany"), load_rule_set("california")
NOTHING = Bundle(0, 0, 0)
DOG = Statement("any_road", ADDS, "dog", "slow_down", rules=("DE-30",))


def statements(rules: RuleSet) -> list[Statement]:
    return [s for rule in rules.rules.values() for s in read_rule(rule.text, ONTOLOGY, rule.id).statements]


def output(speed_mps: float, steering_rad: float = 0.0) -> Output:
    return Output(control=Control(None, steering_rad=steering_rad, speed_mps=speed_mps))


def outcome(behaviour: str, source: Output, followup: Output) -> Outcome:
    check = bind(replace(DOG, behaviour=behaviour), ONTOLOGY, GERMANY).check
    assert check is not None
    return check.judge(source, followup, Effects(), NOTHING).outcome


@pytest.mark.parametrize("name", shipped_rule_sets())
def test_every_shipped_rule_is_bound_or_cannot_be_shown(name: str) -> None:
    rules = load_rule_set(name)
    read = statements(rules)
    bound, unbound = bind_all(read, ONTOLOGY, rules)
    assert len(bound) + len(unbound) == len(read) and len(bound) >= 0.9 * len(read)
    for statement, why in unbound:
        assert gap(statement, ONTOLOGY, name) in why and gap(statement, ONTOLOGY, name)
    assert len({relation.id for relation in bound}) == len(bound)
    for relation in bound:
        assert relation.id.startswith(f"rule_{name}_") and relation.kind == "expected"
        assert rules.title in relation.because and relation.mutate


def test_each_behaviour_is_judged_by_its_own_check() -> None:
    # The published code judges every relation as "slow down": its first condition is always true.
    checks = {
        behaviour: name_of(type(bind(replace(DOG, behaviour=behaviour), ONTOLOGY, GERMANY).check))
        for behaviour in ONTOLOGY.behaviours
    }
    assert checks == {
        "slow_down": "slows_down",
        "keep_current": "keeps_current",
        "turn_left": "turns_left",
        "turn_right": "turns_right",
        "stop": "stops",
        "give_way": "slows_down",
        "keep_distance": "slows_down",
        "stay_behind": "stays_behind",
        "start_moving": "starts_moving",
    }


@pytest.mark.parametrize(
    ("followup", "holding"),
    [
        (output(10.0), {"keep_current", "stay_behind"}),
        (output(7.0), {"slow_down", "give_way", "keep_distance", "stay_behind"}),
        (output(0.0), {"slow_down", "give_way", "keep_distance", "stay_behind", "stop"}),
        (output(10.0, 0.2), {"turn_left"}),
        (output(10.0, -0.2), {"turn_right"}),
        (output(12.0), set()),
    ],
)
def test_one_drive_keeps_one_behaviour_and_breaks_the_others(followup: Output, holding: set[str]) -> None:
    outcomes = {behaviour: outcome(behaviour, output(10.0), followup) for behaviour in ONTOLOGY.behaviours}
    assert outcomes.pop("start_moving") is Outcome.NOT_APPLICABLE, "it moves"
    assert {behaviour for behaviour, one in outcomes.items() if one is Outcome.HOLDS} == holding
    assert set(outcomes.values()) <= {Outcome.HOLDS, Outcome.VIOLATED}


@pytest.mark.parametrize(
    ("rules", "rule", "speed_mps", "unmet"),
    [
        (GERMANY, "DE-23", 10.0, None),  # 36 km/h before a sign of 30
        (GERMANY, "DE-23", 8.0, "it is not so that speed_kmh > 30 (speed_kmh 28.8"),
        (GERMANY, "DE-12", 9.0, None),
        (GERMANY, "DE-01", 13.0, "it is not so that speed_kmh > 50"),
        (GERMANY, "DE-01", 14.0, None),
        (GERMANY, "DE-01", float("nan"), "it is unknown whether speed_kmh > 50: speed_kmh not told"),
        (
            CALIFORNIA,
            "CA-03",
            10.0,
            "it is unknown whether moving and path_clear and not has(red_light): path_clear, has",
        ),
        (CALIFORNIA, "CA-03", 0.0, "it is not so that moving"),  # who waits at a green light is not asked to drive on
    ],
)
def test_conditions_bind_by_the_speed_and_what_is_unknown_never_passes(
    rules: RuleSet, rule: str, speed_mps: float, unmet: str | None
) -> None:
    (statement,) = read_rule(rules.rules[rule].text, ONTOLOGY, rule).statements
    (condition,) = bind(statement, ONTOLOGY, rules).given
    told = condition.unmet(NOTHING, output(speed_mps))
    assert (told is None) == (unmet is None)
    assert (told or "").startswith(unmet or "")


def test_what_is_known_of_the_case_is_asked_no_more() -> None:
    (statement,) = read_rule(CALIFORNIA.rules["CA-03"].text, ONTOLOGY, "CA-03").statements
    relation = bind(statement, ONTOLOGY, CALIFORNIA, facts={"path_clear": True, "has": set()})
    assert relation.given == (KnownToBe("moving"),)
    with pytest.raises(UsageError, match="known not to be so that moving and path_clear"):
        bind(statement, ONTOLOGY, CALIFORNIA, facts={"path_clear": False})


@pytest.mark.parametrize(("steering_rad", "unmet"), [(0.2, True), (0.0, True), (-0.2, False)])
def test_who_turns_is_known_by_the_steering(steering_rad: float, unmet: bool) -> None:
    condition = KnownToBe("moving and ego_turning_right")
    assert (condition.unmet(NOTHING, output(5.0, steering_rad)) is not None) == unmet


def test_the_number_of_the_rule_stands_on_the_sign() -> None:
    sign = Statement("any_road", ADDS, "speed_limit_sign", "slow_down", condition="speed_kmh > 70", rules=("DE-23",))
    assert plain(bind(sign, ONTOLOGY, GERMANY).mutate[0])["value"] == 70
    assert edit_facts(sign, ONTOLOGY, "germany") == {"sign_value_kmh": 70.0}
    american = replace(sign, condition="speed_kmh > 72", rules=("CA-01",))
    assert plain(bind(american, ONTOLOGY, CALIFORNIA).mutate[0])["value"] == 45  # in mph
    usual = replace(sign, condition="speed_kmh > sign_value_kmh")
    assert bind(usual, ONTOLOGY, GERMANY).given == (KnownToBe("speed_kmh > 30"),)


def test_air_is_as_thick_as_the_rule_says() -> None:
    fog = Statement("any_road", REPLACES, "fog", "slow_down", condition="visibility_m < 50", rules=("DE-01",))
    relation = bind(fog, ONTOLOGY, GERMANY)
    assert plain(relation.mutate[0])["visibility_m"] == 40.0 and relation.given == ()


@pytest.mark.parametrize(
    ("element", "place", "where"),
    [("dog", ON_ROAD, "path"), ("dog", ON_ROADSIDE, "bearing"), ("red_light", ON_ROAD, "bearing")],
)
def test_objects_stand_where_the_rule_says(element: str, place: str, where: str) -> None:
    (mutation,) = bind(replace(DOG, element=element, place=place), ONTOLOGY, GERMANY).mutate
    assert plain(mutation)["where"] == where


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            replace(DOG, element="black_ice", verb=REPLACES),
            "rule DE-30: black_ice cannot be shown: it is not to be seen",
        ),
        (replace(DOG, rules=()), "got rules none, expected one of"),
        (replace(DOG, rules=("XX-1",)), "got rules XX-1, expected one of"),
        (replace(DOG, element="dgo"), "no element 'dgo'; did you mean 'dog'?"),
        (replace(DOG, verb=REPLACES), "got 'replaces dog', expected 'adds'"),
    ],
)
def test_what_cannot_be_bound_is_an_error(statement: Statement, told: str) -> None:
    with pytest.raises(UsageError) as error:
        bind(statement, ONTOLOGY, GERMANY)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("region", "rule", "nth", "expected"),
    [
        ("germany", "DE-01", 1, "rule_germany_1"),
        ("california", "CA-12", 3, "rule_california_12_3"),
        ("mine", "my_rules-7", 1, "rule_mine_7"),
        ("mine", "Fog.b", 1, "rule_mine_fog_b"),
    ],
)
def test_ids(region: str, rule: str, nth: int, expected: str) -> None:
    assert relation_id(region, rule, nth) == expected


def test_a_bound_relation_can_be_written_and_read(tmp_path: Path) -> None:
    relation = bind(replace(DOG, condition="speed_kmh > 30"), ONTOLOGY, GERMANY)
    path = tmp_path / "relation.yaml"
    path.write_text(yaml.safe_dump(relation.as_plain()))
    read = load_relation(str(path))
    assert replace(read, path=None) == relation


@pytest.mark.parametrize("given", [{"condition": "speed >"}, {"condition": 3}])
def test_a_condition_that_cannot_be_read_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="condition"):
        build(KnownToBe, given, "given.known_to_be")
