# SPDX-License-Identifier: Apache-2.0
"""The scene of a case: what topics, pictures, worlds and maps say, and what nobody says."""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import pytest
from recordings import KITTI, needs_kitti
from told_worlds import told_bundle, without

from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.images.codecs import decode, encode
from mt_nodes.data.messages import Bundle, Image, Odometry
from mt_nodes.data.outputs import Control, Detections, Output
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.relations.facts.condition import evaluate
from mt_nodes.relations.facts.scene_ego import motion_by_clouds
from mt_nodes.relations.manipulations import find
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.scene import SceneFacts, describe, given
from mt_nodes.rules.scene_world import world_facts
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Scenario
from mt_nodes.world.drive.trace import EgoState, WorldState
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.lidar import hdl_64e

CAMERA = CameraSensor(320, 180, 70.0, forward_m=1.7, height_m=1.4, noise=0.0)
NOON = Environment(hour=12.0)
#: 2026-06-01 10:00 UTC.
TEN_NS = 1_780_308_000 * 10**9
World = tuple[Scenario, RoadMap, Bundle]


def world(
    road: str = "straight",
    lane: str = "lane_1",
    at_m: float = 20.0,
    environment: Environment = NOON,
    actors: tuple[Actor, ...] = (),
    speed_mps: float = 8.0,
    steering_rad: float = 0.0,
    rig: Rig | None = None,
) -> World:
    """The instant at which the ego is so far along a lane, and its world."""
    streets = load_map(road)
    here = streets.lanes[lane].pose_at(at_m)
    drive = Scenario("made", road, Ego(here, speed_mps), actors, environment=environment)
    rows = np.array([(a.start.x_m, a.start.y_m, a.start.yaw_rad, 0.0) for a in actors]).reshape(-1, 4)
    ego = EgoState(here.x_m, here.y_m, here.yaw_rad, speed_mps, 0.0, steering_rad)
    state = WorldState(0.0, ego, rows, np.zeros(len(rows)), {signal.name: "red" for signal in streets.signals})
    bundle = Sensors(drive, streets, rig or Rig(), 1).observe(state, 0, 0)
    return drive, streets, bundle


@lru_cache
def pictured(**weather: float) -> Bundle:
    """A bundle of a picture alone, of the world in some weather."""
    bundle = world(environment=Environment(**weather), rig=Rig(None, CAMERA, {"camera": "/i", "camera_info": "/c"}))[2]
    return Bundle(0, 0, TEN_NS, images=bundle.images)


@lru_cache
def recorded() -> tuple[Bundle, ...]:
    return tuple(BagSource(KITTI, require=("camera", "lidar")))


def grey(level: int) -> Image:
    return Image("/i", 0, "camera", np.full((60, 80, 3), level, np.uint8), "bgr8")


def told(bundles: list[Bundle], **rest: Any) -> dict[str, Any]:
    return describe(bundles, **rest).known


@pytest.mark.parametrize(
    ("hour", "time"), [(12.0, "day"), (9.0, "day"), (17.5, "day"), (18.3, None), (20.0, "night"), (2.0, "night")]
)
def test_pictures_tell_day_from_night_and_not_what_is_between(hour: float, time: str | None) -> None:
    scene = describe([pictured(hour=hour)])
    assert scene.value("time_of_day") == time
    assert "upper third" in scene.source("time_of_day")
    assert (scene.value("dark"), scene.value("scene_bright")) == (
        (None, None) if time is None else (time == "night", time == "day")
    )


def test_pictures_tell_clear_air_and_fog_and_neither_rain_nor_snow() -> None:
    clear, fog = describe([pictured(hour=12.0)]), describe([pictured(hour=12.0, fog=0.6)])
    assert (clear.value("weather"), clear.value("visibility_good"), clear.value("weather_clear")) == (
        "clear",
        True,
        True,
    )
    assert (fog.value("weather"), fog.value("visibility_good")) == ("fog", False)
    for falls in ({"rain": 0.5}, {"snow": 0.5}, {"rain": 1.0, "snow": 1.0}):
        scene = describe([pictured(hour=12.0, **falls)])
        assert scene.value("weather") is None is scene.value("weather_clear")
    overcast = describe([pictured(hour=12.0, cloudiness=1.0)])
    assert (overcast.value("weather_clear"), overcast.value("visibility_good")) == (None, True)


def test_by_night_nothing_is_said_of_the_air() -> None:
    scene = describe([pictured(hour=23.0, fog=0.6)])
    assert scene.value("time_of_day") == "night"
    assert scene.value("visibility_good") is None is scene.value("weather")


