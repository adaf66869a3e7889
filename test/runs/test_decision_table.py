# SPDX-License-Identifier: Apache-2.0
"""The decision table of docs/verdicts.md: the code keeps to it in every cell, and it is monotone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.data.verdict import Outcome, Pair, RelationOutcome
from mt_nodes.engine.summary.outcomes import PairTally, RelationEvidence, relation_outcome
from mt_nodes.engine.summary.summary import RelationInfo, summarise

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "verdicts.md"
Cell = dict[str, str]
VALUES = {
    "kind": ("necessary", "expected"),
    "control and sham": ("violated", "clean", "undecided", "undecided, not needed"),
    "violated pairs": ("none", "some"),
    "decided frames": ("too few", "enough"),
    "alone": ("significant", "not significant"),
    "beside the others": ("significant", "not significant"),
    "tolerated rate": ("not stated", "exceeded", "not exceeded"),
}
BACKGROUND = {
    "violated": (PairTally(30, 1), PairTally(30, 0), False),
    "clean": (PairTally(30, 0), PairTally(30, 0), False),
    "undecided": (PairTally(), PairTally(), False),
    "undecided, not needed": (PairTally(), PairTally(), True),
}
#: What is undecided is neither better nor worse.
RANK = {"PASS": 0, "UNSTABLE": 1, "INCONCLUSIVE": 1, "FAIL": 2}


def cells() -> Iterator[Cell]:
    """Every combination that data can give."""
    for values in itertools.product(*VALUES.values()):
        cell = dict(zip(VALUES, values, strict=True))
        undecided = cell["control and sham"].startswith("undecided")
        significant = cell["alone"] == "significant"
        impossible = (
            (cell["violated pairs"] == "none" and significant)
            or (cell["beside the others"] == "significant" and not significant)
            or (undecided and significant and cell["tolerated rate"] == "not stated")
            or (significant and cell["tolerated rate"] == "not exceeded" and undecided)
        )
        if not impossible:
            yield cell


def rows() -> list[Cell]:
    """The table as it stands in the document."""
    text = DOCUMENT.read_text().split("<!-- decision table -->")[1].split("<!-- end -->")[0]
    table = [[each.strip() for each in line.strip("| ").split(" | ")] for line in text.strip().splitlines()]
    return [dict(zip(table[0], row, strict=True)) for row in table[2:]]


def evidence(cell: Cell) -> RelationEvidence:
    control, sham, itself = BACKGROUND[cell["control and sham"]]
    some, few = cell["violated pairs"] == "some", cell["decided frames"] == "too few"
    undecided, stated = not control.decided, cell["tolerated rate"] != "not stated"
    p = 0.01 if cell["alone"] == "significant" else 0.5
    adjusted = 0.02 if cell["beside the others"] == "significant" else 0.6
    nothing = undecided and not stated
    return RelationEvidence(
        kind=cell["kind"],
        min_decided=20,
        frames=19 if few else 20,
        pairs=PairTally(30, 7 if some else 0),
        control=control,
        sham=sham,
        p_background=None if undecided else p,
        p=None if nothing else p,
        p_adjusted=None if nothing else adjusted,
        test="a test",
        demands_of_itself=itself,
        tolerated_rate=0.3 if stated else None,
        upper=0.2 if cell["tolerated rate"] == "not exceeded" else 0.4,
    )


def matches(row: Cell, cell: Cell) -> bool:
    return all(row[name] in ("any", value) for name, value in cell.items())


def test_the_code_is_the_table_in_every_cell() -> None:
    wrong = []
    for cell in cells():
        row = next(row for row in rows() if matches(row, cell))
        outcome, why = relation_outcome(evidence(cell))
        if outcome.value != row["outcome"]:
            wrong.append((cell, row["outcome"], outcome.value, why))
    assert not wrong


def test_each_row_of_the_table_decides_some_cell_and_has_values_that_are_known() -> None:
    deciding = [next(i for i, row in enumerate(rows()) if matches(row, cell)) for cell in cells()]
    assert set(deciding) == set(range(len(rows())))
    for row in rows():
        assert all(row[name] in ("any", *values) for name, values in VALUES.items()), row


def test_no_cell_passes_with_violations_but_by_a_stated_rate() -> None:
    for cell in cells():
        outcome = relation_outcome(evidence(cell))[0]
        if cell["violated pairs"] == "some" and outcome is RelationOutcome.PASS:
            assert (cell["kind"], cell["tolerated rate"]) == ("expected", "not exceeded"), cell
            assert cell["control and sham"] != "violated", cell
        if outcome is RelationOutcome.UNSTABLE:
            assert cell["control and sham"] == "violated", cell


Case = tuple[int, int]
ARMS = ("fog", "identity", "points_permuted")
#: Some violated cases of each arm, in 1 to 8 drives of 4 to 30 frames.
RUNS = st.tuples(st.integers(1, 8), st.sampled_from([4, 9, 21, 30])).flatmap(
    lambda size: st.tuples(
        st.just(size),
        *(
            st.sets(st.tuples(st.integers(0, size[0] - 1), st.integers(0, size[1] - 1)), max_size=most)
            for most in (40, 3, 3)
        ),
    )
)
INFOS = st.builds(
    lambda kind, rate, few: RelationInfo("fog", kind, 5 if few else 20, tolerated_rate=rate),
    st.sampled_from(["necessary", "expected"]),
    st.none() | st.floats(0.05, 0.9),
    st.booleans(),
)


def journal(size: Case, violated: dict[str, set[Case]], times: int = 1) -> Iterator[dict[str, Any]]:
    drives, frames = size
    for arm in ARMS:
        for again, drive, frame in itertools.product(range(times), range(drives), range(frames)):
            bad = (drive, frame) in violated[arm]
            draw = "0" if arm == "fog" else "0@fog"
            yield {
                "type": "verdict",
                "pair": str(Pair(again * drives + drive, frame, arm, draw)),
                "outcome": (Outcome.VIOLATED if bad else Outcome.HOLDS).value,
                "lost": int(bad),
                "gained": 0,
            }


def outcome_of(info: RelationInfo, others: int, lines: Iterator[dict[str, Any]]) -> str:
    quiet = [RelationInfo(f"quiet_{i}", "expected") for i in range(others)]
    beside = [
        {"type": "verdict", "pair": str(Pair(0, 0, arm, draw)), "outcome": "HOLDS", "lost": 0, "gained": 0}
        for other in quiet
        for arm, draw in ((other.id, "0"), *((arm, f"0@{other.id}") for arm in ARMS[1:]))
    ]
    return str(summarise([*lines, *beside], [info, *quiet])["relations"]["fog"]["outcome"])


@settings(deadline=None, max_examples=60)
@given(RUNS, INFOS, st.sampled_from([0, 2, 39]), st.data())
def test_more_violations_never_give_a_better_outcome(
    run: Any, info: RelationInfo, others: int, data: st.DataObject
) -> None:
    size, *sets = run
    violated = dict(zip(ARMS, sets, strict=True))
    more = data.draw(st.sets(st.tuples(st.integers(0, size[0] - 1), st.integers(0, size[1] - 1)), min_size=1))
    before = outcome_of(info, others, journal(size, violated))
    after = outcome_of(info, others, journal(size, {**violated, "fog": violated["fog"] | more}))
    assert RANK[after] >= RANK[before], (before, after)


@settings(deadline=None, max_examples=60)
@given(RUNS, INFOS, st.sampled_from([0, 2, 39]), st.integers(2, 4))
def test_more_drives_of_the_same_sort_never_give_a_vaguer_outcome(
    run: Any, info: RelationInfo, others: int, times: int
) -> None:
    size, *sets = run
    violated = dict(zip(ARMS, sets, strict=True))
    before = outcome_of(info, others, journal(size, violated))
    after = outcome_of(info, others, journal(size, violated, times))
    if before in ("PASS", "FAIL"):
        assert after == before


@settings(deadline=None, max_examples=60)
@given(RUNS, INFOS)
def test_other_relations_move_one_between_fail_and_inconclusive_only(run: Any, info: RelationInfo) -> None:
    size, *sets = run
    violated = dict(zip(ARMS, sets, strict=True))
    alone, beside = (outcome_of(info, others, journal(size, violated)) for others in (0, 39))
    assert beside == alone or {alone, beside} == {"FAIL", "INCONCLUSIVE"}
