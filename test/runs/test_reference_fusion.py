# SPDX-License-Identifier: Apache-2.0
"""The reference stack with both sensors: its parts, how they are brought together, and faults planted in it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mt_nodes.base import params
from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Detections, Output
from mt_nodes.data.outputs import Path as Lane
from mt_nodes.data.transforms import pose_matrix
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.reference.camera import CameraStack
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.fusion import FusionStack, alike, in_picture
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.camera_rendering import OPTICAL_XYZW, CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

KITTI = Path(__file__).parents[3] / "shared" / "data" / "kitti_drive"
SENSOR = CameraSensor()
CAMERA = CameraModel.of(SENSOR.info("", 0, ""), (SENSOR.height, SENSOR.width))
TO_CAMERA = np.asarray(np.linalg.inv(pose_matrix((0.3, 0.0, 1.5), OPTICAL_XYZW)))
STACK = load_stack("reference_both")
AGREED = load_relation("object_agreed_person")
#: Boxes that are less far off may still be taken for the cluster's, which mends them.
HALF = {"boxes_of_smaller_picture": {"scale": 0.5}}


def planted(*faults: Any) -> FusionStack:
    return params.build(FusionStack, {"faults": list(faults)}, "stack.params")


@cache
def source() -> Bundle:
    thin = replace(hdl_64e(), azimuths=900)
    return next(generate_drive(1, lidar=thin, camera=SENSOR, bend_1pm=1.0 / 80.0))


@cache
def added() -> Any:
    """The bundle with a person in it, and what is known of the person."""
    made = MutationPipeline(list(AGREED.mutate), 0, AGREED.id).derive(source())
    return made.followup.bundles[0][1], made.effects


def said(bundle: Bundle, *faults: Any) -> Output:
    sensors = {m.topic: m for m in bundle.messages if m.topic in sum(STACK.topics.values(), ())}
    return CallableHost.make(replace(STACK, params={"faults": [*faults]}))(sensors, bundle.transforms)


def seen(*rows: tuple[Any, Any], label: str = "pedestrian", yaw_rad: float = 0.0) -> Detections:
    centers, sizes = zip(*rows, strict=True)
    return Detections.make("base_link", 0, centers, sizes, [yaw_rad] * len(rows), [label] * len(rows))


def test_each_part_says_what_it_says_alone_but_for_where_people_stand() -> None:
    bundle = added()[0]
    points = CallableHost.make(load_stack("reference_detector"))(bundle.clouds[0], bundle.transforms).detections
    image = {"image": decode(bundle.images[0]).rgb8(), "camera_info": bundle.camera_infos[0]}
    alone, both = CameraStack()(image), said(bundle)
    assert points is not None and both.detections is not None and both.boxes is not None and alone.boxes is not None
    assert np.array_equal(points.center_m, both.detections.center_m)
    assert np.array_equal(alone.boxes.score, both.boxes.score) and both.path is not None and alone.path is not None
    assert np.array_equal(alone.path.pose, both.path.pose)


def test_its_boxes_are_in_the_frame_of_the_picture() -> None:
    """Its obstacles are in that of the points, which its stack file names; nobody could project them otherwise."""
    output = said(source())
    assert output.boxes is not None and output.detections is not None
    assert (output.boxes.frame_id, output.detections.frame_id) == ("camera", "base_link")


def test_the_camera_says_who_and_the_lidar_where() -> None:
    bundle, effects = added()
    both, alone = said(bundle).boxes, CameraStack()(decode(bundle.images[0]).rgb8()).boxes
    there = np.array([effects.image_boxes[0].box_px])
    assert both is not None and alone is not None
    assert iou(there, both.box_px).max() > max(0.8, float(iou(there, alone.box_px).max()))


def test_where_a_box_is_seen() -> None:
    """A box 1 m wide and 2 m high, its near side 9.7 m ahead of the camera and its far side 10.7 m."""
    ((x0, y0, x1, y1),) = in_picture(seen(((10.5, 0.0, 1.0), (1.0, 1.0, 2.0))), TO_CAMERA, CAMERA)
    focal = SENSOR.focal_px
    assert (x0, x1) == pytest.approx((319.5 - focal * 0.5 / 9.7, 319.5 + focal * 0.5 / 9.7))
    assert (y0, y1) == pytest.approx((239.5 - focal * 0.5 / 9.7, 239.5 + focal * 1.5 / 9.7))
    turned = in_picture(seen(((10.3, 0.0, 1.0), (1.0, 3.0, 2.0)), yaw_rad=math.pi / 2), TO_CAMERA, CAMERA)
    assert turned[0, 2] - turned[0, 0] == pytest.approx(focal * 1.0 / 8.5), "its length lies across"
    assert np.isnan(in_picture(seen(((-5.0, 0.0, 1.0), (1.0, 1.0, 2.0))), TO_CAMERA, CAMERA)).all()
    assert in_picture(Detections.none("base_link", 0), TO_CAMERA, CAMERA).shape == (0, 4)


@pytest.mark.parametrize(
    ("there", "people", "pairs"),
    [
        ([(0, 0, 40, 100)], [(10, 0, 50, 100)], [(0, 0)]),
        ([(0, 0, 40, 100)], [(39, 0, 79, 100)], [(0, 0)]),
        ([(0, 0, 40, 100)], [(41, 0, 81, 100)], []),
        ([(0, 0, 40, 100)], [(0, 0, 40, 170)], []),
        ([(30, 0, 70, 100), (0, 0, 40, 100)], [(5, 0, 45, 100)], [(1, 0)]),
        ([(0, 0, 40, 100), (50, 0, 90, 100)], [(48, 0, 88, 100), (2, 0, 42, 100)], [(0, 1), (1, 0)]),
        ([(np.nan,) * 4, (0, 0, 40, 100)], [(0, 0, 40, 100)], [(1, 0)]),
        ([(0, 0, 0, 0)], [(0, 0, 40, 100)], []),
        ([], [(0, 0, 40, 100)], []),
        ([(0, 0, 40, 100)], [], []),
    ],
)
def test_what_is_one_thing_in_both_lists(there: Any, people: Any, pairs: Any) -> None:
    boxes = [np.array(rows, dtype=float).reshape(-1, 4) for rows in (there, people)]
    assert list(zip(*(rows.tolist() for rows in alike(*boxes)), strict=True)) == pairs


@pytest.mark.parametrize(
    ("ahead_m", "left_m", "expected"),
    [
        (12.0, 0.0, math.sqrt(2.0 * 2.0 * (11.5 - 4.0))),
        (12.0, 1.2, math.sqrt(2.0 * 2.0 * (11.5 - 4.0))),
        (4.2, 0.0, 0.0),
        (12.0, 1.4, 9.0),
        (-12.0, 0.0, 9.0),
        (60.0, 0.0, 9.0),
    ],
    ids=["ahead", "at the edge of the lane", "near", "beside", "behind", "far"],
)
def test_what_the_lidar_sees_in_the_way_slows_it_down(ahead_m: float, left_m: float, expected: float) -> None:
    control = Control(None, 0.1, 9.0, yaw_rate_radps=9.0 * math.tan(0.1) / 2.7)
    obstacle = seen(((ahead_m, left_m, 0.8), (1.0, 0.5, 1.6)))
    for path, shift in ((Lane.make("", 0, []), 0.0), (Lane.make("", 0, [(0, 2, 0), (30, 2, 0)]), 2.0)):
        there = replace(obstacle, center_m=obstacle.center_m + np.array([0.0, shift, 0.0]))
        slower = FusionStack()._careful(control, path, there)
        assert slower.speed_mps == pytest.approx(expected, abs=1e-6) and slower.steering_rad == 0.1
        assert slower.yaw_rate_radps == pytest.approx(slower.speed_mps * math.tan(0.1) / 2.7)


def test_whom_the_camera_overlooks_the_lidar_still_brakes_for() -> None:
    """A rider is 11 m ahead; in a picture of fog nobody is."""
    hidden = replace(source().images[0], pixels=np.full_like(source().images[0].pixels, 190))
    blind = said(replace(source(), images=(hidden,))).control
    assert blind is not None and blind.speed_mps <= math.sqrt(2.0 * 2.0 * (11.0 - 4.0))


def agreed(*faults: Any) -> Outcome:
    followup, effects = added()
    assert AGREED.check is not None
    return AGREED.check.judge(said(source(), *faults), said(followup, *faults), effects, followup).outcome


def test_camera_and_lidar_agree_on_a_person_who_was_added() -> None:
    assert agreed() is Outcome.HOLDS


@pytest.mark.parametrize("fault", ["camera_mount_turned", HALF], ids=["mount", "size"])
def test_they_disagree_where_a_fault_parts_them(fault: Any) -> None:
    assert agreed(fault) is Outcome.VIOLATED


def test_a_part_that_is_silent_silences_the_whole() -> None:
    stack = planted("empty_result_silent")
    image = {"image": decode(source().images[0]).rgb8(), "camera_info": source().camera_infos[0]}
    assert stack({**image, "points": np.zeros((0, 4), np.float32)}).silent


def test_it_takes_faults_of_all_its_parts() -> None:
    stack = planted("grid_index_wrap", {"colours_swapped": {}}, {"camera_mount_turned": {"yaw_deg": 5.0}})
    assert [len(part.faults) for part in (stack._detector, stack._camera)] == [1, 1]
    named = ("stale_frame_buffer", "nan_leak", "camera_mount_turned")
    assert with_faults(STACK, named).params["faults"] == [*named]
    with pytest.raises(UsageError, match="'camera_mount_turned' is a fault of fusion stacks"):
        params.build(CameraStack, {"faults": ["camera_mount_turned"]}, "stack.params")
    with pytest.raises(UsageError, match="'camera_mount_turned' is a fault of fusion stacks; stack 'reference_det"):
        with_faults(load_stack("reference_detector"), ("camera_mount_turned",))


def test_its_parts_are_the_reference_stacks() -> None:
    assert type(planted()._detector) is Detector and type(planted()._camera) is CameraStack


@pytest.mark.skipif(not KITTI.exists(), reason=f"no real drive at {KITTI.name}: see the README on data")
def test_they_agree_on_a_real_street_too() -> None:
    assert AGREED.check is not None
    pipeline = MutationPipeline(list(AGREED.mutate), 0, AGREED.id)
    made = [(bundle, pipeline.derive(bundle)) for bundle in BagSource(KITTI, {}, None, 0, 2, STACK.topics)]
    bundle, derived = made[-1]  # in the first one a car hides a part of the person
    followup = derived.followup.bundles[0][1]
    for faults, outcome in (((), Outcome.HOLDS), ((HALF,), Outcome.VIOLATED)):
        answers = said(bundle, *faults), said(followup, *faults)
        assert AGREED.check.judge(*answers, derived.effects, followup).outcome is outcome
