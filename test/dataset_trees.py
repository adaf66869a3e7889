# SPDX-License-Identifier: Apache-2.0
"""Writes tiny data sets, as their publishers describe the formats; nothing of them is copied.

KITTI: readme files of the raw and object development kits (https://www.cvlibs.net/datasets/kitti). nuScenes: schema
(https://www.nuscenes.org/nuscenes, "Data format"). Argoverse 2: user guide, "Sensor Dataset"
(https://argoverse.github.io/user-guide). Waymo: components of format 2 of its development kit (v2/perception).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from mt_nodes.data.rotations import quaternion_of_rpy

FRAMES = 3
#: A car of the labels: x, y ahead and to the left of ``base_link``, size, yaw.
CAR = (12.0, 1.5, (4.2, 1.8, 1.6), 0.3)
SIZE = (32, 24)
#: KITTI's rotation from the LiDAR to the camera, without its small angles: x right, y down, z ahead.
TO_CAMERA = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
TO_CAMERA_M = np.array([0.02, -0.06, -0.3])
K = np.array([[30.0, 0.0, 15.5], [0.0, 30.0, 11.5], [0.0, 0.0, 1.0]])
BASELINE_M = 0.06


def cloud(seed: int, height_m: float, columns: int = 4) -> np.ndarray[Any, Any]:
    """Points (N, columns) of float32 in a LiDAR's frame ``height_m`` above the ground: road, and one car."""
    rng = np.random.default_rng(seed)
    road = np.column_stack([rng.uniform(3, 35, 400), rng.uniform(-8, 8, 400), rng.normal(0, 0.02, 400) - height_m])
    x, y, (length, width, tall), yaw = CAR
    own = rng.uniform(-0.5, 0.5, (200, 3)) * (length, width, tall)
    c, s = np.cos(yaw), np.sin(yaw)
    car = np.column_stack([c * own[:, 0] - s * own[:, 1] + x, s * own[:, 0] + c * own[:, 1] + y, own[:, 2]])
    car[:, 2] += tall / 2 - height_m
    xyz = np.concatenate([road, car])
    rest = rng.uniform(0, 1, (len(xyz), columns - 3))
    return np.column_stack([xyz, rest]).astype(np.float32)


def picture(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (SIZE[1], SIZE[0], 3)).astype(np.uint8)
    assert cv2.imwrite(str(path), pixels)


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def words(values: Any) -> str:
    return " ".join(f"{v:.12g}" for v in np.ravel(values))


def kitti_raw(root: Path, frames: int = FRAMES, gap: bool = False) -> Path:
    """A day with one drive; returns the day. With ``gap`` it lacks the cloud of frame 1, as some real ones do."""
    day = root / "2011_09_26"
    drive = day / "2011_09_26_drive_0009_sync"
    for i in range(frames):
        if not (gap and i == 1):
            write(drive / f"velodyne_points/data/{i:010d}.bin", cloud(i, 1.73).tobytes())
        picture(drive / f"image_02/data/{i:010d}.png", i)
        oxts = [49.0, 8.0 + i * 1e-5, 112.0, 0.0, 0.0, 0.0, *[0.0] * 24]
        write(drive / f"oxts/data/{i:010d}.txt", words(oxts) + "\n")
    for sensor, late_ns in (("velodyne_points", 0), ("image_02", 3_000_000), ("oxts", 1_000_000)):
        times = "".join(f"2011-09-26 13:02:25.{594360375 + i * 100_000_000 + late_ns:09d}\n" for i in range(frames))
        write(drive / sensor / "timestamps.txt", times)
    p = np.column_stack([K, K @ [BASELINE_M, 0.0, 0.0]])
    rect = f"S_rect_02: {words(SIZE)}\nR_rect_00: {words(np.eye(3))}\nP_rect_02: {words(p)}\n"
    write(day / "calib_cam_to_cam.txt", "calib_time: 09-Jan-2012 13:57:47\n" + rect)
    write(day / "calib_velo_to_cam.txt", f"R: {words(TO_CAMERA)}\nT: {words(TO_CAMERA_M)}\n")
    write(day / "calib_imu_to_velo.txt", f"R: {words(np.eye(3))}\nT: -0.81 0.32 -0.8\n")
    x, y, (length, width, tall), yaw = CAR
    pose = f"<item><tx>{x}</tx><ty>{y}</ty><tz>-1.73</tz><rx>0</rx><ry>0</ry><rz>{yaw}</rz></item>"
    item = f"<objectType>Car</objectType><h>{tall}</h><w>{width}</w><l>{length}</l><first_frame>0</first_frame>"
    poses = f"<poses><count>{frames}</count>{pose * frames}</poses>"
    xml = f"<boost_serialization><tracklets><item>{item}{poses}</item></tracklets></boost_serialization>"
    write(drive / "tracklet_labels.xml", xml)
    return day


