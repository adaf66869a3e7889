# SPDX-License-Identifier: Apache-2.0
"""What the world's camera sees: places, colours, light and weather."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import move, pose_matrix
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.rig import Rig, windscreen_camera
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.surroundings import surroundings_of
from mt_nodes.world.drive import picture, ray_hits
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import Building, Lane, RoadMap, TrafficLight
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Obstacle, Person, Pose, Scenario
from mt_nodes.world.drive.scenery import HOUSES, scenery_of
from mt_nodes.world.drive.solids import Solids, rays_of
from mt_nodes.world.drive.sparse_rays import sampled_sparsely
from mt_nodes.world.drive.trace import EgoState, WorldState
from mt_nodes.world.scene.camera_rendering import CameraSensor

CAMERA = CameraSensor(320, 180, 70.0, forward_m=1.7, height_m=1.4, noise=0.0)
SQUARE = ((-100.0, -100.0), (100.0, -100.0), (100.0, 100.0), (-100.0, 100.0))
#: A wide square with one lane, nothing else: shadows fall on level ground.
OPEN = RoadMap("open", {"lane": Lane("lane", ((-90.0, 0.0), (90.0, 0.0)))}, SQUARE, surface_m=((SQUARE,),))
CLEAR_NOON = Environment(hour=12.0)


def seen(
    road: RoadMap = OPEN,
    actors: tuple[Actor, ...] = (),
    obstacles: tuple[Obstacle, ...] = (),
    environment: Environment = CLEAR_NOON,
    signals: str = "red",
    camera: CameraSensor = CAMERA,
    travelled_m: float = 0.0,
    topics: dict[str, str] | None = None,
    seed: int = 1,
) -> Bundle:
    drive = Scenario("s", road.name, Ego(Pose(0.0, 0.0)), actors, obstacles, environment)
    rows = np.array([(a.start.x_m, a.start.y_m, a.start.yaw_rad, 0.0) for a in actors]).reshape(-1, 4)
    colours = {signal.name: signals for signal in road.signals}
    state = WorldState(0.0, EgoState(0.0, 0.0, 0.0, 5.0), rows, np.full(len(rows), travelled_m), colours)
    rig = Rig(None, camera, {"camera": "/i", "camera_info": "/c"} if topics is None else topics)
    return Sensors(drive, road, rig, seed).observe(state, 0, 0)


def pixels(**how: object) -> np.ndarray:
    return np.asarray(seen(**how).images[0].pixels)[..., ::-1].astype(int)  # type: ignore[arg-type]


def place_px(bundle: Bundle, *xyz_m: float) -> tuple[int, int]:
    """Row and column of a place of the map."""
    model = CameraModel.of(bundle.camera_infos[0], (CAMERA.height, CAMERA.width))
    there = move(bundle.transforms.lookup("camera", "map"), np.array([xyz_m]))
    column, row = model.project(there)[0]
    return round(float(row)), round(float(column))


@lru_cache
def empty() -> np.ndarray:
    return pixels()


def test_an_obstacle_is_seen_where_the_calibration_says() -> None:
    cone = Obstacle("c", "cone", Pose(12.0, 2.0), (0.8, 0.8, 1.2))
    bundle = seen(obstacles=(cone,))
    row, column = place_px(bundle, 11.8, 2.0, 0.4)
    red, green, blue = np.asarray(bundle.images[0].pixels)[row, column, ::-1].astype(int)
    assert red > 1.4 * green > 1.4 * blue
    info, image = bundle.camera_infos[0], bundle.images[0]
    assert (info.width, info.height) == (320, 180) == image.pixels.shape[1::-1]
    assert (image.encoding, image.frame_id, info.frame_id) == ("bgr8", "camera", "camera")
    changed = np.argwhere(np.abs(pixels(obstacles=(cone,)) - empty()).max(axis=2) > 8)
    assert np.abs(changed - (row, column)).max() < 25


def test_a_camera_without_topic_for_its_calibration_has_none() -> None:
    assert seen(topics={"camera": "/i"}).camera_infos == ()


@pytest.mark.parametrize(("colour", "strongest"), [("red", 0), ("green", 1)])
def test_lights_show_their_colour_of_the_instant(colour: str, strongest: int) -> None:
    signal = TrafficLight("s", Pose(12.0, -2.5), (("red", 1.0),), "lane", 100.0)
    road = replace(OPEN, signals=(signal,))
    bundle = seen(road, signals=colour)
    other = pixels(road=road, signals="yellow")
    shown = np.asarray(bundle.images[0].pixels)[..., ::-1].astype(int)
    assert (np.abs(shown - other).max(axis=2) > 60).sum() >= 4
    lens_m = 3.0 - 0.3 * (0 if colour == "red" else 2)
    row, column = place_px(bundle, 11.7, -2.5, lens_m - 0.15)
    near = shown[row - 4 : row + 5, column - 3 : column + 4].reshape(-1, 3)
    lens = near[near.max(axis=1).argmax()]
    assert lens.argmax() == strongest
    assert lens.max() > 200


def test_the_shadow_falls_away_from_the_sun_and_is_as_long_as_its_height_says() -> None:
    """At noon the sun stands 45 degrees high in the south: a shadow to the north, as long as the thing is high."""
    for thing in (
        {"obstacles": (Obstacle("b", "box", Pose(10.0, -3.0), (1.0, 1.0, 2.0)),)},
        {"actors": (Actor("c", "van", Pose(10.0, -3.5), size_m=(1.0, 2.0, 2.0)),)},
    ):
        bundle, with_it = seen(**thing), pixels(**thing)  # type: ignore[arg-type]
        shaded, lit = place_px(bundle, 10.0, -1.5, 0.0), place_px(bundle, 10.0, 0.3, 0.0)
        assert with_it[shaded].sum() < 0.8 * empty()[shaded].sum()
        assert with_it[lit] == pytest.approx(empty()[lit], abs=3)


def test_clouds_take_shadows_away() -> None:
    box = (Obstacle("b", "box", Pose(10.0, -3.0), (1.0, 1.0, 2.0)),)
    row, column = place_px(seen(), 10.0, -1.5, 0.0)
    grey = Environment(hour=12.0, cloudiness=1.0)
    with_it, without = pixels(obstacles=box, environment=grey), pixels(environment=grey)
    assert with_it[row, column] == pytest.approx(without[row, column], abs=2)


def test_the_sun_goes_from_east_over_south_to_west() -> None:
    morning, noon, evening, night = (light_of(Environment(hour=hour)) for hour in (8.0, 12.0, 16.0, 0.0))
    assert morning.to_sun[0] > 0.5 > 0.0 > morning.to_sun[1]
    assert noon.to_sun == pytest.approx((0.0, -np.sqrt(0.5), np.sqrt(0.5)), abs=1e-6)
    assert evening.to_sun[0] == pytest.approx(-morning.to_sun[0], abs=1e-6)
    assert morning.sun[2] < morning.sun[0]  # low suns are yellow
    assert not night.shines
    assert (noon.darkness, night.darkness, noon.headlamps, night.headlamps) == (0.0, 1.0, 0.0, 1.0)
    for light in (morning, noon, evening, night):
        assert np.linalg.norm(light.to_sun) == pytest.approx(1.0)


def test_at_night_headlamps_light_the_road_and_some_windows_shine() -> None:
    house = Building(((20.0, 6.0), (40.0, 6.0), (40.0, 12.0), (20.0, 12.0)), 12.0)
    road = replace(OPEN, buildings=(house,))
    day, night = (pixels(road=road, environment=Environment(hour=hour)) for hour in (12.0, 0.0))
    assert night.mean() < 0.5 * day.mean()
    bundle = seen(road)
    near, far = (night[place_px(bundle, x, 0.5, 0.0)].sum() for x in (8.0, 60.0))
    assert near > 3 * far
    assert night[:20, 200:].max() < 30  # the sky
    top, bottom = place_px(bundle, 25.0, 6.0, 9.0)[0], place_px(bundle, 25.0, 6.0, 4.0)[0]
    windows = night[top:bottom, :140]
    assert (windows.max(axis=2) > 120).any()
    assert (windows[..., 0] > windows[..., 2] + 30).any()  # warm


def test_fog_leaves_what_the_law_says_of_contrast() -> None:
    """Koschmieder: exp(-ln 20 · range / visibility), in linear light; here between a light and a dark van."""

    def contrast(fog: float, rear_m: float) -> float:
        environment = Environment(hour=12.0, cloudiness=1.0, fog=fog)
        vans = [(Actor("v", "van", Pose(rear_m + 2.8, 1.0), tone=tone),) for tone in (0.1, 0.3)]
        at = place_px(seen(), rear_m, 1.0, 1.2)
        light, dark = (np.power(pixels(actors=van, environment=environment)[at] / 255.0, 2.2).mean() for van in vans)
        return float(light - dark)

    visibility_m = 1000.0 * 0.03**0.3
    for rear_m in (8.0, 45.0):
        passing = np.exp(-np.log(20.0) * (rear_m - 1.7) / visibility_m)
        assert contrast(0.0, rear_m) > 0.2
        assert contrast(0.3, rear_m) == pytest.approx(passing * contrast(0.0, rear_m), rel=0.05)
    assert contrast(1.0, 45.0) < 0.02


def test_snow_whitens_the_ground_and_rain_darkens_the_road() -> None:
    grey = Environment(cloudiness=1.0)
    row, column = place_px(seen(), 10.0, -1.0, 0.0)
    around = (slice(row - 4, row + 5), slice(column - 8, column + 9))
    dry, snowy, wet = (
        pixels(environment=environment)[around].mean()
        for environment in (grey, replace(grey, snow=1.0), replace(grey, wetness=1.0))
    )
    assert snowy > dry + 20 > dry > wet + 10


def test_drops_are_drawn_and_the_truth_about_depth_does_not_leak() -> None:
    bundle = seen(environment=Environment(rain=0.8))
    assert np.asarray(bundle.images[0].pixels).dtype == np.uint8
    # Few drops are near enough to stand out by so much: in some pictures hardly one, on average over pictures enough.
    falling = np.stack([pixels(environment=Environment(rain=0.8), seed=seed) for seed in range(1, 9)])
    assert (np.abs(falling[1:] - falling[:-1]) > 5).mean() > 0.001  # other drops
    model = CameraModel.of(bundle.camera_infos[0], (CAMERA.height, CAMERA.width))
    with pytest.raises(NotApplicable, match="no cloud"):
        surroundings_of(bundle, bundle.images[0], model)


def face(**person: object) -> np.ndarray:
    who = Actor("a", "adult", Pose(7.0, 0.0, np.pi), person=Person(**person))  # type: ignore[arg-type]
    bundle = seen(actors=(who,))
    row, column = place_px(bundle, 6.9, 0.0, 1.62)
    return np.asarray(bundle.images[0].pixels)[row, column].astype(int)


def test_the_tone_of_skin_is_seen_in_the_face() -> None:
    tones = [face(skin_tone=tone).sum() for tone in range(1, 7)]
    assert tones == sorted(tones, reverse=True)
    assert tones[0] > 2 * tones[5]
    assert (face(gender="female") == face(age_years=80.0)).all()


def test_cars_of_another_tone_are_of_another_colour_and_nothing_else_is() -> None:
    grey, red = (pixels(actors=(Actor("c", "car", Pose(9.0, 0.0), tone=tone),)) for tone in (0.1, 0.7))
    rows, columns = np.nonzero(np.abs(grey - red).max(axis=2) > 3)
    assert len(rows) > 200
    assert red[rows, columns, 0].mean() > red[rows, columns, 1].mean() + 20


def test_who_walks_swings_legs_and_a_stride_comes_round() -> None:
    walker = (Actor("a", "adult", Pose(6.0, 0.0, np.pi / 2)),)
    stride_m = 2.0 * np.pi / (4.2 / 1.75)
    first, half, whole = (pixels(actors=walker, travelled_m=far) for far in (0.6, 0.6 + stride_m / 2, 0.6 + stride_m))
    assert (first != half).any(axis=2).sum() > 20
    assert (first == whole).all()


def test_the_same_arguments_give_the_same_bytes_and_another_seed_other_noise() -> None:
    noisy = replace(CAMERA, noise=2.0)
    one, same, other = (pixels(camera=noisy, seed=seed) for seed in (1, 1, 2))
    assert (one == same).all()
    assert 1.0 < np.std(one - other) / np.sqrt(2.0) < 3.0
    assert np.abs((one - empty()).mean()) < 0.2


poses = st.tuples(st.floats(-10.0, 40.0), st.floats(-8.0, 8.0), st.floats(-3.0, 3.0))


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("adult", "car", "bus", "dog")), poses), min_size=1, max_size=4),
    st.sampled_from((9.0, 12.0, 17.5)),
)
def test_looking_for_who_moves_in_some_pixels_misses_nothing(
    crowd: list[tuple[str, tuple[float, ...]]], hour: float
) -> None:
    small = CameraSensor(120, 68, 70.0, forward_m=1.7, height_m=1.4, noise=0.0)
    actors = tuple(Actor(f"a{i}", kind, Pose(*pose)) for i, (kind, pose) in enumerate(crowd))
    how = {"actors": actors, "camera": small, "environment": Environment(hour=hour)}
    quick = pixels(**how)

    def everywhere(hulls: np.ndarray, pose: object, sensor: CameraSensor) -> np.ndarray:
        return np.full((sensor.height, sensor.width), len(hulls) > 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_hits, "windows", everywhere)
        whole = pixels(**how)
    assert (quick == whole).all()


def test_bands_of_a_picture_fit_together() -> None:
    how = {"actors": (Actor("c", "car", Pose(9.0, 0.0)), Actor("a", "adult", Pose(7.0, 2.0)))}
    banded = pixels(**how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(picture, "_BANDS", 1)
        whole = pixels(**how)
    assert (banded != whole).any(axis=2).mean() < 1e-3  # at the seams, neighbours differ


@pytest.mark.parametrize("name", ["junction", "bend"])
def test_rays_that_are_spared_would_have_found_the_same(name: str) -> None:
    road = load_map(name)
    scenery = scenery_of(road)
    lane = next(lane for lane in road.lanes.values() if lane.on_road)
    pose = lane.pose_at(40.0)
    here = pose.x_m - scenery.shift_m[0], pose.y_m - scenery.shift_m[1], 0.0
    ego = pose_matrix(here, quaternion_of_yaw(pose.yaw_rad))
    nobody = Solids([], np.empty((0, 4)), scenery.shift_m)
    shot = ray_hits.WorldImage.of(scenery, nobody, CAMERA, ego, light_of(CLEAR_NOON).to_sun)
    sparing = ray_hits.BandHits.of(shot, slice(0, 180))
    whole = ray_hits.BandHits.of(replace(shot, narrow=np.ones_like(shot.narrow)), slice(0, 180))
    direct = scenery.solids.cast(rays_of(shot.eye_m, whole.directions))
    assert (whole.triangle == direct.triangle).all()
    assert (whole.range_m == direct.range_m).all()
    same = sparing.triangle == whole.triangle
    assert same.mean() > 0.999
    near = same & (whole.range_m < 300.0)
    assert sparing.range_m[near] == pytest.approx(whole.range_m[near], rel=1e-4)
    assert (np.isinf(sparing.range_m) == np.isinf(whole.range_m))[same].all()
    posts = scenery.solids.of[whole.triangle] > HOUSES
    assert posts.sum() > 3 if name == "junction" else True
    assert same[posts].all()
    rows = whole.standing_rows
    dark = [look.shaded(rows, look.places(rows)) for look in (sparing, whole)]
    assert (dark[0] != dark[1]).mean() < 0.003
    assert 0.05 < dark[0].mean() < 0.95


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 9), st.integers(2, 9), st.randoms(use_true_random=False))
def test_answers_are_believed_only_between_four_that_agree(height: int, width: int, random: object) -> None:
    truth = np.array([random.random() < 0.7 for _ in range(height * width)])  # type: ignore[attr-defined]
    rows = np.flatnonzero(np.array([random.random() < 0.5 for _ in truth]))  # type: ignore[attr-defined]
    asked: list[int] = []

    def ask(some: np.ndarray) -> np.ndarray:
        asked.extend(rows[some].tolist())
        return truth[rows[some]]

    answers = sampled_sparsely(rows, (height, width), ask)
    assert len(set(asked)) == len(asked)
    for row, answer in zip(rows.tolist(), answers.tolist(), strict=True):
        if row in asked:
            assert answer == truth[row]
            continue
        r, c = row // width // 2 * 2, row % width // 2 * 2
        corners = {(a, b) for a in (r, r + 2) for b in (c, c + 2) if a < height and b < width}
        assert {bool(truth[a * width + b]) for a, b in corners} == {answer}
        assert all(a * width + b in asked for a, b in corners)


def test_lines_of_the_lane_are_white_where_the_map_has_them() -> None:
    road = load_map("straight")
    drive = Scenario("s", "straight", Ego(Pose(20.0, 0.0)))
    state = WorldState(0.0, EgoState(20.0, 0.0, 0.0, 5.0), np.empty((0, 4)), np.empty(0))
    bundle = Sensors(drive, road, Rig(None, windscreen_camera()), 1).observe(state, 0, 0)
    shown = np.asarray(bundle.images[0].pixels).astype(int)
    model = CameraModel.of(bundle.camera_infos[0], shown.shape[:2])
    places = np.array([(x, y, 0.0) for x in (28.0, 32.0, 36.0) for y in (-1.75, -1.2)])
    columns, rows = np.rint(model.project(move(bundle.transforms.lookup("camera", "map"), places))).astype(int).T
    light = shown[rows, columns].mean(axis=1).reshape(3, 2)
    assert (light[:, 0] > light[:, 1] + 50).all()
