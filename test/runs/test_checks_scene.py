# SPDX-License-Identifier: Apache-2.0
"""Checks of equality, boxes, classes, scores, tracks, and of what was added or removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_checks import BUNDLE, SIZES, STREET, judge, seen

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.data.association import moved
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.regions import load_region
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import pose_matrix
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.object_found import ObjectFound
from mt_nodes.relations.checks.obstacle_checks import (
    ObstacleCountNotLess,
    ObstaclesEqual,
    ObstaclesKept,
    ObstaclesNotGained,
    RemovedGone,
)
from mt_nodes.relations.checks.obstacle_property_checks import (
    BoxStable,
    ClassStable,
    ConfidenceNotRaised,
    TrackIdentityStable,
)
from mt_nodes.relations.conditions.source_conditions import ObstaclesWithin
from mt_nodes.relations.relation import REQUIRABLE, load_relation, shipped_relations
from mt_nodes.stacks.stack import Stack, load_stack

#: Where each obstacle of a street may stand: far enough apart never to be mistaken for its neighbour.
PLACES = [(4.0 * i + 3.0, 5.0 * j) for i in range(9) for j in (-1, 0, 1)]
CHECKS = [ObstaclesEqual, ObstaclesNotGained, ObstaclesKept, ObstacleCountNotLess, ClassStable, BoxStable]
CHECKS += [ConfidenceNotRaised, TrackIdentityStable]


@st.composite
def streets(draw: Any, least: int = 1) -> list[tuple[Any, ...]]:
    """Sure obstacles of any class, no two in one place."""
    spots = draw(st.lists(st.sampled_from(PLACES), unique=True, min_size=least, max_size=8))
    return [(draw(st.sampled_from(sorted(SIZES))), x, y, draw(st.sampled_from([0.6, 0.9]))) for x, y in spots]


def tracked(rows: list[tuple[Any, ...]], ids: list[str] | None = None) -> Output:
    return seen(rows, track_id=ids or [str(i) for i in range(len(rows))], yaw_rad=[0.1 * i for i in range(len(rows))])


def changed(output: Output, **columns: Any) -> Output:
    assert output.detections is not None
    return Output(replace(output.detections, **{k: np.asarray(v) for k, v in columns.items()}))


def figures(j: Judgement) -> tuple[Any, ...]:
    return j.outcome.value, j.measured, j.bound, j.margin


@settings(max_examples=40, deadline=None)
@given(streets())
def test_an_equal_followup_holds(rows: list[tuple[Any, ...]]) -> None:
    for cls in CHECKS:
        judgement = judge(cls(), tracked(rows), tracked(rows))
        assert judgement.outcome is Outcome.HOLDS and judgement.margin is not None and judgement.margin >= 0, cls


@settings(max_examples=40, deadline=None)
@given(streets(2), st.data())
def test_a_lost_obstacle_violates_what_demands_it(rows: list[tuple[Any, ...]], data: Any) -> None:
    gone = data.draw(st.integers(0, len(rows) - 1))
    left = rows[:gone] + rows[gone + 1 :]
    for cls in (ObstaclesEqual, ObstaclesKept, ObstacleCountNotLess):
        assert judge(cls(), rows, left).outcome is Outcome.VIOLATED
    assert judge(ObstaclesNotGained(), rows, left).outcome is Outcome.HOLDS
    for cls in (ObstaclesEqual, ObstaclesNotGained):
        judgement = judge(cls(), left, rows)
        assert (judgement.outcome, judgement.margin, judgement.gained) == (Outcome.VIOLATED, -1, 1)
    assert judge(ObstaclesKept(), left, rows).outcome is Outcome.HOLDS


@settings(max_examples=40, deadline=None)
@given(streets(), st.floats(-np.pi, np.pi), st.booleans(), st.sampled_from([0.9, 1.0, 1.1]))
def test_an_equivariant_stack_holds_and_one_that_ignores_the_change_does_not(
    rows: list[tuple[Any, ...]], yaw: float, mirror: bool, scale: float
) -> None:
    region = load_region({"frame_id": "base_link", "box_m": {"x": [-80, 80], "y": [-80, 80]}})
    matrix = pose_matrix([5.0, 9.0, 0.0], quaternion_of_yaw(yaw)) @ np.diag(
        [scale, -scale if mirror else scale, scale, 1]
    )
    effects = Effects(output_transform=matrix, output_frame_id="base_link")
    before = tracked(rows)
    after = Output(moved(before.detections, matrix, "base_link"))  # type: ignore[arg-type]
    for cls in CHECKS:
        assert judge(cls(region=region), before, after, effects).outcome is Outcome.HOLDS, cls
    assert judge(BoxStable(region=region, yaw_rad=0.01, size_m=0.01), before, after, effects).margin == pytest.approx(1)
    assert judge(ObstaclesEqual(region=region), before, seen([]), effects).margin < 0  # type: ignore[operator]


def test_the_keep_zone_holds_before_and_after_the_scene_moves() -> None:
    ahead = Effects(output_transform=pose_matrix([10, 0, 0], [0, 0, 0, 1]), output_frame_id="base_link")
    # Before it was behind the region and not watched: that it is seen now is no gain, and nobody demanded it.
    assert judge(ObstaclesEqual(), [], [("car", 5.0, 0.0)], ahead).outcome is Outcome.NOT_APPLICABLE
    assert judge(ObstaclesEqual(), [], [("car", 25.0, 0.0)], ahead).outcome is Outcome.VIOLATED
    # It was cut by the region's edge, so nobody can say what it was.
    assert judge(ObstaclesKept(), [("car", 0.5, 0.0)], [], ahead).outcome is Outcome.NOT_APPLICABLE
    assert judge(ObstaclesKept(), [("car", 5.0, 0.0)], [], ahead).outcome is Outcome.VIOLATED


def test_equal_names_both_directions() -> None:
    judgement = judge(ObstaclesEqual(), STREET, [*STREET[1:], ("car", 35.0, 7.0)])
    assert figures(judgement) == ("VIOLATED", 2, 0, -2)
    assert (judgement.lost, judgement.gained) == (1, 1)
    assert judgement.reason == "lost car at (12.0, 3.0) m; gained car at (35.0, 7.0) m"
    assert judge(ObstaclesEqual(), STREET, STREET).reason == "kept all 4, gained none"


@pytest.mark.parametrize("check", [ObstaclesEqual(), ObstaclesNotGained()])
def test_nothing_on_both_sides_is_not_applicable_and_a_ghost_is_seen(check: Check) -> None:
    assert judge(check, [], []).outcome is Outcome.NOT_APPLICABLE
    assert judge(check, [], [("car", 12.0, 3.0)]).reason == "gained car at (12.0, 3.0) m"
    # One that was unsure before is none, nor one that is unsure now.
    assert judge(check, [("car", 12.0, 3.0, 0.4)], [("car", 12.0, 3.0)]).outcome is Outcome.NOT_APPLICABLE
    assert judge(check, [], [("car", 12.0, 3.0, 0.4)]).outcome is Outcome.NOT_APPLICABLE


CHILD = Volume("base_link", (20.0, 2.0, 0.6), (0.5, 0.5, 1.2), label="pedestrian")


def test_what_was_added_is_not_gained() -> None:
    there = [*STREET, ("pedestrian", 20.0, 2.0)]
    assert judge(ObstaclesEqual(), STREET, there, Effects(added=(CHILD,))).outcome is Outcome.HOLDS
    assert judge(ObstaclesEqual(), STREET, there).outcome is Outcome.VIOLATED


def test_an_added_object_is_found_or_missed() -> None:
    effects = Effects(added=(CHILD,))
    found = judge(ObjectFound(), STREET, [*STREET, ("pedestrian", 20.2, 2.0)], effects)
    assert figures(found) == ("HOLDS", 1, 1, 0)
    assert found.detail["objects"] == [[20.1, True, "pedestrian"]]
    assert found.detail["objects_by"] == {"name": "range", "unit": "m", "bin": 10.0}
    missed = judge(ObjectFound(), STREET, STREET, effects)
    assert figures(missed) == ("VIOLATED", 0, 1, -1)
    assert missed.reason == "not found: pedestrian at (20.0, 2.0) m"
    assert missed.detail["objects"] == [[20.1, False, "pedestrian"]]
    # One as unsure as the low threshold answers, one below does not.
    assert judge(ObjectFound(), [], [("pedestrian", 20.0, 2.0, 0.3)], effects).outcome is Outcome.HOLDS
    assert judge(ObjectFound(), [], [("pedestrian", 20.0, 2.0, 0.2)], effects).outcome is Outcome.VIOLATED


def test_an_old_neighbour_is_not_the_added_object_but_one_that_swallowed_it_is() -> None:
    beside = [("pedestrian", 20.0, 2.7)]
    assert judge(ObjectFound(), beside, beside, Effects(added=(CHILD,))).outcome is Outcome.VIOLATED
    swallowed = changed(seen(beside), size_m=[[0.6, 2.2, 1.7]], center_m=[[20.0, 2.3, 0.8]])
    assert judge(ObjectFound(), seen(beside), swallowed, Effects(added=(CHILD,))).outcome is Outcome.HOLDS


def test_hidden_and_far_objects_are_not_demanded() -> None:
    wall = Volume("base_link", (22.0, 2.0, 1.0), (6.0, 4.0, 2.0))
    behind = Volume("base_link", (23.0, 2.0, 1.0), (6.0, 4.0, 2.0))  # begins at x = 20, half-way through the object
    sliver = Volume("base_link", (23.2, 2.0, 1.0), (6.0, 4.0, 2.0))
    sector = replace(wall, outline_m=((15.0, -20.0), (30.0, -20.0), (30.0, -10.0)))
    for occluded, demanded in ((wall, False), (behind, False), (sliver, True), (sector, True)):
        judgement = judge(ObjectFound(), [], [], Effects(added=(CHILD,), occluded=(occluded,)))
        assert judgement.outcome is (Outcome.VIOLATED if demanded else Outcome.NOT_APPLICABLE)
    assert judge(ObjectFound(within_m=15.0), [], [], Effects(added=(CHILD,))).outcome is Outcome.NOT_APPLICABLE
    assert judge(ObjectFound(), [], []).outcome is Outcome.NOT_APPLICABLE
    # In another frame, too.
    there = replace(CHILD, frame_id="velodyne", center_m=(20.0, 2.0, -1.1))
    assert judge(ObjectFound(), [], [], Effects(added=(there,))).outcome is Outcome.VIOLATED


def test_what_was_removed_is_gone() -> None:
    hole = Effects(removed=(Volume("base_link", (12.0, 3.0, 1.0), (6.0, 4.0, 3.0)),))
    assert figures(judge(RemovedGone(), STREET, STREET[1:], hole)) == ("HOLDS", 0, 0, 0)
    ghost = judge(RemovedGone(), STREET, STREET, hole)
    assert figures(ghost) == ("VIOLATED", 1, 0, -1)
    assert ghost.reason == "removed and still seen: car at (12.0, 3.0) m"
    # Cut in two it may still be seen, and elsewhere nobody asks.
    half = Effects(removed=(Volume("base_link", (10.0, 3.0, 1.0), (6.0, 4.0, 3.0)),))
    assert judge(RemovedGone(), STREET, STREET, half).outcome is Outcome.NOT_APPLICABLE
    assert judge(RemovedGone(), [], []).outcome is Outcome.NOT_APPLICABLE


def test_control_and_sham_are_what_misses_and_ghosts_are_measured_against() -> None:
    for check, before, after in ((ObjectFound(), STREET, STREET[1:]), (RemovedGone(), STREET[1:], STREET)):
        assert judge(check, STREET, STREET).outcome is Outcome.HOLDS
        assert figures(judge(check, before, after))[3] == -1


@pytest.mark.parametrize(("check", "outcome"), [(RemovedGone(), "VIOLATED"), (ObstaclesNotGained(), "HOLDS")])
def test_silence_is_not_a_statement_that_nothing_is_there(check: Check, outcome: str) -> None:
    relation = replace(load_relation("region_emptied"), check=check, given=(ObstaclesWithin(),))
    hole = Effects(removed=(Volume("base_link", (20.0, 0.0, 1.0), (60.0, 60.0, 30.0)),))
    answers = (Answer(AnswerStatus.ANSWERED, seen(STREET)), Answer.nothing(AnswerStatus.SILENT, "no answer"))
    effects = hole if outcome == "VIOLATED" else Effects()
    verdict = Engine(True).judge(Offer(relation, (relation,)), BUNDLE, answers, effects)[0]
    assert verdict.outcome.value == outcome
    said = (answers[0], Answer(AnswerStatus.ANSWERED, seen([])))
    assert Engine(True).judge(Offer(relation, (relation,)), BUNDLE, said, effects)[0].outcome is Outcome.HOLDS


def test_a_class_that_changes() -> None:
    after = [("cyclist", 12.0, 3.0), ("unknown", 25.0, -3.0), *STREET[2:]]
    judgement = judge(ClassStable(), STREET, after)
    assert figures(judgement) == ("VIOLATED", 2, 0, -2)
    assert judgement.reason == "car at (12.0, 3.0) m, car at (25.0, -3.0) m, now cyclist, unknown"
    assert judge(ClassStable(unknown_agrees=True), STREET, after).margin == -1
    assert judge(ClassStable(), STREET, []).outcome is Outcome.NOT_APPLICABLE
    with pytest.raises(UsageError, match="no change of class could be seen"):
        build(ClassStable, {"per_category": True}, "test")


@settings(deadline=None)
@given(dx=st.floats(-0.9, 0.9), turn=st.floats(-1.5, 1.5), longer=st.floats(-1.0, 1.0))
def test_the_worst_deviation_counts_by_its_bound(dx: float, turn: float, longer: float) -> None:
    before = changed(seen([("car", 20.0, 0.0)]), yaw_rad=[0.3])
    after = changed(before, center_m=[[20.0 + dx, 0.0, 0.8]], yaw_rad=[0.3 + turn], size_m=[[4.2 + longer, 1.8, 1.5]])
    judgement = judge(BoxStable(), before, after)
    shares = [abs(dx) / 0.5, abs(turn) / 0.2, abs(longer) / 0.5]
    assert judgement.measured == pytest.approx(max(shares), abs=1e-6)
    assert judgement.margin == pytest.approx(1.0 - max(shares), abs=1e-6)
    assert (judgement.outcome is Outcome.HOLDS) == (judgement.margin is not None and judgement.margin >= 0)


def test_box_reasons_and_yaw() -> None:
    before = changed(seen([("car", 20.0, 0.0), ("pedestrian", 10.0, 3.0)]), yaw_rad=[0.0, 0.0])
    turned = changed(before, yaw_rad=[0.3, 1.5])
    judgement = judge(BoxStable(), before, turned)
    assert judgement.reason == "yaw of car at (20.0, 0.0) m is off by 0.3 rad, the bound is 0.2 rad"
    assert judgement.detail["worst"] == {"position_m": 0.0, "yaw_rad": 0.3, "size_m": 0.0}
    back = changed(before, yaw_rad=[np.pi, 0.0])
    assert judge(BoxStable(), before, back).outcome is Outcome.HOLDS
    assert judge(BoxStable(headed=True), before, back).outcome is Outcome.VIOLATED
    square = changed(before, size_m=[[2.0, 1.9, 1.5], [0.6, 0.6, 1.7]])
    assert judge(BoxStable(), square, changed(square, yaw_rad=[1.0, 1.0])).outcome is Outcome.HOLDS
    assert judge(BoxStable(), STREET, []).outcome is Outcome.NOT_APPLICABLE


@given(st.lists(st.tuples(st.floats(0.5, 0.99), st.floats(0.31, 1.0)), min_size=1, max_size=6), st.floats(0.0, 0.3))
def test_confidence_is_compared_between_partners(scores: list[tuple[float, float]], at_most: float) -> None:
    rows = [("car", 4.0 * i + 3.0, 0.0) for i in range(len(scores))]
    before, after = (changed(seen(rows), score=[s[k] for s in scores]) for k in (0, 1))
    rises = [b - a for a, b in scores]
    for of, expected in (("mean", np.mean(rises)), ("each", max(rises))):
        judgement = judge(ConfidenceNotRaised(by_at_most=at_most, of=of), before, after)
        assert judgement.measured == pytest.approx(expected)
        assert (judgement.outcome is Outcome.HOLDS) == (
            judgement.measured is not None and judgement.measured <= at_most
        )


def test_confidence_of_nobody_or_of_a_stack_without_scores() -> None:
    unsure, sure = ("car", 12.0, 3.0, 0.5), ("car", 25.0, -3.0, 0.9)
    # Losing the unsure one raises the average of what is left, and nobody's confidence.
    assert judge(ConfidenceNotRaised(), [unsure, sure], [sure]).measured == 0.0
    assert judge(ConfidenceNotRaised(), STREET, STREET).reason == "every score is 1: the stack gives none"
    assert judge(ConfidenceNotRaised(), [unsure], []).outcome is Outcome.NOT_APPLICABLE
    each = judge(ConfidenceNotRaised(of="each"), [unsure, sure], [("car", 12.0, 3.0, 0.8), sure])
    assert each.reason == "the score of car at (12.0, 3.0) m of 2 obstacles rose by +0.300"


def test_tracks_keep_their_names() -> None:
    before = tracked(STREET, ["7", "8", "9", "10"])
    assert figures(judge(TrackIdentityStable(), before, before)) == ("HOLDS", 4, 4, 0)
    swapped = judge(TrackIdentityStable(), before, tracked(STREET, ["8", "7", "9", "10"]))
    assert figures(swapped) == ("VIOLATED", 2, 4, -2)
    assert swapped.reason == "car at (12.0, 3.0) m, car at (25.0, -3.0) m: id 8 for 7, 7 for 8"
    nameless = judge(TrackIdentityStable(), before, tracked(STREET, ["7", "8", "9", ""]))
    assert nameless.margin == -1 and nameless.reason.endswith("id (none) for 10")
    assert judge(TrackIdentityStable(), STREET, STREET).reason == "the stack gives no track ids"
    assert judge(TrackIdentityStable(), before, []).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("need", REQUIRABLE)
def test_what_a_relation_requires_a_stack_can_say(need: str) -> None:
    relation = replace(load_relation("intensity_noisy"), requires=(need,))
    of_inputs = need.removesuffix("_only") in ("lidar", "camera", "radar", "objects")
    facts: dict[str, Any] = {} if of_inputs else {need: True}
    inputs = {role: {"lidar": "/l", role: f"/{role}"} for role in ("camera", "radar", "objects")}
    inputs["radar_only"] = {"radar": "/r"}
    able = Stack(name="able", callable="m:f", inputs=inputs.get(need, {"lidar": "/l"}), **facts)
    unable = Stack(
        name="unable", callable="m:f", inputs={"camera": "/c"} if need.startswith("lidar") else {"lidar": "/l"}
    )
    assert incompatibility(relation, able) is None
    assert need in str(incompatibility(relation, unable))


def test_the_reference_stacks_say_what_they_are() -> None:
    by_name = {name: load_stack(name) for name in ("reference_detector", "reference_whole_cloud", "reference_tracker")}
    assert [s.full_360 for s in by_name.values()] == [False, True, False]
    assert [s.tracks for s in by_name.values()] == [False, False, True]
    assert all(s.map_free for s in by_name.values())


def test_equivariance_is_necessary_only_for_whoever_sees_all_around_without_a_map() -> None:
    moves = {"cloud_rotated", "cloud_translated", "cloud_mirrored", "cloud_scaled"}
    for relation in shipped_relations():
        if relation.kind == "necessary" and moves & {plugins.name_of(type(m)) for m in relation.mutate}:
            assert {"full_360", "map_free"} <= set(relation.requires), relation.id


def test_detections_in_another_frame_are_compared_in_the_regions() -> None:
    there = Detections.make("velodyne", None, [[12.0, 3.0, -0.9]], [[4.2, 1.8, 1.5]], label=["car"], score=[1.0])
    assert judge(ObstaclesEqual(), [STREET[0]], Output(there)).outcome is Outcome.HOLDS
