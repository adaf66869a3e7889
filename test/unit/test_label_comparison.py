# SPDX-License-Identifier: Apache-2.0
"""Labels beside verdicts: who is really wrong, where labels are silent, and what is counted of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.ground_truth import GroundTruth, points_in
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.engine.summary.oracle_sums import OracleSums, oracle_lines
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.obstacle_checks import (
    Monotone,
    ObstacleCountNotLess,
    ObstaclesEqual,
    ObstaclesKept,
    ObstaclesNotGained,
    RemovedGone,
)
from mt_nodes.relations.mutations.stream.identity import Identity
from mt_nodes.relations.relation import Relation

#: Places in base_link of two labelled cars, of a car that nobody labelled, and of something of an unlabelled class.
A, B, GHOST, POLE = (10.0, 0.0), (20.0, 3.0), (15.0, -4.0), (25.0, 0.0)
CAR_M = (4.2, 1.8, 1.6)


def seen(*places: tuple[float, float], pole: bool = False, frame: str = "base_link") -> Output:
    rows = [*places, *([POLE] if pole else [])]
    labels = ["car"] * len(places) + ["pole"] * pole
    center = [(x, y, 0.8) for x, y in rows]
    return Output(
        detections=Detections.make(frame, None, np.reshape(center, (-1, 3)), [CAR_M] * len(rows), None, labels)
    )


def truth(*places: tuple[float, float], points: int = 50, **rest: Any) -> GroundTruth:
    objects = seen(*places).detections
    assert objects is not None
    return GroundTruth(objects, frozenset({"car"}), np.full(len(objects), points), **rest)


def case(
    check: Check, source: Output, followup: Output, labels: GroundTruth, effects: Effects | None = None, **bundle: Any
) -> tuple[str, str]:
    """The outcome, and what the labels say of it."""
    relation = Relation("r", "expected", "", (), check)
    given = Bundle(0, 0, 1, truth=labels, **bundle)
    answers = tuple(Answer(AnswerStatus.ANSWERED, output) for output in (source, followup))
    (verdict,) = Engine(True).judge(Offer(relation, (relation,)), given, answers, effects or Effects())  # type: ignore[arg-type]
    return verdict.outcome.value, verdict.marks["truth"]["case"]


KEPT, EQUAL, NOT_GAINED = ObstaclesKept(), ObstaclesEqual(), ObstaclesNotGained()


@pytest.mark.parametrize(
    ("check", "source", "followup", "expected"),
    [
        # A labelled car is lost: the follow-up is wrong.
        (KEPT, seen(A, B), seen(B), ("VIOLATED", "followup_wrong")),
        (EQUAL, seen(A, B), seen(B), ("VIOLATED", "followup_wrong")),
        (ObstacleCountNotLess(), seen(A, B), seen(B), ("VIOLATED", "followup_wrong")),
        # A false detection is lost: the source was wrong, the relation is no good oracle here.
        (KEPT, seen(A, GHOST), seen(A), ("VIOLATED", "followup_right")),
        # That both miss B does not make the follow-up's loss of a false detection an error.
        (KEPT, seen(A, GHOST), seen(A), ("VIOLATED", "followup_right")),
        # The follow-up still has the labelled car; what it lost beside it was a second box of the source.
        (KEPT, seen(A, (10.0, 1.7)), seen(A), ("VIOLATED", "followup_right")),
        # What no label could tell is neither.
        (KEPT, seen(A, pole=True), seen(A), ("VIOLATED", "not_comparable")),
        (KEPT, seen(A, B, pole=True), seen(B), ("VIOLATED", "followup_wrong")),
        # Gained: a labelled car that the source missed, and one that is none.
        (EQUAL, seen(A), seen(A, B), ("VIOLATED", "followup_right")),
        (EQUAL, seen(A, B), seen(A, B, GHOST), ("VIOLATED", "followup_wrong")),
        (NOT_GAINED, seen(A), seen(A, GHOST), ("VIOLATED", "followup_wrong")),
        (NOT_GAINED, seen(A), seen(A, B), ("VIOLATED", "followup_right")),
        (NOT_GAINED, seen(A), seen(A, pole=True), ("VIOLATED", "not_comparable")),
        # Pairs that hold: both right, both blind for the same car, both with the same false detection.
        (KEPT, seen(A, B), seen(A, B), ("HOLDS", "not_both_wrong")),
        (KEPT, seen(A), seen(A), ("HOLDS", "both_wrong")),
        (KEPT, seen(A), seen(A, B), ("HOLDS", "not_both_wrong")),
        (EQUAL, seen(A, B, GHOST), seen(A, B, GHOST), ("HOLDS", "both_wrong")),
        # Which obstacles_kept cannot find, for it does not ask for false detections.
        (KEPT, seen(A, B, GHOST), seen(A, B, GHOST), ("HOLDS", "not_both_wrong")),
        (EQUAL, seen(A, B, pole=True), seen(A, B, pole=True), ("HOLDS", "not_both_wrong")),
    ],
)
def test_labels_say_who_is_wrong(check: Check, source: Output, followup: Output, expected: tuple[str, str]) -> None:
    assert case(check, source, followup, truth(A, B)) == expected


def test_a_verdict_is_the_same_with_and_without_labels() -> None:
    relation = Relation("r", "expected", "", (), KEPT)
    answers = (Answer(AnswerStatus.ANSWERED, seen(A, B)), Answer(AnswerStatus.ANSWERED, seen(B)))
    offer, engine = Offer(relation, (relation,)), Engine(True)
    plain, labelled = (
        engine.judge(offer, Bundle(0, 0, 1, truth=labels), answers, Effects()) for labels in (None, truth(A))
    )
    assert plain[0].judgement == labelled[0].judgement and "truth" not in plain[0].marks
    line = labelled[0].as_plain()
    assert line["truth"] == {"case": "followup_wrong"} and Verdict.from_plain(line).marks == labelled[0].marks


def test_a_silent_follow_up_has_lost_what_the_labels_say_is_there() -> None:
    relation = Relation("r", "expected", "", (), KEPT)
    answers = (Answer(AnswerStatus.ANSWERED, seen(A)), Answer.nothing(AnswerStatus.SILENT, "deadline"))
    (verdict,) = Engine(True).judge(Offer(relation, (relation,)), Bundle(0, 0, 1, truth=truth(A)), answers, Effects())
    assert (verdict.outcome, verdict.marks["truth"]) == (Outcome.VIOLATED, {"case": "followup_wrong"})


def test_objects_without_points_are_not_demanded_of_a_detector() -> None:
    assert case(KEPT, seen(A), seen(A), truth(A, B, points=4)) == ("HOLDS", "not_comparable")
    few = replace(truth(A, B), points=np.array([50, 2]))
    assert case(KEPT, seen(A), seen(A), few) == ("HOLDS", "not_both_wrong")
    # It is there all the same: who detects it makes no false detection.
    assert case(NOT_GAINED, seen(A), seen(A, B), few) == ("VIOLATED", "followup_right")


def test_points_are_counted_in_the_cloud_where_the_data_set_does_not_tell() -> None:
    labels = replace(truth(A, B), points=np.full(2, -1))
    xyz = np.zeros(40, dtype=[("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
    xyz["x"], xyz["z"] = 10.0, -0.8  # in the LiDAR's frame, 1.6 m above base_link
    lidar = np.eye(4)
    lidar[2, 3] = 1.6
    tree = TransformTree([Transform("base_link", "lidar", lidar)])
    given: dict[str, Any] = {"clouds": (Cloud("/points", 1, "lidar", xyz),), "transforms": tree}
    assert case(KEPT, seen(A), seen(A), labels, **given) == ("HOLDS", "not_both_wrong")
    assert points_in(labels.objects, np.array([[10.0, 0.0, 0.8], [20.0, 3.0, 1.7]])).tolist() == [1, 0]


def test_where_nothing_is_labelled_a_detection_is_not_false() -> None:
    view = ((0.0, 0.0), (40.0, 20.0), (40.0, -2.0))
    labels = truth(A, B, areas_m=(view,))
    assert case(KEPT, seen(A, GHOST), seen(A), labels) == ("VIOLATED", "not_comparable")
    assert case(KEPT, seen(A, (30.0, 8.0)), seen(A), labels) == ("VIOLATED", "followup_right")


def _volume(place: tuple[float, float]) -> Volume:
    return Volume("base_link", (*place, 0.8), (5.0, 3.0, 2.0))


@pytest.mark.parametrize(
    ("effects", "check", "source", "followup", "expected"),
    [
        # Removed and occluded objects are not demanded: that both miss them is no error.
        (Effects(removed=(_volume(B),)), KEPT, seen(A), seen(A), ("HOLDS", "not_both_wrong")),
        (Effects(occluded=(_volume(B),)), KEPT, seen(A), seen(A), ("HOLDS", "not_both_wrong")),
        # Added objects are there: detecting them is right, though no label has them.
        (Effects(added=(_volume(GHOST),)), EQUAL, seen(A, B), seen(A, B, GHOST), ("HOLDS", "not_both_wrong")),
        # Mirrored: labels move along.
        (
            Effects(output_transform=np.diag([1.0, -1.0, 1.0, 1.0]), output_frame_id="base_link"),
            KEPT,
            seen(A, B),
            seen(A, (20.0, -3.0)),
            ("HOLDS", "not_both_wrong"),
        ),
        (
            Effects(output_transform=np.diag([1.0, -1.0, 1.0, 1.0]), output_frame_id="base_link"),
            KEPT,
            seen(A, B),
            seen(A),
            ("VIOLATED", "followup_wrong"),
        ),
        (
            Effects(output_transform=np.diag([1.0, -1.0, 1.0, 1.0]), output_frame_id="base_link"),
            KEPT,
            seen(A, B, GHOST),
            seen(A, (20.0, -3.0)),
            ("VIOLATED", "followup_right"),
        ),
    ],
)
def test_labels_change_with_the_scene(
    effects: Effects, check: Check, source: Output, followup: Output, expected: tuple[str, str]
) -> None:
    assert case(check, source, followup, truth(A, B), effects) == expected


def test_where_the_view_is_labelled_it_is_mirrored_too() -> None:
    # Only the left is labelled; the ghost on the right is on the left of the mirrored follow-up.
    labels = truth(A, B, areas_m=(((0.0, -1.0), (40.0, -1.0), (40.0, 9.0), (0.0, 9.0)),))
    mirror = Effects(output_transform=np.diag([1.0, -1.0, 1.0, 1.0]), output_frame_id="base_link")
    assert case(KEPT, seen(A, B, GHOST), seen(A, (20.0, -3.0)), labels, mirror) == ("VIOLATED", "not_comparable")
    other = seen(A, B, (15.0, 4.0))
    assert case(KEPT, other, seen(A, (20.0, -3.0)), labels, mirror) == ("VIOLATED", "followup_right")


@pytest.mark.parametrize("check", [Monotone(), RemovedGone(), ObstaclesKept(per_category=True)])
def test_checks_that_ask_something_else_are_not_compared(check: Check) -> None:
    assert case(check, seen(A, B), seen(A, B), truth(A, B))[1] == "not_comparable"


def test_control_and_undecided_pairs_have_no_mark() -> None:
    relation, control = (
        Relation("r", "expected", "", (), KEPT),
        Relation("identity", "necessary", "", (Identity(),), None),
    )
    answers = (Answer(AnswerStatus.ANSWERED, seen(A)), Answer(AnswerStatus.ANSWERED, seen(A)))
    bundle, engine = Bundle(0, 0, 1, truth=truth(A)), Engine(True)
    assert not engine.judge(Offer(control, (relation,)), bundle, answers, Effects())[0].marks
    nothing = (Answer(AnswerStatus.ANSWERED, seen()), Answer(AnswerStatus.ANSWERED, seen()))
    (verdict,) = engine.judge(Offer(relation, (relation,)), bundle, nothing, Effects())
    assert verdict.outcome is Outcome.NOT_APPLICABLE and not verdict.marks


def _line(i: int, outcome: str, what: str = "", reason: str = "") -> dict[str, Any]:
    margin = 0 if outcome == "HOLDS" else -1
    line: dict[str, Any] = {"type": "verdict", "pair": f"0/{i}/r/0", "relation": "r", "stamp_ns": i, "outcome": outcome}
    line |= {"measured": 1, "bound": 1, "margin": margin, "unit": "", "reason": "", "lost": 0, "gained": 0}
    return line | ({"truth": {"case": what, **({"reason": reason} if reason else {})}} if what else {})


def test_precision_and_blind_spot_are_counted_with_what_was_not_compared() -> None:
    lines = [_line(i, "VIOLATED", "followup_wrong") for i in range(6)]
    lines += [_line(i, "VIOLATED", "followup_right") for i in range(6, 8)]
    lines += [_line(8, "VIOLATED", "not_comparable", "why"), _line(9, "VIOLATED")]
    lines += [_line(i, "HOLDS", "not_both_wrong") for i in range(10, 19)] + [_line(19, "HOLDS", "both_wrong")]
    summary = summarise(lines, [RelationInfo("r", "expected")])
    found = summary["relations"]["r"]["ground_truth"]
    precision, blind = found["precision"], found["blind_spot"]
    assert (precision["wrong"], precision["compared"], precision["rate"]) == (6, 8, 0.75)
    assert precision["not_comparable"] == {"why": 1} and precision["unlabelled"] == 1
    # Wilson, by hand: 6 of 8.
    assert precision["ci95"] == pytest.approx([0.4093, 0.9285], abs=1e-3)
    assert (blind["wrong"], blind["compared"], blind["rate"], blind["unlabelled"]) == (1, 10, 0.1, 0)
    assert oracle_lines(summary["relations"]) == [
        "r: by the labels, the follow-up is really wrong in 6 of 8 violated pairs (40.9 … 92.8 %); both are wrong in "
        "1 of 10 pairs that hold (1.8 … 40.4 %); 2 pairs not comparable"
    ]


def test_without_labels_nothing_is_said() -> None:
    summary = summarise([_line(i, "HOLDS") for i in range(20)], [RelationInfo("r", "expected")])
    assert "ground_truth" not in summary["relations"]["r"] and oracle_lines(summary["relations"]) == []
    only = OracleSums()
    only.take((0, 0), Outcome.VIOLATED, {"case": "not_comparable", "reason": "why"})
    plain = only.plain()
    assert (
        plain is not None and plain["precision"]["rate"] is None and plain["precision"]["not_comparable"] == {"why": 1}
    )
