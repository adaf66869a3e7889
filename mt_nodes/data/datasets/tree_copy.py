# SPDX-License-Identifier: Apache-2.0
"""Writes a recording of a data set as the same data set again, with changed clouds and pictures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mt_nodes.base.directories import staged_directory
from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr.wire import wire_for
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.dataset_reader import DatasetWire
from mt_nodes.data.datasets.recorded_topic import DatasetRecording
from mt_nodes.data.datasets.vehicle_motion import DRIVE_TOPIC
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image

#: Data sets whose tables name every file, so that a part of the frames is no whole scene.
_WHOLE_ONLY = ("nuscenes", "udacity")


class TreeCopy:
    """Copies the files of a recording; those of changed messages are written anew, in their own format.

    Raises UsageError: the directory exists, or the data set cannot be written.

    Args:
        out: where to; it has the layout of the source below the folder that holds all of its files.
        truth_changed: tells in the end whether the labels still fit: else they are left out.
        whole: whether every frame of the recording is written.
    """

    def __init__(self, recording: DatasetRecording, out: DatasetName, truth_changed: Callable[[], bool], whole: bool):
        if out.path.exists():
            raise UsageError(f"{out.path} exists already; give another path or remove it")
        if any(topic.encode is None and topic.type.endswith("PointCloud2") for topic in recording.topics):
            raise UsageError(f"{out}: {out.dataset} is not written; expected --out folder:DIR or a bag")
        if not whole and out.dataset in _WHOLE_ONLY:
            raise UsageError(f"{out}: the tables of {out.dataset} name every frame; leave --limit out, or write a bag")
        self._recording, self._out, self._truth_changed = recording, out, truth_changed
        files = [os.path.abspath(file) for file in recording.files]  # noqa: PTH100  links stay
        self._root = os.path.commonpath([os.path.abspath(recording.name.path), *map(os.path.dirname, files)])  # noqa: PTH100
        self._aside = Path()
        self.messages, self.labels = 0, ""

    @property
    @contextmanager
    def bag(self) -> Iterator[None]:
        """The directory, which appears when it is complete."""
        with staged_directory(self._out.path) as self._aside:
            yield
            self._finish()

    def announce(self) -> None:
        """Copy the tables."""
        for table in self._recording.tables:
            self._copy(table)

    def write(self, bundle: Bundle, followups: tuple[tuple[int, Bundle], ...]) -> None:
        """Write the files of a bundle's messages.

        Raises UsageError: the follow-up is not one message for each message of the bundle, at its time.
        """
        if len(followups) != 1 or followups[0][0]:
            raise UsageError(
                f"{self._out}: the mutation sends messages several times or later, and {self._out.dataset} has one "
                "file a frame; write a bag"
            )
        after = {message.topic: message for message in followups[0][1].messages}
        before = {id(wire_for(message, bundle.wires)): message for message in bundle.messages}
        for wire in bundle.wires:
            assert isinstance(wire, DatasetWire), "a recording of a data set gives such"
            message = before.get(id(wire))
            if message is not None and message.topic not in after:
                raise UsageError(f"{self._out}: the mutation drops a message of {message.topic}; write a bag")
            self._write(wire, None if message is None or after[message.topic] is message else after[message.topic])

    def _write(self, wire: DatasetWire, changed: object | None) -> None:
        topic = self._recording.topics[wire.number]
        if not topic.files:
            if changed is not None and not isinstance(changed, CameraInfo):
                raise UsageError(f"{self._out}: messages of {topic.topic} have no files of their own; write a bag")
            if isinstance(changed, CameraInfo):
                raise UsageError(f"{self._out}: the mutation changes the calibration of {topic.topic}; write a bag")
            return
        file = topic.files[wire.place]
        self.messages += 1
        if changed is None:
            self._copy(file)
            return
        assert topic.encode is not None and isinstance(changed, Cloud | Image), "files hold clouds or pictures"
        self._target(file).write_bytes(topic.encode(wire.place, changed))

    def _copy(self, file: Path) -> None:
        shutil.copyfile(file, self._target(file))

    def _target(self, file: Path) -> Path:
        target = self._aside / os.path.relpath(file, self._root)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _finish(self) -> None:
        changed = self._truth_changed()
        if changed and any(topic.topic == DRIVE_TOPIC for topic in self._recording.topics):
            self.labels = "speed and steering copied, though the mutation changes which objects are there, or where"
        if not self._recording.label_files:
            return
        if changed:
            self.labels = "labels left out: the mutation changes which objects are there, or where"
            return
        for file in self._recording.label_files:
            self._copy(file)
        self.labels = "labels copied: the mutation changes neither objects nor their places"
