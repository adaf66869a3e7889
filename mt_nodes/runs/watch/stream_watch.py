# SPDX-License-Identifier: Apache-2.0
"""Watches one stream: shows each instant to every check, counts time and violations by cell, and tells the journal."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from mt_nodes.base.plugins import describe_failure
from mt_nodes.engine.summary.watch_sums import ERROR, EVENT, TALLY
from mt_nodes.relations.stream_checks.base import Breach, StreamCheck, StreamFinding, StreamMemory, WatchedInstant
from mt_nodes.runs.watch.conditions_cells import EVERYWHERE, Cell, ConditionCells
from mt_nodes.runs.watch.watch_request import WatchSettings

#: Instants of which it is known how long looking took.
_MOST_TIMES = 20_000


class EventGroups:
    """Groups breaches of one relation into events, so that one blinking track is one, whatever it does in a row.

    A breach begins an event unless its subject had one at most ``gap_ns`` before. What begins in the same frame is one
    event: whether one begins is decided once a frame, which is what the confidence sequence takes for granted.
    """

    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._latest: dict[str, int] = {}

    def begun(self, stamp_ns: int, breaches: Iterable[Breach]) -> Breach | None:
        """Take the breaches of a frame; return the one, the nearest, by which an event begins, None if none does."""
        self._latest = {subject: ns for subject, ns in self._latest.items() if stamp_ns - ns <= self._gap_ns}
        found = list(breaches)
        new = [breach for breach in found if breach.subject not in self._latest]
        self._latest.update({breach.subject: stamp_ns for breach in found})
        return min(new, key=lambda breach: float("inf") if breach.range_m is None else breach.range_m, default=None)


class _CheckWatch:
    """One check: its memory, its events, and what was counted since the last line of the journal."""

    def __init__(self, name: str, check: StreamCheck, gap_ns: int) -> None:
        self.name, self.check, self._gap_ns = name, check, gap_ns
        self.events = EventGroups(gap_ns)
        self.memory: StreamMemory = check.begin()
        self.clear()

    def forget(self) -> None:
        self.memory, self.events = self.check.begin(), EventGroups(self._gap_ns)

    def clear(self) -> None:
        #: Cell -> frames, nanoseconds, events, breaches.
        self.cells: dict[Cell, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self.why: Counter[str] = Counter()


class StreamWatch:
    """Takes instants in the order of their stamps.

    Args:
        checks: by name. gap_s: after a longer pause, or when stamps go back, nothing before is remembered.
        write: takes each line of the journal.
    """

    def __init__(
        self,
        checks: Mapping[str, StreamCheck],
        settings: WatchSettings,
        gap_s: float,
        write: Callable[[Mapping[str, Any]], object],
    ) -> None:
        self._settings, self._gap_ns, self._write = settings, round(gap_s * 1e9), write
        event_gap_ns = round(settings.event_gap_s * 1e9)
        self._watches = [_CheckWatch(name, check, event_gap_ns) for name, check in checks.items()]
        self._cells = ConditionCells(settings)
        self._before_ns: int | None = None
        self._written_ns: int | None = None
        self._frames = self._unanswered = 0
        self.episode = 0
        self.counts: Counter[str] = Counter()
        self.look_ms: deque[float] = deque(maxlen=_MOST_TIMES)

    def take(self, instant: WatchedInstant) -> None:
        """Take in the next instant; one without any output counts as unanswered."""
        step_ns = self._step(instant.stamp_ns)
        self._frames += 1
        self.counts["frames"] += 1
        if instant.output.silent and not instant.other_boxes:
            self._unanswered += 1
            self.counts["unanswered"] += 1
        else:
            began_s = time.perf_counter()
            self._look(self._moving(instant), step_ns)
            self.look_ms.append(1e3 * (time.perf_counter() - began_s))
        if instant.stamp_ns - (self._written_ns or 0) >= self._settings.record_every_s * 1e9:
            self.record()

    def record(self) -> None:
        """Write what was counted since the last line, if anything was."""
        if not self._frames:
            return
        self._write(
            {
                "type": TALLY,
                "until_ns": self._before_ns,
                "episode": self.episode,
                "frames": self._frames,
                "unanswered": self._unanswered,
                "relations": {
                    watch.name: {
                        "cells": [[*cell, *counts] for cell, counts in watch.cells.items()],
                        "why": dict(watch.why),
                    }
                    for watch in self._watches
                },
            }
        )
        self._frames = self._unanswered = 0
        self._written_ns = self._before_ns
        for watch in self._watches:
            watch.clear()

    def _step(self, stamp_ns: int) -> int:
        """Return the time since the instant before; 0 for the first one, and after a gap."""
        before, self._before_ns = self._before_ns, stamp_ns
        if before is None:
            self._written_ns = stamp_ns
            return 0
        if 0 < stamp_ns - before <= self._gap_ns:
            return stamp_ns - before
        self._before_ns = before
        self.record()
        self._before_ns = self._written_ns = stamp_ns
        self.episode += 1
        for watch in self._watches:
            watch.forget()
        return 0

    def _moving(self, instant: WatchedInstant) -> WatchedInstant:
        """Return an instant with the ego's motion, as far as it is to be known."""
        bundle, how = instant.bundle, self._settings.ego_motion
        if bundle.motion is not None or bundle.track is None or how == "off":
            return instant
        named = replace(bundle, episode=self.episode, index=self.counts["frames"])
        # Without clouds nothing is registered: what is published is all that counts.
        asked = named if how == "clouds" else replace(named, clouds=(), extra_clouds=())
        return replace(instant, bundle=replace(named, motion=bundle.track.at(asked)))

    def _look(self, instant: WatchedInstant, step_ns: int) -> None:
        where = self._cells.of(instant.bundle)
        for watch in self._watches:
            try:
                finding = watch.memory.look(instant)
            except Exception as error:  # noqa: BLE001 - a plugin's: it ends neither the run nor the other checks
                self._fail(watch, instant, error)
                continue
            if finding.why:
                watch.why[finding.why] += 1
            self._count(watch, instant, finding, where, step_ns)

    def _fail(self, watch: _CheckWatch, instant: WatchedInstant, error: Exception) -> None:
        self.counts["errors"] += 1
        reason = describe_failure(watch.check, "look", error)
        self._write({"type": ERROR, "relation": watch.name, "stamp_ns": instant.stamp_ns, "reason": reason})
        watch.forget()

    def _count(
        self,
        watch: _CheckWatch,
        instant: WatchedInstant,
        finding: StreamFinding,
        where: tuple[str, str, str, str],
        step_ns: int,
    ) -> None:
        ranges = {self._cells.range(each) for each in (*finding.ranges_m, *(b.range_m for b in finding.breaches))}
        begun = watch.events.begun(instant.stamp_ns, finding.breaches)
        began_in = None if begun is None else (*where, self._cells.range(begun.range_m))
        breached = {self._cells.range(breach.range_m) for breach in finding.breaches}
        for cell in {key for each in ranges for key in projections((*where, each))}:
            counts = watch.cells[cell]
            counts[0] += 1
            counts[1] += step_ns
            counts[2] += began_in is not None and covers(cell, began_in)
            counts[3] += any(covers(cell, (*where, each)) for each in breached)
        if begun is not None and began_in is not None:
            self.counts["events"] += 1
            self._write(self._event(watch.name, begun, began_in, instant.stamp_ns))

    def _event(self, name: str, breach: Breach, cell: tuple[str, ...], stamp_ns: int) -> dict[str, Any]:
        about = {"relation": name, "episode": self.episode, "stamp_ns": stamp_ns, "cell": list(cell)}
        return {"type": EVENT, **about, **breach._asdict()}


def projections(cell: tuple[str, str, str, str, str]) -> list[Cell]:
    """Return the cells that an instant counts in: everywhere, along each axis alone, and its own."""
    along = [tuple(value if at == axis else None for at, value in enumerate(cell)) for axis in range(len(cell))]
    return [EVERYWHERE, *along, cell]  # type: ignore[list-item]


def covers(cell: Cell, one: tuple[str, ...]) -> bool:
    """Tell whether a cell contains another one."""
    return all(wanted in (None, value) for wanted, value in zip(cell, one, strict=True))
