# SPDX-License-Identifier: Apache-2.0
"""What differs from the shape of a file is found, and where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.record_shapes import NUMBER, TEXT_OR_NULL, expect_shape, mismatch, quick_test

SHAPE = {
    **{"id": str, "count?": int, "rate": (*NUMBER, type(None)), "why?": TEXT_OR_NULL},
    **{
        "rows": [{"name": str}],
        "range?": [NUMBER, NUMBER],
        "by_class?": {"*": int},
        "any?": object,
        "on?": bool,
        "range_or_null?": ([NUMBER, NUMBER], type(None)),
    },
}
FITS: dict[str, Any] = {"id": "a", "rate": None, "rows": [{"name": "b", "more": 1}]}


@pytest.mark.parametrize(
    "more",
    [
        *({}, {"count": 3}, {"rate": 0.5}, {"why": None}, {"range": [1, 2.5]}, {"by_class": {"car": 3}}),
        *({"any": [None]}, {"on": True}, {"other": 1}),
        *({"range_or_null": None}, {"range_or_null": [0.0, 1]}),
    ],
)
def test_what_fits(more: dict[str, Any]) -> None:
    assert mismatch({**FITS, **more}, SHAPE) == ""
    assert quick_test(SHAPE)({**FITS, **more})


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "got list, expected a mapping"),
        ({"rate": None, "rows": []}, "no id"),
        ({**FITS, "id": 3}, "id: got int, expected str"),
        ({**FITS, "count": True}, "count: got bool, expected int"),
        ({**FITS, "rate": "x"}, "rate: got str, expected int or float or null"),
        ({**FITS, "rows": {}}, "rows: got dict, expected a list"),
        ({**FITS, "rows": [{"name": "b"}, {"name": None}]}, "rows[1]: name: got null, expected str"),
        ({**FITS, "rows": [3]}, "rows[0]: got int, expected a mapping"),
        ({**FITS, "range": [1]}, "range: got 1 values, expected 2"),
        ({**FITS, "range_or_null": [1]}, "range_or_null: got 1 values, expected 2"),
        ({**FITS, "by_class": {"car": 1, "bus": "2"}}, "by_class: bus: got str, expected int"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(value: Any, why: str) -> None:
    assert mismatch(value, SHAPE) == why
    assert not quick_test(SHAPE)(value)
    with pytest.raises(InfrastructureError, match=r"run\.json: not as mt_nodes writes it: "):
        expect_shape(value, SHAPE, "run.json")


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2)
JSON = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner), max_leaves=8
)
TYPES = st.sampled_from([str, int, float, bool, object, NUMBER, TEXT_OR_NULL])
SHAPES = st.recursive(
    TYPES,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "a?", "b", "b?", "*"]), inner)
        | st.tuples(inner, inner)
    ),
    max_leaves=6,
)


@given(value=JSON, shape=SHAPES)
def test_the_quick_test_says_what_the_slow_one_says(value: Any, shape: Any) -> None:
    assert quick_test(shape)(value) == (mismatch(value, shape) == "")
