# SPDX-License-Identifier: Apache-2.0
"""Conditions: three values, in which what is unknown is never taken for true; names that exist; errors that help."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.facts.condition import (
    ConditionNode,
    conjunction,
    evaluate,
    known,
    missing,
    parse,
    refuse_unknown_names,
    written,
)
from mt_nodes.rules.ontology import load_ontology

FLAGS = ("moving", "dark", "path_clear")


def trees() -> st.SearchStrategy[ConditionNode]:
    """Conditions over three flags and a number."""
    leaves = st.sampled_from(
        [*(ConditionNode("flag", (name,)) for name in FLAGS), parse("speed_kmh > 50"), parse("speed_kmh <= 20.5")]
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(lambda one: ConditionNode("not_", (one,))),
            st.tuples(inner, inner).map(lambda parts: ConditionNode("both", parts)),
            st.tuples(inner, inner).map(lambda parts: ConditionNode("either", parts)),
        ),
        max_leaves=6,
    )


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("", {}, True),
        ("speed_kmh > 50 and visibility_m < 50", {"speed_kmh": 60.0, "visibility_m": 40.0}, True),
        ("speed_kmh > 50 and visibility_m < 50", {"speed_kmh": 50.0}, False),  # false decides, whatever the rest is
        ("speed_kmh > 50 and visibility_m < 50", {"speed_kmh": 60.0}, None),
        ("speed_kmh > 50 or dark", {"dark": True}, True),
        ("speed_kmh > 50 or dark", {"dark": False}, None),
        ("not dark", {}, None),
        ("not dark", {"dark": False}, True),
        ("has(red_light)", {}, None),
        ("not has(red_light)", {"has": {"green_light"}}, True),
        ("not has(red_light)", {"has": {"red_light"}}, False),
        ("ego_lane == 'rightmost'", {"ego_lane": "rightmost"}, True),
        ("ego_lane != 'rightmost'", {}, None),
        ("ego_heading == arrow_direction", {"ego_heading": "left"}, None),
        ("ego_heading == arrow_direction", {"ego_heading": "left", "arrow_direction": "right"}, False),
        ("speed_kmh > sign_value_kmh", {"speed_kmh": 60.0, "sign_value_kmh": 30.0}, True),
        ("speed_kmh > 50", {"speed_kmh": float("nan")}, None),
        ("speed_kmh > 50", {"speed_kmh": "fast"}, None),
        ("speed_kmh > 50", {"speed_kmh": True}, None),
        ("moving", {"moving": 1.0}, None),
        ("(moving or dark) and not (path_clear)", {"dark": True, "path_clear": False}, True),
    ],
)
def test_three_values(text: str, facts: dict[str, object], expected: bool | None) -> None:
    assert evaluate(text, facts) is expected  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(trees(), st.fixed_dictionaries({}, optional={name: st.booleans() for name in FLAGS}))
def test_what_is_decided_stays_so_whatever_the_unknown_turns_out_to_be(
    tree: ConditionNode, facts: dict[str, bool]
) -> None:
    decided = evaluate(written(tree), facts)
    others = [name for name in FLAGS if name not in facts]
    speeds = (0.0, 30.0, 60.0)
    values = {
        evaluate(written(tree), {**facts, **dict(zip(others, row, strict=True)), "speed_kmh": speed})
        for row in itertools.product((False, True), repeat=len(others))
        for speed in speeds
    }
    assert None not in values
    assert decided is None or values == {decided}


@settings(max_examples=60, deadline=None)
@given(trees())
def test_a_written_condition_reads_as_itself(tree: ConditionNode) -> None:
    assert written(parse(written(tree))) == written(tree)
    for row in itertools.product((False, True), repeat=len(FLAGS)):
        facts = {**dict(zip(FLAGS, row, strict=True)), "speed_kmh": 30.0}
        assert known(parse(written(tree)), facts) == known(tree, facts)


def test_what_is_known_is_put_in_and_the_rest_is_left() -> None:
    left = known(parse("moving and speed_kmh > sign_value_kmh and dark"), {"sign_value_kmh": 30.0, "dark": True})
    assert written(left) == "moving and speed_kmh > 30"
    assert missing("moving and not has(dog) or dark", {"moving": True}) == ("dark", "has(dog)")


def test_conditions_are_joined_each_part_once() -> None:
    assert conjunction("moving", "", "moving and dark", "dark or moving") == "moving and dark and (dark or moving)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("speed_kmh >", "got '>' in column 11"),
        ("moving and and dark", "got 'and dark' in column 12"),
        ("speed_kmh = 3", "got '= 3'"),
        ("__import__('os')", "got '('"),
        ("speeed_kmh > 3", "no predicate 'speeed_kmh'; did you mean 'speed_kmh'?"),
        ("has(red_ligt)", "no element 'red_ligt'; did you mean 'red_light'?"),
        ("moving > 3", "'moving > 3' has flag and number"),
        ("speed_kmh", "'speed_kmh' has number; flags stand alone"),
        ("speed_kmh > 'a'", "has number and word"),
        ("ego_lane < 'left'", "names with == or !="),
        ("moving and " * 500 + "dark", "got 5504 characters; at most 2000"),
        ("(" * 60 + "dark" + ")" * 60, "at most 2000, and 40 '(' and 'not'"),
    ],
)
def test_what_cannot_be_asked_is_refused(text: str, told: str) -> None:
    ontology = load_ontology()
    with pytest.raises(UsageError) as error:
        refuse_unknown_names(text, ontology.predicates, ontology.elements)
    assert told in str(error.value)
