# SPDX-License-Identifier: Apache-2.0
"""Labels of exported follow-ups: moved as the scene moves, and none of what is removed, hidden, outside or unseen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.data.association import moved
from mt_nodes.data.effects import DoubtfulDepth, Effects, ImageBox, Volume
from mt_nodes.data.ground_truth import LEAST_POINTS
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.regions import load_region
from mt_nodes.relations.checks.boxes import BoxesKept, BoxFound
from mt_nodes.relations.checks.object_found import ObjectFound
from mt_nodes.relations.checks.obstacle_checks import ObstaclesKept
from mt_nodes.relations.checks.obstacles import ObstacleCheck
from mt_nodes.runs.export.carried_labels import (
    ADDED_OBJECT,
    LABELS,
    SOURCE_OUTPUT,
    CarriedLabels,
    carried_boxes,
    carried_image_boxes,
    keep_zone,
)

CAR_M = (4.0, 1.8, 1.6)
NEAR, BESIDE, FAR = (10.0, 2.0), (20.0, -3.0), (60.0, 0.0)
MIRROR = np.diag([1.0, -1.0, 1.0, 1.0])


def said(*places: tuple[float, float], score: float = 1.0) -> Detections:
    center = np.array([(x, y, 0.8) for x, y in places]).reshape(-1, 3)
    count = len(center)
    return Detections.make("base_link", None, center, [CAR_M] * count, [0.2] * count, ["car"] * count, [score] * count)


def bundle(*boxes: tuple[float, float], returns: int = 20) -> Bundle:
    rng = np.random.default_rng(3)
    xyz = [np.array([x, y, 0.8]) + rng.uniform(-0.5, 0.5, (returns, 3)) for x, y in boxes]
    rows = np.concatenate([*xyz, np.full((1, 3), 100.0)])
    points = np.array([tuple(row) for row in rows], dtype=[(name, "<f4") for name in "xyz"])
    return Bundle(0, 0, 1, (Cloud("/points", 1, "base_link", points),))


def carried(
    check: ObstacleCheck, objects: Detections, followup: Bundle, effects: Effects | None = None, origin: str = LABELS
) -> CarriedLabels:
    return carried_boxes(check, objects, origin, bundle(), followup, effects or Effects())


def at(boxes: Any) -> list[list[float]]:
    rows: list[list[float]] = np.round(boxes.center_m[:, :2], 6).tolist()
    return rows


def test_what_lies_outside_the_keep_zone_is_ignored_and_no_label() -> None:
    found = carried(ObstaclesKept(), said(NEAR, FAR), bundle(NEAR, FAR))
    assert at(found.objects) == [list(NEAR)] and found.origin == (LABELS,)
    assert at(found.ignored) == [list(FAR)]


def test_what_the_followup_does_not_show_is_ignored() -> None:
    # The mutation took the returns of one car, and left the other too few of them.
    found = carried(ObstaclesKept(), said(NEAR, BESIDE), bundle(NEAR))
    assert at(found.objects) == [list(NEAR)] and at(found.ignored) == [list(BESIDE)]
    assert len(carried(ObstaclesKept(), said(NEAR), bundle(NEAR, returns=LEAST_POINTS - 1)).objects) == 0


def test_an_object_that_was_removed_or_hidden_or_may_have_changed_is_no_label() -> None:
    there = Volume("base_link", (*BESIDE, 0.8), CAR_M)
    for effects in (Effects(removed=(there,)), Effects(occluded=(there,)), Effects(revealed=(there,))):
        found = carried(ObstaclesKept(), said(NEAR, BESIDE), bundle(NEAR, BESIDE), effects)
        assert at(found.objects) == [list(NEAR)] and at(found.ignored) == [list(BESIDE)]
        hidden = not effects.occluded
        assert found.zone is not None and found.zone.contains(shapely.Point(*BESIDE)) != hidden, (
            "what was estimated is no background to learn"
        )


def test_an_added_object_is_a_label_where_the_relation_demands_that_it_is_found() -> None:
    added = Effects(added=(Volume("base_link", (*BESIDE, 0.8), CAR_M, 0.5, "truck"),))
    found = carried(ObjectFound(), said(NEAR), bundle(NEAR, BESIDE), added, SOURCE_OUTPUT)
    assert found.origin == (SOURCE_OUTPUT, ADDED_OBJECT)
    assert found.objects.label.tolist() == ["car", "truck"] and at(found.objects)[1] == list(BESIDE)
    # To a relation that asks for the others alone, what was added may be anything: clutter, a ghost.
    other = carried(ObstaclesKept(), said(NEAR), bundle(NEAR, BESIDE), added)
    assert other.origin == (LABELS,) and at(other.ignored) == [list(BESIDE)]
    # Nobody can see it: a wall stands before it.
    assert carried(ObjectFound(), said(NEAR), bundle(NEAR), added).origin == (LABELS,)


def test_only_labels_say_that_the_rest_is_background_and_only_where_everything_is_labelled() -> None:
    assert carried(ObstaclesKept(), said(NEAR), bundle(NEAR)).throughout
    assert not carried(ObstaclesKept(), said(NEAR), bundle(NEAR), origin=SOURCE_OUTPUT).throughout
    view = (((0.0, 0.0), (30.0, 0.0), (30.0, 30.0)),)
    for effects, left in (
        (Effects(), 1.0),
        (Effects(output_transform=MIRROR, output_frame_id="base_link"), -1.0),
    ):
        found = carried_boxes(ObstaclesKept(), said(NEAR), LABELS, bundle(), bundle(NEAR), effects, view)
        places = [(10.0, left * 5.0), (10.0, left * -5.0), (5.0, left * 8.0), (35.0, left * 5.0)]
        assert found.zone is not None
        assert [found.zone.contains(shapely.Point(*place)) for place in places] == [True, False, False, False]


def test_objects_that_the_stack_was_not_sure_of_are_ignored_and_scores_stay() -> None:
    check = ObstaclesKept()
    high = check.thresholds.high
    objects = Detections.make(
        "base_link", None, [(*NEAR, 0.8), (*BESIDE, 0.8)], [CAR_M] * 2, None, ["car"] * 2, [high, high - 0.01]
    )
    found = carried(check, objects, bundle(NEAR, BESIDE), origin=SOURCE_OUTPUT)
    assert found.objects.score.tolist() == [high] and at(found.ignored) == [list(BESIDE)]


@settings(deadline=None, max_examples=60)
@given(
    place=st.tuples(st.floats(3.0, 37.0), st.floats(-8.0, 8.0)),
    turn=st.floats(-0.4, 0.4),
    shift=st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0)),
    mirror=st.booleans(),
)
def test_labels_move_with_the_scene(
    place: tuple[float, float], turn: float, shift: tuple[float, float], mirror: bool
) -> None:
    c, s = np.cos(turn), np.sin(turn)
    matrix = np.array([[c, -s, 0, shift[0]], [s, c, 0, shift[1]], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    matrix = matrix @ MIRROR if mirror else matrix
    expected = moved(said(place), matrix, "base_link")
    followup = bundle(tuple(expected.center_m[0, :2].tolist()))
    effects = Effects(output_transform=matrix, output_frame_id="base_link")
    found = carried(ObstaclesKept(), said(place), followup, effects)
    ((x, y),) = at(expected)
    assert found.zone is not None
    inside = found.zone.buffer(-1e-6).contains(shapely.Point(x, y))
    outside = not found.zone.buffer(1e-6).contains(shapely.Point(x, y))
    labelled = found.objects if len(found.objects) else found.ignored
    assert isinstance(labelled, Detections)
    # The zone of the manifest is the very zone that the check demands objects in.
    assert (len(found.objects), len(found.ignored)) == ((1, 0) if inside else (0, 1)) or not (inside or outside)
    np.testing.assert_allclose(labelled.center_m, expected.center_m, atol=1e-9)
    np.testing.assert_allclose(np.cos(labelled.yaw_rad - expected.yaw_rad), 1.0, atol=1e-9)
    if mirror and not turn and shift == (0.0, 0.0):
        assert labelled.center_m[0, 1] == pytest.approx(-place[1])


def test_the_keep_zone_ends_where_the_check_says() -> None:
    check = ObstaclesKept(within_m=20.0)
    zone = keep_zone(check, load_region("front_40m"), None, bundle())
    for x in np.linspace(0.55, 40.05, 80):
        demanded = len(carried(check, said((float(x), 0.0)), bundle((float(x), 0.0))).objects) == 1
        assert demanded == zone.contains(shapely.Point(x, 0.0)), x


IMAGE = Image("/camera/image", 1, "camera", np.zeros((200, 400, 3), np.uint8), "rgb8")
TALL, SMALL, CUT = (50.0, 20.0, 90.0, 120.0), (200.0, 50.0, 220.0, 70.0), (-5.0, 20.0, 40.0, 120.0)


def boxes(*rows: tuple[float, ...], labels: tuple[str, ...] = ()) -> ImageBoxes:
    return ImageBoxes.make("camera", None, rows, labels or ["person"] * len(rows))


def in_picture(check: Any, said: ImageBoxes, effects: Effects | None = None) -> CarriedLabels:
    return carried_image_boxes(check, said, SOURCE_OUTPUT, IMAGE, effects or Effects())


def px(labels: Any) -> npt.NDArray[np.float64]:
    return np.asarray(labels.box_px)


def test_boxes_that_the_check_does_not_demand_are_ignored() -> None:
    found = in_picture(BoxesKept(), boxes(TALL, SMALL, CUT))
    assert px(found.objects).tolist() == [list(TALL)] and px(found.ignored).tolist() == [list(SMALL), list(CUT)]


def test_a_check_of_one_class_leaves_the_labels_of_the_others() -> None:
    both = boxes(TALL, (200.0, 20.0, 290.0, 120.0), labels=("person", "car"))
    assert in_picture(BoxesKept(label="person"), both).objects.label.tolist() == ["person", "car"]


@settings(deadline=None, max_examples=40)
@given(x=st.floats(0.0, 300.0), width=st.floats(10.0, 90.0))
def test_boxes_of_a_mirrored_picture_are_mirrored(x: float, width: float) -> None:
    flip = np.array([[-1.0, 0.0, 399.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = in_picture(
        BoxesKept(),
        boxes((x, 20.0, x + width, 120.0)),
        Effects(image_mirrored=True, image_transforms={IMAGE.topic: flip}),
    )
    np.testing.assert_allclose(px(found.objects), [[399.0 - x - width, 20.0, 399.0 - x, 120.0]])


def test_added_objects_of_a_picture_are_labels_if_they_can_be_seen() -> None:
    added = ImageBox(IMAGE.topic, (200.0, 20.0, 240.0, 120.0), 0.9, "pedestrian")
    hidden = ImageBox(IMAGE.topic, (300.0, 20.0, 340.0, 120.0), 0.1, "pedestrian")
    found = in_picture(BoxFound(), boxes(TALL), Effects(image_boxes=(added, hidden)))
    assert found.origin == (SOURCE_OUTPUT, ADDED_OBJECT)
    assert px(found.objects).tolist() == [list(TALL), list(added.box_px)]
    assert px(found.ignored).tolist() == [list(hidden.box_px)]
    # One that stands before a box of the source hides it.
    before = ImageBox(IMAGE.topic, TALL, 1.0, "pedestrian")
    assert in_picture(BoxFound(), boxes(TALL), Effects(image_boxes=(before,))).origin == (ADDED_OBJECT,)


def test_boxes_whose_depth_is_in_doubt_are_ignored() -> None:
    everywhere = DoubtfulDepth(10, np.ones((20, 40), dtype=bool))
    found = in_picture(BoxesKept(), boxes(TALL), Effects(doubtful_depth={IMAGE.topic: everywhere}))
    assert len(found.objects) == 0 and len(found.ignored) == 1
