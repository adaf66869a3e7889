# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from drives import LIDAR_HEIGHT_M, equal, generated, lost, with_noise
from found_once import obstacles_found_once

from mt_nodes.base import params, plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.faults.lidar_point_faults import GridIndexWrap, PointBufferCap
from mt_nodes.stacks.reference.tracker import Tracker

FRAMES = 10
FULL_SCALE = 255.0
FAULTS = sorted(name for name, cls in plugins.catalogue("faults").items() if cls.stack == "lidar")  # type: ignore[attr-defined]
#: Those that points far away bring out, by letting the whole cloud decide; the others need another change.
WHOLE_CLOUD = [
    "grid_index_wrap",
    "intensity_by_cloud_max",
    "order_dependence_over_budget",
    "point_buffer_cap",
    "threshold_scaled_by_cloud",
    "z_range_from_cloud",
]
OTHERS = [
    "azimuth_seam",
    "class_by_side",
    "empty_result_silent",
    "fixed_range_gate",
    "hard_coded_ring_count",
    "intensity_threshold",
    "mount_offset_twice",
    "nan_leak",
    "obstacle_held",
    "obstacle_list_full",
    "old_cloud_refused",
    "pause_is_restart",
    "right_side_threshold",
    "road_fit_starved",
    "same_cloud_is_stuck",
    "sample_seeded_by_cloud",
    "stale_result",
    "stamp_slot",
    "surer_with_less",
    "tall_is_building",
    "yaw_unsigned",
    "zero_time_floored",
]
every_fault = pytest.mark.parametrize("name", FAULTS)


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    with obstacles_found_once():
        yield


def planted(name: str) -> Detector:
    return params.build(Detector, {"faults": [name]}, "stack.params")


def losses(detector: Detector, count: int, intensity: float | None = None) -> list[str]:
    clouds = generated(FRAMES)
    return [
        text
        for i, cloud in enumerate(clouds)
        for text in lost(detector(cloud), detector(with_noise(cloud, count, 100 + i, intensity)))
    ]


def test_they_are_found() -> None:
    assert sorted([*WHOLE_CLOUD, *OTHERS]) == FAULTS


@every_fault
def test_a_fault_is_quiet_when_nothing_or_only_the_order_changes(name: str) -> None:
    for i, cloud in enumerate(generated(FRAMES)):
        # A fault may remember: each cloud is the first that it is given.
        source = planted(name)(cloud)
        assert equal(source, planted(name)(cloud.copy()))
        assert equal(source, planted(name)(cloud[np.random.default_rng(i).permutation(len(cloud))]))
        # A fixed gate, a raised threshold or a short list leaves fewer to be seen; the others hide nothing.
        assert len(source) >= (8 if name in WHOLE_CLOUD else 4)


@pytest.mark.parametrize("name", WHOLE_CLOUD)
def test_a_fault_loses_obstacles_to_noise_far_away(name: str) -> None:
    intensity = FULL_SCALE if name == "intensity_by_cloud_max" else None
    assert losses(planted(name), 1000, intensity)


def test_ten_retro_reflectors_suffice_for_intensity_and_dim_noise_does_not() -> None:
    detector = planted("intensity_by_cloud_max")
    assert losses(detector, 10, FULL_SCALE)
    assert losses(detector, 1000) == []


@pytest.mark.parametrize("intensity", [None, FULL_SCALE])
def test_the_honest_detector_loses_nothing_to_any_of_it(intensity: float | None) -> None:
    assert losses(Detector(), 1000, intensity) == []


@every_fault
def test_a_fault_does_not_touch_the_cloud(name: str) -> None:
    cloud = generated(FRAMES)[0].copy()
    planted(name)(cloud)
    assert np.array_equal(cloud, generated(FRAMES)[0])


@every_fault
def test_a_fault_stands_an_empty_cloud(name: str) -> None:
    found = planted(name)(np.empty((0, 4), dtype=np.float32))
    assert found.silent if name == "empty_result_silent" else len(found) == 0


