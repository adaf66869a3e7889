# SPDX-License-Identifier: Apache-2.0
"""Drives for the tests of the reference stacks: generated and recorded clouds, noise, and what was lost."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.world.scene.drive import LIDAR_HEIGHT_M, generate_drive

KITTI = Path(__file__).resolve().parents[2] / "shared" / "data" / "kitti_drive"
Points = npt.NDArray[np.float32]


def on_the_road(cloud: Cloud) -> Points:
    """Return (N, 4) x, y, z, intensity in base_link."""
    columns = [cloud.points[name] for name in ("x", "y", "z", "intensity")]
    columns[2] = columns[2] + np.float32(LIDAR_HEIGHT_M)
    return np.column_stack(columns).astype(np.float32)


@lru_cache
def street() -> Bundle:
    """Return the first frame of the usual drive; many files ask for it as they are collected, by every worker."""
    return next(generate_drive(1))


@lru_cache
def generated(count: int) -> tuple[Points, ...]:
    return tuple(on_the_road(bundle.cloud()) for bundle in generate_drive(count))


@lru_cache
def recorded(every: int) -> tuple[Points, ...]:
    if not KITTI.is_dir():
        pytest.skip(f"no recorded drive at {KITTI}")
    from rosbags.highlevel import AnyReader

    clouds = []
    with AnyReader([KITTI]) as reader:
        topic = [c for c in reader.connections if c.msgtype == "sensor_msgs/msg/PointCloud2"]
        for i, (connection, _, raw) in enumerate(reader.messages(topic)):
            if i % every == 0:
                data = reader.deserialize(raw, connection.msgtype).data
                clouds.append(np.frombuffer(data, "<f4").reshape(-1, 4) + np.float32([0, 0, LIDAR_HEIGHT_M, 0]))
    return tuple(clouds)


def with_noise(cloud: Points, count: int, seed: int, intensity: float | None = None) -> Points:
    """Insert noise outside x −1 to 41, y ±11 and within 120 m, z and intensity in the cloud's own ranges."""
    rng = np.random.default_rng(seed)
    radius, angle = 120.0 * np.sqrt(rng.random(4 * count)), rng.uniform(-np.pi, np.pi, 4 * count)
    xy = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    xy = xy[(xy[:, 0] < -1) | (xy[:, 0] > 41) | (np.abs(xy[:, 1]) > 11)][:count]
    low, high = cloud.min(axis=0), cloud.max(axis=0)
    bright = rng.uniform(low[3], high[3], count) if intensity is None else np.full(count, intensity)
    noise = np.column_stack([xy, rng.uniform(low[2], high[2], count), bright]).astype(np.float32)
    return np.insert(cloud, np.sort(rng.integers(0, len(cloud) + 1, count)), noise, axis=0)


def equal(a: Detections, b: Detections) -> bool:
    names = ("center_m", "size_m", "yaw_rad", "label", "score")
    return len(a) == len(b) and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


def lost(before: Detections, after: Detections) -> list[str]:
    """Name the sure obstacles of the keep zone (1 m inside the region) with none nearby afterwards."""
    x, y = before.center_m[:, 0], before.center_m[:, 1]
    demanded = np.flatnonzero((x > 1) & (x < 39) & (np.abs(y) < 9) & (before.score >= 0.5))
    answers = after.center_m[after.score >= 0.3, :2]
    gate = {"pedestrian": 0.8, "cyclist": 1.2, "car": 2.0}
    return [
        f"{before.label[i]} at {before.center_m[i, :2].round(1)}"
        for i in demanded
        if not (np.linalg.norm(answers - before.center_m[i, :2], axis=1) < gate.get(str(before.label[i]), 1.5)).any()
    ]