def kitti_label_line(label: str = "Car") -> str:
    """The car as a line of ``label_2``: in the camera's frame, its lower face, turned about y."""
    x, y, (length, width, tall), yaw = CAR
    place = TO_CAMERA @ [x, y, -1.73] + TO_CAMERA_M
    turn = -yaw - np.pi / 2
    return f"{label} 0.00 0 0.0 1 2 3 4 {words((tall, width, length))} {words(place)} {turn:.12g}"


def kitti_calibration_text(colons: bool = True) -> str:
    p = np.column_stack([K, K @ [BASELINE_M, 0.0, 0.0]])
    tr = np.column_stack([TO_CAMERA, TO_CAMERA_M])
    rows = {f"P{i}": p for i in range(4)} | {"R0_rect": np.eye(3), "Tr_velo_to_cam": tr}
    return "".join(f"{name}{':' if colons else ''} {words(values)}\n" for name, values in rows.items())


def kitti_object(root: Path, frames: int = FRAMES) -> Path:
    home = root / "training"
    for i in range(frames):
        write(home / f"velodyne/{i:06d}.bin", cloud(i, 1.73).tobytes())
        picture(home / f"image_2/{i:06d}.png", i)
        write(home / f"calib/{i:06d}.txt", kitti_calibration_text())
        dont_care = "DontCare -1 -1 -10 1 2 3 4 -1 -1 -1 -1000 -1000 -1000 -10"
        write(home / f"label_2/{i:06d}.txt", f"{kitti_label_line()}\n{dont_care}\n")
    return root


def kitti_tracking(root: Path, frames: int = FRAMES) -> Path:
    home = root / "training"
    for i in range(frames):
        write(home / f"velodyne/0003/{i:06d}.bin", cloud(i, 1.73).tobytes())
        picture(home / f"image_02/0003/{i:06d}.png", i)
    write(home / "calib/0003.txt", kitti_calibration_text(colons=False))
    write(home / "label_02/0003.txt", "".join(f"{i} 7 {kitti_label_line()}\n" for i in range(frames)))
    return root


def kitti_odometry(root: Path, frames: int = FRAMES) -> Path:
    home = root / "sequences" / "04"
    for i in range(frames):
        write(home / f"velodyne/{i:06d}.bin", cloud(i, 1.73).tobytes())
    write(home / "times.txt", "".join(f"{i * 0.1037:.6e}\n" for i in range(frames)))
    tr = np.column_stack([TO_CAMERA, TO_CAMERA_M])
    p = np.column_stack([K, np.zeros(3)])
    write(home / "calib.txt", "".join(f"P{i}: {words(p)}\n" for i in range(4)) + f"Tr: {words(tr)}\n")
    poses = [np.column_stack([np.eye(3), [0.0, 0.0, 1.5 * i]]) for i in range(frames)]
    write(root / "poses" / "04.txt", "".join(words(pose) + "\n" for pose in poses))
    return root


def nuscenes(root: Path, frames: int = FRAMES, scenes: Sequence[str] = ("scene-0061",), *, radar: bool = False) -> Path:
    """``v1.0-mini``; each scene has one sweep behind every key frame of the LiDAR, a front camera, perhaps a radar."""
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("scene", "sample", "sample_data", "ego_pose")}
    tables["sensor"] = [
        {"token": "s0", "channel": "LIDAR_TOP", "modality": "lidar"},
        {"token": "s1", "channel": "CAM_FRONT", "modality": "camera"},
        {"token": "s2", "channel": "RADAR_FRONT", "modality": "radar"},
    ]
    quarter = [np.sqrt(0.5), 0.0, 0.0, -np.sqrt(0.5)]  # w x y z: the LiDAR's y looks ahead
    optical = [0.5, -0.5, 0.5, -0.5]
    tables["calibrated_sensor"] = [
        {
            "token": "c0",
            "sensor_token": "s0",
            "translation": [0.9, 0.0, 1.84],
            "rotation": quarter,
            "camera_intrinsic": [],
        },
        {
            "token": "c1",
            "sensor_token": "s1",
            "translation": [1.7, 0.0, 1.5],
            "rotation": optical,
            "camera_intrinsic": K.tolist(),
        },
        {
            "token": "c2",
            "sensor_token": "s2",
            "translation": [3.4, 0, 0.5],
            "rotation": [1, 0, 0, 0],
            "camera_intrinsic": [],
        },
    ]
    tables["category"] = [{"token": "k0", "name": "vehicle.car", "description": "{a car}"[1:-1]}]
    tables["instance"], tables["sample_annotation"] = [], []
    for number, scene in enumerate(scenes):
        _add_scene(root, tables, scene, number, frames, radar)
    for name, rows in tables.items():
        write(root / "v1.0-mini" / f"{name}.json", json.dumps(rows, indent=0))
    return root


