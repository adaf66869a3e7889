# SPDX-License-Identifier: Apache-2.0
"""A recording of a data set: its topics, each a list of files that are read when their turn comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.ground_truth import LabelsAt, no_labels
from mt_nodes.data.messages import Cloud, Image, Points
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, Transform, TransformTree

Matrices = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RecordedTopic:
    """The messages of one topic.

    Attributes:
        type: ROS 2 message type.
        stamps_ns: (N,) of the messages, in order.
        read: returns the CDR bytes of a message by its number; any thread may call it. Raises MtError, naming the file.
        files: (N,) where each message is stored; empty where no file holds one message alone.
        latched: whether late subscribers get it.
        encode: returns the bytes of the file of a message by its number and a changed message; None: the format cannot
            be written.
        radar: whether its point clouds are a radar's.
    """

    topic: str
    type: str
    stamps_ns: Sequence[int]
    read: Callable[[int], bytes]
    files: Sequence[Path] = ()
    latched: bool = False
    encode: Callable[[int, Cloud | Image], bytes] | None = None
    radar: bool = False


@dataclass(frozen=True, eq=False)
class DatasetRecording:
    """One drive of a data set.

    Attributes:
        name: with every option that it takes to name this drive alone.
        topics: sensors first, ``/tf_static`` and ``/tf`` last.
        labels: ground truth by stamp of the LiDAR.
        tables: files beside those of single messages that the recording is made of: calibration, stamps, poses.
        label_files: files that hold labels and nothing else.
    """

    name: DatasetName
    topics: Sequence[RecordedTopic]
    labels: LabelsAt = no_labels
    tables: Sequence[Path] = ()
    label_files: Sequence[Path] = ()

    @property
    def files(self) -> list[Path]:
        """Every file that the recording is made of, sorted: its content is the identity of the recording."""
        sensors = (file for topic in self.topics for file in topic.files)
        return sorted({*sensors, *self.tables, *self.label_files})


@dataclass
class TransformTopics:
    """Collects the transforms of a recording."""

    static: list[Transform] = field(default_factory=list)
    moving: list[tuple[int, Transform]] = field(default_factory=list)

    def fix(self, parent: str, child: str, matrix: Matrices) -> None:
        """Add a transform that holds throughout."""
        self.static.append(Transform(parent, child, matrix))

    def move(self, stamp_ns: int, parent: str, child: str, matrix: Matrices) -> None:
        """Add a transform of one instant."""
        self.moving.append((stamp_ns, Transform(parent, child, matrix, stamp_ns, static=False)))

    def locate(self, stamps_ns: Sequence[int], poses: Sequence[Matrices]) -> None:
        """Add the poses of the ego vehicle in the map; the map begins where the vehicle is first."""
        for stamp_ns, pose in zip(stamps_ns, poses, strict=True):
            self.move(stamp_ns, MAP_FRAME, EGO_FRAME, pose)

    def topics(self, first_ns: int) -> list[RecordedTopic]:
        """Return ``/tf_static`` and, if anything moves, ``/tf``."""
        fixed = codec.encode_transforms(TransformTree(self.static), first_ns)
        made = [RecordedTopic("/tf_static", codec.TF, (first_ns,), lambda _: fixed, latched=True)]
        if self.moving:
            rows = sorted(self.moving, key=lambda row: row[0])
            stamps_ns = [stamp_ns for stamp_ns, _ in rows]
            made.append(RecordedTopic("/tf", codec.TF, stamps_ns, lambda i: _encoded(*rows[i])))
        return made


def _encoded(stamp_ns: int, transform: Transform) -> bytes:
    return codec.encode_transforms(TransformTree([transform]), stamp_ns)


def from_first(poses: Sequence[Matrices]) -> list[Matrices]:
    """Return poses with the place of the first one as origin; directions stay those of the map."""
    moved = [pose.copy() for pose in poses]
    for pose in moved:
        pose[:3, 3] -= poses[0][:3, 3]
    return moved


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

    ``store``: returns the content of a file with other points. ``radar``: whether they are a radar's detections.
    """

    def read(i: int) -> bytes:
        points = load(files[i])
        return codec.encode_cloud(Cloud(topic, stamps_ns[i], frame_id, points))

    def encode(i: int, cloud: Cloud | Image) -> bytes:
        assert isinstance(cloud, Cloud), "a LiDAR's file holds a cloud"
        return store(files[i], cloud.points)

    return RecordedTopic(topic, codec.POINT_CLOUD, stamps_ns, read, files, encode=encode, radar=radar)
