# SPDX-License-Identifier: Apache-2.0
"""What is said of a retrained stack: mended, learned by heart, not mended, or undecided."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mt_nodes.data.verdict import Pair
from mt_nodes.relations.relation import load_relation
from mt_nodes.runs.campaign.cases import Together, words_of
from mt_nodes.runs.campaign.failures import FailureCase
from mt_nodes.runs.campaign.fresh_draws import fresh, mendings

FRAMES = 40


def rows(violated: int, frames: int = FRAMES, seed: int = 0, decided: bool = True) -> list[dict[str, Any]]:
    """Rows of as many drives with one frame each, the first of which are violated."""
    outcomes = ["VIOLATED"] * violated + ["HOLDS"] * (frames - violated)
    return [
        {"bag": f"drive{i}", "pair": "0/3/r/0", "seed": seed, "outcome": outcome if decided else "ERROR"}
        for i, outcome in enumerate(outcomes)
    ]


def word(
    now: tuple[int, int], before: tuple[int, int] = (FRAMES, 30), frames: int = FRAMES, **rest: Any
) -> tuple[str, str]:
    """What is said, from violated stored and fresh draws, now and before."""
    both = [{"cases": rows(same, frames, **rest), "fresh": rows(new, frames, 1, **rest)} for same, new in (now, before)]
    (mending,) = mendings(*both)
    return mending.word, mending.why


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ((0, 0), "mended"),
        ((2, 3), "mended"),
        ((0, 30), "learned by heart"),
        ((1, 25), "learned by heart"),
        ((FRAMES, 30), "not mended"),
        ((30, 28), "not mended"),
        # Neither so few that half of the former rate is excluded, nor so many.
        ((0, 14), "undecided"),
        # The very cases that were learned still fail: whatever else holds, this is no mending.
        ((FRAMES, 0), "undecided"),
    ],
)
def test_what_is_said(now: tuple[int, int], expected: str) -> None:
    assert word(now)[0] == expected


def test_few_frames_decide_nothing() -> None:
    assert word((0, 0), (3, 3), frames=3) == ("undecided", "too few frames: the interval includes half the former rate")


def test_fresh_draws_that_never_failed_say_nothing() -> None:
    """A case may have been bad luck of one draw: then fresh draws hold with any stack."""
    assert word((0, 0), (FRAMES, 0)) == ("undecided", "no fresh draw was violated before")


def test_what_was_not_decided_is_not_counted() -> None:
    assert word((0, 0), decided=False) == ("undecided", "no fresh draw was decided both times")


def test_only_pairs_that_both_replays_have_are_compared() -> None:
    now = {"cases": rows(0), "fresh": rows(0, seed=1) + rows(FRAMES, seed=2)}
    (mending,) = mendings(now, {"cases": rows(FRAMES), "fresh": rows(30, seed=1)})
    assert (mending.fresh.decided, mending.fresh.now, mending.word) == (FRAMES, 0, "mended")


def test_frames_of_one_drive_are_no_independent_observations() -> None:
    """Neighbouring frames see the same scene: ten in a row count like one."""
    count, failed = 80, 60
    apart = rows(failed, count, seed=1)
    alike = [{**row, "bag": "drive", "pair": f"0/{i}/r/0"} for i, row in enumerate(apart)]
    widths = []
    for drawn in (alike, apart):
        before = {"cases": [], "fresh": [{**row, "outcome": "VIOLATED"} for row in drawn]}
        (mending,) = mendings({"cases": rows(0), "fresh": drawn}, before)
        assert mending.fresh.interval is not None
        widths.append(mending.fresh.interval.high - mending.fresh.interval.low)
    assert widths[0] > 1.5 * widths[1]


def case(name: str, bundle: int, draw: str) -> FailureCase:
    return FailureCase("drive", "aa", "odd", Pair(0, bundle, name, draw), 7, words_of(load_relation(name)), "code")


def test_fresh_draws_have_other_seeds_on_the_same_frames_once() -> None:
    cases = tuple(case("points_dropped_10_percent", bundle, draw) for bundle, draw in ((3, "0"), (3, "2"), (5, "1")))
    some = Together("drive", "aa", 0, 7, 0, cases)
    first, second = fresh(some, 1), fresh(some, 2)
    assert first is not None and second is not None
    assert [str(c.pair) for c in first.cases] == [f"0/{i}/points_dropped_10_percent/0" for i in (3, 5)]
    assert len({some.seed, first.seed, second.seed}) == 3
    assert {c.seed for c in first.cases} == {first.seed} and first.name != some.name
    assert not {c.key for c in cases} & {c.key for c in first.cases}


def test_a_relation_that_draws_nothing_has_no_fresh_draws() -> None:
    some = Together("drive", "aa", 0, 7, 0, (case("cloud_mirrored", 3, "0"),))
    assert fresh(some, 1) is None


def test_the_rows_are_what_json_can_hold() -> None:
    (mending,) = mendings({"cases": rows(0), "fresh": rows(0, seed=1)}, {"cases": rows(9), "fresh": rows(9, seed=1)})
    assert json.loads(json.dumps(mending.as_plain()))["word"] == mending.word
