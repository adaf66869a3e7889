# SPDX-License-Identifier: Apache-2.0
"""Training data of the drive world: who drives, what is labelled, what is written; and how a lane is kept to."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import radians
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from lap_evaluation import expert_drive, lap_result

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.outputs import Control, Output
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.rig import Rig, windscreen_camera
from mt_nodes.runs.models.drive_recording import Expert, RecordedDriver, drive, drives_of, record
from mt_nodes.runs.models.lap import LaneKeeping
from mt_nodes.runs.models.record_request import RecordRequest
from mt_nodes.runs.models.samples import read_samples
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Ego, Environment, Scenario, Vehicle
from mt_nodes.world.drive.scenario_files import scenarios_of
from mt_nodes.world.drive.trace import EgoState, Trace
from mt_nodes.world.drive.world import World

SCENARIO = """
ego = AV(("e_f" -> range(81.0, 83.0), , 5.0));
short = CreateScenario { load("town"); ego; {}; {}; {}; {}; {Duration(0.8)}; };
"""
STACK = """
callable: no_such_module:drives
inputs: {camera: /image}
outputs: {control: {topic: /command, type: geometry_msgs/msg/TwistStamped}}
camera: {width: 48, height: 32, field_of_view_deg: 90}
stateless: true
"""


@pytest.fixture
def asked(tmp_path: Path) -> RecordRequest:
    """Two drives of eight tiny pictures."""
    (tmp_path / "short.scenario").write_text(SCENARIO)
    (tmp_path / "tiny.yaml").write_text(STACK)
    return RecordRequest((str(tmp_path / "short.scenario"),), str(tmp_path / "tiny.yaml"), drives=2, seed=3)


def recorded(request: RecordRequest, out: Path) -> int:
    return record(request, out, lambda name, pictures: None)


def content(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# --- recording


def test_a_folder_has_a_picture_an_instant_and_what_the_expert_would_do(asked: RecordRequest, tmp_path: Path) -> None:
    assert recorded(asked, tmp_path / "out") == 16
    samples = read_samples(tmp_path / "out")
    assert [sample.drive for sample in samples] == ["short_3_0"] * 8 + ["short_3_1"] * 8
    assert all(cv2.imread(str(sample.image)).shape == (32, 48, 3) for sample in samples)
    assert len({sample.image for sample in samples}) == 16
    _, (planned, _) = drives_of(asked)
    first = planned.setting.scenario.ego
    command = Expert.of(planned.setting.scenario, load_map("town")).command(
        EgoState(first.start.x_m, first.start.y_m, first.start.yaw_rad, first.speed_mps)
    )
    assert samples[0].speed_mps == pytest.approx(command.speed_mps, rel=1e-4)
    assert samples[0].steering_rad == pytest.approx(command.steering_rad, rel=1e-4)
    assert samples[0].steering_rad > 0.02, "before the bend to the left"


def test_the_same_seed_makes_the_same_bytes_and_another_one_others(asked: RecordRequest, tmp_path: Path) -> None:
    for name, request in (("a", asked), ("b", asked), ("c", replace(asked, seed=4))):
        recorded(replace(request, drives=1), tmp_path / name)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert not set(content(tmp_path / "a").values()) & set(content(tmp_path / "c").values())


def test_what_is_there_is_kept_and_more_is_added(asked: RecordRequest, tmp_path: Path) -> None:
    recorded(asked, tmp_path / "whole")
    recorded(replace(asked, drives=1), tmp_path / "parts")
    made: list[str] = []
    assert record(asked, tmp_path / "parts", lambda name, pictures: made.append(name)) == 16
    assert made == ["short_3_1"]
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert recorded(replace(asked, drives=1, seed=9), tmp_path / "parts") == 24


def pictures(folder: Path) -> list[Any]:
    return [cv2.imread(str(sample.image)).astype(int) for sample in read_samples(folder)]


def test_a_share_of_the_pictures_is_changed_as_relations_would_and_the_labels_stay(
    asked: RecordRequest, tmp_path: Path
) -> None:
    edits = ("exposure_half_stop_up_keeps_speed", "saturation_raised_steering")
    for share in (0.0, 0.5, 1.0):
        recorded(replace(asked, edits=edits, edited=share), tmp_path / f"{share}")
    plain, half, whole = (pictures(tmp_path / f"{share}") for share in (0.0, 0.5, 1.0))
    changed = [(before != after).any() for before, after in zip(plain, half, strict=True)]
    assert 3 <= sum(changed) <= 13
    assert all((before != after).any() for before, after in zip(plain, whole, strict=True))
    lighter = [after.mean() - before.mean() for before, after in zip(plain, whole, strict=True)]
    assert 3 <= sum(light > 10.0 for light in lighter) <= 13, "the other relation leaves the light"
    assert (tmp_path / "0.0" / "samples.csv").read_text() == (tmp_path / "1.0" / "samples.csv").read_text()
    recorded(replace(asked, edits=edits, edited=0.5), tmp_path / "again")
    assert content(tmp_path / "again") == content(tmp_path / "0.5")


@pytest.mark.parametrize(
    ("relation", "why"),
    [
        ("image_mirrored_steering", "its follow-up has another answer"),
        ("camera_frames_frozen_1_of_10", "expected a relation that changes single pictures"),
        ("world_mirrored_same_trace", "expected a relation that changes single pictures"),
        ("fog_camera_not_faster", "it applies to no picture of a drive"),
    ],
)
def test_a_relation_whose_change_would_make_labels_wrong_or_nothing_is_refused(
    relation: str, why: str, asked: RecordRequest, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=f"--edit {relation}: .*{why}"):
        recorded(replace(asked, edits=(relation,), edited=1.0), tmp_path)


def test_parameters_of_the_scenario_decide_where_and_in_which_light_is_driven() -> None:
    drawn = RecordRequest(("town_lap_any_town",), drives=12, parameters={"from_hour": "20", "to_hour": "24"})
    scenarios = [planned.setting.scenario for planned in drives_of(drawn)[1]]
    assert len({scenario.road for scenario in scenarios}) > 3
    assert all(20.0 <= scenario.environment.hour <= 24.0 for scenario in scenarios)
    assert not any(scenario.environment.rain for scenario in scenarios)


def test_a_full_disk_leaves_the_table_of_whole_drives(
    asked: RecordRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, write = [], cv2.imwrite

    def fails_at_the_tenth(path: str, pixels: Any) -> bool:
        written.append(path)
        return bool(len(written) < 10 and write(path, pixels))

    monkeypatch.setattr(cv2, "imwrite", fails_at_the_tenth)
    with pytest.raises(InfrastructureError, match=r"short_3_1/00001\.png"):
        recorded(asked, tmp_path / "out")
    assert [sample.drive for sample in read_samples(tmp_path / "out")] == ["short_3_0"] * 8


def test_another_table_is_refused_and_stays(asked: RecordRequest, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text("frame,angle\n1,2\n")
    with pytest.raises(UsageError, match="expected also image"):
        recorded(asked, tmp_path)
    assert (tmp_path / "samples.csv").read_text() == "frame,angle\n1,2\n"


def test_a_stack_without_a_camera_and_a_road_with_others_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'reference_planner' takes objects, .*expected camera"):
        drives_of(RecordRequest(("town_lap",), "reference_planner"))
    with pytest.raises(UsageError, match=r"car_brakes: got .*expected an empty road: the expert sees nobody"):
        drives_of(RecordRequest(("car_brakes",), "reference_camera"))


def test_the_command_line_says_what_it_made(
    asked: RecordRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["models", "record", *asked.scenarios, "--stack", asked.stack, "--out", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"table": str(tmp_path / "out" / "samples.csv"), "pictures": 8, "made": {"short_0_0": 8}}
    assert main([*words, "--seed", "1"]) == 0
    assert "short_1_0: 8 images" in (said := capsys.readouterr().out) and "16 images" in said
    with (tmp_path / "out" / "samples.csv").open() as table:
        assert next(csv.reader(table)) == ["image", "speed_mps", "steering_rad", "drive"]
    assert main([*words, "--share", "1.5"]) == 2
    assert "share: got 1.5" in capsys.readouterr().err


def test_every_option_of_the_command_line_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[RecordRequest] = []

    def record_nothing(request: RecordRequest, out: Path, progress: Any) -> int:
        asked.append(request)
        return 0

    monkeypatch.setattr("mt_nodes.runs.models.drive_recording.record", record_nothing)
    text = "a b --stack s --driver w --share 0.5 --drives 3 --push 2 --cruise 5 --jitter 0.5 --seed 7"
    text += " --edit e --edit f --edited 0.2 --set hour=3 --out"
    assert main(["models", "record", *text.split(), str(tmp_path)]) == 0
    edits = {"edits": ("e", "f"), "edited": 0.2, "parameters": {"hour": "3"}}
    assert asked == [RecordRequest(("a", "b"), "s", "w", 0.5, 3, 2.0, 5.0, 0.5, 7, **edits)]


# --- who drives


def hands(push_mps2: float, *models: bool) -> RecordedDriver:
    legs = len(models)
    return RecordedDriver(np.full(legs, 1.0), np.full(legs, 0.5), np.full(legs, push_mps2), np.array(models), Vehicle())


EXPERT, MODEL = Control(None, steering_rad=0.1, speed_mps=8.0), Control(None, steering_rad=-0.2, speed_mps=-1.0)


@pytest.mark.parametrize(
    ("time_s", "speed_mps", "pushed_rad"),
    [(0.9, 7.0, 0.0), (1.2, 7.0, 2.8 / 49.0), (1.6, 7.0, 0.0), (5.2, 0.0, 2.8 / 3.5**2)],
)
def test_the_expert_is_pushed_once_a_leg(time_s: float, speed_mps: float, pushed_rad: float) -> None:
    told = hands(1.0, False, False).command(time_s, speed_mps, EXPERT, None, 0.5)
    assert told.steering_rad == pytest.approx(0.1 + pushed_rad)
    assert told.speed_mps == 8.0


def test_a_model_drives_its_legs_and_never_backwards() -> None:
    made = hands(0.0, False, True)
    assert made.command(3.9, 8.0, EXPERT, MODEL, 0.5).steering_rad == 0.1
    told = made.command(4.1, 8.0, EXPERT, MODEL, 0.5)
    assert (told.steering_rad, told.speed_mps) == (-0.2, 0.0)
    assert made.command(99.0, 8.0, EXPERT, MODEL, 0.5).steering_rad == -0.2, "the last leg goes on"
    assert made.command(4.1, 8.0, EXPERT, None, 0.5).steering_rad == 0.1, "it has nothing to say as yet"


def test_the_expert_saves_a_model_that_has_left_its_lane_and_gives_back_well_inside() -> None:
    made = hands(1.0, True)
    rooms = [0.5, -0.3, -0.5, -0.3, 0.1, 0.2, 0.1]
    told = [made.command(1.2, 7.0, EXPERT, MODEL, room).steering_rad for room in rooms]
    assert told == [-0.2, -0.2, 0.1, 0.1, 0.1, -0.2, -0.2], "and is not pushed meanwhile"


def test_a_model_drives_in_the_world_while_the_expert_says_what_it_would_have_done(asked: RecordRequest) -> None:
    rig, (planned, _) = drives_of(asked)
    shown: list[tuple[int, ...]] = []

    def veers(rgb: Any, stamp_ns: int) -> Output:
        shown.append(rgb.shape)
        return Output(control=Control(None, steering_rad=-0.4, speed_mps=5.0))

    last = {share: [*drive(planned, rig, replace(asked, share=share), veers)][-1].target for share in (0.0, 1.0)}
    assert shown == [(32, 48, 3)] * 16
    assert last[1.0].steering_rad > last[0.0].steering_rad + 0.02, "back to the left"


def test_draws_depend_on_the_generator_and_are_as_large_as_asked() -> None:
    request = RecordRequest(("x",), share=0.25, push_mps2=2.0)
    drawn = RecordedDriver.drawn(np.random.default_rng(0), 3999.0, request, Vehicle())
    assert len(drawn.models) == 1000
    assert 0.2 < drawn.models.mean() < 0.3
    assert 1.9 < np.abs(drawn.push_mps2).max() <= 2.0
    assert (drawn.begins_s + drawn.lasts_s).max() <= 4.0


# --- keeping to a lane


@lru_cache
def lap() -> tuple[Setting, Trace, LaneKeeping]:
    """The expert's lap of the town."""
    (scenario,) = scenarios_of("town_lap", 0)
    setting = Setting(scenario, load_map(scenario.road))
    return setting, expert_drive(setting), LaneKeeping.of(scenario, setting.road)


