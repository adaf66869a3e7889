# SPDX-License-Identifier: Apache-2.0
"""The scores that a stack published, one line a bundle (``scores.jsonl``): what the summary tells of its thresholds.

Beside the journal, whose lines are verdicts, and made only where the stack says detections or boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.base.record_shapes import NUMBER, Shape

FILE = "scores.jsonl"
_COUNTS: Shape = {"*": {"*": int}}
SHAPES: dict[str, Shape] = {
    "scores": {
        **{"bundle": [int, int], "thresholds": {"*": [NUMBER, NUMBER]}, "hundredths": _COUNTS, "classes": _COUNTS},
        "doubts?": [str],
    }
}


class ScoreFile:
    """Appends to ``scores.jsonl``; goes on with one that is there, and writes no bundle twice."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._file: LineFile | None = None
        self._written: set[tuple[int, int]] = set()

    def append(self, line: Mapping[str, Any]) -> str | None:
        """Write the line of a bundle and return it; None if it is there already."""
        if self._file is None:
            self._written = {tuple(before["bundle"]) for before in read_scores(self._out)}
            self._file = LineFile(self._out / FILE)
        return None if tuple(line["bundle"]) in self._written else self._file.append(line)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_scores(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a results directory, none where the stack says nothing with a score.

    Raises InfrastructureError: a line is damaged.
    """
    if (out / FILE).is_file():
        yield from read_lines(out / FILE, SHAPES)
