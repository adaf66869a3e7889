# SPDX-License-Identifier: Apache-2.0
"""What a campaign has done and owes: a SQLite file that only its leader writes, whole at every moment."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from mt_nodes.base.directories import as_stored
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import in_utf8
from mt_nodes.base.record_shapes import NUMBER, Shape, expect_shape
from mt_nodes.data.verdict import Outcome
from mt_nodes.runs.campaign import cpu_table
from mt_nodes.runs.campaign.campaign_plan import Cell, Plan
from mt_nodes.runs.campaign.item import Drive, ItemCpu, ItemResult, PartResult

FILE, SCHEMA = "campaign.sqlite", 2
#: States of an item; stopped: every relation of its cell was clear before its drive.
PLANNED, RUNNING, DONE, FAILED, STOPPED = "planned", "running", "done", "failed", "stopped"
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE drives (number INTEGER PRIMARY KEY, url TEXT NOT NULL, sha256 TEXT NOT NULL, bundles INTEGER);
CREATE TABLE items (
    place INTEGER PRIMARY KEY, cell TEXT NOT NULL, drive INTEGER NOT NULL, pairs INTEGER, state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, key TEXT, relations TEXT, exit_code INTEGER, sha256 TEXT, seconds REAL,
    worker TEXT,
    judged INTEGER, violated INTEGER, trouble TEXT NOT NULL DEFAULT ''
);
CREATE INDEX items_by_state ON items (state, place);
CREATE TABLE parts (
    place INTEGER NOT NULL, relation TEXT NOT NULL, result TEXT NOT NULL, PRIMARY KEY (place, relation)
) WITHOUT ROWID;
"""
#: What is known by a name: of the plan, of the campaign, and the digest of a campaign that has been summed up.
_META: dict[str, Shape] = {
    **{"schema": object, "about": {"campaign": {}, "seal?": str}, "notes": [str], "digest": str},
    "cells": [{"name": str, "request": {}, "texts": {"*": str}, "versions": {"*": str}}],
}
_TALLY: Shape = {"decided": int, "violated": int}
_PART: Shape = {
    **{"relation": str, "offered": int, "outcomes": {"*": int}, "frames": int},
    **{**dict.fromkeys(("own", "control", "sham"), _TALLY), "work_s?": NUMBER},
}
_COLUMNS = "place, cell, drive, pairs, state, attempts, key, relations, exit_code, sha256, trouble"


@dataclass(frozen=True)
class Work:
    """An item as the store knows it.

    Attributes:
        place: in the plan. pairs: verdicts that it owes, None where nobody can tell.
        attempts: that ended in trouble. key, relations: of what was begun; empty before that.
        exit_code, sha256: of the last try that ended.
        trouble: what kept the tries so far from their end, each once; it stays when the item is done.
    """

    place: int
    cell: str
    drive: int
    pairs: int | None
    state: str
    attempts: int
    key: str
    relations: tuple[str, ...]
    exit_code: int | None
    sha256: str
    trouble: str


@dataclass(frozen=True)
class CellEffort:
    """Items of a cell that ended, their judged and violated pairs, and the wall time of their workers in seconds."""

    items: int
    pairs: int
    violated: int
    seconds: float


@dataclass(frozen=True)
class CampaignProgress:
    """How far a campaign is: items by state, verdicts of those that ended, and violated ones among them."""

    items: Mapping[str, int]
    pairs: int
    violated: int

    @property
    def over(self) -> int:
        """Items that nothing is owed of any more."""
        return sum(self.items.get(state, 0) for state in (DONE, FAILED, STOPPED))


