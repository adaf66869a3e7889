# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import shapely
from drives import Points, equal, generated, lost, recorded, with_noise
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, describe
from mt_nodes.stacks.reference import cluster_boxes, clustering, ground_removal
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.lidar_detector import in_order, inside
from mt_nodes.stacks.reference.tracker import Tracker

HONEST = {"region": Detector(), "whole_cloud": Detector(use_region=False)}
honest = pytest.mark.parametrize("detector", HONEST.values(), ids=HONEST)


def road(slope: float = 0.0) -> Points:
    """A level or tilted road, a point each 0.25 m."""
    x, y = np.meshgrid(np.arange(-20, 60, 0.25), np.arange(-15, 15, 0.25))
    z = slope * x.ravel()
    return np.column_stack([x.ravel(), y.ravel(), z, np.full(z.size, 9.0)]).astype(np.float32)


def block(x: float, y: float, length: float, width: float, height: float, yaw: float = 0.0, z: float = 0.0) -> Points:
    """The four walls of a box on the road, a point each 5 cm or so."""
    u, v = np.meshgrid(np.linspace(-0.5, 0.5, 25), np.linspace(0.05, 1, 25) * height)
    half = np.full(u.size, 0.5)
    sides = [(u.ravel(), half), (u.ravel(), -half), (half, u.ravel()), (-half, u.ravel())]
    a, b = (np.concatenate([side[i] for side in sides]) * (length, width)[i] for i in (0, 1))
    c, s = np.cos(yaw), np.sin(yaw)
    return np.column_stack([x + c * a - s * b, y + s * a + c * b, np.tile(v.ravel(), 4) + z, 0 * a + 50.0]).astype(
        np.float32
    )


@honest
def test_nothing_changes_when_points_arrive_in_another_order(detector: Detector) -> None:
    for i, cloud in enumerate((*generated(4), road())):
        order = np.random.default_rng(i).permutation(len(cloud))
        assert equal(detector(cloud), detector(cloud[order]))


@given(st.integers(0, 2**32 - 1), st.integers(0, 5000))
@settings(max_examples=15, deadline=None)
def test_points_outside_the_region_are_nothing_to_the_region_detector(seed: int, count: int) -> None:
    cloud = generated(4)[seed % 4]
    assert equal(HONEST["region"](cloud), HONEST["region"](with_noise(cloud, count, seed)))


@honest
@pytest.mark.parametrize("count", [10, 100, 1000])
def test_noise_outside_loses_no_obstacle(detector: Detector, count: int) -> None:
    for i, cloud in enumerate(generated(8)):
        assert lost(detector(cloud), detector(with_noise(cloud, count, i))) == []


@honest
def test_recorded_drive(detector: Detector) -> None:
    for i, cloud in enumerate(recorded(5)):
        before = detector(cloud)
        assert (before.label == "car").sum() >= 3
        assert equal(before, detector(cloud[np.random.default_rng(i).permutation(len(cloud))]))
        assert lost(before, detector(with_noise(cloud, 1000, i))) == []


def test_every_generated_frame_shows_cars_pedestrians_and_cyclists_some_far() -> None:
    for cloud in generated(8):
        found = HONEST["region"](cloud)
        sure = found.take(found.score >= 0.5)
        kinds = sure.label.tolist()
        assert kinds.count("car") >= 4 and kinds.count("pedestrian") >= 3 and kinds.count("cyclist") >= 1
        far = (sure.label == "pedestrian") & (sure.center_m[:, 0] >= 25)
        assert far.any() and sure.score[far].min() < 0.8


@pytest.mark.parametrize("yaw", [0.0, 0.4, -1.2, np.pi / 2])
def test_a_box_is_measured(yaw: float) -> None:
    found = HONEST["region"](np.concatenate([road(), block(15, 3, 4.2, 1.8, 1.5, yaw)]), stamp_ns=7)
    assert (found.frame_id, found.stamp_ns, found.label.tolist()) == ("base_link", 7, ["car"])
    assert found.center_m[0] == pytest.approx([15, 3, 0.75], abs=0.02)
    assert found.size_m[0] == pytest.approx([4.2, 1.8, 1.5], abs=0.02)
    assert np.cos(2 * (found.yaw_rad[0] - yaw)) == pytest.approx(1, abs=1e-4)
    assert -np.pi / 2 < found.yaw_rad[0] <= np.pi / 2 and found.score[0] > 0.95