@every_fault
def test_a_fault_can_be_shown_to_people(name: str) -> None:
    cls = plugins.catalogue("faults")[name]
    assert plugins.summary_of(cls).endswith(".")
    assert params.describe(cls) or name in OTHERS
    assert all(row["help"] for row in params.describe(cls))


def test_faults_with_parameters_of_their_own_and_several_at_once() -> None:
    given = {"faults": [{"point_buffer_cap": {"capacity": 10}}, "grid_index_wrap"]}
    detector = params.build(Detector, given, "stack.params")
    assert detector.faults == (PointBufferCap(10), GridIndexWrap())
    assert len(detector(generated(FRAMES)[0])) == 0
    assert Detector(faults=("point_buffer_cap",)).faults == (PointBufferCap(),)
    assert params.build(Tracker, {"faults": ["point_buffer_cap"]}, "stack.params").faults == (PointBufferCap(),)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (["point_bufer_cap"], r"params.faults\[0\]: no fault 'point_bufer_cap'; did you mean 'point_buffer_cap'"),
        ("point_buffer_cap", r"expected a list of fault names"),
        ([3], r"params.faults\[0\]: got 3, expected the name of a fault"),
        ([{"point_buffer_cap": {"size": 3}}], r"faults\[0\].point_buffer_cap: unknown parameter 'size'"),
        ([{"point_buffer_cap": {"capacity": 0}}], r"got 0, expected 1 to inf"),
    ],
)
def test_what_is_no_fault_is_refused(faults: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        params.build(Detector, {"faults": faults}, "params")


def test_the_grid_wraps_only_what_lies_beyond_it() -> None:
    cloud = np.float32([[39.9, 9.9, 1, 0], [-23.9, -15.9, 1, 0], [-108, 0, 1, 0], [20, 37, 1, 0], [20, -27, 1, 0]])
    steps = GridIndexWrap().plant(Detector()._steps)
    seen = steps.admit(cloud)
    assert np.array_equal(seen[:2], cloud[:2])
    assert seen[2:, :2] == pytest.approx(np.array([[20, 0], [20, 5], [20, 5]]))


def test_weak_and_glaring_returns_are_dropped_by_a_fixed_number() -> None:
    cloud = generated(FRAMES)[0]
    steps = planted("intensity_threshold")._steps
    kept = steps.admit(cloud)[:, 3]
    assert kept.min() >= 8.0 and len(kept) == np.count_nonzero((cloud[:, 3] >= 8.0) & (cloud[:, 3] <= 145.0))
    assert lost(planted("intensity_threshold")(cloud), planted("intensity_threshold")(scaled(cloud, 0.5)))
    assert lost(Detector()(cloud), Detector()(scaled(cloud, 0.5))) == []
    # On a scale that ends at 1 every return is weak.
    assert len(planted("intensity_threshold")(scaled(cloud, 1.0 / FULL_SCALE))) == 0


def scaled(cloud: npt.NDArray[np.float32], by: float) -> npt.NDArray[np.float32]:
    changed = cloud.copy()
    changed[:, 3] *= np.float32(by)
    return changed


def beams_of(cloud: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Number the 64 beams of a generated cloud from the top."""
    elevation = np.degrees(np.arctan2(cloud[:, 2] - LIDAR_HEIGHT_M, np.hypot(cloud[:, 0], cloud[:, 1])))
    upper = np.rint((2.02 - elevation) / (10.54 / 31))
    return np.where(elevation > -8.735, upper, 32 + np.rint((-8.95 - elevation) / (15.76 / 31))).astype(np.intp)


def test_64_beams_are_taken_for_what_they_are_and_fewer_are_not() -> None:
    cloud, admit = generated(FRAMES)[0], planted("hard_coded_ring_count")._steps.admit
    assert np.array_equal(admit(cloud), cloud)
    beam = beams_of(cloud)
    without = cloud[beam != 40]
    lifted = admit(without)[:, 2] - without[:, 2]
    above = beams_of(without) < 40
    assert not lifted[above].any() and (lifted[~above] > 0.0).all()
    # The beam below the lost one is taken for it.
    next_one = beams_of(without) == 41
    assert set(beams_of(admit(without)[next_one])) == {40}


def test_a_return_that_is_no_number_takes_a_sector_with_it() -> None:
    cloud, fault = generated(FRAMES)[0], planted("nan_leak")
    before, poisoned = fault(cloud), np.vstack([cloud, np.full((1, 4), np.nan, dtype=np.float32)])
    assert equal(before, Detector()(cloud)) and equal(before, Detector()(poisoned))
    after = fault(poisoned)
    azimuth = np.arctan2(before.center_m[:, 1], before.center_m[:, 0]) % (2.0 * np.pi)
    clear_of_edges = np.abs(azimuth % (np.pi / 4.0) - np.pi / 8.0) < np.pi / 8.0 - 0.1
    in_sector = (azimuth < np.pi / 4.0) & clear_of_edges
    assert in_sector.any() and not in_sector.all()
    places = {tuple(c) for c in after.center_m.round(3)}
    assert not places & {tuple(c) for c in before.center_m[in_sector].round(3)}
    assert places >= {tuple(c) for c in before.center_m[(azimuth > np.pi / 4.0) & clear_of_edges].round(3)}


def test_every_digit_of_the_cloud_draws_another_threshold_and_its_order_does_not() -> None:
    cloud, fault = generated(FRAMES)[0], planted("sample_seeded_by_cloud")
    shaken = [cloud + np.float32([0, 0, 0, i / 4096]) for i in range(20)]
    thresholds = [fault._steps.min_points(c) for c in shaken]
    assert len(set(thresholds)) > 10 and min(thresholds) >= 6 and max(thresholds) <= 120
    assert fault._steps.min_points(cloud[::-1]) == thresholds[0]


def found_at(*rows: tuple[float, float, float, float, str]) -> Detections:
    """Rows of x, y, yaw, score, class."""
    return Detections.make(
        "base_link",
        1_700_000_000_000_000_000,
        [[x, y, 0.8] for x, y, *_ in rows],
        [[4.0, 1.8, 1.6]] * len(rows),
        [r[2] for r in rows],
        [r[4] for r in rows],
        [r[3] for r in rows],
    )


def reported(name: str, found: Detections, **params_: object) -> Detections:
    said = params.build(Detector, {"faults": [{name: params_}]}, "stack.params")._steps.report(found)
    assert said is not None
    return said


SCENE = found_at((10, 3, -0.4, 0.9, "pedestrian"), (12, -3, 0.4, 0.5, "pedestrian"), (20, 1, 1.2, 0.7, "car"))


def test_a_full_list_leaves_out_the_least_sure_and_keeps_the_order() -> None:
    assert reported("obstacle_list_full", SCENE, places=2).score.tolist() == [0.9, 0.7]
    assert equal(reported("obstacle_list_full", SCENE, places=3), SCENE)


def test_the_sign_of_the_yaw_is_lost() -> None:
    assert reported("yaw_unsigned", SCENE).yaw_rad.tolist() == [0.4, 0.4, 1.2]


def test_pedestrians_to_the_left_are_cyclists() -> None:
    assert reported("class_by_side", SCENE).label.tolist() == ["cyclist", "pedestrian", "car"]


def test_the_score_falls_with_the_number_of_points() -> None:
    points = np.array([6.0, 12.0, 60.0, 600.0])
    honest = points / (points + 2.0 * Detector().min_points)
    scores = reported("surer_with_less", found_at(*((10.0, 0.0, 0.0, s, "car") for s in honest))).score
    assert scores == pytest.approx(1.0 / (1.0 + points / 60.0))


@pytest.mark.parametrize(("ms", "in_time"), [(0, True), (14, True), (16, False), (99, False), (100, True)])
def test_what_is_stamped_late_in_a_cycle_is_thrown_away(ms: int, in_time: bool) -> None:
    stamp_ns = SCENE.stamp_ns + ms * 1_000_000
    said = reported("stamp_slot", replace(SCENE, stamp_ns=stamp_ns))
    assert (len(said), said.stamp_ns) == (3 if in_time else 0, stamp_ns)
    assert len(reported("stamp_slot", replace(SCENE, stamp_ns=None))) == 3


def at(ms: int) -> int:
    return 1_700_000_000_000_000_000 + ms * 1_000_000


@pytest.mark.parametrize(
    ("came_ms", "shown"),
    [
        ((0, 100, 200, 300), (1, 1, 1, 1)),
        ((0, 100, 300, 400, 500), (1, 1, 0, 0, 1)),
        ((0, 200, 100, 200), (1, 0, 0, 1)),
    ],
)
def test_a_pause_is_taken_for_a_restart(came_ms: tuple[int, ...], shown: tuple[int, ...]) -> None:
    report = planted("pause_is_restart")._steps.report
    said = [report(replace(SCENE, stamp_ns=at(ms))) for ms in came_ms]
    assert [int(len(s) == 3) for s in said if s is not None] == list(shown)
    assert [s.stamp_ns for s in said if s is not None] == [at(ms) for ms in came_ms]


def test_the_same_cloud_is_thrown_away_and_the_next_one_too() -> None:
    admit = planted("same_cloud_is_stuck")._steps.admit
    a, b, c, d = (generated(FRAMES)[0] + np.float32(i) for i in range(4))
    assert [len(admit(x)) > 0 for x in (a, b, b, c, d, a, a, a, b, c)] == [1, 1, 0, 0, 1, 1, 0, 0, 0, 1]
    again = planted("same_cloud_is_stuck")._steps.admit
    assert len(again(a)) and len(again(a[::-1]))


def test_a_cloud_given_up_for_want_of_road_loses_all_that_is_near() -> None:
    cloud = generated(FRAMES)[0]
    far_road = (np.abs(cloud[:, 2]) < 0.2) & (np.hypot(cloud[:, 0], cloud[:, 1]) > 20.0)
    least = int(np.count_nonzero(far_road))
    for limit, kept in ((least, True), (least + 1, False)):
        fault = params.build(Detector, {"faults": [{"road_fit_starved": {"least_returns": limit}}]}, "stack.params")
        assert equal(fault(cloud), Detector()(cloud)) if kept else len(fault(cloud)) == 0


@pytest.mark.parametrize(("late_ms", "seen"), [(0, True), (30, True), (31, False), (None, True)])
def test_a_cloud_that_comes_late_is_not_looked_at(late_ms: int | None, seen: bool) -> None:
    cloud, fault = generated(FRAMES)[0], planted("old_cloud_refused")
    said = fault(cloud, at(0), None if late_ms is None else at(late_ms))
    assert said is not None and (len(said) > 0, said.stamp_ns) == (seen, at(0))
    assert len(fault(cloud, None, at(1000)) or ()) > 0, "without a stamp nobody is late"


def test_a_tracker_that_takes_no_time_for_some_begins_its_tracks_anew() -> None:
    clouds = generated(FRAMES)
    for faults, kept in (((), True), (("zero_time_floored",), False)):
        known, repeated = (Tracker(faults=faults) for _ in range(2))
        before = [known(cloud, at(100 * i)) for i, cloud in enumerate(clouds[:8])][-1]
        repeats = [(clouds[i], at(100 * i)) for i in (0, 1, 2, 3, 3, 4, 5, 6, 7)]
        after = [repeated(*given) for given in repeats][-1]
        assert before is not None and after is not None
        ids = [set(d.track_id[d.score >= 0.5].tolist()) for d in (before, after)]
        assert (ids[1] <= ids[0]) is kept
