# SPDX-License-Identifier: Apache-2.0
"""Progress of a run, from the results directory alone; needs no ROS."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.jsonl import LineTail, read_result
from mt_nodes.base.record_shapes import Shape, expect_shape
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.journal import SHAPES
from mt_nodes.engine.run_record import SHAPE
from mt_nodes.engine.summary.deaths import TYPE as DEATH
from mt_nodes.engine.summary.summary import RelationInfo, summarise

Summary = dict[str, Any]
#: Violated pairs that are kept.
LAST = 5
#: The pace is measured over the last so many reads that found new lines.
LOOKS = 20


class WatchedRun:
    """A run in progress; :meth:`look` reads on.

    ``condition``: first line of the journal, empty before it is written. ``violations``: the last verdict lines that
    were VIOLATED, the newest last. ``done``: verdicts so far.
    """

    def __init__(self, directory: Path) -> None:
        """Open a results directory. Raises UsageError: there is no such directory."""
        if not directory.is_dir():
            raise UsageError(
                f"no results directory {directory}; begin a run with `mt replay BAG`, or name one with `mt watch DIR`"
            )
        self.directory = directory
        self.condition: dict[str, Any] = {}
        self.violations: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._tail = LineTail(directory / "result.jsonl", SHAPES)
        self._verdicts: list[dict[str, Any]] = []
        self._deaths: list[dict[str, Any]] = []
        self._looks: deque[tuple[float, int]] = deque(maxlen=LOOKS)

    @property
    def done(self) -> int:
        """Verdicts so far."""
        return len(self._verdicts)

    @property
    def finished(self) -> bool:
        """Whether the summary is newer than the last line of the journal (a resumed run appends lines)."""
        journal, summary = self.directory / "result.jsonl", self.directory / "summary.json"
        try:
            return summary.stat().st_mtime_ns >= journal.stat().st_mtime_ns
        except FileNotFoundError:
            return False

    @property
    def pairs_per_s(self) -> float | None:
        """Pace over the last reads; None before two of them found new lines."""
        if len(self._looks) < 2:
            return None
        (began_s, first), (now_s, last) = self._looks[0], self._looks[-1]
        return (last - first) / (now_s - began_s)

    @property
    def left_s(self) -> float | None:
        """Time that the verdicts to come take at this pace; None where pace or number is not known."""
        try:
            total = self._recorded("pairs", SHAPE["pairs?"])
        except (MtError, KeyError):
            return None
        pace = self.pairs_per_s
        return max(0, total - self.done) / pace if pace else None

    def look(self) -> bool:
        """Read new lines; return whether there were any. Raises InfrastructureError: a line is damaged."""
        lines = self._tail.fresh()
        for line in lines:
            if line["type"] == "condition":
                self.condition = line
            elif line["type"] == "verdict":
                self._verdicts.append(line)
                self.violations.extend([line] if line["outcome"] == "VIOLATED" else [])
            elif line["type"] == DEATH:
                self._deaths.append(line)
        if lines:
            self._looks.append((time.monotonic(), self.done))
        return bool(lines)

    def summary(self) -> Summary:
        """Return the run's summary; while it is in progress, one of the verdicts so far."""
        if self.finished:
            return read_summary(self.directory)
        return summarise([*self._deaths, *self._verdicts], self._relations())

    def _recorded(self, key: str, shape: Shape) -> Any:
        """Return what ``run.json`` says of a key. Raises InfrastructureError, KeyError: nothing, or something else."""
        path = self.directory / "run.json"
        value = read_result(path)[key]
        expect_shape(value, shape, f"{path}: {key}")
        return value

    def _relations(self) -> list[RelationInfo]:
        """Return the relations from ``run.json``; only their names where a journal was copied without it."""
        try:
            rows = self._recorded("relations", SHAPE["relations"])
        except (MtError, KeyError):
            rows = []
        known = {row["id"]: row for row in rows}
        return [RelationInfo.of(known.get(name, {"id": name})) for name in self.condition.get("relations", ())]