@pytest.mark.parametrize(
    "unseen",
    [
        block(15, 3, 2.0, 2.0, 0.2),  # lower than the ground tolerance
        block(15, 3, 2.0, 2.0, 0.35),  # a kerb stone
        block(15, 3, 2.0, 1.0, 5.0),  # taller than any road user
        np.concatenate([block(16, 3, 8.0, 1.0, 1.0), block(24, 3, 8.0, 1.0, 1.0)]),  # longer than any road user
        block(15, 3, 0.3, 0.3, 1.0)[::600],  # too few points
        block(15, 12, 2.0, 1.0, 1.5),  # outside the region
        block(0.5, 0, 2.0, 1.0, 1.0),  # the vehicle itself
        block(15, 3, 2.0, 2.0, 1.0, z=7.0),  # overhead
    ],
)
def test_what_is_no_obstacle(unseen: Points) -> None:
    assert len(HONEST["region"](np.concatenate([road(), unseen]))) == 0


def test_things_far_enough_apart_are_two() -> None:
    scene = [road(), block(15, 0, 2, 1, 1)]
    counts = [len(HONEST["region"](np.concatenate([*scene, block(15, 1 + gap, 2, 1, 1)]))) for gap in (0.3, 1.0)]
    assert counts == [1, 2]


@honest
def test_what_is_seen_through_the_windows_of_a_car_is_a_part_of_it(detector: Detector) -> None:
    """A door's far side inside a turned car; the same beside the car, or inside a wall's outline, is something else."""
    car = block(15.0, 2.0, 4.4, 1.8, 1.5, yaw=0.3)
    door = block(15.0, 2.0, 0.6, 0.08, 1.4, yaw=0.3)
    found = detector(np.concatenate([road(), car, door]))
    assert found.label.tolist() == ["car"] and found.size_m[0, :2] == pytest.approx((4.4, 1.8), abs=0.05)
    beside = detector(np.concatenate([road(), car, block(15.0, 4.5, 0.6, 0.08, 1.4)]))
    assert sorted(beside.label.tolist()) == ["car", "pedestrian"]
    yard = detector(np.concatenate([road(), block(15.0, 2.0, 8.0, 4.5, 1.5), block(15.0, 2.0, 0.6, 0.4, 1.6)]))
    assert "pedestrian" in yard.label.tolist()


def test_a_slope_is_no_obstacle_and_hides_none() -> None:
    cloud = np.concatenate([road(0.06), block(20, 3, 4.2, 1.8, 1.5, z=1.2)])
    assert HONEST["region"](cloud).label.tolist() == ["car"]


@honest
def test_clouds_without_anything_to_see(detector: Detector) -> None:
    nothing = np.empty((0, 4), dtype=np.float32)
    for cloud in (nothing, road(), np.full((9, 4), np.nan, dtype=np.float32), block(500, 0, 2, 1, 1)):
        assert len(detector(cloud)) == 0


@honest
def test_rows_that_are_not_finite_are_ignored(detector: Detector) -> None:
    cloud = generated(4)[0]
    broken = np.insert(cloud, [5, 500, 5000], np.float32([[np.nan] * 4, [9, 0, np.inf, 1], [np.nan, 1, 1, 1]]), axis=0)
    assert equal(detector(cloud), detector(broken))


def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(5, 3\), expected \(N, 4\)"):
        HONEST["region"](np.zeros((5, 3), dtype=np.float32))