def test_the_expert_drives_a_lap_well_inside_its_lane_and_slowly_in_bends() -> None:
    _, trace, keeping = lap()
    came = lap_result(trace, keeping, trace.ego[:, :2])
    assert came.in_lane
    assert came.room_m > 0.3
    assert came.tight_m > came.room_m
    assert came.lap_s == pytest.approx(85.0, abs=2.0)
    assert came.driven_m == pytest.approx(keeping.lap_m, abs=4.0)
    assert keeping.lap_m == pytest.approx(2 * 184.0 + 2 * 84.0 + 4 * 9.75 * np.pi / 2, abs=0.1)
    assert (came.aside_mean_m, came.aside_max_m) == (0.0, 0.0)
    speed, turning = trace.column("speed_mps"), np.abs(trace.column("steering_rad"))
    assert speed[turning > 0.2].max() < 4.6 < 7.9 < speed.max()


def test_half_a_lap_and_a_way_that_does_not_return_are_none() -> None:
    setting, trace, keeping = lap()
    half = replace(trace, time_s=trace.time_s[:400], ego=trace.ego[:400], actors=trace.actors[:400])
    came = lap_result(half, keeping, trace.ego[:, :2])
    assert came.lap_s is None
    assert not came.in_lane
    straight = load_map("straight")
    there = replace(setting.scenario, road="straight", ego=Ego(straight.lanes["lane_1"].pose_at(50.0), 8.0))
    assert LaneKeeping.of(there, straight).lap_m == float("inf")