def test_pictures_that_show_nothing_are_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    depth = dataclasses.replace(grey(0), pixels=np.ones((4, 4), np.float32), encoding="32FC1")
    for bundle, why in ((Bundle(0, 0, 0), "no picture"), (Bundle(0, 0, 0, images=(depth,)), "32FC1")):
        scene = describe([bundle])
        assert scene.value("time_of_day") is None
        assert why in scene.source("time_of_day")


@pytest.mark.parametrize(
    ("stamp_ns", "offset_h", "time", "why"),
    [
        (TEN_NS, 1.0, "day", "11:00 local"),
        (TEN_NS, 14.0, "night", "00:00 local"),
        (TEN_NS, 9.0, None, "19:00 local time, when it is light or not"),
        (TEN_NS, None, None, "local time there is not known"),
        (5 * 10**9, 1.0, None, "no calendar"),
    ],
)
def test_stamps_tell_the_time_where_they_mean_one(
    stamp_ns: int, offset_h: float | None, time: str | None, why: str
) -> None:
    scene = describe([Bundle(0, 0, stamp_ns)], utc_offset_h=offset_h)
    assert scene.value("time_of_day") == time
    assert why in scene.source("time_of_day")


def test_stamps_and_pictures_that_contradict_each_other_leave_it_unknown() -> None:
    assert told([pictured(hour=12.0)], utc_offset_h=1.0)["time_of_day"] == "day"
    tunnel = describe([pictured(hour=23.0)], utc_offset_h=1.0)
    assert tunnel.value("time_of_day") is None
    assert "says day" in tunnel.source("time_of_day") and "say night" in tunnel.source("time_of_day")


def test_speed_and_steering_are_those_of_odometry() -> None:
    scene = describe([told_bundle(odometry=Odometry("map", None, 0.0, 0.0, 0.0, 10.0, 0.5))], wheelbase_m=2.7)
    assert scene.value("speed_kmh") == pytest.approx(36.0)
    assert scene.value("steering_rad") == pytest.approx(np.arctan(2.7 * 0.5 / 10.0))
    assert scene.source("speed_kmh") == "odometry"
    known = scene.known
    assert (known["moving"], known["ego_turning"], known["ego_turning_left"], known["ego_heading"]) == (
        *(True, True, True),
        "left",
    )


@pytest.mark.parametrize(
    ("speed", "turn", "moving", "heading"),
    [(0.3, 0.0, False, "straight"), (8.0, -0.8, True, "right"), (8.0, 0.15, True, None), (-3.0, 0.0, True, "straight")],
)
def test_what_the_ego_does_follows_from_speed_and_steering(
    speed: float, turn: float, moving: bool, heading: str | None
) -> None:
    known = told([told_bundle(odometry=Odometry("map", None, 0.0, 0.0, 0.0, speed, turn))])
    assert known["moving"] is moving
    assert known.get("ego_heading") == heading
    assert known.get("ego_turning_right") == (None if heading is None else heading == "right")


def at(x_m: float, yaw_rad: float, index: int) -> Bundle:
    pose = pose_matrix((x_m, 0.0, 0.0), quaternion_of_yaw(yaw_rad))
    moved = Transform("odom", "base_link", pose, TEN_NS, static=False)
    return Bundle(0, index, TEN_NS + index * 10**8, transforms=TransformTree([moved]))


def test_without_odometry_moving_frames_tell_the_speed_and_then_the_stack() -> None:
    scene = describe([at(0.0, 0.0, 0), at(0.6, 0.0, 1), at(1.2, 0.0, 2)])
    assert scene.value("speed_kmh") == pytest.approx(21.6)
    assert "transforms" in scene.source("speed_kmh")
    assert describe([at(1.2, 0.0, 0), at(0.0, 0.0, 1)]).value("speed_kmh") == pytest.approx(-43.2)
    commanded = describe([Bundle(0, 0, 0)], [Output(control=Control(None, steering_rad=-0.2, speed_mps=5.0))])
    assert (commanded.value("speed_kmh"), commanded.value("steering_rad")) == (18.0, -0.2)
    assert commanded.source("speed_kmh") == "command of the stack"
    nobody = describe([Bundle(0, 0, 0)])
    assert nobody.value("speed_kmh") is None
    assert "none of odometry" in nobody.source("speed_kmh")


@lru_cache
def swept(speed_mps: float) -> tuple[Bundle, ...]:
    rig = Rig(hdl_64e(), None, {"lidar": "/p"})
    seen = [world("two_way", "lane_1", 60.0 + 0.1 * speed_mps * i, rig=rig)[2] for i in range(3)]
    # The tree knows where the ego is; what is asked is what clouds alone tell.
    mounts = TransformTree([t for t in seen[0].transforms.transforms if t.static])
    return tuple(
        dataclasses.replace(b, index=i, stamp_ns=TEN_NS + i * 10**8, transforms=mounts) for i, b in enumerate(seen)
    )


