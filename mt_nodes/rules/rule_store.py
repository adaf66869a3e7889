# SPDX-License-Identifier: Apache-2.0
"""The store of relations from rules: one SQLite file, with AutoMT's fields and execution counts.

Every change is one transaction: all or nothing. Writers wait for each other; readers never wait, because the file uses
write-ahead logging, which needs a local disk.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from mt_nodes.base.errors import InfrastructureError, MtError, UsageError
from mt_nodes.rules.migrations import VERSION, checked_version, migrate
from mt_nodes.rules.nearest_texts import Index, Indexer, Nearest
from mt_nodes.rules.ontology import ANY_ROAD, Ontology, load_ontology
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.store_entry import Entry, words_of

_COLUMNS = "id, text, road, verb, element, place, behaviour, condition, rules, region, origin, prompt_id, answer_id"
_JUDGED = "agreement, rejected"
_KEY = ("region", "origin", "road", "verb", "element", "place", "behaviour", "condition")


class Store:
    """An open store; a context manager.

    Raises UsageError: no such file, not a store, or one of a later version. InfrastructureError: it is damaged, cannot
    be written, or others write for longer than ``wait_s``.

    Args:
        path: of the file; created if it does not exist and writing is allowed.
        write: whether to allow changes; without, the file may be on a read-only medium.
        wait_s: how long to wait for other writers.
        ontology: allowed words; by default those of the package.
        indexer: similarity of meanings.
    """

    def __init__(
        self,
        path: Path,
        *,
        write: bool = True,
        wait_s: float = 10.0,
        ontology: Ontology | None = None,
        indexer: Indexer = Index,
    ) -> None:
        self.path, self._wait_s, self._indexer, self._ontology = path, wait_s, indexer, ontology
        if not (path.is_file() or (write and path.parent.is_dir())):
            raise UsageError(f"{path}: no such {'directory' if write else 'store of relations'}")
        self._index: tuple[tuple[str, ...], Nearest] | None = None
        with self._telling():
            self._db = sqlite3.connect(_uri(path, write), uri=True, timeout=wait_s, isolation_level=None)
            try:
                self._prepare(write)
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; changes are in it already."""
        self._db.close()

    @cached_property
    def ontology(self) -> Ontology:
        """The allowed words."""
        return self._ontology or load_ontology()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction, exclusive of other writers.

        Raises InfrastructureError: the disk is full, the file cannot be written, or others write for too long.
        """
        if self._db.in_transaction:
            yield
            return
        with self._telling():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def add(self, entries: Iterable[Entry]) -> list[int]:
        """Add relations, all or none, and return their numbers.

        One that exists already, from the same region and origin, keeps its number and its executions and gets the rules
        of both. A relation that the judge rejects for one rule and accepts for another is accepted, for the latter.
        Raises UsageError: a word is not in the ontology; nothing is added. InfrastructureError: see
        :meth:`transaction`.
        """
        rows = list(entries)
        for number, entry in enumerate(rows, 1):
            self.ontology.refuse_unknown(entry.statement, f"relation {number} of {len(rows)} for {self.path}")
        with self.transaction():
            return [self._insert_or_merge(entry) for entry in rows]

    def entries(self, region: str = "", origins: Sequence[str] = (), *, rejected: bool = False) -> list[Entry]:
        """Return the relations in the order of their numbers, optionally of one region and of some origins only.

        ``rejected``: also those that the judge rejects.
        """
        where = "" if rejected else "WHERE NOT rejected"
        with self._telling():
            rows = self._db.execute(
                f"SELECT {_COLUMNS}, executions, {_JUDGED} FROM statements {where} ORDER BY id"
            ).fetchall()
        found = [_entry(row) for row in rows]
        return [e for e in found if region in ("", e.region) and (not origins or e.origin in origins)]

    def count(self, indices: Iterable[int]) -> None:
        """Count choices of relations, with repetitions, in one transaction.

        Raises UsageError: there is no such relation; nothing is counted.
        """
        with self.transaction():
            for index, times in Counter(indices).items():
                query = "UPDATE statements SET executions = executions + ? WHERE id = ?"
                if self._db.execute(query, (times, index)).rowcount != 1:
                    raise UsageError(f"{self.path}: no relation {index}; nothing was counted")

    def find(self, words: str, limit: int = -1) -> list[Entry]:
        """Return the relations that contain all of some words, in any form, best first; also rejected ones.

        ``limit``: the largest number; below 0: all.
        """
        phrase = " ".join(f'"{word}"' for word in re.findall(r"\w+", words))
        if not phrase:
            return []
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?"
        with self._telling():
            rows = self._db.execute(query, (phrase, limit)).fetchall()
        known = {entry.index: entry for entry in self.entries(rejected=True)}
        return [known[index] for (index,) in rows]

    def nearest(self, query: str, entries: Sequence[Entry] | None = None, limit: int = 20) -> list[tuple[Entry, float]]:
        """Return the relations nearest in meaning to a text, and their similarities, at most 1.

        ``entries``: to choose from; None: all.
        """
        rows = self.entries() if entries is None else list(entries)
        texts = tuple(meaning(entry.statement, self.ontology) for entry in rows)
        if self._index is None or self._index[0] != texts:
            self._index = texts, self._indexer(texts)
        return [(rows[row], near) for row, near in self._index[1].nearest(query, limit)]

    def _prepare(self, write: bool) -> None:
        self._db.execute("BEGIN")  # one look, lest another process makes it a store between two
        version = checked_version(self._db, self.path)
        self._db.execute("COMMIT")
        if version != VERSION and not write:
            raise UsageError(
                f"{self.path}: a store of version {version}; open it for writing once to make it {VERSION}"
            )
        if version != VERSION:
            with self.transaction():
                migrate(self._db, self.path)
        if write and self._db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self._db.execute("PRAGMA journal_mode = WAL")

    def _insert_or_merge(self, entry: Entry) -> int:
        statement = entry.statement
        key = [getattr(entry if name in ("region", "origin") else statement, name) for name in _KEY]
        where = " AND ".join(f"{name} = ?" for name in _KEY)
        row = self._db.execute(f"SELECT id, rules, rejected FROM statements WHERE {where}", key).fetchone()
        if row is None:
            return self._insert(entry)
        index, before, was_rejected = row
        rules, rejected = _merged(json.loads(before), bool(was_rejected), entry)
        after = json.dumps(rules)
        if (after, rejected) != (before, bool(was_rejected)):
            query = "UPDATE statements SET rules = ?, agreement = coalesce(?, agreement), rejected = ? WHERE id = ?"
            self._db.execute(query, (after, entry.agreement, int(rejected), index))
        return int(index)

    def _insert(self, entry: Entry) -> int:
        statement = entry.statement
        values = (
            *(
                entry.text,
                statement.road,
                statement.verb,
                statement.element,
                statement.place,
                statement.behaviour,
                statement.condition,
            ),
            *(json.dumps(list(statement.rules)), entry.region, entry.origin, entry.prompt_id, entry.answer_id),
            *(entry.executions, entry.agreement, int(entry.rejected)),
        )
        columns = f"{_COLUMNS.removeprefix('id, ')}, executions, {_JUDGED}"
        marks = ", ".join("?" * len(values))
        cursor = self._db.execute(f"INSERT INTO statements ({columns}) VALUES ({marks})", values)
        return int(cursor.lastrowid or 0)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Translate SQLite's errors into ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise _error_of(error, self.path, self._wait_s) from error


def meaning(statement: Statement, ontology: Ontology) -> str:
    """Return the words of a statement and all of their phrases in rules: the text for similarity.

    Any road says nothing about a scene, nor do the phrases of a behaviour.
    """
    places = (ontology.roads[statement.road],) if statement.road != ANY_ROAD else ()
    terms = (*places, ontology.elements[statement.element])
    known = [phrase for term in terms for phrase in (words_of(term.name), *term.says)]
    return " ".join([*known, words_of(statement.behaviour), words_of(statement.condition)])


def _merged(rules: Sequence[str], rejected: bool, entry: Entry) -> tuple[list[str], bool]:
    """Return the rules of a stored relation after another reading of it, and whether it is rejected then.

    One that is accepted for some rule is accepted, for the rules for which it is; the latest reading of a rule counts.
    """
    new = entry.statement.rules
    if rejected == entry.rejected:
        return list(dict.fromkeys([*rules, *new])), rejected
    if not entry.rejected:
        return list(new), False
    others = [rule for rule in rules if rule not in new]
    return (others, False) if others else (list(new), True)


def _entry(row: Sequence[Any]) -> Entry:
    index, _, road, verb, element, place, behaviour, condition, rules, *further = row
    region, origin, prompt, answer, executions, agreement, rejected = further
    statement = Statement(road, verb, element, behaviour, place, condition, tuple(json.loads(rules)))
    return Entry(statement, region, origin, prompt, answer, index, executions, agreement, bool(rejected))


def _uri(path: Path, write: bool) -> str:
    """Return the URI of a file; on a read-only medium it says so, because SQLite would look for a log file there."""
    name = quote(os.fsencode(path.absolute()))
    if write:
        return f"file:{name}?mode=rwc"
    return f"file:{name}?mode=ro{'' if os.access(path.parent, os.W_OK) else '&immutable=1'}"


def _error_of(error: sqlite3.Error, path: Path, wait_s: float) -> MtError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return InfrastructureError(
            f"{path}: others have been writing for {wait_s:g} s; nothing was changed; try again when they have ended"
        )
    if "readonly" in text or "read-only" in text:
        return InfrastructureError(f"{path}: cannot be written; nothing was changed; copy it to where you may write")
    if "full" in text or "disk I/O" in text:
        return InfrastructureError(f"{path}: cannot be written: {text}; nothing was changed; make room on the disk")
    if "not a database" in text or "malformed" in text:
        return UsageError(f"{path}: no store of relations, or a damaged one: {text}; name another file")
    return InfrastructureError(f"{path}: {text}; nothing was changed")