def test_a_drive_beside_the_line_is_as_far_aside() -> None:
    _, trace, keeping = lap()
    yaw = trace.ego[:, 2]
    beside = trace.ego.copy()
    beside[:, :2] += 0.5 * np.column_stack([np.sin(yaw), -np.cos(yaw)])
    came = lap_result(replace(trace, ego=beside), keeping, trace.ego[:, :2])
    assert came.aside_mean_m == pytest.approx(0.5, abs=0.02)
    assert came.room_m < 0.0, "half a metre to the right of it the bends are too narrow"
    assert came.lap_s is not None
    assert not came.in_lane


@pytest.mark.parametrize(
    ("left_m", "yaw_deg", "room_m"),
    [
        (0.0, 0.0, 1.75 - 0.925),
        (0.5, 0.0, 1.25 - 0.925),
        (-0.9, 0.0, 0.85 - 0.925),
        # The front left corner: 3.8 m ahead and 0.925 m to the left.
        (0.0, 10.0, 1.75 - 3.8 * np.sin(radians(10.0)) - 0.925 * np.cos(radians(10.0))),
        (0.0, -10.0, 1.75 - 3.8 * np.sin(radians(10.0)) - 0.925 * np.cos(radians(10.0))),
    ],
)
def test_room_is_that_of_the_outline(left_m: float, yaw_deg: float, room_m: float) -> None:
    road = load_map("straight")
    lane = road.lanes["lane_1"]
    keeping = LaneKeeping.of(Scenario("s", "straight", Ego(lane.pose_at(50.0), 8.0)), road)
    here = lane.pose_at(100.0, left_m)
    assert keeping.room_m(here.x_m, here.y_m, radians(yaw_deg)) == pytest.approx(room_m, abs=1e-6)


