# SPDX-License-Identifier: Apache-2.0
"""A small drive of two LiDARs and two cameras, one raw and one JPEG, and a callable that takes them all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from recordings import Recorded, camera_info, cloud, image, recorded, stamp, text, tree, write_bag

from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Image

LIDARS = ("/left/points", "/right/points")
CAMERAS = ("/front/image", "/rear/image")
INFOS = ("/front/camera_info", "/rear/camera_info")
INPUTS = {"lidar": list(LIDARS), "camera": list(CAMERAS), "camera_info": list(INFOS)}
#: Says where the means of the two clouds are; a box more for each image that is bright.
FUSION = """
def detect(given):
    rows = [[*points[:, :3].mean(axis=0), 4, 2, 1.5, 0.0] for points in given["points"]]
    for info, image in zip(given["camera_info"], given["image"], strict=True):
        assert image.shape == (info.height, info.width, 3)
        rows += [[30.0, float(image.mean()) / 100, 0.5, 4, 2, 1.5, 0.0]]
    return rows
"""


def jpeg(i: float, topic: str, quality: int = 95) -> Image:
    """A picture that JPEG can hold: a slope of brightness that is another one in each frame."""
    slope = np.add.outer(np.arange(24), np.arange(32)).astype(np.uint8) * 2 + int(10 * i) % 50
    data = cv2.imencode(".jpg", cv2.merge([slope] * 3), [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
    return Image(topic, stamp(i), "camera", np.empty((0, 0), np.uint8), "jpeg", data)


def instant(i: float, late: float = 0.0) -> list[Recorded]:
    """The messages of one instant, the images ``late`` periods after the clouds."""
    right = replace(cloud(i, LIDARS[1]), points=cloud(i + 50).points)
    rear = replace(camera_info(i + late, INFOS[1]), width=32, height=24)
    images = [image(i + late, CAMERAS[0]), camera_info(i + late, INFOS[0]), jpeg(i + late, CAMERAS[1]), rear]
    return [text(i, f"before {i}"), *map(recorded, (cloud(i, LIDARS[0]), right, *images))]


def drive(count: int, late: float = 0.0) -> list[Recorded]:
    """Static transforms, and so many instants."""
    first = Recorded("/tf_static", codec.TF, stamp(0), codec.encode_transforms(tree(), stamp(0)))
    rows = [first, *(row for i in range(count) for row in instant(i, late))]
    return sorted(rows, key=lambda row: row.received_ns)


def fusion(place: Path, **rows: Any) -> str:
    """Write the callable and its stack file; return the file's name."""
    name = f"fusion_{abs(hash(str(place)))}"
    (place / f"{name}.py").write_text(FUSION)
    given = {"callable": f"{name}:detect", "points_frame": "base_link", "inputs": INPUTS, "stateless": True}
    path = place / "fusion.yaml"
    path.write_text(json.dumps({**given, **rows}))
    return str(path)


def bag(place: Path, count: int = 3, **how: Any) -> Path:
    """Write the drive."""
    return write_bag(place / "several", drive(count, **how))


def wires(rows: list[Recorded], topics: tuple[str, ...]) -> Iterator[Recorded]:
    """Those messages of a drive that are on some topics."""
    return (row for row in rows if row.topic in topics)
