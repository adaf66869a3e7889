# SPDX-License-Identifier: Apache-2.0
"""The one place where the name of a recording becomes a recording: a bag, or a drive of a data set."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Protocol

from rosbags.interfaces import Connection

from mt_nodes.data.bags.reader import BagReader, RecordedWire, Topic
from mt_nodes.data.datasets.dataset_name import DatasetName, is_dataset
from mt_nodes.data.ground_truth import LabelsAt


class RecordingReader(Protocol):
    """An open recording; a context manager.

    Attributes:
        path: its name, for messages. ros1: whether it is a bag of ROS 1. damage: what is known to be damaged before
            it is read, empty for nothing. connections: one for each publisher. topics: every topic by name.
        labels: ground truth by stamp.
    """

    path: Path
    ros1: bool
    damage: str
    connections: list[Connection]
    labels: LabelsAt

    @property
    def topics(self) -> dict[str, Topic]:
        """Every topic by name."""

    def wires(self, topics: Collection[str] | None = None) -> Iterator[RecordedWire]:
        """Yield recorded messages in order of reception; raises InfrastructureError after all that can be read."""

    def definition(self, connection: Connection) -> tuple[str, str]:
        """Return the ROS 2 definition of a connection's type and its hash."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: object) -> None: ...


def open_recording(name: Path) -> RecordingReader:
    """Return the recording of a name: a bag's path, or such as ``kitti:DIR``.

    Raises UsageError: there is no such recording, or it is none. InfrastructureError: nothing of it can be read.
    """
    if not is_dataset(name):
        return BagReader(name)
    from mt_nodes.data.datasets.dataset_reader import DatasetReader  # bags need nothing of it

    return DatasetReader(DatasetName.parse(name))