@pytest.mark.parametrize(("left_m", "sign"), [(0.6, -1), (-0.6, 1)])
def test_the_expert_steers_back_to_its_line(left_m: float, sign: int) -> None:
    road = load_map("straight")
    lane = road.lanes["lane_1"]
    expert = Expert.of(Scenario("s", "straight", Ego(lane.pose_at(50.0), 8.0)), road)
    here = lane.pose_at(100.0, left_m)
    told = expert.command(EgoState(here.x_m, here.y_m, here.yaw_rad, 8.0))
    assert 0.02 < sign * told.steering_rad < 0.3
    assert told.speed_mps == 8.0


# --- the camera of a stack file


def stack_with(tmp_path: Path, camera: str) -> Callable[[], Any]:
    file = tmp_path / "mine.yaml"
    file.write_text(STACK.replace("{width: 48, height: 32, field_of_view_deg: 90}", camera))
    return lambda: load_stack(str(file))


def test_a_world_has_the_camera_that_the_stack_file_says(tmp_path: Path) -> None:
    camera = Rig.for_stack(stack_with(tmp_path, "{width: 48, height: 32}")()).camera
    assert camera == replace(windscreen_camera(), width=48, height=32)
    assert Rig.for_stack(stack_with(tmp_path, "{}")()).camera == windscreen_camera()