@pytest.mark.parametrize("speed_mps", [0.6, 12.0])
def test_clouds_alone_tell_how_fast_the_ego_drives(speed_mps: float) -> None:
    scene = describe(swept(speed_mps))
    assert scene.value("speed_kmh") == pytest.approx(3.6 * speed_mps, abs=1.0)
    assert "clouds" in scene.source("speed_kmh")
    assert (scene.value("steering_rad") is None) == (speed_mps < 1.0)


def with_points(bundle: Bundle, points: np.ndarray) -> Bundle:
    return dataclasses.replace(bundle, clouds=(dataclasses.replace(bundle.clouds[0], points=points),))


def test_clouds_of_which_little_fits_tell_nothing() -> None:
    """Less than half of each cloud is the street, and would say that the ego stands; the rest is anywhere."""
    rng, street = np.random.default_rng(1), swept(12.0)[0].clouds[0].points[::8]
    broken = []
    for bundle in swept(12.0):
        points = street.copy()
        anywhere = rng.random(len(points)) < 0.6
        for axis, reach_m in (("x", 40.0), ("y", 40.0), ("z", 9.0)):
            points[axis][anywhere] = rng.uniform(-reach_m, reach_m, anywhere.sum())
        broken.append(with_points(bundle, points))
    assert motion_by_clouds(broken) is None
    whole = motion_by_clouds([with_points(bundle, street) for bundle in swept(12.0)])
    assert whole is not None and whole.speed_mps == pytest.approx(0.0, abs=0.1)


def test_clouds_too_few_or_too_far_apart_tell_nothing() -> None:
    assert motion_by_clouds(swept(12.0)[:2]) is None
    late = [*swept(12.0)[:2], dataclasses.replace(swept(12.0)[2], stamp_ns=TEN_NS + 10**10)]
    assert motion_by_clouds(late) is None
    few = [with_points(bundle, bundle.clouds[0].points[:100]) for bundle in swept(12.0)]
    assert motion_by_clouds(few) is None


def test_objects_are_the_worlds_then_the_stacks_and_only_those_near_and_sure() -> None:
    seen = Detections.make(
        "base_link",
        None,
        [(10, 0, 1), (20, 3, 1), (30, 0, 1), (200, 0, 1), (15, 0, 1)],
        label=["car", "car", "pedestrian", "car", "cyclist"],
        score=[0.9, 0.8, 0.9, 0.9, 0.2],
    )
    scene = describe([without(told_bundle(), "objects")], [Output(detections=seen)])
    assert scene.value("objects") == {"car": 2, "pedestrian": 1}
    assert "stack" in scene.source("objects")
    assert describe([told_bundle()], [Output(detections=seen)]).value("objects") == {"pedestrian": 1}
    assert describe([Bundle(0, 0, 0)]).value("objects") is None


def test_a_world_knows_hour_weather_and_what_is_there() -> None:
    child = Actor("kid", "child", load_map("straight").lanes["lane_1"].pose_at(45.0))
    drive, road, bundle = world(environment=Environment(hour=23.0, rain=0.4), actors=(child,))
    scene = describe([bundle], known_facts=world_facts(drive, road, bundle))
    assert (scene.value("time_of_day"), scene.value("weather"), scene.value("surface_dry")) == ("night", "rain", False)
    assert scene.value("children_visible") is True
    assert {"child", "pedestrian"} <= scene.value("has")
    assert scene.value("path_clear") is False
    assert 20.0 < scene.value("lead_gap_m") < 22.0
    for condition, holds in (
        ("dark and not weather_clear", True),
        ("has(child) and not has(deer)", True),
        ("weather == 'rain' and scene_bright", False),
        ("time_gap_s < 2", None),
    ):
        assert evaluate(condition, scene.known) is holds


def test_who_stands_beside_the_way_is_not_in_it() -> None:
    beside = Actor("walker", "adult", load_map("straight").lanes["lane_1"].pose_at(45.0, -5.0))
    drive, road, bundle = world(actors=(beside,))
    facts = world_facts(drive, road, bundle)
    assert (facts["path_clear"].value, facts["lead_gap_m"].value) == (True, float("inf"))
    assert "pedestrian" in facts["has"].value


