# SPDX-License-Identifier: Apache-2.0
"""How strong a change is: every number of every mutation says whether it is a strength, and scales are true."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import spec_of
from mt_nodes.relations.relation import Relation, load_relation, shipped_relations
from mt_nodes.relations.strength import Strength, at, axis, is_place, overall, strengths, values_of

MUTATIONS = [n for n, cls in plugins.catalogue("mutations").items() if cls.__module__.startswith("mt_nodes.")]
FRACTIONS = st.floats(0.0, 1.0)
VALUES = st.floats(1e-3, 1e4)


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_number_is_a_strength_with_a_weak_end_or_says_what_else_it_is(name: str) -> None:
    cls = plugins.catalogue("mutations")[name]
    hints = typing.get_type_hints(cls)
    for field in (f for f in dataclasses.fields(cls) if f.init):  # type: ignore[arg-type]
        spec, hint = spec_of(field), hints[field.name]
        if hint not in (int, float) and not {int, float} & set(typing.get_args(hint)):
            assert spec.neutral is None, field.name
            continue
        assert (spec.neutral is None) != (spec.aspect == ""), f"{field.name}: neutral, or aspect, and not both"
        if spec.neutral is None:
            assert spec.aspect in ("place", "fixed"), field.name
        else:
            assert spec.low is None or spec.low <= spec.neutral, field.name
            assert spec.high is None or spec.neutral <= spec.high, field.name


def test_relations_lie_at_the_strong_end_and_can_be_turned_down() -> None:
    counted = 0
    for relation in shipped_relations():
        axes = strengths(relation)
        assert at(relation, axes, [1.0] * len(axes)).as_plain() == relation.as_plain()
        assert overall(relation, axes, [1.0] * len(axes)) == 1.0
        if axes:
            counted += 1
            half = at(relation, axes, [0.5] * len(axes))
            assert half != relation and half.id == relation.id
            for one in strengths(relation, "range"):
                mutation = relation.mutate[one.step]
                spec = next(spec_of(f) for f in dataclasses.fields(mutation) if f.name == one.parameter)  # type: ignore[arg-type]
                assert one.strong in (spec.low, spec.high, getattr(mutation, one.parameter))
    assert counted > 100


def test_a_relation_whose_parameters_were_set_comes_out_of_its_file_as_it_was(tmp_path: Path) -> None:
    for relation in shipped_relations():
        axes = strengths(relation)
        changed = dataclasses.replace(at(relation, axes, [0.7] * len(axes)), id=f"{relation.id}~searched")
        file = tmp_path / f"{changed.id}.yaml"
        file.write_text(yaml.safe_dump(changed.as_plain()))
        assert load_relation(str(file)).as_plain() == changed.as_plain()


def test_the_weak_end_of_a_comparison_with_less_is_that_less() -> None:
    (visibility,) = strengths(load_relation("fog_monotone"))
    assert (visibility.weak, visibility.strong) == (200.0, 100.0)


def test_reach() -> None:
    relation = load_relation("noise_outside_roi_1000")
    assert [(a.weak, a.strong) for a in strengths(relation)] == [(1, 1000)]
    assert [(a.weak, a.strong) for a in strengths(relation, "range")] == [(1, 1_000_000)]
    darker = load_relation("brightness_lowered_boxes")
    assert [(a.weak, a.strong) for a in strengths(darker, "range")] == [(0.0, -0.9)]


@given(VALUES, VALUES, FRACTIONS, FRACTIONS, st.booleans())
def test_a_stronger_fraction_is_nearer_to_the_strong_end(
    weak: float, strong: float, a: float, b: float, whole: bool
) -> None:
    if whole:
        weak, strong = round(weak) + 1, round(strong) + 1
    one = Strength(0, "m", "p", weak, strong, whole)
    assert (one.value(0.0), one.value(1.0)) == (weak, strong)
    small, large = one.value(min(a, b)), one.value(max(a, b))
    assert abs(small - weak) <= abs(large - weak) * (1 + 1e-9)
    assert min(weak, strong) <= small <= max(weak, strong)
    if whole:
        assert isinstance(small, int)
        assert one.value(min(1.0, one.fraction(small) + 1e-9)) == small
    elif weak != strong:
        assert one.value(one.fraction(small)) == pytest.approx(small, rel=1e-6)


@given(st.integers(2, 100_000))
def test_every_whole_number_can_be_reached(strong: int) -> None:
    one = Strength(0, "m", "p", 1, strong, whole=True)
    middle = (1 + strong) // 2
    assert one.value(min(1.0, one.fraction(middle) + 1e-12)) == middle


def test_fractions_beyond_the_ends_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 0 to 1"):
        Strength(0, "m", "p", 0.0, 1.0).value(1.1)


@pytest.fixture
def placed() -> Relation:
    return load_relation("object_found_person")


def test_places_are_searched_within_what_the_relation_says(placed: Relation) -> None:
    assert strengths(placed) == ()
    far = axis(placed, "range_m")
    assert far.pair and is_place(placed, far) and far.name == "object_added.range_m"
    low, high = placed.mutate[0].range_m  # type: ignore[attr-defined]
    assert (far.weak, far.strong) == (low, high)
    changed = at(placed, [far], [0.5])
    middle = far.value(0.5)
    assert changed.mutate[0].range_m == (middle, middle)  # type: ignore[attr-defined]
    assert overall(placed, [far], [0.2]) == 1.0
    assert values_of([far], [0.0]) == {"object_added.range_m": low}


@pytest.mark.parametrize(
    ("name", "ends", "words"),
    [
        ("rang_m", None, "did you mean|has no parameter"),
        ("kind", None, "only numbers"),
        ("clearance_m", None, "say it: object_added.clearance_m=WEAK..STRONG"),
        ("clearance_m", (0.0, 99.0), "got 99, expected 0 to 20 m"),
        ("clearance_m", (1.0, 1.0), "say it"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    placed: Relation, name: str, ends: tuple[float, float] | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        axis(placed, name, ends)


def test_one_name_of_two_parameters_is_refused() -> None:
    twice = dataclasses.replace(
        load_relation("noise_outside_roi_10"), mutate=load_relation("noise_outside_roi_10").mutate * 2
    )
    with pytest.raises(UsageError, match="2 times"):
        axis(twice, "points")
