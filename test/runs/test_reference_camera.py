# SPDX-License-Identifier: Apache-2.0
"""The reference camera stack on the generated drive, on the real one, and with faults planted in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from found_once import people_found_once

from mt_nodes.base import params, plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, CameraInfo, Image
from mt_nodes.data.outputs import ImageBoxes, Output
from mt_nodes.data.transforms import TransformTree
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.reference.camera import CameraStack, find_people
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.lane import LaneFit, find_lane, lines_in, road_from_above
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.road import Road
from mt_nodes.world.scene.street import EGO_SPEED_MPS

KITTI = Path(__file__).parents[3] / "shared" / "data" / "kitti_drive"
SENSOR = CameraSensor()
BEND_1PM = 1.0 / 60.0
FAULTS = sorted(name for name, cls in plugins.catalogue("faults").items() if cls.stack == "camera")  # type: ignore[attr-defined]
every_fault = pytest.mark.parametrize("name", FAULTS)


@pytest.fixture(scope="module")
def remembered() -> Iterator[None]:
    """From the first fault on: what the stack finds in a picture by itself is tested before."""
    with people_found_once():
        yield


@cache
def frames(bend_1pm: float = BEND_1PM) -> tuple[Bundle, ...]:
    thin = replace(hdl_64e(), azimuths=20)
    only = (0, 6) if bend_1pm == BEND_1PM else (0,)
    return tuple(generate_drive(only[-1] + 1, lidar=thin, camera=SENSOR, bend_1pm=bend_1pm, only=only))


def seen(bundle: Bundle) -> dict[str, Any]:
    return {"image": decode(bundle.images[0]).rgb8(), "camera_info": bundle.camera_infos[0]}


@cache
def answers(bend_1pm: float = BEND_1PM) -> tuple[Output, ...]:
    return tuple(CameraStack()(seen(bundle)) for bundle in frames(bend_1pm))


def truth_m(bundle: Bundle, bend_1pm: float, ahead_m: float) -> float:
    """How far to the left of the ego the middle of its lane lies, so far ahead along it."""
    ego = EGO_SPEED_MPS * bundle.index * 0.1
    place = Mesh(np.array([[ego + ahead_m, 0.0, 0.0]]), np.empty((0, 3), np.uint32), np.empty(0))
    return float(Road(bend_1pm, 300.0).on_road(place, ego).vertices_m[0, 1])


@pytest.mark.parametrize("bend_1pm", [BEND_1PM, -BEND_1PM, 0.0])
def test_the_lane_is_where_it_is_and_the_stack_steers_along_it(bend_1pm: float) -> None:
    for bundle, said in zip(frames(bend_1pm), answers(bend_1pm), strict=True):
        assert said.path is not None and said.control is not None
        for ahead in (8.0, 14.0):
            left = np.interp(ahead, said.path.pose[:, 0], said.path.pose[:, 1])
            assert left == pytest.approx(truth_m(bundle, bend_1pm, ahead), abs=0.1)
        expected = math.atan(2.7 * 2.0 * truth_m(bundle, bend_1pm, 8.0) / 64.0)
        assert said.control.steering_rad == pytest.approx(expected, abs=0.005)
        assert said.control.yaw_rate_radps == pytest.approx(
            said.control.speed_mps * math.tan(said.control.steering_rad) / 2.7
        )


def test_the_rider_ahead_is_seen_and_slows_the_stack_down() -> None:
    """A cyclist rides 11 m ahead of the ego, 1 m to the right of the middle of its lane."""
    for bundle, said in zip(frames(), answers(), strict=True):
        assert said.boxes is not None and said.control is not None
        rider_m = np.array([[11.0 - 0.3, truth_m(bundle, BEND_1PM, 11.0) - 1.0]])
        column = (SENSOR.width - 1) / 2.0 - SENSOR.focal_px * rider_m[0, 1] / rider_m[0, 0]
        about = np.array([[column - 20, 228, column + 20, 315]])
        assert iou(about, said.boxes.box_px).max() > 0.4
        assert 3.0 < said.control.speed_mps < 7.0
        assert set(said.boxes.label.tolist()) == {"pedestrian"} and (said.boxes.score >= 0.5).all()


def test_nobody_in_the_way_lets_it_cruise_and_a_bend_slows_it_down() -> None:
    stack, scene = CameraStack(), answers()[0]
    assert scene.control is not None
    nobody = ImageBoxes.none("", None)
    grey = np.tile(np.repeat(np.array([20, 220], np.uint8), 2), (480, 160))
    camera = CameraModel.of(frames()[0].camera_infos[0], (480, 640))
    straight, bent = LaneFit(0.0, 0.0, 0.0, 1.0), LaneFit(0.0, 0.1, 0.04, 1.0)
    assert stack._control(straight, nobody, grey, camera).speed_mps == stack.cruise_mps
    assert 3.0 < stack._control(bent, nobody, grey, camera).speed_mps < stack.cruise_mps
    assert stack._control(replace(straight, visible_share=0.1), nobody, grey, camera).speed_mps == stack.unsure_mps


def test_people_beside_the_lane_do_not_slow_it_down_and_nearer_ones_more_than_far_ones() -> None:
    stack, camera = CameraStack(), CameraModel.of(frames()[0].camera_infos[0], (480, 640))
    straight = LaneFit(0.0, 0.0, 0.0, 1.0)

    def speed(distance_m: float, left_m: float) -> float:
        focal = SENSOR.focal_px
        feet, middle = 239.5 + focal * 1.5 / distance_m, 319.5 - focal * left_m / distance_m
        box = ImageBoxes.make("", None, [(middle - 10, feet - 100, middle + 10, feet)])
        return stack._for_people(straight, box, camera)

    assert speed(15.0, 2.0) == math.inf > speed(15.0, 0.5) > speed(10.0, 0.5) > speed(4.0, 0.0) == 0.0


def veiled(rgb: Any, share: float) -> Any:
    return cv2.addWeighted(rgb, 1.0 - share, np.full_like(rgb, 190), share, 0.0)


def test_fog_and_dark_slow_it_down_and_a_brighter_picture_does_not() -> None:
    given, clear = seen(frames()[0]), answers()[0].control
    assert clear is not None
    for changed, slower in (
        (veiled(given["image"], 0.7), True),
        ((given["image"] * 0.06).astype(np.uint8), True),
        ((given["image"] * 0.8).astype(np.uint8), False),
    ):
        control = CameraStack()({**given, "image": changed}).control
        assert control is not None and (control.speed_mps < 0.8 * clear.speed_mps) == slower


def test_poor_sight_counts_more_than_once_since_people_may_be_overlooked() -> None:
    """With two thirds of the detail it drives slower past nobody than, in clear sight, behind a rider 11 m ahead."""
    stack, camera = CameraStack(), CameraModel.of(frames()[0].camera_infos[0], (480, 640))
    straight, nobody = LaneFit(0.0, 0.0, 0.0, 1.0), ImageBoxes.none("", None)
    grey = np.tile(np.repeat(np.array([109, 131], np.uint8), 2), (480, 160))
    sight = stack._sight(grey, camera)
    assert 0.6 < sight < 0.7
    slow = stack._control(straight, nobody, grey, camera).speed_mps
    assert slow == pytest.approx(sight**stack.care * stack.cruise_mps, abs=1e-6) and slow < stack.speed_before(11.0)


def test_a_picture_without_a_lane_gives_a_path_without_poses_and_goes_straight_and_slowly() -> None:
    grey = np.full((480, 640, 3), 90, np.uint8)
    said = CameraStack()(grey)
    assert said.path is not None and said.control is not None and said.boxes is not None
    assert len(said.path.pose) == len(said.boxes) == 0
    assert said.control.steering_rad == 0.0 and said.control.speed_mps <= CameraStack().unsure_mps


def test_a_mirrored_picture_gives_the_mirrored_answer() -> None:
    for bundle, said in zip(frames(), answers(), strict=True):
        given = seen(bundle)
        mirrored = CameraStack()({**given, "image": np.ascontiguousarray(given["image"][:, ::-1])})
        assert mirrored.control is not None and said.control is not None
        assert mirrored.control.steering_rad == pytest.approx(-said.control.steering_rad, abs=1e-3)
        assert mirrored.boxes is not None and said.boxes is not None
        there = np.column_stack(
            [SENSOR.width - 1 - said.boxes.box_px[:, 2], SENSOR.width - 1 - said.boxes.box_px[:, 0]]
        )
        np.testing.assert_allclose(np.sort(mirrored.boxes.box_px[:, [0, 2]], axis=0), np.sort(there, axis=0), atol=1.0)
        np.testing.assert_allclose(np.sort(mirrored.boxes.score), np.sort(said.boxes.score), atol=0.01)


def test_it_remembers_nothing_and_leaves_the_picture_alone() -> None:
    stack, given = CameraStack(), seen(frames()[0])
    before = given["image"].copy()
    first = stack(given)
    stack(seen(frames()[1]))
    again = stack(given)
    assert first.control == again.control and np.array_equal(first.boxes.box_px, again.boxes.box_px)  # type: ignore[union-attr]
    assert np.array_equal(given["image"], before)


def uncalibrated(info: CameraInfo) -> CameraInfo:
    return replace(info, k=np.zeros((3, 3)), p=np.zeros((3, 4)))


def test_without_a_calibration_it_drives_by_its_own_camera() -> None:
    given = seen(frames()[0])
    known = answers()[0].control
    for other in (given["image"], {**given, "camera_info": uncalibrated(given["camera_info"])}):
        control = CameraStack()(other).control
        assert control is not None and known is not None
        assert control.steering_rad == pytest.approx(known.steering_rad, abs=1e-6)
    with pytest.raises(ValueError, match=r"shape \(480, 640\), expected \(H, W, 3\)"):
        CameraStack()(given["image"][..., 0])


@pytest.mark.parametrize("size", [(1, 1), (40, 30), (96, 2000), (700, 60)])
def test_odd_sizes_are_answered(size: tuple[int, int]) -> None:
    said = CameraStack()(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8))
    assert said.boxes is not None and said.path is not None and said.boxes.finite.all()


def test_a_drawn_lane_is_found_between_its_lines() -> None:
    """Lines drawn straight into the road as seen from above, the left one with gaps."""
    road = np.full((64, 201), 80.0, dtype=np.float32)
    road[:, 59:62] = road[:, 139:142] = 200.0  # 2 m to both sides of the middle, 5 m at the edge
    road[20:30, 59:62] = 80.0
    lane = find_lane(lines_in(road, 14.0), 4.0)
    assert (lane.offset_m, lane.heading, lane.bend_1pm) == pytest.approx(
        (0.0, 0.0, 0.0), abs=0.01
    ) and lane.visible_share == 1.0
    assert find_lane(lines_in(np.full_like(road, 80.0), 14.0), 4.0).visible_share == 0.0
    assert lines_in(road, 200.0).max() < 0.5


def test_the_road_from_above_is_nan_where_the_camera_does_not_look() -> None:
    camera = CameraModel.of(SENSOR.info("", 0, ""), (480, 640))
    above = road_from_above(np.ones((480, 640), np.float32), camera, 1.5)
    assert np.isnan(above[-1]).any() and not np.isnan(above[0]).any() and np.nanmin(above) == 1.0


def test_a_person_must_be_large_enough_to_be_sought() -> None:
    grey = cv2.cvtColor(decode(frames()[0].images[0]).rgb8(), cv2.COLOR_RGB2GRAY)
    assert len(find_people(grey, (115, 480), 64.0, 0.0)) > 0
    assert len(find_people(grey, (115, 480), 200.0, 0.0)) == 0
    assert len(find_people(grey, (0, 20), 64.0, 0.0)) == 0
    surest = find_people(grey, (115, 480), 64.0, 0.0)
    assert (np.diff(surest.score) <= 0.0).all()


def test_the_host_gives_it_red_green_and_blue_whatever_the_encoding() -> None:
    stack = load_stack("reference_camera")
    bundle = frames()[0]
    image, info = bundle.images[0], bundle.camera_infos[0]
    rgb = Image(image.topic, image.stamp_ns, image.frame_id, np.ascontiguousarray(image.pixels[..., ::-1]), "rgb8")
    host = CallableHost.make(stack)
    first, second = (
        host({stack.topics["camera"][0]: one, stack.topics["camera_info"][0]: info}, TransformTree())
        for one in (image, rgb)
    )
    assert first.control == second.control and first.boxes is not None and second.boxes is not None
    assert np.array_equal(first.boxes.box_px, second.boxes.box_px)
    assert (first.boxes.frame_id, first.boxes.stamp_ns) == ("camera", bundle.stamp_ns)
    assert first.path is not None and (first.path.frame_id, first.path.stamp_ns) == ("base_link", bundle.stamp_ns)


def planted(*faults: Any) -> CameraStack:
    return params.build(CameraStack, {"faults": list(faults)}, "stack.params")


def test_there_are_faults_for_cameras_and_each_stack_takes_its_own() -> None:
    assert len(FAULTS) >= 5
    with pytest.raises(UsageError, match=r"'point_buffer_cap' is a fault of lidar stacks.*brightness_by_mean"):
        planted("point_buffer_cap")
    with pytest.raises(UsageError, match=r"'colours_swapped' is a fault of camera stacks.*azimuth_seam"):
        params.build(Detector, {"faults": ["colours_swapped"]}, "stack.params")
    with pytest.raises(
        UsageError, match=r"--fault: 'grid_index_wrap' is a fault of lidar stacks; stack 'reference_camera'"
    ):
        with_faults(load_stack("reference_camera"), ("grid_index_wrap",))
    with pytest.raises(UsageError, match=r"--fault: no fault 'colour_swapped'"):
        with_faults(load_stack("reference_camera"), ("colour_swapped",))
    made = with_faults(load_stack("reference_camera"), ("colours_swapped",))
    assert made.params["faults"] == ["colours_swapped"] and CallableHost.make(made)


@pytest.mark.usefixtures("remembered")
@every_fault
def test_a_fault_is_quiet_about_the_same_picture_and_touches_nothing(name: str) -> None:
    given = seen(frames()[0])
    before = given["image"].copy()
    first, second = planted(name)(given, stamp_ns=5), planted(name)(given, stamp_ns=5)
    assert first.control == second.control and np.array_equal(given["image"], before)
    assert first.boxes is not None and first.path is not None and len(first.path.pose)


@every_fault
def test_a_fault_can_be_shown_to_people(name: str) -> None:
    cls = plugins.catalogue("faults")[name]
    assert plugins.summary_of(cls).endswith(".")
    assert all(row["help"] for row in params.describe(cls))


def test_a_crop_on_one_side_pulls_to_the_other_in_a_mirror() -> None:
    given, stack = seen(frames(0.0)[0]), planted("left_columns_lost")
    there = stack(given).control
    back = stack({**given, "image": np.ascontiguousarray(given["image"][:, ::-1])}).control
    assert there is not None and back is not None
    assert abs(there.steering_rad + back.steering_rad) > 0.01


def test_a_stale_buffer_answers_for_the_picture_before_and_looks_at_newer_ones() -> None:
    first, second = (seen(bundle) for bundle in frames()[:2])
    stack = planted("stale_frame_buffer")
    fresh = stack(first, stamp_ns=1)
    assert stack(second, stamp_ns=1).control == fresh.control
    assert stack(second, stamp_ns=2).control == CameraStack()(second).control != fresh.control


def test_a_size_that_is_written_down_hides_the_rest_of_a_larger_picture() -> None:
    given = seen(frames()[0])
    larger = cv2.resize(given["image"], (960, 720), interpolation=cv2.INTER_LINEAR)
    honest, blind = CameraStack()(larger), planted("resolution_assumed")(larger)
    assert planted("resolution_assumed")(given).control == CameraStack()(given).control
    assert honest.control is not None and blind.control is not None
    assert abs(honest.control.steering_rad - blind.control.steering_rad) > 0.02 or len(blind.path.pose) == 0  # type: ignore[union-attr]


def test_a_mean_of_the_whole_picture_loses_the_lane_under_a_bright_sky() -> None:
    given = seen(frames()[0])
    bright = given["image"].copy()
    bright[:230] = 255
    honest, fooled = (
        CameraStack()({**given, "image": bright}),
        planted("brightness_by_mean")({**given, "image": bright}),
    )
    assert honest.path is not None and fooled.path is not None
    assert len(honest.path.pose) > 0 == len(fooled.path.pose)


def test_red_for_blue_loses_the_lane_in_warm_light() -> None:
    given = seen(frames()[0])
    warm = np.clip(given["image"] * np.array([1.0, 0.8, 0.3]), 0, 255).astype(np.uint8)
    honest, fooled = CameraStack()({**given, "image": warm}), planted("colours_swapped")({**given, "image": warm})
    assert honest.path is not None and fooled.path is not None
    assert len(honest.path.pose) > 0 == len(fooled.path.pose)


@pytest.mark.skipif(not KITTI.exists(), reason=f"no real drive at {KITTI.name}: see the README on data")
def test_it_runs_on_a_real_drive_and_is_the_same_under_dither() -> None:
    bundle = next(iter(BagSource(KITTI, {}, None, 0, 1, ("camera", "camera_info"))))
    given = seen(bundle)
    said = CameraStack()(given)
    noise = np.random.default_rng(1).integers(-1, 2, given["image"].shape)
    again = CameraStack()({**given, "image": np.clip(given["image"] + noise, 0, 255).astype(np.uint8)})
    assert said.control is not None and again.control is not None
    assert again.control.steering_rad == pytest.approx(said.control.steering_rad, abs=0.005)
    assert again.control.speed_mps == pytest.approx(said.control.speed_mps, abs=0.3)
