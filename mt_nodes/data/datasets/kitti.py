# SPDX-License-Identifier: Apache-2.0
"""KITTI: raw drives, and the object, tracking and odometry benchmarks.

Source: Geiger, Lenz, Stiller, Urtasun, Vision meets Robotics: The KITTI Dataset, IJRR 2013, and the readme files of its
development kits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.data.datasets import kitti_benchmarks, kitti_raw
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.recorded_topic import DatasetRecording

_EXPECTED = (
    "expected a raw drive (velodyne_points/data/*.bin) or a folder of such, or of a benchmark: "
    "training/velodyne/*.bin (object), training/velodyne/0000/*.bin (tracking), sequences/00/velodyne/*.bin (odometry)"
)
_Load = Callable[[DatasetName, Path], DatasetRecording]


def scenes(name: DatasetName) -> list[str]:
    """Return the drives of a directory. Raises UsageError: it is none of KITTI's."""
    return [scene for scene, _ in _found(name)]


def load(name: DatasetName) -> DatasetRecording:
    """Return one drive."""
    return next(open_drive() for scene, open_drive in _found(name) if scene == name.scene)


def _found(name: DatasetName) -> list[tuple[str, Callable[[], DatasetRecording]]]:
    """Return each drive of a directory, and what opens it."""

    def opening(load_drive: _Load, folder: Path) -> Callable[[], DatasetRecording]:
        return lambda: load_drive(name, folder)

    finders = (
        (kitti_raw.drives, kitti_raw.load_raw),
        (kitti_benchmarks.object_sets, kitti_benchmarks.load_objects),
        (kitti_benchmarks.tracking_sequences, kitti_benchmarks.load_tracking),
        (kitti_benchmarks.odometry_sequences, kitti_benchmarks.load_odometry),
    )
    for find, load_drive in finders:
        if found := find(name.path):
            return [(scene, opening(load_drive, folder)) for scene, folder in found]
    inside = ", ".join(sorted(p.name for p in name.path.iterdir())[:8]) or "nothing"
    raise UsageError(f"{name}: got a directory with {inside}; {_EXPECTED}")