class CampaignStore:
    """The state of a campaign. Every change is one transaction; a context manager."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open or make the file; ``read_only``: look at it while the leader writes.

        Raises InfrastructureError, as does the end of a context in which it turns out: the file is damaged.
        """
        self._path = path
        try:
            self._db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro" if read_only else path, uri=read_only)
            if not read_only:
                self._db.execute("PRAGMA journal_mode = WAL")
                # A kill loses nothing; a power cut may lose the last transactions, whose items are done again.
                self._db.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def __enter__(self) -> CampaignStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.DatabaseError) -> InfrastructureError:
        return InfrastructureError(
            f"{self._path}: holds no campaign that can be read: {error}; put it back from a copy, or use another --out"
        )

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def planned(self) -> bool:
        """Whether it holds a plan."""
        return bool(self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone())

    def begin(self, plan: Plan, about: Mapping[str, Any]) -> None:
        """Take in a plan, and what else is to be known of the campaign."""
        meta = {"schema": SCHEMA, "cells": [c.as_plain() for c in plan.cells], "notes": plan.notes, "about": about}
        owed = ((d.number, c.name, plan.pairs.get((d.number, c.name))) for d in plan.drives for c in plan.cells)
        items = ((place, cell, drive, pairs, PLANNED) for place, (drive, cell, pairs) in enumerate(owed))
        with self._db:
            self._db.execute("BEGIN")
            for statement in _TABLES.split(";")[:-1]:
                self._db.execute(statement)
            self._db.executemany("INSERT INTO drives VALUES (?, ?, ?, ?)", map(_drive_row, plan.drives))
            self._db.executemany("INSERT INTO items (place, cell, drive, pairs, state) VALUES (?, ?, ?, ?, ?)", items)
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", ((k, json.dumps(v)) for k, v in meta.items()))

    def plan(self) -> Plan:
        """Return the plan. Raises UsageError: it is of another version. InfrastructureError: it is none."""
        if (schema := self._meta("schema")) != SCHEMA:
            raise UsageError(f"got a campaign of schema {schema}, expected {SCHEMA}; start another with --out")
        rows = self._db.execute("SELECT * FROM drives ORDER BY number")
        drives = tuple(Drive(number, os.fsdecode(url), *rest) for number, url, *rest in rows)
        owed = self._db.execute("SELECT drive, cell, pairs FROM items WHERE pairs IS NOT NULL")
        pairs = {(drive, cell): count for drive, cell, count in owed}
        try:
            cells = tuple(map(Cell.from_plain, self._meta("cells")))
        except (LookupError, TypeError, ValueError) as error:
            raise InfrastructureError(f"{self._path}: cells: {error}; was another version used?") from error
        return Plan(drives, cells, pairs, tuple(self._meta("notes")))

    @property
    def about(self) -> dict[str, Any]:
        """What :meth:`begin` was told beside the plan."""
        return dict(self._meta("about"))

    def take_up(self) -> None:
        """Take back what was being done when the last leader ended, and what had failed: somebody asks for it again.

        With the latter goes what was not needed any more: that was decided without what failed.
        Raises InfrastructureError: it was damaged or edited since it was summed up.
        """
        if problem := self.problem:
            raise InfrastructureError(f"{problem}; put it back from a copy, or use another --out")
        with self._db:
            self._db.execute("DELETE FROM meta WHERE name = 'digest'")
            self._db.execute("UPDATE items SET state = ? WHERE state = ?", (PLANNED, RUNNING))
            failed = self._db.execute("UPDATE items SET state = ?, attempts = 0 WHERE state = ?", (PLANNED, FAILED))
            if failed.rowcount:
                self._db.execute("UPDATE items SET state = ? WHERE state = ?", (PLANNED, STOPPED))

    def next(self, count: int, drives: int) -> list[Work]:
        """Return the next items of the first so many drives that are to be done, in plan order."""
        query = f"SELECT {_COLUMNS} FROM items WHERE state = ? AND drive < ? ORDER BY place LIMIT ?"
        return list(map(_work, self._db.execute(query, (PLANNED, drives, count))))

    def start(self, work: Work, key: str, relations: Sequence[str]) -> None:
        """Note that an item is being done, for which relations."""
        self._set(work, state=RUNNING, key=key, relations=json.dumps(relations))

    def done(self, work: Work, result: ItemResult) -> None:
        """Note what came of an item."""
        parts = ((work.place, p.relation, json.dumps(dataclasses.asdict(p))) for p in result.parts)
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", parts)
            cpu_table.put_cpu(self._db, work.place, result.cpu)
            self._update(work, state=DONE, trouble=_trouble(work, *result.deaths), **_ended(result))

    def trouble(self, work: Work, why: str, retries: int, result: ItemResult | None = None, retry: bool = True) -> bool:
        """Note trouble with an item; return whether it is to be tried again."""
        retry = retry and work.attempts < retries
        ended = {} if result is None else _ended(result)
        state = PLANNED if retry else FAILED
        self._set(work, state=state, attempts=work.attempts + 1, trouble=_trouble(work, why), **ended)
        return retry

    def put_back(self, work: Work, why: str) -> None:
        """Note that an item was interrupted, and why: it is taken up again, and the reason stays."""
        self._set(work, state=PLANNED, trouble=_trouble(work, why))

    def stop(self, work: Work) -> None:
        """Note that an item is not needed any more."""
        self._set(work, state=STOPPED)

    def parts(self) -> Iterator[tuple[str, int, PartResult]]:
        """Yield cell, drive and what came of a relation, in plan order, of the items that are done."""
        rows = self._db.execute(
            "SELECT cell, drive, result FROM parts JOIN items USING (place) WHERE state = ? ORDER BY place", (DONE,)
        )
        for cell, drive, result in rows:
            yield cell, drive, PartResult.from_plain(self._of_shape(result, _PART, f"part of drive {drive}"))

    def cpu(self) -> list[tuple[str, ItemCpu]]:
        """Return cell and processor time, in plan order, of the items that are done and were measured."""
        rows, shape = cpu_table.cpu_of_state(self._db, DONE), cpu_table.CPU_SHAPE
        return [(cell, ItemCpu.from_plain(self._of_shape(text, shape, f"cpu of {cell}"))) for cell, text in rows]

    def ended(self, cell: str) -> list[Work]:
        """Return the items of a cell that are done or have failed, in plan order."""
        query = f"SELECT {_COLUMNS} FROM items WHERE cell = ? AND state IN (?, ?) ORDER BY place"
        return list(map(_work, self._db.execute(query, (cell, DONE, FAILED))))

    def effort(self, cell: str) -> CellEffort:
        """Return what the items of a cell took that have ended, the last try of each."""
        sums = "count(*), coalesce(sum(judged), 0), coalesce(sum(violated), 0), coalesce(sum(seconds), 0.0)"
        query = f"SELECT {sums} FROM items WHERE cell = ? AND seconds IS NOT NULL"
        return CellEffort(*self._db.execute(query, (cell,)).fetchone())

    def standing(self) -> CampaignProgress:
        """Return how far it is."""
        items = dict(self._db.execute("SELECT state, count(*) FROM items GROUP BY state").fetchall())
        sums = "SELECT coalesce(sum(judged), 0), coalesce(sum(violated), 0) FROM items"
        return CampaignProgress(items, *self._db.execute(sums).fetchone())

    def sum_up(self) -> None:
        """Keep the digest of what it holds, until it is taken up again."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('digest', ?)", (json.dumps(self._digest()),))

    @property
    def problem(self) -> str:
        """What is wrong with it, empty if nothing is: pages, and what it held when it was summed up last."""
        if (found := self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
            return f"{self._path}: {found}"
        known = self._db.execute("SELECT value FROM meta WHERE name = 'digest'").fetchone()
        differs = known is not None and known[0] != json.dumps(self._digest())
        return f"{self._path}: does not match its digest: it was damaged or edited" if differs else ""

    def _digest(self) -> str:
        """Return the SHA-256 of all rows but its own."""
        digest = hashlib.sha256()
        meta, parts = "meta WHERE name <> 'digest' ORDER BY name", "parts ORDER BY place, relation"
        for table in (meta, "drives ORDER BY number", "items ORDER BY place", parts):
            digest.update(repr(self._db.execute(f"SELECT * FROM {table}").fetchall()).encode())
        digest.update(cpu_table.cpu_bytes(self._db))
        return digest.hexdigest()

    def _meta(self, name: str) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return self._of_shape("null" if row is None else row[0], _META[name], name)

    def _of_shape(self, text: str, shape: Shape, where: str) -> Any:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise InfrastructureError(f"{self._path}: {where}: {error}") from error
        expect_shape(value, shape, f"{self._path}: {where}")
        return value

    def _set(self, work: Work, **values: Any) -> None:
        with self._db:
            self._update(work, **values)

    def _update(self, work: Work, **values: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE items SET {names} WHERE place = ?", (*values.values(), work.place))


def _drive_row(drive: Drive) -> tuple[Any, ...]:
    return drive.number, as_stored(drive.url), drive.sha256, drive.bundles


def _trouble(work: Work, *whys: str) -> str:
    """Return the trouble of an item so far, and what has come to it, each told once."""
    new = (in_utf8(why) for why in dict.fromkeys(whys) if in_utf8(why) not in work.trouble)
    return "; ".join(filter(None, (work.trouble, *new)))


def _ended(result: ItemResult) -> dict[str, Any]:
    fields = {name: getattr(result, name) for name in ("exit_code", "sha256", "seconds", "worker")}
    violated = sum(part.outcomes.get(Outcome.VIOLATED.value, 0) for part in result.parts)
    return {**fields, "judged": sum(part.offered for part in result.parts), "violated": violated}


def _work(row: Sequence[Any]) -> Work:
    place, cell, drive, pairs, state, attempts, key, relations, exit_code, sha256, trouble = row
    known = tuple(json.loads(relations)) if relations else ()
    return Work(place, cell, drive, pairs, state, attempts, key or "", known, exit_code, sha256 or "", trouble)