def test_parameters_from_a_file() -> None:
    values = {"region_m": [[0, -5], [30, -5], [30, 5], [0, 5]], "frame_id": "map"}
    detector = build(Detector, values, "params")
    found = detector(np.concatenate([road(), block(15, 3, 4, 2, 1.5), block(35, 3, 4, 2, 1.5)]))
    assert len(found) == 1 and found.frame_id == "map"
    with pytest.raises(UsageError, match="min_point'; did you mean 'min_points'"):
        build(Detector, {"min_point": 3}, "params")
    assert {row["name"] for row in describe(Tracker)} >= {"min_points", "gate_m", "faults"}


coordinate = st.floats(-50, 50, allow_nan=False, width=32)
polygons = st.lists(st.tuples(coordinate, coordinate), min_size=3, max_size=7).filter(
    lambda p: shapely.Polygon(p).is_valid and shapely.Polygon(p).area > 1
)


@given(polygons, st.integers(0, 1000))
def test_inside_agrees_with_shapely(corners: list[tuple[float, float]], seed: int) -> None:
    xy = np.random.default_rng(seed).uniform(-60, 60, (200, 2))
    assert np.array_equal(inside(xy[:, 0], xy[:, 1], tuple(corners)), shapely.contains_xy(shapely.Polygon(corners), xy))


@given(st.lists(st.lists(st.tuples(coordinate, coordinate), min_size=2, max_size=12), min_size=1, max_size=4))
def test_rectangles_are_the_smallest_and_hold_all_points(groups: list[list[tuple[float, float]]]) -> None:
    xy, member = np.concatenate(groups), np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    centre, extent, yaw = cluster_boxes.rectangles(xy, member)
    assert (extent[:, 0] >= extent[:, 1]).all() and len(centre) == len(groups)
    for i, group in enumerate(groups):
        smallest = shapely.oriented_envelope(shapely.MultiPoint(group)).area
        assert extent[i].prod() == pytest.approx(smallest, abs=1e-3)
        c, s = np.cos(yaw[i]), np.sin(yaw[i])
        local = (np.array(group) - centre[i]) @ np.array([[c, -s], [s, c]])
        assert (np.abs(local) <= extent[i] / 2 + 1e-6).all()


@pytest.mark.parametrize(
    ("size", "label"),
    [
        ((0.6, 0.4, 1.7), "pedestrian"),
        ((0.5, 0.4, 1.1), "pedestrian"),
        ((1.75, 0.6, 1.75), "cyclist"),
        ((4.4, 1.8, 1.5), "car"),
        ((1.8, 0.1, 1.4), "car"),
        ((10.0, 2.5, 3.6), "car"),
        ((0.2, 0.2, 3.0), "unknown"),
        ((1.0, 0.5, 0.5), "unknown"),
    ],
)
def test_labels(size: tuple[float, float, float], label: str) -> None:
    assert cluster_boxes.label_by_size(np.array([size])) == [label]


@given(st.lists(st.tuples(*[st.integers(-(2**20), 2**20 - 1)] * 3), max_size=30))
def test_in_order_sorts_and_loses_nothing(rows: list[tuple[int, int, int]]) -> None:
    assert in_order(np.array(rows, dtype=np.int64).reshape(-1, 3)).tolist() == [list(r) for r in sorted(rows)]


def test_stray_points_below_the_road_do_not_count() -> None:
    level = np.rint(road()[:, :3] * 1000).astype(np.int64)
    strays = level[::1601] - [0, 0, 400]
    height = ground_removal.height_mm(np.concatenate([level, strays, level[::1601] - [0, 0, 9000]]))
    assert np.abs(height[: len(level)]).max() == 0


def test_a_cell_full_of_obstacle_takes_its_neighbours_ground() -> None:
    level = np.rint(road()[:, :3] * 1000).astype(np.int64)
    covered = (np.abs(level[:, 0] - 10_000) < 1500) & (np.abs(level[:, 1]) < 1500)
    level[covered, 2] = 600
    height = ground_removal.height_mm(level)
    assert height[covered].min() > 300 and height[~covered].max() == 0


def test_a_stray_point_is_no_bridge() -> None:
    pair = np.array([[0, 0], [10, 0], [1000, 0], [1010, 0]])
    bridged = np.concatenate([pair, [[500, 0]]])
    assert clustering.cluster(pair, 200, 600, 2).tolist() == [0, 0, 1, 1]
    assert clustering.cluster(bridged, 200, 600, 2).tolist() == [0, 0, 1, 1, -1]
    assert len(set(clustering.cluster(bridged, 200, 600, 1))) == 1


