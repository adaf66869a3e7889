# SPDX-License-Identifier: Apache-2.0
"""Statements as Gherkin: there and back, and errors that name the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.rules.gherkin import feature, read_feature, read_feature_file
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.statement import ADDS, ON_ROAD, ON_ROADSIDE, Statement, merged

ONTOLOGY = load_ontology()
RED = Statement(
    "intersection", ADDS, "red_light", "slow_down", ON_ROADSIDE, "moving and not has(red_light)", ("DE-26",)
)
TEXT = """Feature: German rules

  @DE-26
  Scenario: red light at intersection
    Given the ego-vehicle approaches to intersection
    And it is known that moving and not has(red_light)
    When mt adds red light on the roadside
    Then ego-vehicle should slow down
"""


def statements() -> st.SearchStrategy[Statement]:
    """Any statement in words of the ontology."""
    return st.builds(
        lambda road, element, behaviour, place, condition, rules: Statement(
            road, element.verb, element.name, behaviour, place, condition, tuple(rules)
        ),
        st.sampled_from(sorted(ONTOLOGY.roads)),
        st.sampled_from(list(ONTOLOGY.elements.values())),
        st.sampled_from(sorted(ONTOLOGY.behaviours)),
        st.sampled_from(["", ON_ROAD, ON_ROADSIDE]),
        st.sampled_from(
            ["", "moving", "speed_kmh > 50 and visibility_m < 50", "ego_lane == 'rightmost' or not has(dog)"]
        ),
        st.lists(st.from_regex(r"[A-Za-z0-9_.:-]{1,8}", fullmatch=True), max_size=3, unique=True),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(statements(), min_size=1, max_size=4), st.text(max_size=20))
def test_there_and_back(rows: list[Statement], title: str) -> None:
    assert read_feature(feature(rows, title), "there", ONTOLOGY) == tuple(rows)


def test_it_reads_like_the_papers() -> None:
    assert feature([RED], "German rules") == TEXT
    assert read_feature(TEXT, "x", ONTOLOGY) == (RED,)


def test_articles_synonyms_and_other_tools_are_understood() -> None:
    text = (
        "Feature: f\n  Scenario: s\n    Given the ego vehicle approaches to a Junction\n"
        "    When Flux adds a zebra\n    Then the ego-vehicle should halt\n"
    )
    with pytest.raises(UsageError, match="x:4: no element 'zebra'"):
        read_feature(text, "x", ONTOLOGY)
    (read,) = read_feature(text.replace("zebra", "bicycle"), "x", ONTOLOGY)
    assert read == Statement("intersection", ADDS, "cyclist", "stop")


def test_two_conditions_both_hold() -> None:
    text = TEXT.replace("    When", "    And it is known that dark or moving\n    When")
    (read,) = read_feature(text, "x", ONTOLOGY)
    assert read.condition == "(moving and not has(red_light)) and (dark or moving)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "x: got no feature, expected 'Feature: <title>'"),
        ("Feature: f\n", "x:1: got a feature without a scenario"),
        ("hello\nthere\n", "x:1: not valid Gherkin: expected: EOF"),
        ("# language: xx\nFeature: f\n", "x:1: not valid Gherkin: Language not supported: xx"),
        ("# language: de\nFunktionalität: f\n", "x:2: got language 'de', expected English"),
        (
            TEXT.replace("approaches to", "flies over"),
            "x:5: got 'Given the ego-vehicle flies over intersection', expected",
        ),
        (
            TEXT.replace("intersection\n    And", "intersecton\n    And"),
            "x:5: no road 'intersecton'; did you mean 'inter",
        ),
        (TEXT.replace("red light on", "red lite on"), "x:7: no element 'red lite'; did you mean 'red_light'?"),
        (TEXT.replace("adds", "replaces"), "x:7: got 'replaces red_light', expected 'adds'"),
        (TEXT.replace("slow down", "slow dwn"), "x:8: no behaviour 'slow dwn'; did you mean 'slow_down'?"),
        (TEXT.replace("moving and", "moovin and"), "x:6: no predicate 'moovin'; did you mean 'moving'?"),
        (TEXT.replace("moving and", "moving und"), "x:6: condition 'moving und"),
        (TEXT.replace("    Then ego-vehicle should slow down\n", ""), "x:4: got a scenario without a 'Then' step"),
        (TEXT + "    Then ego-vehicle should stop\n", "x:9: got a second 'Then' step"),
        (TEXT + "    But it rains\n", "x:9: got 'But it rains', expected"),
        (TEXT + "    * it rains\n", "x:9: got '* it rains', expected Given, And, When and Then"),
        (
            TEXT.replace("Scenario:", "Background:").replace("@DE-26", ""),
            "got background, expected plain scenarios only",
        ),
        (TEXT.replace("Scenario:", "Scenario Outline:") + "    Examples:\n      |a|\n      |1|\n", "an outline"),
        (TEXT + "      | a table |\n", "x:8: got 'Then ego-vehicle should slow down', expected"),
        (TEXT * 5000, "x: got 1.3 MB, expected at most 1 MB; part it"),
    ],
)
def test_errors_name_the_line_and_what_to_do(text: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        read_feature(text, "x", ONTOLOGY)
    assert told in str(error.value)


def test_ids_that_can_be_no_tags_are_refused() -> None:
    with pytest.raises(UsageError, match="rule id 'my rule': got spaces"):
        feature([Statement("any_road", ADDS, "dog", "slow_down", rules=("my rule",))], "f")


def test_a_file_is_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "rules.feature"
    path.write_text(TEXT)
    assert read_feature_file(path, ONTOLOGY) == (RED,)
    path.write_text("nothing")
    with pytest.raises(UsageError, match=r"rules\.feature:1: not valid Gherkin"):
        read_feature_file(path, ONTOLOGY)


def test_statements_alike_are_merged() -> None:
    other = Statement(*[getattr(RED, name) for name in ("road", "verb", "element", "behaviour")])
    again = Statement(RED.road, RED.verb, RED.element, RED.behaviour, RED.place, RED.condition, ("DE-34", "DE-26"))
    assert merged([RED, other, again]) == (
        Statement(RED.road, RED.verb, RED.element, RED.behaviour, RED.place, RED.condition, ("DE-26", "DE-34")),
        other,
    )
