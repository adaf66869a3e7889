# SPDX-License-Identifier: Apache-2.0
"""A2D2 and Udacity as recordings: stamps, frames of reference, units and signs of what the driver did, damage."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dataset_trees as trees
import driver_trees as drivers
import numpy as np
import pytest

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.bags.recording import open_recording
from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.known_datasets import recordings
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.data.transforms import move
from mt_nodes.runs.models.bag_samples import BagReading, shown_in_bag

DRIVE, FIX = "/vehicle/drive", "/gps/fix"
FRONT = {"camera": "/front_center/image", "camera_info": "/front_center/camera_info"}


def messages(name: str, topic: str) -> list[Any]:
    with open_recording(Path(name)) as reader:
        return [codec.decode(wire.type, wire.cdr) for wire in reader.wires({topic})]


def drive(name: str) -> list[tuple[int, float, float]]:
    """Stamp in ns, m/s and rad of the road wheels."""
    found = messages(name, DRIVE)
    return [(stamp_of(m) or 0, m.drive.speed, m.drive.steering_angle) for m in found]


def topics(name: str) -> dict[str, int]:
    with open_recording(Path(name)) as reader:
        return {topic: row.count for topic, row in reader.topics.items()}


# -- A2D2


def test_a2d2_has_cameras_what_they_see_of_the_lidars_and_the_bus(tmp_path: Path) -> None:
    name = f"a2d2:{drivers.a2d2(tmp_path)}"
    cameras = {f"/{camera}/{kind}": 4 for camera in ("front_center", "side_left") for kind in ("image", "camera_info")}
    assert topics(name) == {"/lidar_front_center": 4, **cameras, DRIVE: 3, FIX: 2, "/tf_static": 1}
    with BagSource(Path(name), FRONT, require=("lidar", "camera", "camera_info")) as source:
        bundles = list(source)
    start_ns = drivers.A2D2_START_US * 1000
    assert [b.stamp_ns for b in bundles] == [start_ns + i * 33_333_000 for i in range(4)]
    assert [b.images[0].stamp_ns for b in bundles] == [b.stamp_ns for b in bundles]
    home = tmp_path / "camera_lidar/20190401_145936/camera/cam_front_center"
    assert bundles[3].images[0].compressed == (home / "20190401145936_camera_frontcenter_000000086.png").read_bytes()
    points = bundles[1].cloud().points
    assert np.array_equal(np.column_stack([points[axis] for axis in "xyz"]), drivers.POINTS[:2].astype(np.float32))
    assert points["intensity"].tolist() == [7, 255] and points["lidar_id"].tolist() == [1, 4]
    assert points["time"] == pytest.approx([-0.02, 0.01])


def test_points_of_a2d2_lie_where_the_view_says_and_on_the_pixel_of_the_calibration(tmp_path: Path) -> None:
    with BagSource(Path(f"a2d2:{drivers.a2d2(tmp_path)}"), FRONT, require=("lidar", "camera", "camera_info")) as source:
        bundle = next(iter(source))
    ahead, _, up = drivers.POINTS[0]
    c, s = math.cos(0.1), math.sin(0.1)
    # The camera looks down by 0.1 rad from 0.9 m above the vehicle's frame, and that is 0.3 m above the road.
    expected = [1.7 + c * ahead + s * up, 1.0, 0.9 + 0.3 - s * ahead + c * up]
    lidar_xyz = drivers.POINTS[:1]
    assert move(bundle.transforms.lookup("base_link", "front_center"), lidar_xyz)[0] == pytest.approx(expected)
    in_lens = move(bundle.transforms.lookup(bundle.images[0].frame_id, bundle.cloud().frame_id), lidar_xyz)[0]
    assert in_lens == pytest.approx([-1.0, 0.5, 10.0])
    info = bundle.camera_infos[0]
    assert (info.distortion_model, info.d.tolist()) == ("plumb_bob", [-0.2, 0.1, 0.0, 0.0, 0.01])
    assert info.k.tolist() == trees.K.tolist() and info.p[:, :3].tolist() == (2 * trees.K).tolist()
    (side,) = {m.distortion_model for m in messages(f"a2d2:{tmp_path}", "/side_left/camera_info")}
    assert side == "equidistant"
    assert move(bundle.transforms.lookup("base_link", "side_left"), np.array([[1.0, 0, 0]]))[0] == pytest.approx(
        [0.5, 1.6, 1.2]
    )


def test_height_and_ratio_of_a2d2_are_options(tmp_path: Path) -> None:
    name = f"a2d2:{drivers.a2d2(tmp_path)},height=0.5,ratio=31.6"
    with BagSource(Path(name), require=("lidar",)) as source:
        assert next(iter(source)).transforms.lookup("base_link", "vehicle")[2, 3] == 0.5
    assert drive(name)[0][2] == pytest.approx(math.radians(1.0))


def test_a2d2_drive_is_in_si_units_and_positive_to_the_left(tmp_path: Path) -> None:
    # 31.6 degrees of the wheel are 2 of the road wheels; before the speed begins, and in error, nothing is known.
    start_ns = drivers.A2D2_START_US * 1000
    got = drive(f"a2d2:{drivers.a2d2(tmp_path)}")
    assert [stamp_ns - start_ns for stamp_ns, *_ in got] == [0, 50_000_000, 150_000_000]
    assert [speed for _, speed, _ in got] == pytest.approx([10.0, 11.25, 13.75])
    assert [angle for *_, angle in got] == pytest.approx([math.radians(a) for a in (2.0, -2.0, -1.0)])
    places = messages(f"a2d2:{tmp_path}", FIX)
    assert [v for m in places for v in (m.latitude, m.longitude)] == pytest.approx([48.75, -11.4, 48.751, -11.402])
    assert all(math.isnan(m.altitude) for m in places)


def test_speed_of_a2d2_is_not_made_up_where_the_bus_was_silent(tmp_path: Path) -> None:
    drivers.a2d2(tmp_path)
    speed = drivers.bus_signals()["vehicle_speed"]
    speed["values"] += [[drivers.A2D2_START_US + 1_000_000, 54.0], [drivers.A2D2_START_US + 1_100_000, 54.0]]
    steering = drivers.bus_signals()["steering_angle_calculated"]
    steering["values"] += [[drivers.A2D2_START_US + late, 0.0] for late in (600_000, 1_050_000)]
    (bus,) = tmp_path.rglob("*_bus_signals.json")
    drivers.change(bus, ["vehicle_speed"], speed)
    drivers.change(bus, ["steering_angle_calculated"], steering)
    assert [(t - drivers.A2D2_START_US * 1000) // 1_000_000 for t, *_ in drive(f"a2d2:{tmp_path}")] == [
        0,
        50,
        150,
        1050,
    ]


def test_a2d2_without_bus_or_without_pictures_is_read(tmp_path: Path) -> None:
    drivers.a2d2(tmp_path)
    (bus,) = tmp_path.rglob("*_bus_signals.json")
    bus.unlink()
    for picture in tmp_path.rglob("*.png"):
        picture.unlink()
    assert topics(f"a2d2:{tmp_path}") == {"/lidar_front_center": 4, "/tf_static": 1}


A2D2_CAMERA = "camera_lidar/20190401_145936/camera/cam_front_center/20190401145936_camera_frontcenter_000000084.json"
A2D2_CLOUD = "camera_lidar/20190401_145936/lidar/cam_front_center/20190401145936_lidar_frontcenter_000000084.npz"
A2D2_BUS = "camera_lidar/20190401_145936/bus/20190401145936_bus_signals.json"
Spoil = Callable[[Path], None]


def _changed(*keys: str, to: Any = None) -> Spoil:
    return lambda path: drivers.change(path, keys, to)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def _bright(path: Path) -> None:
    path.write_bytes(drivers.a2d2_cloud(0, reflectance=np.array([7, 300, 9])))


def _short(path: Path) -> None:
    path.write_bytes(drivers.a2d2_cloud(0, reflectance=np.array([7, 9])))


@pytest.mark.parametrize(
    ("file", "spoil", "error"),
    [
        (A2D2_CAMERA, Path.unlink, "000000084.json: there is no such file, which has the stamp"),
        (A2D2_CAMERA, _cut, "000000084.json: cannot be read as JSON"),
        (A2D2_CAMERA, _changed("cam_tstamp"), "000000084.json: cam_tstamp: got None, expected microseconds"),
        (A2D2_CAMERA, _changed("cam_tstamp", to=drivers.A2D2_START_US), "has the stamp of .*000000083.json"),
        (A2D2_CAMERA, _changed("pcld_view", to=drivers.SIDE), "000000084.json: pcld_view is not the camera's view"),
        (A2D2_CLOUD, _cut, "000000084.npz: expected an .npz with pcloud_points"),
        (A2D2_CLOUD, _bright, "000000084.npz: .*reflectance from 7 to 300, expected 0 to 255"),
        (A2D2_CLOUD, _short, "000000084.npz: expected an .npz"),
        (A2D2_BUS, _cut, "bus_signals.json: cannot be read as JSON"),
        (A2D2_BUS, _changed("vehicle_speed"), "bus_signals.json: expected vehicle_speed: {unit, values"),
        (A2D2_BUS, _changed("vehicle_speed", "unit", to="Unit_MeterPerSecon"), "got the unit Unit_MeterPerSecon, exp"),
        (A2D2_BUS, _changed("vehicle_speed", "values", to=[[1, 2.0]]), "vehicle_speed: got 1 values, expected 2"),
        (A2D2_BUS, _changed("vehicle_speed", "values", to=[[1, 2], [2, 2]]), "no instant at which both speed and"),
        (A2D2_BUS, _changed("steering_angle_calculated_sign", "values", to=[[1, 2]]), "_sign: got values other than"),
        ("cams_lidars.json", _changed("cameras", "front_center", "Lens", to="Mirror"), "cameras.front_center: exp"),
        ("cams_lidars.json", _changed("cameras", "front_center", "view", "x-axis", to=[0, 3, 0]), "span no plane"),
        ("cams_lidars.json", _changed("vehicle"), "expected vehicle.ego-dimensions.z-range; give the height"),
        ("cams_lidars.json", Path.unlink, "20190401_145936: no cams_lidars.json; expected the data set's file"),
    ],
)
def test_damaged_and_missing_files_of_a2d2_are_named(file: str, spoil: Spoil, error: str, tmp_path: Path) -> None:
    drivers.a2d2(tmp_path)
    spoil(tmp_path / file)
    with pytest.raises((UsageError, InfrastructureError), match=error) as caught:
        messages(f"a2d2:{tmp_path}", "/lidar_front_center")
    assert "\n" not in str(caught.value)


# -- Udacity


def test_udacitys_challenge_has_stamps_speed_steering_and_place(tmp_path: Path) -> None:
    name = f"udacity:{drivers.udacity_challenge(tmp_path)}"
    assert topics(name) == {"/center_camera/image": 4, "/left_camera/image": 4, DRIVE: 8, FIX: 8}
    left = messages(name, "/left_camera/image")
    start_ns = drivers.UDACITY_START_NS
    assert [stamp_of(m) for m in left] == [start_ns + i * 50_000_000 + 20_000_000 for i in range(4)]
    assert {m.header.frame_id for m in left} == {"left_camera"}
    assert bytes(left[0].data) == (tmp_path / f"left/{start_ns + 20_000_000}.png").read_bytes()
    # The steering wheel's angle is by 14.8 that of the road wheels, and positive to the left in both.
    first, *_, last = drive(name)
    assert (first[0], last[0]) == (start_ns, start_ns + 170_000_000)
    assert [*first[1:], *last[1:]] == pytest.approx([10.0, 0.1, 13.0, (1.48 - 3) / 14.8])
    assert drive(f"{name},ratio=1.0")[0][2] == pytest.approx(1.48)
    place = messages(name, FIX)[0]
    assert (place.latitude, place.longitude, place.altitude) == (37.4, -122.1, 20.5)


@pytest.mark.parametrize("options", [{}, {"header": True}, {"place": "/home/me/run/IMG/"}, {"place": "IMG/"}])
def test_udacitys_simulator_has_miles_an_hour_and_steers_right_for_positive(
    options: Mapping[str, Any], tmp_path: Path
) -> None:
    name = f"udacity:{drivers.udacity_simulator(tmp_path, **options)}"
    assert topics(name) == {f"/{camera}_camera/image": 4 for camera in ("center", "left", "right")} | {DRIVE: 4}
    got = drive(name)
    assert got[0][0] == 1_480_599_048_287_000_000  # 2016-12-01 13:30:48.287, as UTC
    assert got[3][0] - got[0][0] == 210_000_000
    assert [speed for _, speed, _ in got] == pytest.approx([8.9408] * 4)
    assert [angle for *_, angle in got] == pytest.approx([math.radians(25 * s) for s in (0.2, -0.1, -0.4, -0.7)])
    right = messages(name, "/right_camera/image")
    assert bytes(right[1].data) == (tmp_path / "IMG/right_2016_12_01_13_30_48_357.jpg").read_bytes()


def test_a_log_with_the_middle_camera_alone_is_read(tmp_path: Path) -> None:
    drivers.udacity_simulator(tmp_path, place="")
    log = tmp_path / "driving_log.csv"
    rows = [line.split(", ") for line in log.read_text().splitlines()]
    log.write_text("".join(", ".join([row[0], "", "", *row[3:]]) + "\n" for row in rows))
    assert topics(f"udacity:{tmp_path}") == {"/center_camera/image": 4, DRIVE: 4}


def test_drives_of_one_name_in_several_folders_are_told_apart(tmp_path: Path) -> None:
    drivers.udacity_simulator(tmp_path / "first/data", 1)
    drivers.udacity_challenge(tmp_path / "second/data", 1)
    found = recordings(f"udacity:{tmp_path}")
    assert [name.partition("scene=")[2] for name in found] == ["first/data", "second/data"]
    assert [len(drive(name)) for name in found] == [1, 2]
    with pytest.raises(UsageError, match="has 2 scenes: first/data, second/data; choose one"):
        drive(f"udacity:{tmp_path}")
    drivers.udacity_simulator(tmp_path / "second/data", 1)
    with pytest.raises(UsageError, match=r"data: has interpolated.csv and driving_log.csv"):
        recordings(f"udacity:{tmp_path}")


LOG, TABLE = "driving_log.csv", "interpolated.csv"


def _put(old: str, new: str) -> Spoil:
    return lambda path: drivers.rewrite(path, old, new)


@pytest.mark.parametrize(
    ("file", "spoil", "error"),
    [
        (LOG, _put(", 20\n", "\n"), r"driving_log.csv:1: got 6 values, expected 7: center,left"),
        (LOG, _put("-0.2", "left"), r"driving_log.csv:1: steering: got 'left', expected a number"),
        (LOG, _put("0.1", "nan"), r"driving_log.csv:2: steering: got 'nan', expected a number"),
        (LOG, _put("center_2016", "center_2017"), r"log.csv:1: there is no picture .*IMG/center_2017"),
        (LOG, lambda path: path.write_text(""), r"driving_log.csv: got no line with a picture"),
        (LOG, lambda path: path.write_bytes(b"\xff\xfe"), r"driving_log.csv: cannot be read as a table"),
        (TABLE, _put("angle", "wheel"), r"interpolated.csv: got columns .*wheel.*, expected also angle"),
        (TABLE, _put(",10,", ",fast,"), r"interpolated.csv:2: speed: got 'fast', expected a number"),
        (TABLE, _put(f",{drivers.UDACITY_START_NS},", ",12.5,"), r"csv:2: timestamp: got '12.5', expected nanosec"),
        (TABLE, _put("center/", "centre/"), r"interpolated.csv:2: there is no picture .*centre/1479"),
        (TABLE, _put("left_camera", "left camera"), r"interpolated.csv:3: frame_id: got 'left camera'"),
    ],
)
def test_damaged_logs_of_udacity_are_named(file: str, spoil: Spoil, error: str, tmp_path: Path) -> None:
    (drivers.udacity_simulator if file == LOG else drivers.udacity_challenge)(tmp_path)
    spoil(tmp_path / file)
    with pytest.raises(InfrastructureError, match=error) as caught:
        topics(f"udacity:{tmp_path}")
    assert "\n" not in str(caught.value)


def test_a_picture_without_a_time_or_with_that_of_another_is_refused(tmp_path: Path) -> None:
    drivers.udacity_simulator(tmp_path, place="")
    log, first = tmp_path / LOG, tmp_path / "IMG/center_2016_12_01_13_30_48_287.jpg"
    text = log.read_text()
    first.rename(tmp_path / "IMG/first.jpg")
    log.write_text(text.replace(first.name, "first.jpg"))
    with pytest.raises(InfrastructureError, match=r"IMG/first.jpg: expected a name such as center_2016"):
        drive(f"udacity:{tmp_path}")
    log.write_text(text.replace(first.name, "center_2016_12_01_13_30_48_357.jpg"))
    with pytest.raises(InfrastructureError, match="of center_camera have one stamp"):
        drive(f"udacity:{tmp_path}")


def test_a_ratio_is_refused_where_the_road_wheels_are_recorded(tmp_path: Path) -> None:
    drivers.udacity_simulator(tmp_path)
    with pytest.raises(UsageError, match="has the angle of the road wheels; leave ratio= out"):
        drive(f"udacity:{tmp_path},ratio=15")


# -- what mt does with them


@pytest.mark.parametrize(
    ("make", "camera", "expected"),
    [
        (drivers.udacity_simulator, "/center_camera/image", (8.9408, math.radians(5.0))),
        (drivers.udacity_challenge, "/center_camera/image", (10.0, 0.1)),
        (drivers.a2d2, "/front_center/image", (10.0, math.radians(2.0))),
    ],
)
def test_a_driving_model_learns_from_them(
    make: Callable[[Path], Path], camera: str, expected: tuple[float, float], tmp_path: Path
) -> None:
    dataset = make.__name__.partition("_")[0]
    name = Path(f"{dataset}:{make(tmp_path)}")
    shown = list(shown_in_bag(name, BagReading({"camera": camera})))
    assert len(shown) == 4 and shown[0].rgb.shape == (trees.SIZE[1], trees.SIZE[0], 3)
    assert (shown[0].speed_mps, shown[0].steering_rad) == pytest.approx(expected)
    assert {sample.drive.rpartition("/")[2] for sample in shown} == {"0"}


def _files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("make", [drivers.udacity_simulator, drivers.udacity_challenge])
def test_mutated_pictures_of_udacity_are_udacitys_again(
    make: Callable[[Path], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, out = f"udacity:{make(tmp_path / 'in')}", tmp_path / "out"
    words = ["--mutation", "image_mirrored", "--topic", "camera=/center_camera/image"]
    assert main(["mutate", name, *words, "--out", f"udacity:{out}"]) == 0
    # A mirrored picture beside the steering that it had is said to be that.
    assert "speed and steering copied, though the mutation changes" in " ".join(capsys.readouterr().out.split())
    before, after = _files(tmp_path / "in"), _files(out)
    assert set(before) == set(after)
    differing = {file for file in before if before[file] != after[file]}
    assert len(differing) == 4 and all("center" in file for file in differing)
    assert topics(f"udacity:{out}") == topics(name)
    assert main(["mutate", name, *words, "--limit", "1", "--out", f"udacity:{tmp_path / 'part'}"]) == 2
    assert "name every frame; leave --limit out" in " ".join(capsys.readouterr().err.split())


def test_a2d2_becomes_a_bag_with_all_of_its_topics_and_is_not_written_with_clouds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, bag = f"a2d2:{drivers.a2d2(tmp_path / 'in')}", tmp_path / "bag"
    words = ["--mutation", "noise_outside_roi", "--set", "points=5"]
    assert main(["mutate", name, *words, "--out", str(bag)]) == 0
    assert topics(str(bag)) == topics(name)
    assert drive(str(bag)) == drive(name)
    with BagSource(bag) as source:
        assert [len(bundle.cloud().points) for bundle in source] == [7] * 4
    capsys.readouterr()
    assert main(["mutate", name, *words, "--out", f"a2d2:{tmp_path / 'out'}"]) == 2
    assert "a2d2 is not written; expected --out folder:DIR or a bag" in " ".join(capsys.readouterr().err.split())


def test_pictures_of_a2d2_alone_are_written(tmp_path: Path) -> None:
    name, out = f"a2d2:{drivers.a2d2(tmp_path / 'in', clouds=False)}", tmp_path / "out"
    words = ["--mutation", "brightness_changed", "--topic", "camera=/front_center/image"]
    words += ["--topic", "camera_info=/front_center/camera_info"]
    assert main(["mutate", name, *words, "--out", f"a2d2:{out}"]) == 0
    before, after = _files(tmp_path / "in"), _files(out)
    assert set(before) == set(after)
    assert {Path(file).parent.name for file in before if before[file] != after[file]} == {"cam_front_center"}
    assert topics(f"a2d2:{out}") == topics(name)
