# SPDX-License-Identifier: Apache-2.0
"""The loop of a campaign: from the store to the workers and back, until nothing is owed or somebody ends it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mt_nodes.base.errors import ExitCode
from mt_nodes.runs.campaign.campaign_plan import Plan
from mt_nodes.runs.campaign.campaign_store import CampaignStore, Work
from mt_nodes.runs.campaign.item import ItemResult, ItemTally, PartResult
from mt_nodes.runs.campaign.pool import LostItem, Pool

#: How long a signal or the end of the time may go unnoticed.
LOOK_EVERY_S = 0.5
#: How often it shows how far it is, and how many times as long as that took it does not.
SHOW_EVERY_S, PAUSES = 0.25, 50.0


class Stopper(Protocol):
    """Decides about the relations of one cell."""

    def stopped_at(self, relation: str, drives: Sequence[PartResult | None]) -> int | None:
        """Return how many drives of the plan count for a relation, None while it goes on.

        ``relation``: its id. ``drives``: what came of it in each drive of the plan, None where that is not known yet.
        """


class StoppedRelations:
    """Which relations have ended where. The answer depends on what came of drives, not on who had it ready when."""

    def __init__(self, plan: Plan, stoppers: Mapping[str, Stopper]) -> None:
        """Take in the stoppers by cell, none where nothing is stopped early."""
        self._stoppers = stoppers
        self._drives = len(plan.drives)
        self._relations = {cell.name: cell.relations for cell in plan.cells}
        self._parts: dict[tuple[str, str], list[PartResult | None]] = {}
        self._at: dict[tuple[str, str], int] = {}

    def take(self, cell: str, drive: int, part: PartResult) -> None:
        """Take in what came of a relation in a drive."""
        if (stopper := self._stoppers.get(cell)) is None:
            return
        key = cell, part.relation
        parts = self._parts.setdefault(key, [None] * self._drives)
        parts[drive] = part
        if key not in self._at and (at := stopper.stopped_at(part.relation, parts)) is not None:
            self._at[key] = at

    def fail(self, cell: str, drive: int) -> None:
        """Take in that a drive failed: it says nothing, as one without a decided pair, and holds nothing up."""
        for relation in self._relations[cell]:
            self.take(cell, drive, PartResult(relation, 0, {}, ItemTally(0, 0), ItemTally(0, 0), ItemTally(0, 0), 0))

    def open(self, cell: str, drive: int, relations: Sequence[str]) -> tuple[str, ...]:
        """Return those relations that want this drive."""
        return tuple(name for name in relations if (at := self._at.get((cell, name))) is None or drive < at)

    def of(self, cell: str) -> dict[str, int]:
        """Return how many drives count for those relations of a cell that have ended."""
        return {name: at for (where, name), at in self._at.items() if where == cell}

    def counted(self, cell: str, relation: str) -> list[PartResult]:
        """Return what counts of a relation, in plan order."""
        key = cell, relation
        parts = self._parts.get(key, [])[: self._at.get(key)]
        return [part for part in parts if part is not None]


@dataclass(frozen=True)
class Limits:
    """What a leader keeps to.

    ``drives``: of the plan, from the first, that may be done. ``retries``: of an item, after infrastructure trouble.
    ``seconds``: after which no further item begins, None: no such limit.
    """

    drives: int
    retries: int
    seconds: float | None = None


class PacedCall:
    """Calls something now and then, for no more than a small share of the time."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call, self._next_s = call, -math.inf

    def __call__(self, *, now: bool = False) -> None:
        """Call it, if it is time to, or ``now``."""
        began_s = time.monotonic()
        if not now and began_s < self._next_s:
            return
        self._call()
        ended_s = time.monotonic()
        self._next_s = ended_s + max(SHOW_EVERY_S, PAUSES * (ended_s - began_s))


class Leader:
    """Has the items of a campaign done."""

    def __init__(
        self,
        store: CampaignStore,
        plan: Plan,
        pool: Pool,
        stops: StoppedRelations,
        limits: Limits,
        show: Callable[[], None],
        journalled: Callable[[str], int] = lambda key: 0,
    ) -> None:
        """Take in what it works with.

        ``show``: called now and then, and at the end. ``journalled``: lines that are kept of an item, by its key.
        """
        self._store, self._pool, self._stops, self._limits, self._show = store, pool, stops, limits, PacedCall(show)
        self._journalled = journalled
        #: Lines that were kept of what is being done when its worker began.
        self._before: dict[str, int] = {}
        self._cells = {cell.name: cell for cell in plan.cells}
        self._drives = plan.drives
        self._running: dict[str, Work] = {}

    def lead(self, interrupted: Callable[[], bool]) -> None:
        """Go on until nothing is owed, the time is over and what runs has ended, or somebody interrupts.

        Where it is interrupted, what is being done stays in the store as it is, to be taken up.
        """
        until_s = None if self._limits.seconds is None else time.monotonic() + self._limits.seconds
        while not interrupted():
            if until_s is None or time.monotonic() < until_s:
                self._submit()
            if not self._running:
                break
            for ended in self._pool.finished(LOOK_EVERY_S):
                self._take(ended)
            self._show()
        self._show(now=True)

    def _submit(self) -> None:
        while (free := self._pool.free) > 0:
            works = self._store.next(free, self._limits.drives)
            if not works:
                return
            for work in works:
                self._begin(work)

    def _begin(self, work: Work) -> None:
        cell, drive = self._cells[work.cell], self._drives[work.drive]
        # What was begun goes on as it was: its journal says for which relations.
        relations = work.relations or self._stops.open(work.cell, work.drive, cell.relations)
        if not self._stops.open(work.cell, work.drive, relations):
            self._store.stop(work)
            return
        item = cell.item(drive, relations)
        self._store.start(work, item.key, relations)
        self._running[item.key], self._before[item.key] = work, self._journalled(item.key)
        self._pool.submit(item)

    def _take(self, ended: ItemResult | LostItem) -> None:
        work, before = self._running.pop(ended.key), self._before.pop(ended.key)
        if isinstance(ended, ItemResult) and not ended.trouble:
            self._store.done(work, ended)
            for part in ended.parts:
                self._stops.take(work.cell, work.drive, part)
        elif isinstance(ended, LostItem) and self._journalled(ended.key) > before:
            # It got on with what is kept, so that a next worker has less to do: no reason to give it up.
            self._store.put_back(work, ended.why)
        elif not self._retry(work, ended):
            self._stops.fail(work.cell, work.drive)

    def _retry(self, work: Work, ended: ItemResult | LostItem) -> bool:
        if isinstance(ended, LostItem):
            return self._store.trouble(work, ended.why, self._limits.retries)
        retry = ended.exit_code == ExitCode.INFRASTRUCTURE
        return self._store.trouble(work, ended.trouble, self._limits.retries, ended, retry)