@pytest.mark.parametrize(
    ("road", "lane", "at_m", "roads"),
    [
        ("straight", "lane_1", 20.0, ()),
        ("straight", "lane_1", 120.0, ("crosswalk",)),
        ("junction", "west_middle", 110.0, ("intersection", "crosswalk")),
        ("junction", "west_middle", 20.0, ()),
        ("bridge", "lane_1", 20.0, ("bridge",)),
    ],
)
def test_a_map_tells_what_one_approaches(road: str, lane: str, at_m: float, roads: tuple[str, ...]) -> None:
    drive, streets, bundle = world(road, lane, at_m)
    scene = describe([bundle], known_facts=world_facts(drive, streets, bundle))
    assert scene.value("roads") == roads
    assert scene.roads == (*roads, "any_road")
    assert ("red_light" in scene.value("has")) == (road == "junction" and at_m > 100.0)


def test_what_the_user_states_stands_above_all_else_and_is_checked() -> None:
    predicates = load_ontology().predicates
    stated = given({"weather": "rain", "roads": ("tunnel",), "speed_kmh": 99, "dark": True}, predicates)
    scene = describe([dataclasses.replace(told_bundle(), images=pictured(hour=12.0).images)], known_facts=stated)
    assert (scene.value("weather"), scene.value("speed_kmh"), scene.value("dark")) == ("rain", 99, True)
    assert scene.source("weather") == "given by the user" == scene.source("weather_clear")
    assert (scene.value("weather_clear"), scene.value("visibility_good")) == (False, True)
    assert scene.known["road_type"] == "tunnel"
    for wrong in ({"wether": "rain"}, {"dark": "yes"}, {"speed_kmh": True}, {"steering_rad": "left"}):
        with pytest.raises(UsageError, match="fact '"):
            given(wrong, predicates)


def test_a_scene_is_told_in_the_papers_shape() -> None:
    drive, road, bundle = world("junction", "west_middle", 110.0, steering_rad=0.1)
    scene = describe([bundle], known_facts=world_facts(drive, road, bundle), wheelbase_m=drive.ego.vehicle.wheelbase_m)
    assert scene.as_paper() == {
        "Time": "Day",
        "Weather": "Clear",
        "RoadType": "Intersection, Crosswalk, Any Road",
        "Objects": "None",
        "EgoVehicle": {"Speed": "28.800 km/h", "Steering Angle": "0.100 rad"},
    }
    unknown = SceneFacts({}).as_paper()
    assert (unknown["Time"], unknown["Objects"], unknown["RoadType"]) == ("Unknown", "Unknown", "Any Road")
    assert unknown["EgoVehicle"] == {"Speed": "Unknown", "Steering Angle": "Unknown"}
    plain = json.loads(json.dumps(scene.as_plain(), allow_nan=False))
    assert all(row["source"] for row in plain.values())
    assert (plain["roads"]["value"], plain["lead_gap_m"]["value"]) == (["intersection", "crosswalk"], "inf")


def test_a_case_without_bundles_is_refused() -> None:
    with pytest.raises(UsageError, match="without bundles"):
        describe([])


@needs_kitti
def test_the_recorded_drive_is_by_day_in_clear_air_and_slows_down() -> None:
    scenes = [describe(recorded()[begin : begin + 3]) for begin in (0, 20)]
    for scene in scenes:
        assert (scene.value("time_of_day"), scene.value("visibility_good")) == ("day", True)
        for nothing in ("weather", "weather_clear", "roads", "objects", "surface_dry"):
            assert scene.value(nothing) is None, nothing
        assert scene.value("moving") is True
    early, late = (scene.value("speed_kmh") for scene in scenes)
    assert 6.0 < early < 8.0 and 4.0 < late < early - 0.5


@needs_kitti
@pytest.mark.parametrize(
    ("manipulation", "never"),
    [("night", {"time_of_day": "day"}), ("fog", {"visibility_good": True}), ("dust_storm", {"visibility_good": True})],
)
def test_the_recorded_drive_changed_is_told_from_itself(manipulation: str, never: dict[str, Any]) -> None:
    """What the change hides is not claimed any more; fog of 60 m lies in the gap where nothing is said."""
    (mutation,) = find(manipulation).mutations()
    source = recorded()[0]
    rng = np.random.default_rng(1)
    changed = mutation.apply(source, mutation.draw(rng, source, mutation.begin(rng, source))).first
    (scene,) = [describe([changed])]
    assert all(scene.value(name) != value for name, value in never.items())
    assert scene.value("time_of_day") == ("night" if manipulation == "night" else "day")


def test_a_brighter_camera_changes_no_class() -> None:
    """A third of a stop is no other time of day."""
    image = pictured(hour=12.0).images[0]
    picture = decode(image)
    brighter = encode(picture.with_pixels(cv2.convertScaleAbs(picture.pixels, alpha=1.25)), image)
    assert told([Bundle(0, 0, 0, images=(brighter,))])["time_of_day"] == "day"
