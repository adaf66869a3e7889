# SPDX-License-Identifier: Apache-2.0
"""Small bundles for tests, in the layouts that drivers use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix

TOPIC = "/sensing/lidar/points"
SENSOR_HEIGHT_M = 1.73
TREE = TransformTree([Transform("base_link", "velodyne", pose_matrix([0, 0, SENSOR_HEIGHT_M], [0, 0, 0, 1]))])


def packed(**formats: str) -> np.dtype:
    return np.dtype(list(formats.items()))


def padded(step: int, **fields: tuple[str, int]) -> np.dtype:
    """A layout with offsets and padding: name=(format, offset)."""
    names = list(fields)
    return np.dtype(
        {"names": names, "formats": [f for f, _ in fields.values()], "offsets": [o for _, o in fields.values()]}
        | {"itemsize": step}
    )


XYZ = {"x": "<f4", "y": "<f4", "z": "<f4"}
LAYOUTS = {
    "kitti": packed(**XYZ, intensity="<f4"),
    "velodyne": packed(**XYZ, intensity="<f4", ring="<u2", time="<f4"),
    "no_intensity": packed(**XYZ),
    "double": packed(x="<f8", y="<f8", z="<f8", intensity="u1"),
    "big_endian": packed(x=">f4", y=">f4", z=">f4", intensity=">u2", t=">u4"),
    "ouster": padded(
        48, x=("<f4", 0), y=("<f4", 4), z=("<f4", 8), intensity=("<f4", 16), t=("<u4", 20), reflectivity=("<u2", 24),
        ring=("u1", 26), range=("<u4", 32),
    ),
    "scattered_fields": padded(32, intensity=("u1", 1), z=("<f4", 4), y=("<f4", 12), x=("<f4", 20)),
}  # fmt: skip


def made_cloud(
    layout: str = "velodyne", count: int = 4000, seed: int = 3, height: int = 1, holes: float = 0.0
) -> Cloud:
    """A level disc of returns around the sensor; padding bytes are random, ``holes`` is the share of empty returns."""
    rng, dtype = np.random.default_rng(seed), LAYOUTS[layout]
    points = rng.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8).view(dtype).reshape(-1)
    azimuth, ground = np.sort(rng.uniform(-np.pi, np.pi, count)), rng.uniform(4.0, 80.0, count)
    xyz = np.column_stack([ground * np.cos(azimuth), ground * np.sin(azimuth), rng.uniform(-1.7, 4.0, count)])
    xyz[rng.uniform(size=count) < holes] = np.nan
    for i, name in enumerate("xyz"):
        points[name] = xyz[:, i]
    filled = {
        "intensity": rng.integers(3, 200, count),
        "ring": np.arange(count) % 64,
        "time": np.linspace(0.0, 0.1, count),
        "t": np.arange(count),
        "reflectivity": rng.integers(0, 255, count),
        "range": np.nan_to_num(np.linalg.norm(xyz, axis=1)) * 1000,
    }
    for name in set(filled) & set(dtype.names or ()):
        points[name] = filled[name]
    return Cloud(TOPIC, 1_000, "velodyne", points, height=height, is_dense=holes == 0.0)


def in_bytes(cloud: Cloud) -> Cloud:
    """The cloud, of which it is known that 255 is a white surface: made clouds of one brightness do not tell."""
    return cloud.read_as(SensorReading.known(cloud.topic, "hdl_64e")) if cloud.intensity_field else cloud


def made_bundle(*clouds: Cloud, index: int = 0) -> Bundle:
    """A bundle of clouds (one velodyne cloud unless others are given), an image and its camera info."""
    image = Image("/camera/image", 1_000, "camera", np.arange(8 * 12 * 3, dtype=np.uint8).reshape(8, 12, 3), "bgr8")
    k = np.array([[10.0, 0, 6], [0, 10.0, 4], [0, 0, 1]])
    info = CameraInfo(
        "/camera/info", 1_000, "camera", 12, 8, "plumb_bob", np.zeros(5), k, np.eye(3), np.c_[k, np.zeros(3)]
    )
    return Bundle(0, index, 1_000, clouds or (made_cloud(),), (image,), (info,), TREE)


def cloud_bundle(*clouds: Cloud, index: int = 0) -> Bundle:
    """The same without image and camera info: what a stack that takes LiDARs alone is given."""
    return replace(made_bundle(*clouds, index=index), images=(), camera_infos=())
