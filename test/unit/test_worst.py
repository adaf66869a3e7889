# SPDX-License-Identifier: Apache-2.0
"""What a run keeps pictures of while it goes on is what its report shows at the end."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.engine.worst import WorstSoFar, in_turn, worst_first


def line(bundle: int, lost: int, margin: float | None, draw: str = "0", relation: str = "noise") -> dict[str, Any]:
    return {"pair": f"0/{bundle}/{relation}/{draw}", "lost": lost, "margin": margin}


LINES = st.lists(
    st.builds(
        line,
        st.integers(0, 50),
        st.integers(0, 3),
        st.sampled_from([None, -1, -2.5]),
        st.sampled_from(["0", "1", "0@fog"]),
    ),
    unique_by=lambda made: made["pair"],
)


@given(LINES)
def test_the_worst_of_all_were_among_the_worst_when_they_came(lines: list[dict[str, Any]]) -> None:
    worst = WorstSoFar(3)
    taken = [made for made in lines if worst.takes(made)]
    assert sorted(lines, key=worst_first)[:3] == sorted(taken, key=worst_first)[:3]


SEVERAL = st.lists(
    st.builds(
        line,
        st.integers(0, 50),
        st.integers(0, 3),
        st.sampled_from([None, -1, -2.5]),
        st.sampled_from(["0", "0@fog"]),
        st.sampled_from(["noise", "rain", "mirror"]),
    ),
    unique_by=lambda made: made["pair"],
)


@given(SEVERAL)
def test_what_is_pictured_in_the_end_was_kept_when_it_came(lines: list[dict[str, Any]]) -> None:
    worst = WorstSoFar(4)
    taken = [made for made in lines if worst.takes(made)]
    assert in_turn(lines)[:4] == in_turn(taken)[:4]


def test_every_relation_is_pictured_before_one_is_twice() -> None:
    rain = [line(bundle, 3, -1, relation="rain") for bundle in range(4)]
    lines = [*rain, line(8, 0, -0.2, relation="lane"), line(9, 0, -0.1, relation="lane"), line(7, 5, -1, "0@rain")]
    pairs = [made["pair"] for made in in_turn(lines)]
    assert pairs == [
        "0/0/rain/0",
        "0/8/lane/0",
        "0/1/rain/0",
        "0/9/lane/0",
        "0/2/rain/0",
        "0/3/rain/0",
        "0/7/noise/0@rain",
    ]


def test_not_everything_is_taken() -> None:
    worst = WorstSoFar(2)
    assert [worst.takes(line(b, lost, -lost)) for b, lost in enumerate((1, 1, 1, 3, 2, 1))] == [
        *(True, True, False),
        *(True, True, False),
    ]


def test_the_order_is_most_lost_then_deepest_margin_then_the_pair() -> None:
    lines = [line(9, 3, -1, "0@fog"), line(2, 1, -1), line(1, 1, -1), line(4, 1, -2), line(5, 2, -1), line(6, 1, None)]
    ordered = [made["pair"] for made in sorted(lines, key=worst_first)]
    assert [int(pair.split("/")[1]) for pair in ordered] == [5, 6, 4, 1, 2, 9]