def _detections() -> bytes:
    """A binary ``.pcd`` with the fields of nuScenes: two detections straight ahead."""
    names = "x y z dyn_prop id rcs vx vy vx_comp vy_comp is_quality_valid ambig_state x_rms y_rms invalid_state pdh0"
    sizes, kinds = "4 4 4 1 2 4 4 4 4 4 1 1 1 1 1 1", "F F F I I F F F F F I I I I I I"
    columns = zip(names.split(), kinds.lower().split(), sizes.split(), strict=True)
    points = np.zeros(2, np.dtype([(name, f"<{kind}{size}") for name, kind, size in columns]))
    points["x"], points["vx"], points["rcs"], points["id"] = [10.0, 20.0], [-3.0, 2.0], [5.0, 12.0], [0, 1]
    head = f"VERSION 0.7\nFIELDS {names}\nSIZE {sizes}\nTYPE {kinds}\nWIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA binary\n"
    return head.encode() + points.tobytes()


def _add_scene(
    root: Path, tables: dict[str, list[dict[str, Any]]], scene: str, number: int, frames: int, radar: bool
) -> None:
    tables["scene"].append({"token": f"t{number}", "name": scene, "nbr_samples": frames})
    tables["instance"].append({"token": f"i{number}", "category_token": "k0"})
    w, x, y, z = (*quaternion_of_rpy(0, 0, np.pi / 2)[3:], *quaternion_of_rpy(0, 0, np.pi / 2)[:3])
    for i in range(frames):
        start_us, sample = 1_532_402_927_600_000 + i * 500_000 + number * 60_000_000, f"sample{number}_{i}"
        tables["sample"].append({"token": sample, "timestamp": start_us, "scene_token": f"t{number}"})
        for channel, mount, late_us, key, suffix in (
            ("LIDAR_TOP", "c0", 0, True, ".pcd.bin"),
            ("LIDAR_TOP", "c0", 50_000, False, ".pcd.bin"),
            ("CAM_FRONT", "c1", 12_000, True, ".jpg"),
            ("RADAR_FRONT", "c2", 5_000, True, ".pcd"),
        ):
            stamp_us = start_us + late_us
            token = f"d{number}_{channel}_{stamp_us}"
            file = f"{'samples' if key else 'sweeps'}/{channel}/n{number}__{channel}__{stamp_us}{suffix}"
            row = {"token": token, "sample_token": sample, "ego_pose_token": token, "calibrated_sensor_token": mount}
            row |= {"timestamp": stamp_us, "is_key_frame": key, "filename": file, "width": SIZE[0], "height": SIZE[1]}
            tables["sample_data"].append(row)
            # The vehicle drives along the map's y, a metre every half second.
            pose = {
                "token": token,
                "timestamp": stamp_us,
                "translation": [400.0, 1100.0 + i, 0.0],
                "rotation": [w, x, y, z],
            }
            tables["ego_pose"].append(pose)
            if channel == "LIDAR_TOP":
                points = cloud(i, 1.84, 5)
                # From base_link's axes to the LiDAR's: its x looks to the right, its y ahead.
                points[:, :2] = np.column_stack([-points[:, 1], points[:, 0] - 0.9])
                write(root / file, points.tobytes())
            elif channel == "CAM_FRONT":
                picture(root / file, i)
            elif radar:
                write(root / file, _detections())
        ahead, left, (length, width, tall), yaw = CAR
        quaternion = quaternion_of_rpy(0, 0, np.pi / 2 + yaw)
        box = {"token": f"a{number}_{i}", "sample_token": sample, "instance_token": f"i{number}"}
        box |= {"translation": [400.0 - left, 1100.0 + i + ahead, tall / 2], "size": [width, length, tall]}
        box |= {"rotation": [quaternion[3], *quaternion[:3]], "num_lidar_pts": 200, "num_radar_pts": 0}
        tables["sample_annotation"].append(box)


