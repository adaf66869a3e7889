# SPDX-License-Identifier: Apache-2.0
"""Checks of boxes in images, commands and paths: what they demand, by how much, and what they leave alone."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import lateral_text
from mt_nodes.data.effects import DoubtfulDepth, Effects, ImageBox, Volume
from mt_nodes.data.image_boxes import iou, pair, warped
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Output, Path
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.boxes import BoxesKept, BoxFound
from mt_nodes.relations.checks.camera_and_lidar_agree import CameraAndLidarAgree
from mt_nodes.relations.checks.path_checks import LaneOffsetStable
from mt_nodes.relations.checks.speed_checks import SlowsDown, SpeedNotHigher
from mt_nodes.relations.checks.steering_checks import SteeringMirrored, SteeringWithin
from mt_nodes.relations.mutations.stream.identity import Identity
from mt_nodes.relations.relation import Relation
from mt_nodes.world.scene.camera_rendering import CameraSensor

HOLDS, VIOLATED, NOTHING = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE
TOPIC, WIDE, HIGH = "/camera/image", 640, 480
CAMERA = CameraSensor(WIDE, HIGH)
BUNDLE = Bundle(
    0,
    0,
    0,
    images=(Image(TOPIC, 0, "camera", np.zeros((HIGH, WIDE, 3), np.uint8), "bgr8"),),
    camera_infos=(CAMERA.info("/camera/camera_info", 0, "camera"),),
    transforms=TransformTree([Transform("base_link", "camera", CAMERA.mount)]),
)
PERSON = (300.0, 200.0, 340.0, 300.0)
OTHER = (400.0, 210.0, 430.0, 290.0)
MIRROR = np.array([[-1.0, 0.0, WIDE - 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def boxes(*rows: Any, score: float = 0.95, label: str = "pedestrian") -> Output:
    return Output(boxes=ImageBoxes.make("camera", 0, list(rows), [label] * len(rows), [score] * len(rows)))


def put(box: Any, visible: float = 1.0, label: str = "pedestrian") -> Effects:
    return Effects(image_boxes=(ImageBox(TOPIC, box, visible, label),))


def moved(box: Any, x: float, y: float = 0.0) -> tuple[float, ...]:
    return (box[0] + x, box[1] + y, box[2] + x, box[3] + y)


def judged(check: Check, source: Output, followup: Output, effects: Effects | None = None) -> Any:
    judgement = check.judge(source, followup, effects or Effects(), BUNDLE)
    if judgement.outcome.decided and judgement.margin is not None:
        assert judgement.unit and judgement.bound is not None
    return judgement


KEPT = BoxesKept()


@pytest.mark.parametrize(
    ("source", "followup", "effects", "outcome"),
    [
        (boxes(PERSON), boxes(PERSON), None, HOLDS),
        (boxes(PERSON), boxes(moved(PERSON, 8)), None, HOLDS),
        (boxes(PERSON), boxes(moved(PERSON, 25)), None, VIOLATED),
        (boxes(PERSON), boxes(), None, VIOLATED),
        (boxes(PERSON, OTHER), boxes(OTHER), None, VIOLATED),
        (boxes(PERSON, moved(PERSON, 6)), boxes(PERSON), None, VIOLATED),  # one box is one person
        (boxes(PERSON), boxes(PERSON, score=0.55), None, HOLDS),
        (boxes(PERSON), boxes(PERSON, score=0.45), None, VIOLATED),
        (boxes(PERSON, score=0.85), boxes(), None, NOTHING),
        (boxes(), boxes(PERSON), None, NOTHING),
        (boxes((300, 200, 320, 247)), boxes(), None, NOTHING),  # too low to be demanded
        (boxes((-4, 200, 30, 300)), boxes(), None, NOTHING),  # cut by the edge
        (boxes((0, 200, 30, 300)), boxes(), None, VIOLATED),
        (boxes(PERSON), boxes(), put(moved(PERSON, 5)), NOTHING),  # what was put before it hides it
        (boxes(PERSON), boxes(), put(moved(PERSON, 35)), VIOLATED),
        (boxes(PERSON), boxes(moved(PERSON, -1)), Effects(image_transforms={TOPIC: MIRROR}), HOLDS),
        (boxes(OTHER), boxes((209, 210, 239, 290)), Effects(image_transforms={TOPIC: MIRROR}), HOLDS),
        (boxes(OTHER), boxes(OTHER), Effects(image_transforms={TOPIC: MIRROR}), VIOLATED),
        (
            boxes(OTHER),
            boxes(),
            Effects(image_transforms={TOPIC: np.array([[1, 0, 220.0], [0, 1, 0], [0, 0, 1]])}),
            NOTHING,
        ),
        (boxes(OTHER), boxes(OTHER), Effects(image_transforms={"/other": MIRROR}), HOLDS),
    ],
)
def test_boxes_kept(source: Output, followup: Output, effects: Effects | None, outcome: Outcome) -> None:
    assert judged(KEPT, source, followup, effects).outcome is outcome


def test_boxes_kept_tells_who_is_lost_and_who_gained() -> None:
    judgement = judged(KEPT, boxes(PERSON, OTHER), boxes(OTHER, moved(OTHER, 100)))
    assert (judgement.measured, judgement.bound, judgement.margin) == (1, 2, -1)
    assert (judgement.lost, judgement.gained) == (1, 1)
    assert "pedestrian at (320, 250) px, 100 px high" in judgement.reason
    assert judgement.detail == {
        "lost_px": [[*PERSON, "pedestrian"]],
        "gained_px": [[*moved(OTHER, 100), "pedestrian"]],
        "score_falls": [[0.95, 0.0]],
    }


def in_doubt(*boxes_px: tuple[float, float, float, float]) -> Effects:
    """Effects that leave the depth of parts of the picture open, in cells of 2 pixels."""
    cells = np.zeros((240, 320), bool)
    for x0, y0, x1, y1 in boxes_px:
        cells[int(y0) // 2 : int(y1) // 2, int(x0) // 2 : int(x1) // 2] = True
    return Effects(doubtful_depth={TOPIC: DoubtfulDepth(2, cells)})


@pytest.mark.parametrize(
    ("source", "effects", "outcome", "words"),
    [
        (boxes(PERSON), in_doubt(PERSON), NOTHING, "the depth in each of 1 boxes is not known well enough"),
        (boxes(PERSON), in_doubt((300, 200, 305, 300)), VIOLATED, "lost pedestrian at (320, 250)"),  # an eighth
        (boxes(PERSON, OTHER), in_doubt(PERSON), VIOLATED, "1 more not judged: their depth is not known"),
        (boxes(PERSON), Effects(), VIOLATED, "lost"),
        (boxes(PERSON), Effects().merged(in_doubt(PERSON)), NOTHING, "not known"),
        (boxes(PERSON), in_doubt((0, 0, 9, 9)).merged(in_doubt(PERSON)), NOTHING, "not known"),
        (boxes(PERSON), Effects.from_plain(json.loads(json.dumps(in_doubt(PERSON).as_plain()))), NOTHING, "not known"),
        (boxes(PERSON), Effects(doubtful_depth={"/other": in_doubt(PERSON).doubtful_depth[TOPIC]}), VIOLATED, "lost"),
    ],
)
def test_a_box_whose_depth_is_in_doubt_is_not_demanded(
    source: Output, effects: Effects, outcome: Outcome, words: str
) -> None:
    judgement = judged(KEPT, source, boxes(), effects)
    assert judgement.outcome is outcome and words in judgement.reason


def test_a_box_that_is_moved_is_in_doubt_at_either_place() -> None:
    mirrored = Effects(image_transforms={TOPIC: MIRROR})
    for effects in (in_doubt(OTHER).merged(mirrored), mirrored.merged(in_doubt((209, 210, 239, 290)))):
        assert judged(KEPT, boxes(OTHER), boxes(), effects).outcome is NOTHING
    assert judged(KEPT, boxes(OTHER), boxes(), mirrored.merged(in_doubt((0, 0, 90, 90)))).outcome is VIOLATED


def test_an_object_of_a_class_that_the_stack_does_not_report_is_not_demanded() -> None:
    for classes in (["Pedestrian"], ["car", "pedestrian"], []):
        assert judged(BoxFound(classes=tuple(classes)), boxes(), boxes(), put(PERSON)).outcome is VIOLATED
    missed = judged(BoxFound(classes=("car",)), boxes(), boxes(), put(PERSON))
    assert missed.outcome is NOTHING and "is a pedestrian, and the stack reports car only" in missed.reason


def test_boxes_of_one_class_alone_and_of_the_same_class() -> None:
    cars = boxes(PERSON, label="car")
    assert judged(BoxesKept(label="pedestrian"), cars, boxes()).outcome is NOTHING
    assert judged(BoxesKept(per_category=True), boxes(PERSON), cars).outcome is VIOLATED
    assert judged(BoxesKept(), boxes(PERSON), cars).outcome is HOLDS
    with pytest.raises(UsageError, match=r"score_low 0.9 is above score_high 0.5"):
        BoxesKept(score_high=0.5, score_low=0.9)


def test_boxes_without_an_image_are_an_error() -> None:
    judgement = KEPT.judge(boxes(PERSON), boxes(PERSON), Effects(), Bundle(0, 7, 0))
    assert judgement.outcome is Outcome.ERROR and "bundle 7 has no image" in judgement.reason


@pytest.mark.parametrize(
    ("followup", "effects", "outcome"),
    [
        (boxes(PERSON, OTHER), put(OTHER), HOLDS),
        (boxes(PERSON), put(OTHER), VIOLATED),
        (boxes(PERSON, moved(OTHER, 8, 8)), put(OTHER), HOLDS),
        (boxes(PERSON, moved(OTHER, 22)), put(OTHER), VIOLATED),
        (boxes(PERSON), put(OTHER, visible=0.5), NOTHING),
        (boxes(PERSON), put((400, 210, 410, 250)), NOTHING),
        (boxes(PERSON), put(moved(PERSON, 4)), VIOLATED),  # who stood there before is not who was added
        (boxes(PERSON), put(OTHER, label="stop_sign"), NOTHING),
        (boxes(), None, VIOLATED),  # nothing was added: the source's own must be there
        (boxes(PERSON), None, HOLDS),
    ],
)
def test_box_found(followup: Output, effects: Effects | None, outcome: Outcome) -> None:
    judgement = judged(BoxFound(label="pedestrian"), boxes(PERSON), followup, effects)
    assert judgement.outcome is outcome
    if effects is not None and outcome.decided:
        assert judgement.detail["objects"][0][1] is (outcome is HOLDS)


def drove(steering: float = math.nan, speed: float = math.nan, turning: float = math.nan) -> Output:
    return Output(control=Control(0, steering_rad=steering, speed_mps=speed, yaw_rate_radps=turning))


@pytest.mark.parametrize(
    ("check", "source", "followup", "mirrored", "outcome"),
    [
        (SteeringWithin(tolerance=0.02), drove(0.1), drove(0.12), False, HOLDS),
        (SteeringWithin(tolerance=0.02), drove(0.1), drove(0.0799), False, VIOLATED),
        (SteeringWithin(tolerance=0.02), drove(), drove(0.1), False, NOTHING),
        # A yaw rate falls with the speed, the angle behind it does not.
        (SteeringWithin(tolerance=0.001), drove(speed=10.0, turning=0.4), drove(speed=5.0, turning=0.2), False, HOLDS),
        (
            SteeringWithin(tolerance=0.001),
            drove(speed=10.0, turning=0.4),
            drove(speed=5.0, turning=0.4),
            False,
            VIOLATED,
        ),
        (
            SteeringWithin(tolerance=0.001),
            drove(speed=10.0, turning=0.4),
            drove(speed=0.05, turning=0.0),
            False,
            NOTHING,
        ),
        (
            SteeringWithin(tolerance=0.1, of="yaw_rate"),
            drove(speed=10.0, turning=0.4),
            drove(turning=0.2),
            False,
            VIOLATED,
        ),
        (SteeringWithin(tolerance=0.1, of="yaw_rate"), drove(turning=0.4), drove(turning=0.31), False, HOLDS),
        (
            SteeringWithin(tolerance=0.001),
            drove(0.1, 10.0),
            drove(speed=10.0, turning=10 * math.tan(0.1) / 2.7),
            False,
            HOLDS,
        ),
        (SteeringMirrored(tolerance=0.02), drove(0.1), drove(-0.1), True, HOLDS),
        (SteeringMirrored(tolerance=0.02), drove(0.1), drove(-0.07), True, VIOLATED),
        (SteeringMirrored(tolerance=0.02), drove(0.1), drove(0.1), True, VIOLATED),
        (SteeringMirrored(tolerance=0.02), drove(0.1), drove(0.1), False, HOLDS),
        (SteeringMirrored(tolerance=0.02), drove(0.1), drove(-0.1), False, VIOLATED),
        (SpeedNotHigher(by_at_most_mps=0.2), drove(speed=8.0), drove(speed=8.2), False, HOLDS),
        (SpeedNotHigher(by_at_most_mps=0.2), drove(speed=8.0), drove(speed=8.3), False, VIOLATED),
        (SpeedNotHigher(by_at_most_share=0.1), drove(speed=8.0), drove(speed=8.7), False, HOLDS),
        (SpeedNotHigher(), drove(speed=8.0), drove(speed=1.0), False, HOLDS),
        (SpeedNotHigher(), drove(0.1), drove(0.1), False, NOTHING),
        (SlowsDown(by_at_least_mps=0.5), drove(speed=8.0), drove(speed=7.5), False, HOLDS),
        (SlowsDown(by_at_least_mps=0.5), drove(speed=8.0), drove(speed=7.6), False, VIOLATED),
        (SlowsDown(by_at_least_mps=0.0, by_at_least_share=0.2), drove(speed=8.0), drove(speed=6.5), False, VIOLATED),
        (SlowsDown(by_at_least_mps=0.0, by_at_least_share=0.2), drove(speed=8.0), drove(speed=6.4), False, HOLDS),
        (SlowsDown(), drove(speed=0.9), drove(speed=0.9), False, NOTHING),
        (SlowsDown(), drove(0.1), drove(speed=0.9), False, NOTHING),
    ],
)
def test_commands(check: Check, source: Output, followup: Output, mirrored: bool, outcome: Outcome) -> None:
    assert judged(check, source, followup, Effects(image_mirrored=mirrored)).outcome is outcome


@given(st.floats(0.5, 30.0), st.floats(-0.6, 0.6))
def test_a_command_means_the_same_as_an_angle_and_as_a_yaw_rate(speed: float, steering: float) -> None:
    turning = speed * math.tan(steering) / 2.7
    for of in ("steering", "yaw_rate"):
        judgement = SteeringWithin(tolerance=1e-9, of=of).judge(
            drove(steering, speed), drove(speed=speed, turning=turning), Effects(), BUNDLE
        )
        assert judgement.outcome is HOLDS and judgement.measured == pytest.approx(0.0, abs=1e-9)


def lane(offset: float, heading: float = 0.0, until: float = 20.0) -> Output:
    x = np.arange(0.0, until + 0.1, 2.0)
    return Output(path=Path.make("base_link", 0, np.column_stack([x, offset + heading * x, np.full_like(x, heading)])))


NO_LANE = Output(path=Path.make("base_link", 0, []))


@pytest.mark.parametrize(
    ("source", "followup", "mirrored", "outcome"),
    [
        (lane(0.5), lane(0.69), False, HOLDS),
        (lane(0.5), lane(0.75), False, VIOLATED),
        (lane(0.0, 0.1), lane(0.9), False, HOLDS),  # 9 m ahead both lie 0.9 m to the left
        (lane(0.5), lane(-0.5), True, HOLDS),
        (lane(0.5), lane(0.5), True, VIOLATED),
        (lane(0.5), NO_LANE, False, VIOLATED),
        (lane(0.5), lane(0.5, until=8.0), False, VIOLATED),
        (NO_LANE, lane(0.5), False, NOTHING),
        (NO_LANE, NO_LANE, False, NOTHING),
    ],
)
def test_lane_offset_stable(source: Output, followup: Output, mirrored: bool, outcome: Outcome) -> None:
    check = LaneOffsetStable(look_ahead_m=9.0, tolerance_m=0.2)
    assert judged(check, source, followup, Effects(image_mirrored=mirrored)).outcome is outcome


def test_where_a_lane_lies_is_said_by_its_side() -> None:
    judgement = judged(LaneOffsetStable(look_ahead_m=9.0), lane(0.1), lane(-0.256))
    assert judgement.reason == "9 m ahead the path is 0.256 m to the right, expected 0.100 m to the left"
    assert lateral_text(-0.0001, 3) == "0.000 m to the left" and lateral_text(-0.06, 1) == "0.1 m to the right"


WALKER = Volume("base_link", (10.0, 1.0, 0.9), (0.5, 0.5, 1.8), 0.0, "pedestrian")
#: Where the walker is seen: 9.45 m before the camera its near side spans 0.5 m to the left of 0.75 m.
SEEN = (246.0, 222.0, 277.0, 329.0)


def both(boxes_px: list[Any], centers_m: list[Any], score: float = 0.9) -> Output:
    seen = Detections.make(
        "base_link", 0, centers_m, [WALKER.size_m] * len(centers_m), label=["pedestrian"] * len(centers_m)
    )
    return Output(detections=seen, boxes=ImageBoxes.make("camera", 0, boxes_px, score=[score] * len(boxes_px)))


@pytest.mark.parametrize(
    ("source", "followup", "effects", "outcome"),
    [
        (both([], []), both([SEEN], [WALKER.center_m]), True, HOLDS),
        (both([], []), both([], [WALKER.center_m]), True, VIOLATED),
        (both([], []), both([SEEN], []), True, VIOLATED),
        (both([], []), both([SEEN], [(10.0, -1.0, 0.9)]), True, VIOLATED),
        (both([], []), both([moved(SEEN, 100)], []), True, NOTHING),
        (both([], []), both([], []), True, NOTHING),
        (both([SEEN], [WALKER.center_m]), both([SEEN], [WALKER.center_m]), False, HOLDS),
        (both([SEEN], [WALKER.center_m]), both([moved(SEEN, 60)], [WALKER.center_m]), False, VIOLATED),
        (both([SEEN], [WALKER.center_m]), both([SEEN], []), False, NOTHING),
        (both([], [WALKER.center_m]), both([], [WALKER.center_m]), False, NOTHING),
    ],
)
def test_camera_and_lidar_agree(source: Output, followup: Output, effects: bool, outcome: Outcome) -> None:
    made = Effects(added=(WALKER,), image_boxes=put(SEEN).image_boxes) if effects else Effects()
    assert judged(CameraAndLidarAgree(), source, followup, made).outcome is outcome


def test_camera_and_lidar_are_not_asked_about_what_is_hidden_or_without_a_calibration() -> None:
    hidden = Effects(added=(WALKER,), image_boxes=put(SEEN, visible=0.2).image_boxes)
    assert judged(CameraAndLidarAgree(), both([], []), both([SEEN], []), hidden).outcome is NOTHING
    bare = Bundle(0, 0, 0, images=BUNDLE.images, transforms=BUNDLE.transforms)
    shown = Effects(added=(WALKER,), image_boxes=put(SEEN).image_boxes)
    judgement = CameraAndLidarAgree().judge(both([], []), both([SEEN], [WALKER.center_m]), shown, bare)
    assert judgement.outcome is NOTHING and "no CameraInfo" in judgement.reason


#: Beside the walker, and where the camera sees him: 1.2 m to the right at the same distance.
FELLOW = Volume("base_link", (10.0, -0.2, 0.9), (0.5, 0.5, 1.8), 0.0, "pedestrian")
SEEN_TOO = moved(SEEN, 76)
HIDDEN = Volume("base_link", (-10.0, 0.0, 0.9), (0.5, 0.5, 1.8), 0.0, "pedestrian")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    ("boxes_px", "centers_m", "outcome"),
    [
        ([SEEN, SEEN_TOO], [WALKER.center_m, FELLOW.center_m], HOLDS),
        ([SEEN_TOO, SEEN], [WALKER.center_m, FELLOW.center_m], HOLDS),
        ([SEEN], [WALKER.center_m, FELLOW.center_m], VIOLATED),
        ([SEEN, SEEN_TOO], [FELLOW.center_m], VIOLATED),
        ([SEEN], [WALKER.center_m], HOLDS),  # nobody sees the other
        ([SEEN], [FELLOW.center_m], VIOLATED),
        ([], [], NOTHING),
    ],
)
def test_each_of_two_has_a_detection_and_a_box_of_its_own(
    order: tuple[int, int], boxes_px: Any, centers_m: Any, outcome: Outcome
) -> None:
    """Volumes and outlines come in any order, and need not be as many: the camera looks one way only."""
    outlines = [put(SEEN).image_boxes[0], put(SEEN_TOO).image_boxes[0]]
    for volumes in ((WALKER, FELLOW), (FELLOW, WALKER), (HIDDEN, WALKER, FELLOW)):
        made = Effects(added=volumes, image_boxes=tuple(outlines[i] for i in order))
        judgement = judged(CameraAndLidarAgree(), both([], []), both(boxes_px, centers_m), made)
        assert judgement.outcome is outcome, judgement


def test_two_that_stand_close_do_not_share_a_detection_or_a_box() -> None:
    near = Volume("base_link", (10.0, 0.6, 0.9), (0.5, 0.5, 1.8), 0.0, "pedestrian")
    made = Effects(added=(WALKER, near), image_boxes=(*put(SEEN).image_boxes, *put(moved(SEEN, 25)).image_boxes))
    check = CameraAndLidarAgree()
    alone = judged(check, both([], []), both([SEEN, moved(SEEN, 25)], [WALKER.center_m]), made)
    assert alone.outcome is VIOLATED and alone.reason == "pedestrian found by the camera alone, not by the LiDAR"
    alone = judged(check, both([], []), both([SEEN], [WALKER.center_m, near.center_m]), made)
    assert alone.outcome is VIOLATED and alone.reason == "pedestrian found by the LiDAR alone, not by the camera"
    assert judged(
        check, both([], []), both([SEEN, moved(SEEN, 25)], [WALKER.center_m, near.center_m]), made
    ).reason == ("camera and LiDAR agree on all 2")


def test_control_and_sham_are_asked_not_to_rise_where_a_relation_asks_to_fall() -> None:
    check = SlowsDown(by_at_least_mps=0.5, by_at_least_share=0.1)
    slows = Relation("slows", "expected", "", (), check)
    control = Relation("identity", "necessary", "", (Identity(),), None)
    steady, faster = (Answer(AnswerStatus.ANSWERED, drove(speed=speed)) for speed in (8.0, 9.0))

    def outcome(offer: Offer, answer: Answer) -> Outcome:
        (verdict,) = Engine(True).judge(offer, BUNDLE, (steady, answer), Effects())
        return verdict.outcome

    assert outcome(Offer(slows, (slows,)), steady) is VIOLATED
    assert outcome(Offer(control, (slows,)), steady) is HOLDS
    assert outcome(Offer(control, (slows,)), faster) is VIOLATED


ASK_FOR_A_DIFFERENCE = {
    "slows_down",
    "stops",
    "stops_within",
    "starts_moving",
    "turns_left",
    "turns_right",
    "turns_within",
    "reaction_time_not_longer",
    *("slows_down_there", "stops_there", "turns_left_there", "turns_right_there"),
}


def test_every_other_check_asks_the_same_of_control_and_sham() -> None:
    made = [cls() for name, cls in plugins.catalogue("checks").items() if name not in ASK_FOR_A_DIFFERENCE]
    assert all(check.background is check for check in made)


@pytest.mark.parametrize("box", [(np.nan, 0, 1, 1), (5, 0, 1, 1), (0, 9, 1, 1)])
def test_boxes_that_mean_nothing_are_an_error(box: Any) -> None:
    kept = Relation("kept", "expected", "", (), KEPT)
    good, bad = (Answer(AnswerStatus.ANSWERED, boxes(b)) for b in (PERSON, box))
    (verdict,) = Engine(True).judge(Offer(kept, (kept,)), BUNDLE, (good, bad), Effects())
    assert verdict.outcome is Outcome.ERROR and "1 of 1 boxes" in verdict.judgement.reason


edge = st.tuples(st.floats(0, 500), st.floats(0, 400), st.floats(1, 200), st.floats(1, 200))
some = st.lists(edge.map(lambda e: (e[0], e[1], e[0] + e[2], e[1] + e[3])), max_size=6)


@given(some, some)
def test_overlap_is_a_share_and_symmetric_and_pairs_are_one_to_one(a: Any, b: Any) -> None:
    first, second = (ImageBoxes.make("camera", 0, rows) for rows in (a, b))
    overlap = iou(first.box_px, second.box_px)
    assert ((overlap >= 0.0) & (overlap <= 1.0 + 1e-12)).all()
    np.testing.assert_allclose(overlap, iou(second.box_px, first.box_px).T)
    np.testing.assert_allclose(iou(first.box_px, first.box_px).diagonal(), 1.0)
    rows, columns = pair(first, second, 0.2)
    assert len({*rows.tolist()}) == len({*columns.tolist()}) == len(rows)
    assert (overlap[rows, columns] >= 0.2).all()


@given(some)
def test_a_mirror_twice_is_none(rows: Any) -> None:
    given_boxes = ImageBoxes.make("camera", 0, rows)
    np.testing.assert_allclose(warped(warped(given_boxes, MIRROR), MIRROR).box_px, given_boxes.box_px, atol=1e-9)