def moving(frame: int, speed_mps: float = 10.0) -> Points:
    return np.concatenate([road(), block(10 + speed_mps * frame * 0.1, 3, 4.2, 1.8, 1.5)])


def stamp(frame: int) -> int:
    return 1_000_000_000 + frame * 100_000_000


def test_a_track_is_confirmed_numbered_and_gets_its_speed() -> None:
    tracker = Tracker(confirm_hits=3)
    answers = [tracker(moving(i), stamp(i)) for i in range(15)]
    assert [len(a) for a in answers] == [0, 0] + [1] * 13
    assert {a.track_id[0] for a in answers[2:]} == {"1"}
    assert answers[-1].velocity_mps[0] == pytest.approx([10, 0, 0], abs=0.5)
    assert answers[-1].center_m[0, 0] == pytest.approx(10 + 14, abs=0.2)
    assert answers[-1].stamp_ns == stamp(14)


def test_a_track_coasts_then_ends() -> None:
    tracker = Tracker(max_misses=2)
    seen = [tracker(moving(i), stamp(i)) for i in range(10)][-1]
    blind = [tracker(road(), stamp(10 + i)) for i in range(4)]
    assert [len(b) for b in blind] == [1, 1, 0, 0]
    assert blind[0].center_m[0, 0] > seen.center_m[0, 0] + 0.8 and blind[0].score[0] < seen.score[0]


def test_fewer_returns_may_confirm_a_track_earlier() -> None:
    """Why relations that compare some bad air with worse want a stack without memory: boxes part and merge."""
    post, wall = block(20, 0, 1.0, 1.0, 1.5), block(24, 0, 7.0, 1.0, 1.5)
    some, fewer = Tracker(confirm_hits=3), Tracker(confirm_hits=3)
    for i in range(3):
        thick = np.concatenate([road(), post])
        mild = thick if i == 2 else np.concatenate([thick, wall])
        answers = [tracker(cloud, stamp(i)) for tracker, cloud in ((some, mild), (fewer, thick))]
    assert [len(Detector().detect(cloud)) for cloud in (mild, thick)] == [1, 1], "the detector sees as much"
    assert [len(answer) for answer in answers] == [0, 1]


def test_a_jump_of_time_starts_anew() -> None:
    for jump in (stamp(-5), stamp(60)):
        tracker = Tracker()
        assert len([tracker(moving(i), stamp(i)) for i in range(4)][-1]) == 1
        assert len(tracker(moving(3), jump)) == 0


def test_two_that_pass_each_other_keep_their_numbers() -> None:
    tracker = Tracker()
    for i in range(12):
        other = block(30 - 1.2 * i, -3, 4.2, 1.8, 1.5)
        answer = tracker(np.concatenate([moving(i), other]), stamp(i))
    by_number = dict(zip(answer.track_id.tolist(), answer.center_m[:, 1].tolist(), strict=True))
    assert by_number["1"] * by_number["2"] < 0
    assert sorted(answer.velocity_mps[:, 0].tolist()) == pytest.approx([-12, 10], abs=0.8)


def test_the_tracker_answers_alike_after_a_reset_and_to_permuted_clouds() -> None:
    rng, tracker = np.random.default_rng(0), Tracker()
    first = [tracker(cloud) for cloud in generated(8)]
    tracker.reset()
    again = [tracker(cloud[rng.permutation(len(cloud))]) for cloud in generated(8)]
    assert all(equal(a, b) and a.track_id.tolist() == b.track_id.tolist() for a, b in zip(first, again, strict=True))
    assert len(first[-1]) >= 8 and len(first[0]) == 0


def test_noise_outside_loses_no_track() -> None:
    pair = Tracker(), Tracker()
    for i, cloud in enumerate(generated(8)):
        assert equal(pair[0](cloud), pair[1](with_noise(cloud, 1000, i)))