def argoverse2(
    root: Path, frames: int = FRAMES, logs: Sequence[str] = ("01bb304d-7bd8-35f8-bbef-7086b688e35e",)
) -> Path:
    import pyarrow
    from pyarrow import feather

    def table(path: Path, **columns: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        feather.write_feather(pyarrow.table(columns), str(path), compression="uncompressed")

    for log in (root / name for name in logs):
        names, turns = ["ring_front_center", "up_lidar"], [(0.5, -0.5, 0.5, -0.5), (0.999996, 0.0, 0.0, -0.002848)]
        unit = [np.array(q) / np.linalg.norm(q) for q in turns]
        poses = {f"q{axis}": [q[i] for q in unit] for i, axis in enumerate("wxyz")}
        table(
            log / "calibration/egovehicle_SE3_sensor.feather",
            **{"sensor_name": names, **poses, "tx_m": [1.63, 1.35], "ty_m": [0.0, 0.0], "tz_m": [1.43, 1.64]},
        )
        intrinsics = {"fx_px": 30.0, "fy_px": 30.0, "cx_px": 15.5, "cy_px": 11.5, "k1": -0.2, "k2": -0.2, "k3": 0.3}
        sizes = {"height_px": SIZE[1], "width_px": SIZE[0]}
        table(
            log / "calibration/intrinsics.feather",
            sensor_name=names[:1],
            **{k: [v] for k, v in (intrinsics | sizes).items()},
        )
        stamps = [315968867659956000 + i * 100_000_000 for i in range(frames)]
        still = {"qw": [1.0] * frames, "qx": [0.0] * frames, "qy": [0.0] * frames, "qz": [0.0] * frames}
        table(
            log / "city_SE3_egovehicle.feather",
            **{"timestamp_ns": stamps, **still, "tx_m": [747.0 + i for i in range(frames)]},
            ty_m=[1275.0] * frames,
            tz_m=[-24.0] * frames,
        )
        for i, stamp in enumerate(stamps):
            points = cloud(i, 0.33)
            table(
                log / f"sensors/lidar/{stamp}.feather",
                **{axis: points[:, k].astype(np.float16) for k, axis in enumerate("xyz")},
                intensity=(points[:, 3] * 255).astype(np.uint8),
                laser_number=(np.arange(len(points)) % 64).astype(np.uint8),
                offset_ns=np.arange(len(points), dtype=np.int32) * 1000,
            )
            picture(log / f"sensors/cameras/ring_front_center/{stamp + 5_000_000}.jpg", i)
        corners = [(747.0, 1265.0), (787.0, 1265.0), (787.0, 1285.0), (747.0, 1285.0)]
        boundary = [{"x": x, "y": y, "z": -24.3} for x, y in corners]
        areas = {"drivable_areas": {"1": {"id": 1, "area_boundary": boundary}}, "lane_segments": {}}
        write(log / "map" / f"log_map_archive_{log.name}____PIT_city_1.json", json.dumps(areas))
        x, y, (length, width, tall), yaw = CAR
        rows = {"timestamp_ns": stamps, "track_uuid": ["t"] * frames, "category": ["REGULAR_VEHICLE"] * frames}
        rows |= {"length_m": [length] * frames, "width_m": [width] * frames, "height_m": [tall] * frames}
        rows |= {
            "qw": [np.cos(yaw / 2)] * frames,
            "qx": [0.0] * frames,
            "qy": [0.0] * frames,
            "qz": [np.sin(yaw / 2)] * frames,
        }
        rows |= {"tx_m": [x] * frames, "ty_m": [y] * frames, "tz_m": [tall / 2 - 0.33] * frames}
        table(log / "annotations.feather", **rows, num_interior_pts=np.array([200] * frames, dtype=np.int64))
    return root


def waymo(root: Path, frames: int = FRAMES, segment: str = "10023947602400723454_1120_000_1140_000") -> Path:
    """A segment whose range image shows a wall: row 0 looks up, column 1 of 4 to the left of the LiDAR's own x."""
    import pyarrow
    from pyarrow import parquet

    def table(component: str, columns: dict[str, Any]) -> None:
        path = root / component / f"{segment}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.table(columns), str(path))

    stamps = [1_550_083_467_346_370 + i * 100_000 for i in range(frames)]
    extrinsic = np.eye(4)
    extrinsic[:2, :2] = [[0.0, -1.0], [1.0, 0.0]]  # the LiDAR's x looks to the left of the vehicle
    extrinsic[:3, 3] = [1.4, 0.0, 2.1]
    image = np.full((2, 4, 4), -1.0, np.float32)
    image[0, 1] = [10.0, 0.5, 0.25, -1.0]
    image[1, 2] = [20.0, 0.1, 0.0, -1.0]
    lidar, model = "[LiDARComponent].range_image_return1", "[LiDARCalibrationComponent]"
    keys = {"key.segment_context_name": [segment] * frames, "key.frame_timestamp_micros": stamps}
    table(
        "lidar",
        {
            **keys,
            "key.laser_name": [1] * frames,
            f"{lidar}.values": [image.ravel().tolist()] * frames,
            f"{lidar}.shape": [[2, 4, 4]] * frames,
        },
    )
    table(
        "lidar_calibration",
        {
            "key.segment_context_name": [segment],
            "key.laser_name": [1],
            f"{model}.extrinsic.transform": [extrinsic.ravel().tolist()],
            f"{model}.beam_inclination.min": [-0.3],
            f"{model}.beam_inclination.max": [0.1],
            f"{model}.beam_inclination.values": [[-0.2, 0.1]],
        },
    )
    world = [np.eye(4) for _ in stamps]
    for i, pose in enumerate(world):
        pose[:3, 3] = [100.0 + i, 5.0, 1.0]
    table(
        "vehicle_pose",
        {**keys, "[VehiclePoseComponent].world_from_vehicle.transform": [p.ravel().tolist() for p in world]},
    )
    # Every pixel was measured half a metre before the place of the frame.
    pixel = np.zeros((2, 4, 6), np.float32)
    poses = [np.concatenate([pixel[..., :3], np.full((2, 4, 3), p[:3, 3] - [0.5, 0, 0])], axis=-1) for p in world]
    named = "[LiDARPoseComponent].range_image_return1"
    table(
        "lidar_pose",
        {
            **keys,
            "key.laser_name": [1] * frames,
            f"{named}.values": [p.astype(np.float32).ravel().tolist() for p in poses],
            f"{named}.shape": [[2, 4, 6]] * frames,
        },
    )
    box = "[LiDARBoxComponent]"
    x, y, size, yaw = CAR
    numbers = dict(zip(("center.x", "center.y", "center.z"), (x, y, size[2] / 2), strict=True))
    numbers |= dict(zip(("size.x", "size.y", "size.z"), size, strict=True)) | {"heading": yaw}
    rows = {f"{box}.box.{name}": [value] * frames for name, value in numbers.items()}
    rows |= {f"{box}.type": [1] * frames, f"{box}.num_lidar_points_in_box": [200] * frames}
    table("lidar_box", {**keys, "key.laser_object_id": ["o"] * frames, **rows})
    encoded = bytes(cv2.imencode(".jpg", np.zeros((SIZE[1], SIZE[0], 3), np.uint8))[1])
    table("camera_image", {**keys, "key.camera_name": [1] * frames, "[CameraImageComponent].image": [encoded] * frames})
    camera = "[CameraCalibrationComponent]"
    intrinsic = {
        "f_u": 30.0,
        "f_v": 30.0,
        "c_u": 15.5,
        "c_v": 11.5,
        "k1": 0.1,
        "k2": 0.0,
        "p1": 0.0,
        "p2": 0.0,
        "k3": 0.0,
    }
    mount = np.eye(4)
    mount[:3, 3] = [1.5, 0.0, 2.0]
    table(
        "camera_calibration",
        {
            "key.camera_name": [1],
            **{f"{camera}.intrinsic.{name}": [value] for name, value in intrinsic.items()},
            f"{camera}.extrinsic.transform": [mount.ravel().tolist()],
            f"{camera}.width": [SIZE[0]],
            f"{camera}.height": [SIZE[1]],
        },
    )
    return root


def folder(root: Path, suffix: str = ".pcd", frames: int = FRAMES) -> Path:
    """Clouds of one ending, pictures of a camera ``front``, and ``calib.yaml``."""
    from mt_nodes.data.datasets.point_files import points_bytes

    dtype = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f8")])
    for i in range(frames):
        rows = cloud(i, 1.8)
        points = np.zeros(len(rows), dtype if suffix != ".bin" else dtype[["x", "y", "z", "intensity"]])
        for k, name in enumerate(("x", "y", "z", "intensity")):
            points[name] = rows[:, k]
        if "ring" in (points.dtype.names or ()):
            points["ring"], points["time"] = np.arange(len(points)) % 64, np.linspace(0, 0.1, len(points))
        write(root / f"clouds/{1317013200 + i // 10}.{i % 10}{suffix}", points_bytes(points, suffix))
        picture(root / f"images/front/{1317013200 + i // 10}.{i % 10}.jpg", i)
    calibration = (
        "transforms:\n"
        "- {parent: base_link, child: lidar, translation_m: [0.0, 0.0, 1.8], rpy_rad: [0, 0, 0]}\n"
        "cameras:\n  front: {k: [[30, 0, 15.5], [0, 30, 11.5], [0, 0, 1]]}\n"
    )
    write(root / "calib.yaml", calibration)
    return root
