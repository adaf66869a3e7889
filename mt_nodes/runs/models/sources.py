# SPDX-License-Identifier: Apache-2.0
"""Folders and bags to learn from, by their paths. Needs no PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.data.datasets.dataset_name import exists, is_dataset
from mt_nodes.runs.models.bag_samples import BagReading, shown_in_bag
from mt_nodes.runs.models.preprocessing import Preparation
from mt_nodes.runs.models.samples import FILE, Frames, PictureSample, load_frames, shown_in


def frames_of(
    paths: Sequence[Path],
    prepared: Preparation,
    reading: BagReading,
    progress: Callable[[int], None] = lambda read: None,
) -> Frames:
    """Return the prepared frames of folders and bags, one after the other.

    Raises MtError: one is neither, or holds nothing that can be learned from, see the modules of each.
    """
    for path in paths:
        if not exists(str(path)):
            raise UsageError(f"{path}: no such folder or bag")
    return load_frames([_shown(path, reading) for path in paths], prepared, progress)


def _shown(path: Path, reading: BagReading) -> Iterator[PictureSample]:
    """Yield the frames of a folder or a bag; a folder without the files of a bag is asked for its ``samples.csv``."""
    if is_dataset(path):
        yield from shown_in_bag(path, reading)
        return
    bag = path.is_file() or any(path.glob("*.mcap")) or any(path.glob("*.db3")) or (path / "metadata.yaml").is_file()
    yield from shown_in_bag(path, reading) if bag and not (path / FILE).is_file() else shown_in(path)
