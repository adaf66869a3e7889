# SPDX-License-Identifier: Apache-2.0
"""The data sets that are known, and their drives by name."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.recorded_topic import DatasetRecording

#: Data set -> the module that reads it, with ``scenes(name)`` and ``load(name)``.
READERS = {name: name for name in ("kitti", "nuscenes", "argoverse2", "waymo", "a2d2", "udacity", "folder")}


def open_dataset(name: DatasetName) -> DatasetRecording:
    """Return a recording; no cloud or picture is read yet.

    Raises UsageError: there is none, or several and none is chosen. InfrastructureError: a table is damaged.
    """
    if not name.path.is_dir():
        raise UsageError(f"{name}: there is no directory {name.path}")
    reader, found = _reader(name), _scenes(name)
    if name.scene and name.scene not in found:
        raise UsageError(f"{name}: no scene '{name.scene}'; there is {_listed(found)}")
    if not name.scene and len(found) > 1:
        shown = name.with_scene(found[0])
        raise UsageError(f"{name}: has {len(found)} scenes: {_listed(found)}; choose one, such as {shown}")
    recording: DatasetRecording = reader.load(name.with_scene(name.scene or found[0]) if found[0] else name)
    return recording


def recordings(text: str) -> list[str]:
    """Return the name of every drive that a name stands for; its directory may hold wildcards, by name.

    Raises UsageError: there is none.
    """
    asked = DatasetName.parse(text)
    matches = asked.matches()
    if not matches or not all(name.path.is_dir() for name in matches):
        raise UsageError(f"{text}: there is no directory {asked.directory}")
    named = [(name, scene) for name in matches for scene in ([name.scene] if name.scene else _scenes(name))]
    return [str(name.with_scene(scene) if scene else name) for name, scene in named]


def recording_files(text: str) -> list[Path]:
    """Return every file that a recording is made of, sorted."""
    return open_dataset(DatasetName.parse(text)).files


def _scenes(name: DatasetName) -> list[str]:
    """Return the drives of a directory; one without a name ('') where it holds only one and that has none."""
    found: list[str] = _reader(name).scenes(name)
    return found


def _reader(name: DatasetName) -> Any:
    return importlib.import_module(f"mt_nodes.data.datasets.{READERS[name.dataset]}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown + (f" … ({len(names)} in all)" if len(names) > 8 else "")
