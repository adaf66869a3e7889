# SPDX-License-Identifier: Apache-2.0
"""Writes tiny drives with what their drivers did, as their publishers describe the formats; nothing of them is copied.

A2D2: ``README-SensorFusion.txt``, and the schemata of https://github.com/ros-box/a2d2_to_ros. Udacity's challenge:
``script/bagdump.py`` of https://github.com/rwightman/udacity-driving-reader; its simulator: ``CarController.cs`` of
https://github.com/udacity/self-driving-car-sim.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dataset_trees as trees
import numpy as np

FRAMES = 4
A2D2_START_US = 1_554_121_595_035_037
UDACITY_START_NS = 1_479_424_215_880_976_321
#: Where the front camera is: looks ahead and 0.1 rad down; the side camera looks to the left.
FRONT = {"origin": [1.7, 0.0, 0.9], "x-axis": [np.cos(0.1), 0.0, -np.sin(0.1)], "y-axis": [0.0, 1.0, 0.0]}
SIDE = {"origin": [0.5, 0.6, 0.9], "x-axis": [0.0, 2.0, 0.0], "y-axis": [-1.0, 0.0, 0.0]}
POINTS = np.array([[10.0, 1.0, -0.5], [20.0, -2.0, 0.25], [5.0, 0.0, 0.0]])


def a2d2(root: Path, frames: int = FRAMES, *, clouds: bool = True) -> Path:
    """One scene of two cameras, the front one with a cloud a picture, and bus signals; returns the folder above it."""
    camera = {"CamMatrix": (2 * trees.K).tolist(), "CamMatrixOriginal": trees.K.tolist(), "Resolution": [*trees.SIZE]}
    camera["tstamp_delay"] = 0
    front = {**camera, "view": FRONT, "Lens": "Telecam", "Distortion": [[-0.2, 0.1, 0.0, 0.0, 0.01]]}
    side = {**camera, "view": SIDE, "Lens": "Fisheye", "Distortion": [[-0.03, 0.001, 0.0, 0.0]]}
    box = {"x-range": [-1.6, 3.5], "y-range": [-1.1, 1.1], "z-range": [-0.3, 1.4]}
    config = {"vehicle": {"view": {}, "ego-dimensions": box}, "cameras": {"front_center": front, "side_left": side}}
    trees.write(root / "cams_lidars.json", json.dumps(config))
    home, date = root / "camera_lidar/20190401_145936", "20190401145936"
    for camera_name, view, first in (("front_center", FRONT, 83), ("side_left", SIDE, 60)):
        name = camera_name.replace("_", "")
        for i in range(frames):
            # The numbers of the files are not those of the other camera at the same time.
            stem, stamp_us = f"{date}_camera_{name}_{first + i:09d}", A2D2_START_US + i * 33_333
            row = {"cam_tstamp": stamp_us, "cam_name": camera_name, "image_zoom": 1.0, "image_png": f"{stem}.png"}
            row |= {"pcld_view": view, "pcld_npz": stem.replace("camera", "lidar") + ".npz"}
            trees.write(home / f"camera/cam_{camera_name}/{stem}.json", json.dumps(row))
            trees.picture(home / f"camera/cam_{camera_name}/{stem}.png", i)
            if clouds and camera_name == "front_center":
                trees.write(home / f"lidar/cam_{camera_name}/{row['pcld_npz']}", a2d2_cloud(stamp_us))
    trees.write(home / f"bus/{date}_bus_signals.json", json.dumps(bus_signals()))
    return root / "camera_lidar"


def a2d2_cloud(stamp_us: int, **changed: Any) -> bytes:
    """Three points, of which the last is not valid, recorded 20 ms before and 10 ms after the picture."""
    attributes: dict[str, Any] = {
        "reflectance": np.array([7, 255, 9]),
        "lidar_id": np.array([1, 4, 0]),
        "rectime": np.array([stamp_us - 20_000, stamp_us + 10_000, stamp_us]),
        "valid": np.array([True, True, False]),
        **changed,
    }
    file = io.BytesIO()
    stored: dict[str, Any] = {f"pcloud_attr.{name}": values for name, values in attributes.items()}
    np.savez(file, **stored, pcloud_points=POINTS)
    return file.getvalue()


def bus_signals() -> dict[str, Any]:
    """36 to 54 km/h within 0.2 s; the wheel 31.6 degrees to the left, then to the right, then in error."""

    def signal(unit: str | None, *values: tuple[int, float]) -> dict[str, Any]:
        return {"unit": unit, "values": [[A2D2_START_US + late_us, value] for late_us, value in values]}

    return {
        "vehicle_speed": signal("Unit_KiloMeterPerHour", (0, 36.0), (200_000, 54.0)),
        "steering_angle_calculated": signal(
            "Unit_DegreOfArc", (-10_000, 1.5), (0, 31.6), (50_000, 31.6), (100_000, 614.25), (150_000, 15.8)
        ),
        "steering_angle_calculated_sign": signal(None, (-5_000, 0), (40_000, 1)),
        "latitude_degree": signal("Unit_DegreOfArc", (0, 48.75), (100_000, 48.751)),
        "latitude_direction": signal(None, (0, 0)),
        "longitude_degree": signal("Unit_DegreOfArc", (0, 11.4), (100_000, 11.402)),
        "longitude_direction": signal(None, (0, 1)),
    }


def udacity_challenge(root: Path, frames: int = FRAMES) -> Path:
    """Centre and left pictures, 20 ms apart, of a drive of 10 m/s with the wheel at 1.48 rad, to the left."""
    rows = ["index,timestamp,width,height,frame_id,filename,angle,torque,speed,lat,long,alt"]
    for i in range(frames):
        for camera, late_ns in (("center", 0), ("left", 20_000_000)):
            stamp_ns = UDACITY_START_NS + i * 50_000_000 + late_ns
            trees.picture(root / f"{camera}/{stamp_ns}.png", i)
            start = f"2016-11-17 23:10:15.{i}{late_ns},{stamp_ns},{trees.SIZE[0]},{trees.SIZE[1]}"
            rows.append(f"{start},{camera}_camera,{camera}/{stamp_ns}.png,{1.48 - i},0.1,{10 + i},37.4,-122.1,20.5")
    trees.write(root / "interpolated.csv", "\n".join(rows) + "\n")
    return root


def udacity_simulator(
    root: Path, frames: int = FRAMES, *, header: bool = False, place: str = "C:\\Users\\me\\run\\IMG\\"
) -> Path:
    """Three cameras; the share of the steering rises from -0.2, to the left, at 20 miles an hour."""
    rows = ["center,left,right,steering,throttle,brake,speed"] if header else []
    for i in range(frames):
        names = [f"{camera}_2016_12_01_13_30_48_{287 + 70 * i:03d}.jpg" for camera in ("center", "left", "right")]
        for k, name in enumerate(names):
            trees.picture(root / "IMG" / name, 10 * i + k)
        rows.append(f"{', '.join(place + name for name in names)}, {0.3 * i - 0.2:.6g}, 0.5, 0, 20")
    trees.write(root / "driving_log.csv", "\n".join(rows) + "\n")
    return root


def rewrite(path: Path, old: str, new: str) -> None:
    """Put a text into a file in place of another, which it has."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def change(path: Path, keys: Sequence[str], value: Any) -> None:
    """Set a value within a file of JSON; None: take it out."""
    content = json.loads(path.read_text())
    row = content
    for key in keys[:-1]:
        row = row[key]
    row.pop(keys[-1], None)
    if value is not None:
        row[keys[-1]] = value
    path.write_text(json.dumps(content))
