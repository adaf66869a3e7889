# SPDX-License-Identifier: Apache-2.0
"""Frames drawn by Hypothesis: what a strategy shrinks to, and what an assertion about a frame lets pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis.errors import Unsatisfiable

import mt_nodes as mt
from mt_nodes.api.strategies import PlacedObject, StreetFrame, bundles, clouds, images, street
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.lidar import LidarModel

pytest_plugins = ["pytester"]

#: Quick to scan: 24 beams of 450 columns; and where only the things matter, one of 16.
LIDAR = LidarModel(tuple(np.radians(np.linspace(1.0, -16.0, 24)).tolist()), 450, 0.9, 60.0, 0.02, 0.0)
HARDLY = LidarModel((-0.1,), 16, 0.9, 60.0, 0.02, 0.0)
STREET = street(2, kinds=("box", "car"), ahead_m=(6, 20), aside_m=6, lidar=LIDAR)
#: Without explanations of failures: they trace each line of what is tested.
PHASES = (Phase.generate, Phase.shrink)
quickly = settings(max_examples=30, deadline=None, database=None, derandomize=True, phases=PHASES)
#: What a parked car is to a detector that is given points in base_link.
CAR = [[10.0, 0.0, 0.75, 4.4, 1.8, 1.5, 0.0]]
IN_CAR = {"points_frame": "base_link"}


def test_an_honest_detector_holds_and_a_planted_fault_is_found_and_shrunk() -> None:
    def mirrored(fault: str) -> None:
        @quickly
        @given(scene=STREET)
        def holds(scene: StreetFrame) -> None:
            mt.assert_frame_holds(scene, "reference_detector", "cloud_mirrored", faults=fault)

        holds()

    mirrored("")
    with pytest.raises(AssertionError, match=r"cloud_mirrored: VIOLATED: lost .*\n  frame: <street with .*>") as failed:
        mirrored("right_side_threshold")
    text = str(failed.value)
    assert ";" not in text.partition("frame: ")[2].partition("\n")[0], f"one thing suffices: {text}"


def found(strategy: Any, wanted: Any) -> Any:
    """The plainest example."""
    return find(strategy, wanted, settings=settings(max_examples=500, database=None, derandomize=True, phases=PHASES))


def test_streets_shrink_to_the_plainest_and_say_what_stands_there() -> None:
    things = street(2, kinds=("box", "car"), ahead_m=(6, 20), aside_m=6, lidar=HARDLY)
    assert repr(found(things, lambda scene: True)) == "<street with nothing on it>"
    plainest = found(things, lambda scene: any(thing.kind == "car" for thing in scene.things))
    assert repr(plainest) == "<street with car 6 m ahead>"
    cars = (PlacedObject("car", 10), PlacedObject("car", 12, 1, 90))
    assert repr(StreetFrame.of(cars[1:], LIDAR)) == "<street with car 12 m ahead, 1 m to the left, turned by 90°>"
    assert (StreetFrame.of(cars[:1], LIDAR).points == StreetFrame.of(cars[:1], LIDAR).points).all()
    pair = found(things, lambda scene: len(scene.things) == 2).things
    away = np.hypot(pair[0].ahead_m - pair[1].ahead_m, pair[0].left_m - pair[1].left_m)
    assert away > pair[0].radius_m + pair[1].radius_m, "none stands within another one"


def test_a_street_with_a_camera_has_a_picture_and_its_calibration() -> None:
    camera = CameraSensor(width=64, height=48)
    empty, car = (StreetFrame.of(things, LIDAR, camera) for things in ((), [PlacedObject("car", 8)]))
    assert empty.sensors == ("lidar", "camera") and empty.image.shape == (48, 64, 3)
    assert (empty.image != car.image).any(axis=2).mean() > 0.02 and len(car.bundle.camera_infos) == 1


def test_clouds_images_and_both_shrink_to_the_fewest_points_and_to_black() -> None:
    assert found(clouds(20), lambda frame: len(frame.points) >= 2).points.tolist() == [[0.0] * 4] * 2
    far = found(clouds(20), lambda frame: bool((frame.points[:, 0] > 5.0).any())).points
    assert far.tolist() == [[6.0, 0.0, 0.0, 0.0]]
    bright = found(images(16, 16), lambda frame: bool((frame.image > 100).any()))
    assert (bright.image > 0).sum() in (1, 16 * 16 * 3) and bright.image.max() == 101
    both = found(bundles(5, 16, 16), lambda frame: True)
    assert both.sensors == ("lidar", "camera") and len(both.points) == 1


def test_frames_of_which_nothing_is_demanded_never_pass() -> None:
    empty = StreetFrame.of((), LIDAR)
    with pytest.raises(AssertionError, match="nothing was demanded"):
        mt.assert_frame_holds(empty, "reference_detector", "noise_outside_roi_100")

    @quickly
    @given(scene=street(0, lidar=LIDAR))
    def unmoved(scene: StreetFrame) -> None:
        mt.assert_frame_holds(scene, "reference_detector", "noise_outside_roi_100")

    with pytest.raises(Unsatisfiable):
        unmoved()


class Counts:
    """Shows a car to the first cloud it is given, and to no other one."""

    def __init__(self) -> None:
        self.clouds = 0

    def __call__(self, points: Any) -> Any:
        self.clouds += 1
        return CAR[: 2 - self.clouds]


def test_callables_classes_and_what_cannot_be_judged() -> None:
    scene = StreetFrame.of([PlacedObject("car", 10)], LIDAR)
    noise = "noise_outside_roi_100"
    (verdict,) = mt.assert_frame_holds(scene, lambda points: CAR, noise, settings=IN_CAR)
    assert verdict.outcome == "HOLDS"
    assert mt.assert_frame_holds(scene, Counts, noise, settings=IN_CAR), "each arm has its own instance"
    with pytest.raises(AssertionError, match="VIOLATED: lost"):
        mt.assert_frame_holds(scene, Counts(), noise, settings=IN_CAR)
    with pytest.raises(AssertionError, match="ERROR"):
        mt.assert_frame_holds(scene, lambda points: [[float("nan")] * 7], noise, settings=IN_CAR)
    for silent in (lambda points: None, lambda points: []):
        with pytest.raises((AssertionError, InfrastructureError), match=r"None|nothing was demanded"):
            mt.assert_frame_holds(scene, silent, noise, settings=IN_CAR)
    with pytest.raises(UsageError, match="got no relation"):
        mt.assert_frame_holds(scene, "reference_detector", [])
    with pytest.raises(UsageError, match="takes a camera"):
        mt.assert_frame_holds(scene, "reference_both", noise)
    with pytest.raises(UsageError, match=r"expected one of mt_nodes\.frames"):
        mt.assert_frame_holds("my_bag", "reference_detector", noise)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kinds: got unicorn"):
        street(kinds=["unicorn"])


def test_the_fixture_of_the_plugin_judges_frames(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
from hypothesis import given, settings
from mt_nodes.api.strategies import street

@settings(max_examples=5, deadline=None, database=None, derandomize=True)
@given(scene=street(1, kinds=["car"], ahead_m=(8, 12), aside_m=2))
def test_noise(assert_holds, scene):
    assert_holds(scene, "reference_detector", "noise_outside_roi_100")
"""
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
