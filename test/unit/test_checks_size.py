# SPDX-License-Identifier: Apache-2.0
"""Who may stand for whom: boxes as large as the street, merged neighbours, and what was there before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_checks import SIZES, STREET, judge, kept, seen, summary
from test_checks_camera import OTHER, PERSON, boxes, judged, put
from test_checks_camera import moved as shifted
from test_checks_scene import CHILD, streets

from mt_nodes.data.association import Association, accounted_for, covered, footprints, grown
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.boxes import BoxesKept, BoxFound
from mt_nodes.relations.checks.object_found import ObjectFound
from mt_nodes.relations.checks.obstacle_checks import (
    Monotone,
    ObstacleCountNotLess,
    ObstaclesEqual,
    ObstaclesKept,
    ObstaclesNotGained,
)

HOLDS, VIOLATED, NOTHING = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE


def sized(*rows: tuple[float, ...], label: str = "unknown") -> Output:
    """Return obstacles of x, y, length and width."""
    return Output(
        Detections.make(
            "base_link",
            None,
            [[x, y, 0.8] for x, y, *_ in rows],
            [[*r[2:], 1.5] for r in rows],
            label=[label] * len(rows),
        )
    )


def with_others(output: Output, rows: list[tuple[Any, ...]]) -> Output:
    """Return obstacles of x, y, length and width, and those of a street."""
    one, more = output.detections, seen(rows).detections
    assert one is not None and more is not None
    centers, sizes = np.concatenate([one.center_m, more.center_m]), np.concatenate([one.size_m, more.size_m])
    return Output(Detections.make("base_link", None, centers, sizes, label=[*one.label.tolist(), *more.label.tolist()]))


HUGE = sized((20.0, 0.0, 80.0, 60.0))


def test_a_box_around_the_street_keeps_nobody() -> None:
    judgement = kept(STREET, HUGE)
    assert summary(judgement)[:5] == ("VIOLATED", 0, 4, -4, 4)
    assert judgement.reason.endswith("; a box that reaches far beyond what it covers stands for nobody")
    # Nor does it keep the one in whose middle it lies, whatever class it bears.
    for label in SIZES:
        assert kept([("car", 20.0, 0.0)], sized((20.0, 0.0, 80.0, 60.0), label=label)).outcome is VIOLATED
    assert "stands for nobody" not in kept(STREET, []).reason


@settings(max_examples=40, deadline=None)
@given(streets(), st.floats(0.0, 40.0), st.floats(-10.0, 10.0))
def test_no_street_hides_in_one_box(rows: list[tuple[Any, ...]], x: float, y: float) -> None:
    assert kept(rows, sized((x, y, 80.0, 60.0))).lost == len(rows)


ROW = [("car", 20.0, y) for y in (-3.0, 0.0, 3.0)]
LOT = [("car", x, y) for x in (10.0, 15.5, 21.0, 26.5) for y in (-6.0, -3.0, 0.0, 3.0, 6.0)]
LANE = [("car", x, 0.0) for x in (8.0, 18.0, 28.0)]


@pytest.mark.parametrize(
    ("rows", "box", "outcome"),
    [
        (ROW, (20.0, 0.0, 4.2, 7.8), HOLDS),  # three neighbours are one
        (ROW[:2], (20.0, -1.5, 4.2, 4.8), HOLDS),
        (LOT, (18.25, 0.0, 20.7, 13.8), VIOLATED),  # twenty are not
        (LANE, (18.0, 0.0, 24.2, 1.8), VIOLATED),  # nor are three that are far apart
        ([("car", 20.0, 0.0)], (20.5, 0.3, 6.0, 3.0), HOLDS),
        ([("car", 20.0, 0.0)], (17.2, 0.1, 10.0, 2.4), HOLDS),  # joined by what whirls behind it
        ([("car", 20.0, 0.0)], (14.0, 0.1, 17.0, 2.4), VIOLATED),
        ([("car", 20.0, 0.0)], (20.0, 0.0, 12.0, 9.0), VIOLATED),
        ([("pedestrian", 20.0, 0.0)], (20.0, 0.0, 2.0, 2.0), HOLDS),
        ([("pedestrian", 20.0, 0.0)], (20.0, 0.0, 4.2, 3.0), VIOLATED),  # of a person a car's size is too much
    ],
)
def test_how_far_a_box_may_reach_goes_by_what_it_covers(rows: Any, box: Any, outcome: Outcome) -> None:
    assert kept(rows, sized(box)).outcome is outcome


def test_a_neighbour_may_be_unsure_new_or_outside_the_keep_zone() -> None:
    car, both = ("car", 20.0, 0.0), sized((20.0, 1.2, 4.4, 3.8))
    assert kept([car], both).outcome is HOLDS
    wide = sized((20.0, 4.0, 4.4, 10.0))
    assert kept([car], wide).outcome is VIOLATED
    assert kept([car, ("car", 20.0, 5.0, 0.4)], wide).outcome is HOLDS
    beside = Volume("base_link", (20.0, 5.0, 0.8), SIZES["car"], label="car")
    assert kept([car], wide, Effects(added=(beside,))).outcome is HOLDS
    assert kept([("car", 20.0, 8.0), ("car", 20.0, 11.0)], sized((20.0, 9.5, 4.2, 4.8))).outcome is HOLDS


def test_a_neighbour_that_covers_what_it_covered_keeps_nobody() -> None:
    """A house's box holds what stands in its corner; it is the house's before and after."""
    corner = sized((20.0, 2.0, 16.0, 12.0))
    inside = [("car", 16.0, 0.0), ("pedestrian", 24.0, 4.0)]
    assert summary(kept(with_others(corner, inside), with_others(corner, inside)))[:3] == ("HOLDS", 3, 3)
    assert kept(with_others(corner, inside), corner).reason == "lost car at (16.0, 0.0) m, pedestrian at (24.0, 4.0) m"
    assert summary(kept(with_others(HUGE, STREET), HUGE))[:5] == ("VIOLATED", 1, 5, -4, 4)
    # It has kept who was beside it if it grew around him.
    beside = [("car", 29.5, 2.0)]
    assert kept(with_others(corner, beside), sized((21.5, 2.0, 20.0, 12.0))).outcome is HOLDS
    # Two boxes of one size are perhaps one thing twice.
    twice = sized((20.0, 0.0, 4.4, 1.8), (20.0, 0.0, 6.0, 2.5))
    assert kept(twice, sized((20.0, 0.0, 6.0, 2.5))).outcome is HOLDS


@pytest.mark.parametrize("check", [ObstaclesNotGained(), Monotone(), ObstaclesEqual()])
def test_who_appears_within_a_neighbours_box_is_gained(check: Check) -> None:
    corner = sized((20.0, 2.0, 16.0, 12.0))
    judgement = judge(check, corner, with_others(corner, [("car", 16.0, 0.0)]))
    assert judgement.outcome is VIOLATED and judgement.gained == 1
    # A piece of what became smaller is none.
    less = sized((21.0, 2.0, 14.0, 12.0), (12.9, 2.0, 1.6, 3.0))
    if not isinstance(check, ObstaclesEqual):
        assert judge(check, corner, less).gained == 0


@pytest.mark.parametrize("check", [ObstaclesNotGained(), Monotone(), ObstaclesEqual()])
def test_nobody_comes_out_of_a_box_around_the_street(check: Check) -> None:
    judgement = judge(check, HUGE, STREET)
    assert judgement.outcome is VIOLATED and judgement.gained == 4


def test_what_is_left_of_a_large_thing_is_not_gained() -> None:
    wall = sized((20.0, 3.0, 20.0, 1.0))
    for left in (sized((12.0, 3.0, 3.0, 1.0)), sized((12.0, 3.0, 2.0, 0.8), (26.0, 3.0, 2.0, 0.8))):
        assert judge(ObstaclesNotGained(), wall, left).outcome is HOLDS
        assert judge(Monotone(), wall, left).outcome is HOLDS


def test_neighbours_account_for_what_lies_around_them() -> None:
    row, car = seen(ROW).detections, seen([("car", 20.0, 0.0)]).detections
    assert row is not None and car is not None
    around = footprints(grown(car))
    assert around[0].bounds == pytest.approx((20.0 - 2.1 - 2.0, -0.9 - 2.0, 20.0 + 2.1 + 2.0, 0.9 + 2.0))
    of = sized((20.0, 0.0, 8.2, 5.8), (20.0, 0.0, 16.4, 5.8), (50.0, 0.0, 1.0, 1.0), (50.0, 0.0, 0.0, 0.0)).detections
    assert of is not None
    assert accounted_for(of, around, 1) == pytest.approx([1.0, 0.5, 0.0, 1.0])
    assert accounted_for(of, around[:0], 3) == pytest.approx([0.0, 0.0, 0.0, 1.0])
    assert accounted_for(of.take(np.array([], np.intp)), around, 3).shape == (0,)
    whole = sized((20.0, 0.0, 8.2, 11.8)).detections
    assert whole is not None
    shares = [float(accounted_for(whole, footprints(grown(row)), most)[0]) for most in (1, 2, 3, 9)]
    assert shares == pytest.approx([5.8 / 11.8, 8.8 / 11.8, 1.0, 1.0])


def test_neighbours_hang_together() -> None:
    for apart_m, most, share in (
        (6.1, 3, 1.0),
        (8.3, 3, 8.2 / 24.8),
        (6.1, 2, 14.3 / 20.4),
        (6.1, 1, 8.2 / 20.4),
    ):
        lane = seen([("car", 20.0 + i * apart_m, 0.0) for i in (-1, 0, 1)]).detections
        box = sized((20.0, 0.0, 8.2 + 2.0 * apart_m, 1.8)).detections
        assert lane is not None and box is not None
        assert float(accounted_for(box, footprints(grown(lane)), most)[0]) == pytest.approx(share)


def found(before: Any, after: Any, effects: Effects = Effects(added=(CHILD,)), **params: Any) -> Outcome:  # noqa: B008
    return judge(ObjectFound(**params), before, after, effects).outcome


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (sized((20.0, 2.0, 6.0, 6.0)), sized((20.0, 2.0, 6.0, 6.0))),  # it covers the place as ever
        (sized((20.0, 2.0, 6.0, 6.0)), sized((20.1, 2.1, 6.1, 6.0))),
        (sized((20.0, 2.0, 6.0, 6.0)), sized((22.0, 2.0, 6.0, 6.0))),  # too far off to be the same one
        (sized((18.0, 2.0, 4.0, 4.0), (22.0, 2.0, 4.0, 4.0)),) * 2,  # two together
        (sized((20.0, 3.0, 6.0, 4.0)), sized((18.5, 3.0, 3.0, 4.0), (21.5, 3.0, 3.0, 4.0))),  # in two pieces
        ([("pedestrian", 20.0, 2.7)], [("pedestrian", 20.0, 2.7)] * 2),  # twice
        ([("pedestrian", 20.0, 2.7)], [("pedestrian", 20.0, 2.7), ("pedestrian", 20.0, 2.68)]),
        ([("pedestrian", 20.0, 2.7, 0.4)], [("pedestrian", 20.0, 2.7)]),  # unsure at first
        ([("pedestrian", 20.0, 2.7)], [("pedestrian", 20.0, 2.32)]),  # a step towards it
        ([], HUGE),
        (STREET, with_others(HUGE, STREET)),
        ([], sized((20.0, 2.0, 5.0, 5.0))),  # no person is so large
    ],
)
def test_what_was_there_before_or_is_too_large_finds_nothing(before: Any, after: Any) -> None:
    assert found(before, after) is VIOLATED


@settings(max_examples=60, deadline=None)
@given(streets(0), st.floats(2.0, 38.0), st.floats(-8.0, 8.0), st.sampled_from(["pedestrian", "car", "truck"]))
def test_a_stack_that_sees_nothing_new_finds_nothing(rows: Any, x: float, y: float, label: str) -> None:
    added = Volume("base_link", (x, y, 0.8), SIZES.get(label, (9.0, 2.5, 3.0)), label=label)
    assert found(rows, rows, Effects(added=(added,))) is VIOLATED
    assert found(rows, rows + rows, Effects(added=(added,))) is VIOLATED


@settings(max_examples=60, deadline=None)
@given(streets(0), st.floats(2.0, 38.0), st.floats(-8.0, 8.0), st.floats(-0.2, 0.2), st.sampled_from(sorted(SIZES)))
def test_a_box_of_its_own_finds_it_wherever_it_stands(rows: Any, x: float, y: float, off: float, label: str) -> None:
    if any(np.hypot(x - row[1], y - row[2]) < 2.0 for row in rows):
        return  # who stands within another is not asked for: objects are put on free ground
    added = Volume("base_link", (x, y, 0.8), SIZES[label], label=label)
    assert found(rows, [*rows, (label, x + off, y)], Effects(added=(added,))) is HOLDS


def test_a_box_within_a_large_one_or_in_the_place_of_what_was_removed_is_new() -> None:
    wall, person = sized((21.5, 2.5, 10.0, 3.0)), [("pedestrian", 20.0, 2.1)]
    assert found(wall, with_others(wall, person)) is HOLDS
    place = sized((20.0, 2.0, 0.7, 0.7))
    hole = Effects(added=(CHILD,), removed=(Volume("base_link", (20.0, 2.0, 0.8), (0.7, 0.7, 1.7)),))
    assert found(place, place, hole) is HOLDS and found(place, place) is VIOLATED
    # Two that stand together are found by a box each, or by one around both.
    two = Effects(added=(CHILD, Volume("base_link", (20.0, 2.9, 0.6), (0.5, 0.5, 1.2), label="pedestrian")))
    assert found([], [("pedestrian", 20.0, 2.0), ("pedestrian", 20.0, 2.9)], two) is HOLDS
    assert found([], sized((20.0, 2.45, 0.5, 1.4)), two) is HOLDS
    assert found([], [("pedestrian", 20.0, 2.0)], two) is VIOLATED


def test_a_piece_of_a_neighbour_is_his_however_near_its_middle_is() -> None:
    lorry = sized((20.0, 2.0, 9.0, 2.5), label="truck")
    halves = sized((17.75, 2.0, 4.5, 2.5), (22.25, 2.0, 4.5, 2.5), label="truck")
    for x in (17.75, 22.25):  # one half is taken for the lorry, the other for nobody
        beside = Effects(added=(Volume("base_link", (x, 3.9, 0.8), SIZES["car"], label="car"),))
        assert found(lorry, halves, beside) is VIOLATED
        assert found(halves, lorry, beside) is VIOLATED


def test_a_box_beside_the_object_finds_it_within_its_gate() -> None:
    assert found([], [("pedestrian", 20.7, 2.0)]) is HOLDS
    assert found([], [("pedestrian", 20.9, 2.0)]) is VIOLATED


def test_a_box_of_another_class_finds_nothing_where_each_class_counts_by_itself() -> None:
    assert found([], sized((20.0, 2.0, 0.5, 0.5))) is HOLDS
    assert found([], sized((20.0, 2.0, 0.5, 0.5)), per_category=True) is VIOLATED
    assert found([], sized((20.0, 2.0, 0.5, 0.5), label="pedestrian"), per_category=True) is HOLDS


AT = shifted(PERSON, 12.0)


@pytest.mark.parametrize(
    ("followup", "outcome"),
    [
        (boxes(PERSON), VIOLATED),
        (boxes(PERSON, PERSON), VIOLATED),  # who was there, twice
        (boxes(PERSON, shifted(PERSON, 3.0)), VIOLATED),
        (boxes((0.0, 0.0, 639.0, 479.0)), VIOLATED),
        (boxes(PERSON, AT), HOLDS),
    ],
)
def test_a_box_that_was_there_finds_nobody_in_the_picture(followup: Output, outcome: Outcome) -> None:
    tall = put((*AT[:3], AT[3] - 10.0))
    assert judged(BoxFound(label="pedestrian"), boxes(PERSON), followup, tall).outcome is outcome


def test_who_is_still_in_sight_is_not_who_was_put_beside_him() -> None:
    beside, between = put(shifted(PERSON, 31.0)), shifted(PERSON, 16.0)
    assert judged(BoxFound(), boxes(PERSON), boxes(between), beside).outcome is VIOLATED
    assert judged(BoxFound(), boxes(PERSON), boxes(PERSON, between), beside).outcome is HOLDS
    assert judged(BoxFound(), boxes(PERSON), boxes(PERSON, shifted(PERSON, 10.0)), beside).outcome is VIOLATED
    # Nor is a box that has hardly moved, though the object hides him whose it was.
    assert judged(BoxFound(), boxes(PERSON), boxes(shifted(PERSON, 6.8)), put(AT)).outcome is VIOLATED
    # Whom the object hides may be gone; and who was hardly seen before has no claim.
    assert judged(BoxFound(), boxes(PERSON), boxes(AT), put(AT)).outcome is HOLDS
    assert judged(BoxFound(), boxes(PERSON, score=0.2), boxes(between), beside).outcome is HOLDS
    assert judged(BoxesKept(), boxes(PERSON, score=0.2), boxes(PERSON)).outcome is NOTHING


def test_a_picture_is_no_box_of_anybody() -> None:
    picture = boxes((0.0, 0.0, 639.0, 479.0))
    assert judged(BoxesKept(), boxes(PERSON, OTHER), picture).lost == 2


#: Nearer to who is unsure than to who is sure.
SURE, UNSURE, BETWEEN = ("pedestrian", 20.0, 0.0, 0.9), ("pedestrian", 21.0, 0.0, 0.4), ("pedestrian", 20.7, 0.0, 0.9)


@pytest.mark.parametrize("check", [ObstaclesKept(), ObstacleCountNotLess(), ObstaclesEqual()])
def test_whoever_is_sure_chooses_before_whoever_is_not(check: Check) -> None:
    for source in ([SURE, UNSURE], [UNSURE, SURE]):
        assert summary(judge(check, source, [BETWEEN]))[0::4] == ("HOLDS", 0)
    assert judge(check, [SURE, (*UNSURE[:3], 0.9)], [BETWEEN]).outcome is VIOLATED


def test_a_box_that_is_sure_chooses_before_one_that_is_not() -> None:
    there = boxes(PERSON, shifted(PERSON, 9.0))
    assert there.boxes is not None
    source = Output(
        boxes=type(there.boxes).make("camera", 0, there.boxes.box_px, there.boxes.label.tolist(), [0.95, 0.6])
    )
    assert judged(BoxesKept(), source, boxes(shifted(PERSON, 10.0))).outcome is HOLDS


def test_coverage_itself_knows_no_size() -> None:
    """The bound is the checks' own: what is split or merged elsewhere is as it was."""
    street, huge = seen(STREET).detections, HUGE.detections
    assert street is not None and huge is not None
    assert covered(street, huge, False) == pytest.approx(np.ones(4))
    assert Association().gates(street) == pytest.approx([2.0, 2.0, 0.8, 1.2])