@pytest.mark.parametrize(
    ("camera", "told"),
    [
        ("[1, 2]", r"camera: got \[1, 2\], expected a mapping such as"),
        ("{widht: 100}", "camera: .*'widht'.*width"),
        ("{width: 100.5}", "camera.width: got 100.5, expected a whole number"),
        ("{height: true}", "camera.height: got True, expected a whole number"),
        ("{field_of_view_deg: 200}", "camera.field_of_view_deg: got 200, expected 10 to 150"),
        ("{height_m: .nan}", "camera.height_m: got nan, expected 0.3 to 4"),
        ("{height_m: high}", "camera.height_m: got 'high', expected a number"),
    ],
)
def test_a_camera_that_cannot_be_is_refused(tmp_path: Path, camera: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        stack_with(tmp_path, camera)()


def test_rain_is_seen_by_a_camera_whose_calibration_nobody_is_told() -> None:
    camera = replace(windscreen_camera(), width=48, height=32)
    rigs = Rig(None, camera, {"camera": "/image"}), Rig(None, camera, {"camera": "/image", "camera_info": "/info"})
    seen = []
    for rain, rig in ((0.8, rigs[0]), (0.8, rigs[1]), (0.0, rigs[0])):
        ego = Ego(load_map("straight").lanes["lane_1"].pose_at(50.0), 8.0)
        scenario = Scenario("s", "straight", ego, environment=Environment(rain=rain))
        world = World(scenario)
        seen.append(Sensors(scenario, world.road, rig, 0).observe(world.state, 0, 0))
    untold, told, dry = seen
    assert [info.topic for info in told.camera_infos] == ["/info"]
    assert untold.camera_infos == dry.camera_infos == ()
    assert np.array_equal(untold.images[0].pixels, told.images[0].pixels)
    assert np.abs(untold.images[0].pixels.astype(float) - dry.images[0].pixels).mean() > 2.0


def test_drives_to_train_on_begin_all_around_the_lap_in_many_lights() -> None:
    made = [scenarios_of("town_lap_any_light", seed)[0] for seed in range(12)]
    lanes = {load_map("town").nearest_lane(one.ego.start.x_m, one.ego.start.y_m).name for one in made}
    assert len(lanes) >= 4
    assert lanes <= {"d_e", "e_f", "f_c", "c_b", "b_a", "a_d"}
    assert len({one.environment.hour for one in made}) == 12
