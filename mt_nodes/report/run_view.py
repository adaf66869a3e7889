# SPDX-License-Identifier: Apache-2.0
"""A run as its results directory tells it while it is being written; needs no ROS and no running process."""

from __future__ import annotations

import json
import time
from collections import deque
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import LineTail
from mt_nodes.engine.summary.deaths import TYPE as DEATH
from mt_nodes.engine.summary.summary import RelationInfo, summarise

Summary = dict[str, Any]
#: Violated pairs that are remembered.
LAST = 5
#: The pace is that of the last so many looks that found something.
LOOKS = 20


class WatchedRun:
    """What is known so far of a run; :meth:`look` reads on.

    Attributes:
        condition: first line of the journal, empty before it is written.
        violations: the last verdict lines that were VIOLATED, the newest last.
        done: verdicts so far.
    """

    def __init__(self, directory: Path) -> None:
        """Look at a results directory.

        Raises:
            UsageError: there is no such directory.
        """
        if not directory.is_dir():
            raise UsageError(
                f"no results directory {directory}; type `mt replay BAG`, or name another with `mt watch DIR`"
            )
        self.directory = directory
        self.condition: dict[str, Any] = {}
        self.violations: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._tail = LineTail(directory / "result.jsonl")
        self._verdicts: list[dict[str, Any]] = []
        self._deaths: list[dict[str, Any]] = []
        self._looks: deque[tuple[float, int]] = deque(maxlen=LOOKS)

    @property
    def done(self) -> int:
        """Verdicts so far."""
        return len(self._verdicts)

    @property
    def finished(self) -> bool:
        """Whether the summary was written after the last line of the journal (a resumed run goes on after it)."""
        journal, summary = self.directory / "result.jsonl", self.directory / "summary.json"
        try:
            return summary.stat().st_mtime_ns >= journal.stat().st_mtime_ns
        except FileNotFoundError:
            return False

    @property
    def pairs_per_s(self) -> float | None:
        """Pace over the last looks, None before two of them found something."""
        if len(self._looks) < 2:
            return None
        (began_s, first), (now_s, last) = self._looks[0], self._looks[-1]
        return (last - first) / (now_s - began_s)

    def look(self) -> bool:
        """Read what was appended; say whether there was anything.

        Raises:
            InfrastructureError: a line is damaged.
        """
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
        """Return the run's own summary once it is finished, before that one of the verdicts so far."""
        if self.finished:
            made: Summary = json.loads((self.directory / "summary.json").read_text(encoding="utf-8"))
            return made
        return summarise([*self._deaths, *self._verdicts], self._relations())

    def _relations(self) -> list[RelationInfo]:
        """What a relation is stands in ``run.json``; a journal that was copied without it tells the names."""
        try:
            rows = json.loads((self.directory / "run.json").read_text(encoding="utf-8"))["relations"]
        except (OSError, ValueError, KeyError):
            rows = []
        known = {row["id"]: row for row in rows}
        return [RelationInfo.of(known.get(name, {"id": name})) for name in self.condition.get("relations", ())]
