# SPDX-License-Identifier: Apache-2.0
"""What a verdict over a sequence was judged by, as a table: the evidence of a violated one."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.data.arm_series import ANSWER_MS, COMMANDED, SeriesWindow
from mt_nodes.data.verdict import Pair

ARMS = ("source", "followup")
_HEAD = ("stretch", "stamp_ns", "changed", *(f"{arm}_{flag}" for arm in ARMS for flag in ("asked", "answered")))


def series_file(results_dir: Path, pair: Pair) -> Path:
    """Return where the table of a sequence lies; the file may be missing."""
    return results_dir / "evidence" / f"{str(pair).replace('/', '_')}.csv"


def write_stretches(path: Path, stretches: Sequence[SeriesWindow]) -> None:
    """Write one row an instant: stamp, whether a follow-up went out, and what each arm said (empty: not told)."""
    names = [name for name in (*COMMANDED, ANSWER_MS) if stretches and name in stretches[0].source.numbers]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*_HEAD, *(f"{arm}_{name}" for arm in ARMS for name in names)))
        for number, stretch in enumerate(stretches):
            writer.writerows(_rows(number, stretch, names))


def _rows(number: int, stretch: SeriesWindow, names: Sequence[str]) -> Iterator[list[Any]]:
    arms = (stretch.source, stretch.followup)
    flags = [flag.astype(int).tolist() for arm in arms for flag in (arm.asked, arm.answered)]
    values = [["" if value != value else repr(value) for value in arm[name].tolist()] for arm in arms for name in names]
    for row in zip(stretch.stamp_ns.tolist(), stretch.changed.astype(int).tolist(), *flags, *values, strict=True):
        yield [number, *row]
