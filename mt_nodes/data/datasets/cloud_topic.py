# SPDX-License-Identifier: Apache-2.0
"""The topic of a LiDAR, or of a radar, whose clouds are files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.recorded_topic import RecordedTopic
from mt_nodes.data.messages import Cloud, Image, Points


def cloud_topic(
    topic: str,
    frame_id: str,
    stamps_ns: Sequence[int],
    files: Sequence[Path],
    load: Callable[[Path], Points],
    store: Callable[[Path, Points], bytes],
    *,
    radar: bool = False,
) -> RecordedTopic:
    """Return the topic.

    Args:
        load: returns the points of a file.
        store: returns the content of a file with other points.
        radar: whether they are a radar's detections.
    """

    def read(i: int) -> bytes:
        points = load(files[i])
        return codec.encode_cloud(Cloud(topic, stamps_ns[i], frame_id, points))

    def encode(i: int, cloud: Cloud | Image) -> bytes:
        assert isinstance(cloud, Cloud), "a LiDAR's file holds a cloud"
        return store(files[i], cloud.points)

    return RecordedTopic(topic, codec.POINT_CLOUD, stamps_ns, read, files, encode=encode, radar=radar)
