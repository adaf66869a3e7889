# SPDX-License-Identifier: Apache-2.0
"""Data sets as recordings: frames, stamps, frames of reference, labels, and what is said of what is missing."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import dataset_trees as trees
import numpy as np
import pytest

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.datasets.dataset_name import DatasetName, exists, is_dataset, located
from mt_nodes.data.datasets.known_datasets import recording_files, recordings
from mt_nodes.data.ground_truth import points_in
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import move

SENSORS = ("lidar", "camera", "camera_info")
Tree = Callable[[Path], Path]
#: Data set -> the tree, and the height at which its LiDAR's cloud was made.
TREES: dict[str, tuple[Tree, float]] = {
    "kitti_raw": (trees.kitti_raw, 1.73),
    "kitti_object": (trees.kitti_object, 1.73),
    "kitti_tracking": (trees.kitti_tracking, 1.73),
    "nuscenes": (trees.nuscenes, 0.0),
    "argoverse2": (trees.argoverse2, 0.0),
}


def bundles(name: str | Path, require: Any = SENSORS) -> list[Bundle]:
    with BagSource(Path(name), require=require) as source:
        return list(source)


def named(kind: str, place: Path) -> str:
    return f"{kind.partition('_')[0]}:{TREES[kind][0](place)}"


def test_kitti_gives_the_files_points_and_pictures_bit_for_bit(tmp_path: Path) -> None:
    drive = trees.kitti_raw(tmp_path) / "2011_09_26_drive_0009_sync"
    for option in ("", ",images=raw"):
        got = bundles(f"kitti:{drive}{option}")
        assert [b.index for b in got] == [0, 1, 2]
        for i, bundle in enumerate(got):
            assert bundle.cloud().points.tobytes() == (drive / f"velodyne_points/data/{i:010d}.bin").read_bytes()
            pixels = decode(bundle.images[0]).pixels
            assert np.array_equal(pixels, cv2.imread(str(drive / f"image_02/data/{i:010d}.png")))
            assert (bundle.images[0].compressed is None) == bool(option)
    assert got[0].stamp_ns == 1317042145_594360375  # 2011-09-26 13:02:25.594360375, as UTC
    assert got[1].images[0].stamp_ns - got[1].stamp_ns == 3_000_000


def test_kitti_calibration_takes_a_point_to_the_pixel_that_p2_says(tmp_path: Path) -> None:
    bundle = bundles(f"kitti:{trees.kitti_raw(tmp_path)}")[0]
    point = np.array([[10.0, 1.0, -0.5]])
    # x = P2 R_rect (R | T) X, as the development kit projects.
    rect = trees.TO_CAMERA @ point[0] + trees.TO_CAMERA_M
    u, v, w = trees.K @ rect + trees.K @ [trees.BASELINE_M, 0, 0]
    own = move(bundle.transforms.lookup("camera_2", "velodyne"), point)[0]
    info = bundle.camera_infos[0]
    assert np.allclose((info.p @ [*own, 1.0])[:2] / (info.p @ [*own, 1.0])[2], (u / w, v / w))
    assert info.frame_id == bundle.images[0].frame_id == "camera_2"
    assert (info.width, info.height) == trees.SIZE
    assert move(bundle.transforms.lookup("base_link", "velodyne"), point)[0, 2] == pytest.approx(1.23)


@pytest.mark.parametrize("kind", TREES)
def test_labels_lie_around_the_points_of_their_objects(kind: str, tmp_path: Path) -> None:
    name = named(kind, tmp_path)
    frames = [b for b in bundles(name) if b.truth is not None]
    assert len(frames) == trees.FRAMES
    for bundle in frames:
        truth = bundle.truth
        assert truth is not None and truth.objects.label.tolist() == ["car"]
        to_labels = bundle.transforms.lookup(truth.objects.frame_id, bundle.cloud().frame_id)
        inside = points_in(truth.objects, move(to_labels, bundle.cloud().xyz))
        # The car has 200 points; rounding to half precision (Argoverse) moves some over its faces.
        assert 185 <= inside[0] <= 215
        to_base = bundle.transforms.lookup("base_link", truth.objects.frame_id)
        x, y, z = move(to_base, truth.objects.center_m)[0]
        assert (x, y, z) == pytest.approx((*trees.CAR[:2], 0.8), abs=0.02)
        assert truth.objects.size_m[0] == pytest.approx(trees.CAR[2], abs=1e-6)
        turned = truth.objects.yaw_rad[0] + np.arctan2(to_base[1, 0], to_base[0, 0])
        assert np.cos(turned - trees.CAR[3]) == pytest.approx(1.0, abs=1e-4)


def test_kitti_labels_end_with_the_view_of_its_camera(tmp_path: Path) -> None:
    truth = bundles(f"kitti:{trees.kitti_raw(tmp_path)}")[0].truth
    assert truth is not None and truth.areas_m is not None
    ((apex, left, right),) = truth.areas_m
    assert apex[0] == pytest.approx(0.3, abs=0.1) and left[0] > 100 and left[1] > 40 and right[1] < -40


@pytest.mark.parametrize("kind", TREES)
def test_every_cloud_stands_on_the_road_of_base_link(kind: str, tmp_path: Path) -> None:
    for bundle in bundles(named(kind, tmp_path)):
        cloud = bundle.cloud()
        road = move(bundle.transforms.lookup("base_link", cloud.frame_id), cloud.xyz)[:400, 2]
        assert abs(np.median(road)) < 0.03
        ahead = move(bundle.transforms.lookup("base_link", cloud.frame_id), cloud.xyz)[:400, 0]
        assert ahead.min() > 2.9 and ahead.max() < 35.1


def test_a_missing_frame_of_kitti_leaves_a_gap_in_time(tmp_path: Path) -> None:
    got = bundles(f"kitti:{trees.kitti_raw(tmp_path, gap=True)}", require=("lidar",))
    assert [b.stamp_ns - got[0].stamp_ns for b in got] == [0, 200_000_000]
    assert [b.truth is not None for b in got] == [True, True]


def test_frames_of_the_object_benchmark_have_each_its_own_calibration(tmp_path: Path) -> None:
    root = trees.kitti_object(tmp_path)
    text = trees.kitti_calibration_text().splitlines()
    tr = [float(v) for v in text[-1].split()[1:]]
    tr[3] += 0.25
    (root / "training/calib/000001.txt").write_text("\n".join([*text[:-1], f"Tr_velo_to_cam: {trees.words(tr)}"]))
    got = bundles(f"kitti:{root},scene=training")
    places = [b.transforms.lookup("camera_2", "velodyne")[0, 3] for b in got]
    assert places == pytest.approx([0.02 + 0.06, 0.27 + 0.06, 0.02 + 0.06])
    assert got[1].stamp_ns - got[0].stamp_ns == 1_000_000_000


def test_odometry_has_stamps_and_poses(tmp_path: Path) -> None:
    got = bundles(f"kitti:{trees.kitti_odometry(tmp_path)}", require=("lidar",))
    assert [b.stamp_ns for b in got] == [1_000_000_000, 1_103_700_000, 1_207_400_000]
    # Its camera looks ahead, so that z of a pose is the vehicle's x.
    assert got[2].transforms.lookup("map", "base_link")[:3, 3] == pytest.approx([3.0, 0.0, 0.0], abs=1e-9)
    assert got[0].truth is None


def test_poses_of_a_raw_drive_lead_from_the_map_to_base_link(tmp_path: Path) -> None:
    got = bundles(f"kitti:{trees.kitti_raw(tmp_path)}")
    first, last = (b.transforms.lookup("map", "base_link") for b in (got[0], got[-1]))
    step_m = 1e-5 * np.pi / 180 * 6_378_137 * np.cos(np.radians(49.0))
    # The stamps of the pose are 1 ms behind those of the cloud: interpolated.
    assert (last - first)[0, 3] == pytest.approx(2 * step_m, rel=0.02)
    assert np.allclose(first[:3, :3], np.eye(3))


def test_poses_are_those_of_base_link_and_not_of_the_imu(tmp_path: Path) -> None:
    day = trees.kitti_raw(tmp_path)
    for i, yaw in enumerate((0.0, 0.0, np.pi / 2)):
        row = [49.0, 8.0, 112.0, 0.0, 0.0, yaw, *[0.0] * 24]
        (day / f"2011_09_26_drive_0009_sync/oxts/data/{i:010d}.txt").write_text(trees.words(row))
    (day / "2011_09_26_drive_0009_sync/oxts/timestamps.txt").write_text(
        "".join(f"2011-09-26 13:02:25.{594360375 + i * 100_000_000:09d}\n" for i in range(3))
    )
    first, *_, last = (b.transforms.lookup("map", "base_link") for b in bundles(f"kitti:{day}"))
    # base_link is 0.81 m ahead and 0.32 m to the right of the IMU, about which the vehicle turns.
    assert (last - first)[:3, 3] == pytest.approx([0.32 - 0.81, 0.81 + 0.32, 0.0], abs=1e-6)
    assert last[:3, :2].T.tolist() == pytest.approx(np.array([[0, 1, 0], [-1, 0, 0]]), abs=1e-9)


def test_nuscenes_gives_key_frames_and_sweeps_and_labels_of_key_frames_alone(tmp_path: Path) -> None:
    got = bundles(f"nuscenes:{trees.nuscenes(tmp_path)}")
    assert len(got) == 2 * trees.FRAMES
    assert [b.truth is not None for b in got] == [True, False] * trees.FRAMES
    assert got[0].cloud().fields == ("x", "y", "z", "intensity", "ring")
    assert got[0].stamp_ns == 1_532_402_927_600_000_000
    assert got[0].camera_infos[0].k.tolist() == trees.K.tolist()
    # A metre along the map's y between key frames.
    moved = got[2].transforms.lookup("map", "base_link") - got[0].transforms.lookup("map", "base_link")
    assert moved[:3, 3] == pytest.approx([0.0, 1.0, 0.0])
    # A point 10 m ahead of the camera lies 11.7 m ahead of base_link.
    ahead = move(got[0].transforms.lookup("base_link", "CAM_FRONT"), np.array([[0.0, 0.0, 10.0]]))
    assert ahead[0] == pytest.approx([11.7, 0.0, 1.5])


def test_nuscenes_without_unpacked_sweeps_gives_key_frames(tmp_path: Path) -> None:
    root = trees.nuscenes(tmp_path)
    (root / "sweeps").rename(root / "elsewhere")
    assert len(bundles(f"nuscenes:{root}")) == trees.FRAMES


def test_a_scene_is_chosen_by_name(tmp_path: Path) -> None:
    root = trees.nuscenes(tmp_path, 2, ("scene-0061", "scene-0103"))
    with pytest.raises(
        UsageError, match=r"has 2 scenes: scene-0061, scene-0103; choose one, such as nuscenes:.*,scene="
    ):
        BagSource(Path(f"nuscenes:{root}"))
    with pytest.raises(UsageError, match="no scene 'scene-1'; there is scene-0061, scene-0103"):
        BagSource(Path(f"nuscenes:{root},scene=scene-1"))
    second = bundles(f"nuscenes:{root},scene=scene-0103")
    assert len(second) == 4 and second[0].stamp_ns == 1_532_402_987_600_000_000
    assert recordings(f"nuscenes:{root}") == [f"nuscenes:{root},scene={s}" for s in ("scene-0061", "scene-0103")]
    own = recording_files(f"nuscenes:{root},scene=scene-0103")
    assert any(p.suffix == ".json" for p in own) and not any("n0__" in p.name for p in own)


def test_argoverse_clouds_stand_in_the_upper_lidars_frame(tmp_path: Path) -> None:
    got = bundles(f"argoverse2:{trees.argoverse2(tmp_path)}")
    cloud = got[0].cloud()
    assert cloud.frame_id == "up_lidar" and cloud.stamp_ns == 315968867659956000
    assert cloud.fields == ("x", "y", "z", "intensity", "laser_number", "offset_ns")
    back = move(got[0].transforms.lookup("egovehicle", "up_lidar"), cloud.xyz)
    stored = trees.cloud(0, 0.33)[:, :3].astype(np.float16)
    assert np.array_equal(back.astype(np.float16), stored)
    # base_link is on the ground, the data set's frame on the axle; the city's z is that of the axle.
    assert got[0].transforms.lookup("base_link", "egovehicle")[2, 3] == pytest.approx(0.33)
    higher = bundles(f"argoverse2:{tmp_path},height=0.26")[0]
    assert higher.transforms.lookup("base_link", "egovehicle")[2, 3] == pytest.approx(0.26)


def test_argoverse_labels_what_is_near_the_drivable_area(tmp_path: Path) -> None:
    root = trees.argoverse2(tmp_path)
    truth = bundles(f"argoverse2:{root}")[1].truth
    assert truth is not None and truth.areas_m is not None
    outline = np.array(truth.areas_m[0])
    # Of 0 … 40 by -10 … 10 m in the city at first, 5 m more on every side; the vehicle has moved on by a metre.
    assert outline.min(axis=0) == pytest.approx([-6.0, -15.0]) and outline.max(axis=0) == pytest.approx([44.0, 15.0])
    for path in root.rglob("log_map_archive*"):
        path.unlink()
    bare = bundles(f"argoverse2:{root}")[1].truth
    assert bare is not None and bare.areas_m == ()


def test_waymo_range_images_become_points_without_the_vehicles_motion(tmp_path: Path) -> None:
    got = bundles(f"waymo:{trees.waymo(tmp_path)}")
    assert len(got) == trees.FRAMES
    cloud = got[0].cloud()
    assert len(cloud) == 2 and cloud.points["ring"].tolist() == [0, 1]
    assert cloud.points["intensity"].tolist() == pytest.approx([0.5, 0.1])
    vehicle = move(got[0].transforms.lookup("base_link", "lidar_top"), cloud.xyz)
    # Row 0 looks up by 0.1 rad. Column 1 of 4 looks at azimuth +45° about the vehicle's own axes: the yaw of the LiDAR
    # is taken off the azimuth, and its frame is turned by it.
    expected = [10 * np.cos(0.1) * np.sqrt(0.5) + 1.4 - 0.5, 10 * np.cos(0.1) * np.sqrt(0.5), 10 * np.sin(0.1) + 2.1]
    assert vehicle[0] == pytest.approx(expected, abs=1e-4)
    below = [20 * np.cos(0.2) * np.sqrt(0.5) + 1.4 - 0.5, -20 * np.cos(0.2) * np.sqrt(0.5), 2.1 - 20 * np.sin(0.2)]
    assert vehicle[1] == pytest.approx(below, abs=1e-4)
    truth = got[0].truth
    assert truth is not None and truth.objects.center_m[0] == pytest.approx([12.0, 1.5, 0.8])
    ahead = move(got[0].transforms.lookup("base_link", "camera_front"), np.array([[0.0, 0.0, 10.0]]))
    assert ahead[0] == pytest.approx([11.5, 0.0, 2.0])
    assert got[0].images[0].encoding == "jpeg" and got[0].camera_infos[0].d.tolist() == [0.1, 0, 0, 0, 0]


def test_waymo_of_the_old_format_is_refused_with_what_to_load(tmp_path: Path) -> None:
    (tmp_path / "segment.tfrecord").touch()
    with pytest.raises(UsageError, match=r"holds .tfrecord \(format 1\), which is not read; expected format 2"):
        BagSource(Path(f"waymo:{tmp_path}"))


@pytest.mark.parametrize("suffix", [".pcd", ".ply", ".npy", ".npz", ".bin"])
def test_a_folder_keeps_every_field_of_its_clouds(suffix: str, tmp_path: Path) -> None:
    got = bundles(f"folder:{trees.folder(tmp_path, suffix)}")
    assert len(got) == trees.FRAMES
    points = got[1].cloud().points
    assert np.array_equal(got[1].cloud().xyz, trees.cloud(1, 1.8)[:, :3])
    assert np.array_equal(points["intensity"], trees.cloud(1, 1.8)[:, 3])
    if suffix != ".bin":
        assert points["ring"].tolist() == [i % 64 for i in range(600)] and points["time"][-1] == 0.1
        assert points.dtype["ring"] == np.uint16
    assert [b.stamp_ns for b in got] == [1317013200_000_000_000 + i * 100_000_000 for i in range(3)]
    assert got[0].transforms.lookup("base_link", "lidar")[2, 3] == pytest.approx(1.8)
    assert got[0].camera_infos[0].k.tolist() == trees.K.tolist()


@pytest.mark.parametrize(
    ("names", "stamps"),
    [
        (("000007.npy", "000008.npy", "000010.npy"), (1.7, 1.8, 2.0)),
        (("a_2.npy", "a_10.npy", "a_1.npy"), (1.1, 1.2, 2.0)),
        (("1317013200123456789.npy", "1317013200223456789.npy"), (1317013200.123456789, 1317013200.223456789)),
        (("1317013200123456.npy", "1317013200223456.npy"), (1317013200.123456, 1317013200.223456)),
        (("1317013200123.npy", "1317013200223.npy"), (1317013200.123, 1317013200.223)),
        (("x_1317013200.5.npy", "x_1317013201.npy"), (1317013200.5, 1317013201.0)),
        (("left.npy", "right.npy"), (1.0, 1.1)),
    ],
)
def test_stamps_of_a_folder_come_from_names_or_from_its_rate(
    names: tuple[str, ...], stamps: tuple[float, ...], tmp_path: Path
) -> None:
    for name in names:
        np.save(tmp_path / name, trees.cloud(0, 1.8))
    with BagSource(Path(f"folder:{tmp_path}")) as source:
        assert [b.stamp_ns / 1e9 for b in source] == pytest.approx(stamps, rel=1e-12)


def test_rate_and_columns_of_a_folder_are_options(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"{i}.bin").write_bytes(trees.cloud(i, 1.8, 5).tobytes())
    got = bundles(f"folder:{tmp_path},rate=20,columns=5", require=("lidar",))
    assert got[1].stamp_ns - got[0].stamp_ns == 50_000_000
    assert got[0].cloud().fields == ("x", "y", "z", "intensity", "ring")
    with pytest.raises(InfrastructureError, match=r"0.bin: got 12000 bytes, expected a multiple of 28"):
        bundles(f"folder:{tmp_path},columns=7", require=("lidar",))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("kitti:/nowhere", r"kitti:/nowhere: there is no directory /nowhere"),
        ("kitti:", r"kitti:: no directory; expected DATASET:DIR"),
        ("kitti:/,scen=1", r"got ',scen=1' in /,scen=1, expected scene=….*did you mean 'scene'"),
        ("folder:/,rate=fast", r"got rate=fast, expected a number"),
        ("nuscenes:/,images=grey", r"got images=grey, expected stored or raw"),
        ("kiti:/data", r"did you mean 'kitti:/data'\?"),
    ],
)
def test_names_that_cannot_be_used_are_refused(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        BagSource(Path(text))


@pytest.mark.parametrize("dataset", ["kitti", "nuscenes", "argoverse2", "waymo", "folder"])
def test_a_folder_of_something_else_is_refused_with_what_was_expected(dataset: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        UsageError, match="expected .*" + {"nuscenes": "scene.json", "folder": "clouds"}.get(dataset, "lidar|velodyne")
    ):
        BagSource(Path(f"{dataset}:{tmp_path}"))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize(
    ("file", "spoil", "error"),
    [
        (
            "2011_09_26_drive_0009_sync/velodyne_points/data/0000000001.bin",
            _cut,
            r"0000000001.bin: got 9593 bytes, expected a multiple of 16 \(x y z intensity",
        ),
        (
            "2011_09_26_drive_0009_sync/velodyne_points/timestamps.txt",
            Path.unlink,
            "timestamps.txt; expected KITTI's time stamps",
        ),
        (
            "2011_09_26_drive_0009_sync/velodyne_points/timestamps.txt",
            lambda p: p.write_text("2011\n" * 3),
            r"got '2011', expected a time such as",
        ),
        (
            "2011_09_26_drive_0009_sync/velodyne_points/timestamps.txt",
            lambda p: p.write_text(p.read_text()[:30]),
            r"has 1 lines, expected one for 0000000002.bin",
        ),
        ("calib_velo_to_cam.txt", Path.unlink, "no calib_velo_to_cam.txt in it or in"),
        ("calib_velo_to_cam.txt", lambda p: p.write_text("R: 1 2 3\n"), "got 3 under R, expected 9 numbers"),
        ("calib_cam_to_cam.txt", lambda p: p.write_text("x\n"), "got no such row, expected 9 numbers under R_rect_00"),
        ("2011_09_26_drive_0009_sync/tracklet_labels.xml", _cut, "is no file of KITTI's tracklets"),
        (
            "2011_09_26_drive_0009_sync/oxts/data/0000000000.txt",
            lambda p: p.write_text("1 2"),
            "got 2 numbers, expected 30",
        ),
    ],
)
def test_damaged_and_missing_files_of_kitti_are_named(
    file: str, spoil: Callable[[Path], object], error: str, tmp_path: Path
) -> None:
    day = trees.kitti_raw(tmp_path)
    spoil(day / file)
    with pytest.raises((UsageError, InfrastructureError), match=error):
        bundles(f"kitti:{day}")


@pytest.mark.parametrize(
    ("file", "spoil", "error"),
    [
        ("v1.0-mini/sample_data.json", _cut, "is no whole list of objects"),
        ("v1.0-mini/ego_pose.json", lambda p: p.write_text("[]"), r"lacks 6 of 6 rows"),
        ("v1.0-mini/sensor.json", Path.unlink, "no table .*sensor.json"),
        (
            "samples/LIDAR_TOP/n0__LIDAR_TOP__1532402928100000.pcd.bin",
            Path.unlink,
            r"1 of 6 files of LIDAR_TOP are missing, such as samples/LIDAR_TOP/n0__LIDAR_TOP__1532402928100000",
        ),
        (
            "samples/LIDAR_TOP/n0__LIDAR_TOP__1532402928100000.pcd.bin",
            _cut,
            r"got 11993 bytes, expected a multiple of 20",
        ),
    ],
)
def test_damaged_and_missing_files_of_nuscenes_are_named(
    file: str, spoil: Callable[[Path], object], error: str, tmp_path: Path
) -> None:
    root = trees.nuscenes(tmp_path)
    spoil(root / file)
    with pytest.raises((UsageError, InfrastructureError), match=error):
        bundles(f"nuscenes:{root}")


@pytest.mark.parametrize("suffix", [".pcd", ".ply", ".npy", ".npz"])
def test_a_cut_cloud_is_no_cloud_without_points(suffix: str, tmp_path: Path) -> None:
    home = trees.folder(tmp_path, suffix)
    path = home / "clouds" / f"1317013200.1{suffix}"
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(InfrastructureError, match=f"1317013200.1{suffix}"):
        bundles(f"folder:{home}", require=("lidar",))


def test_frames_before_a_damaged_file_are_read(tmp_path: Path) -> None:
    day = trees.kitti_raw(tmp_path)
    _cut(day / "2011_09_26_drive_0009_sync/velodyne_points/data/0000000002.bin")
    got = []
    with pytest.raises(InfrastructureError, match="cannot be read after"), BagSource(Path(f"kitti:{day}")) as source:
        got += source
    # The last readable bundle is complete only at the end of what can be read.
    with BagSource(Path(f"kitti:{day}")) as source:
        found, iterator = [], source.readings()
        with pytest.raises(InfrastructureError):
            while True:
                found.append(next(iterator))
    assert len(found) == 2


def test_pyarrow_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = trees.argoverse2(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.feather", None)
    with pytest.raises(UsageError, match=r"needs PyArrow; type: pip install 'mt_nodes\[datasets\]'"):
        BagSource(Path(f"argoverse2:{root}"))


def test_names_are_told_from_paths_and_moved(tmp_path: Path) -> None:
    assert is_dataset("kitti:/x") and is_dataset(Path("folder:y"))
    assert not is_dataset("/x/kitti:/y") and not is_dataset("s3://kitti") and not is_dataset("kitti://host/x")
    assert located("kitti:a/../b,scene=1", Path("/data")) == "kitti:/data/b,scene=1"
    assert located("c", tmp_path) == str(tmp_path / "c")
    assert exists(f"kitti:{tmp_path}") and not exists("kitti:/nowhere") and exists(str(tmp_path))
    with_comma = tmp_path / "a,b"
    with_comma.mkdir()
    name = DatasetName.parse(f"kitti:{with_comma},scene=0001")
    assert name.path == with_comma and str(name) == f"kitti:{with_comma},scene=0001"


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    day = trees.kitti_raw(tmp_path, 12)
    last = day / "2011_09_26_drive_0009_sync/velodyne_points/data/0000000011.bin"
    last.write_bytes(struct.pack("<f", 1.0))
    with BagSource(Path(f"kitti:{day}"), limit=2) as source:
        assert len(list(source)) == 2
