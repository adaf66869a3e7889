# SPDX-License-Identifier: Apache-2.0
"""Small recordings for tests: messages made here, bags written with ``rosbags`` alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from rosbags.interfaces import Qos
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.enums import CompressionFormat, CompressionMode

from mt_nodes.data.cdr import codec as cdr
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix

START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
KITTI = Path(__file__).resolve().parents[2] / "shared" / "data" / "kitti_drive"
needs_kitti = pytest.mark.skipif(not KITTI.is_dir(), reason=f"no recorded drive at {KITTI}")

POINT = np.dtype(
    {"names": [*"xyz", "ring"], "formats": ["<f4"] * 3 + ["<u2"], "offsets": [0, 4, 8, 12], "itemsize": 16}
)


class Recorded(NamedTuple):
    """One message as a recorder would have it."""

    topic: str
    type: str
    received_ns: int
    cdr: bytes


def stamp(i: float) -> int:
    return START_NS + int(i * PERIOD_NS)


def cloud(i: float, topic: str = "/points", count: int = 50) -> Cloud:
    rng = np.random.default_rng(int(i * 1000))
    raw = rng.integers(0, 256, (count, POINT.itemsize), dtype=np.uint8)
    points = raw.reshape(-1).view(POINT)
    for axis in "xyz":
        points[axis] = rng.uniform(-20, 20, count)
    return Cloud(topic, stamp(i), "lidar", points)


def image(i: float, topic: str = "/camera/image") -> Image:
    pixels = np.random.default_rng(int(i * 1000)).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image(topic, stamp(i), "camera", pixels, "bgr8")


def camera_info(i: float, topic: str = "/camera/camera_info") -> CameraInfo:
    k = np.array([[9.0, 0, 4], [0, 9, 3], [0, 0, 1]])
    p = np.hstack([k, np.zeros((3, 1))])
    return CameraInfo(topic, stamp(i), "camera", 8, 6, "plumb_bob", np.zeros(5), k, np.eye(3), p)


def tree() -> TransformTree:
    quarter_turn = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    return TransformTree([Transform("base_link", "lidar", pose_matrix((1.0, 2.0, 1.7), quarter_turn))])


def bundles(count: int, points: int = 50) -> list[Bundle]:
    return [
        Bundle(0, i, stamp(i), (cloud(i, count=points),), (image(i),), (camera_info(i),), tree()) for i in range(count)
    ]


def recorded(message: Cloud | Image | CameraInfo, late_ns: int = 0) -> Recorded:
    return Recorded(message.topic, cdr.type_of(message), message.stamp_ns + late_ns, encode_message(message))


def text(i: float, what: str, topic: str = "/note") -> Recorded:
    return Recorded(topic, cdr.STRING, stamp(i), cdr.encode_text(what))


def drive(count: int) -> list[Recorded]:
    """A recording of static transforms, notes, clouds, images and camera infos, in order of reception."""
    rows = [Recorded("/tf_static", cdr.TF, stamp(0), cdr.encode_transforms(tree(), stamp(0)))]
    for i in range(count):
        rows += [text(i - 0.3, f"before {i}"), recorded(cloud(i)), recorded(image(i)), recorded(camera_info(i))]
    return sorted(rows, key=lambda r: r.received_ns)


def write_bag(
    path: Path,
    rows: Iterable[Recorded],
    storage: StoragePlugin = StoragePlugin.MCAP,
    compression: CompressionMode = CompressionMode.NONE,
    qos: Iterable[Qos] = (),
) -> Path:
    bag = Writer(path, version=8, storage_plugin=storage)
    bag.set_compression(compression, CompressionFormat.ZSTD)
    with bag:
        connections = {}
        for row in rows:
            if row.topic not in connections:
                made = bag.add_connection(
                    row.topic, row.type, typestore=cdr.typestore(), offered_qos_profiles=list(qos)
                )
                connections[row.topic] = made
            bag.write(connections[row.topic], row.received_ns, row.cdr)
    return path


def torn_copy(bag: Path, out: Path, keep: float, metadata: bool = False) -> Path:
    """The MCAP file of a bag, cut off after a share of its bytes; ``metadata`` keeps the file beside it."""
    out.mkdir()
    if metadata:
        shutil.copy(bag / "metadata.yaml", out)
    whole = next(bag.glob("*.mcap"))
    cut = out / whole.name
    shutil.copy(whole, cut)
    with cut.open("r+b") as file:
        file.truncate(int(whole.stat().st_size * keep))
    return out
