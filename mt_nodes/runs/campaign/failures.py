# SPDX-License-Identifier: Apache-2.0
"""The database of failing cases: pairs that were violated once, to be judged first in later runs.

It makes regressions show early. Nothing relies on it: a run without it judges the same pairs, only later.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import as_stored
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.verdict import Outcome, Pair

FILE = "mt_failures.sqlite"
#: A case that held in so many runs in a row is taken out.
RETIRE_AFTER = 5
#: Of the file; a file with another number was made by another version.
_VERSION = 1
_WAIT_S = 60.0
_TABLE = """CREATE TABLE IF NOT EXISTS cases (
    key TEXT PRIMARY KEY, bag TEXT NOT NULL, bag_sha256 TEXT NOT NULL, stack TEXT NOT NULL, pair TEXT NOT NULL,
    seed INTEGER NOT NULL, relation TEXT NOT NULL, code TEXT NOT NULL, margin REAL, first_seen TEXT NOT NULL,
    last_failed TEXT NOT NULL, last_passed TEXT NOT NULL, held INTEGER NOT NULL)"""


@dataclass(frozen=True)
class FailureCase:
    """One pair that was violated.

    Attributes:
        bag: path or URL when it was seen last. bag_sha256: of its content.
        stack: its name, and the faults that were planted.
        pair: identity in its run; its episode is what draws depend on. seed: of the run.
        relation: as its file says it, JSON. code: SHA-256 of what its follow-up is made by.
        margin: of the violation, None where nothing could be measured.
        first_seen, last_failed, last_passed: UTC times in ISO 8601, empty for never.
        held: runs in a row in which it held.
    """

    bag: str
    bag_sha256: str
    stack: str
    pair: Pair
    seed: int
    relation: str
    code: str
    margin: float | None = None
    first_seen: str = ""
    last_failed: str = ""
    last_passed: str = ""
    held: int = 0

    @property
    def key(self) -> str:
        """SHA-256 of what the case is, whatever became of its bag's place and the code since."""
        known = [self.bag_sha256, self.stack, str(self.pair), self.seed]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()


_COLUMNS = tuple(field.name for field in fields(FailureCase))


class Failures:
    """Opens the database, made where there is none; a context manager. Several runs may use it at the same time."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises InfrastructureError: the file is no such database, or cannot be written."""
        self.path = path
        with self._database_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._store = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        with self._writing():
            (version,) = self._store.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise InfrastructureError(
                    f"{path}: has version {version}, expected {_VERSION}: another mt_nodes made it; name another file "
                    "with --failures-file"
                )
            self._store.execute(_TABLE)
            self._store.execute(f"PRAGMA user_version = {_VERSION}")

    def __enter__(self) -> Failures:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def cases(self, bags: Iterable[str] | None = None, stack: str | None = None) -> list[FailureCase]:
        """Return what is kept, of all or of some bags (by SHA-256) and of a stack; in the order of pairs."""
        hashes = None if bags is None else set(bags)
        with self._database_errors():
            rows = self._store.execute(f"SELECT {', '.join(_COLUMNS)} FROM cases").fetchall()
        cases = [_case(row) for row in rows]
        fitting = [c for c in cases if (hashes is None or c.bag_sha256 in hashes) and stack in (None, c.stack)]
        return sorted(fitting, key=lambda c: (c.bag, c.stack, c.pair.relation, c.seed, str(c.pair)))

    def failed(self, cases: Sequence[FailureCase]) -> int:
        """Keep cases that were violated just now; return how many are new."""
        new = 0
        with self._writing():
            for case in cases:
                known = self._known(case.key)
                new += known is None
                first = known.first_seen if known else _now()
                self._put(replace(case, first_seen=first, last_failed=_now(), held=0))
        return new

    def record_outcomes(self, outcomes: Sequence[tuple[str, Outcome]]) -> list[FailureCase]:
        """Take in how cases that were kept ended, by key; return those that held so often that they are taken out.

        What was not decided says nothing of a case.
        """
        retired = []
        with self._writing():
            for key, outcome in outcomes:
                known = self._known(key)
                if known is None or not outcome.decided:
                    continue
                if outcome is Outcome.VIOLATED:
                    self._put(replace(known, last_failed=_now(), held=0))
                elif known.held + 1 >= RETIRE_AFTER:
                    retired.append(known)
                    self._store.execute("DELETE FROM cases WHERE key = ?", (key,))
                else:
                    self._put(replace(known, last_passed=_now(), held=known.held + 1))
        return retired

    def forget(self, keys: Iterable[str]) -> int:
        """Take cases out, by key or by how it begins; return how many there were.

        Raises UsageError: none or several begin so; nothing was taken out.
        """
        keys_to_delete = [self._one(key) for key in keys]
        with self._writing():
            self._store.executemany("DELETE FROM cases WHERE key = ?", [(key,) for key in keys_to_delete])
        return len(set(keys_to_delete))

    def _one(self, begins: str) -> str:
        found = [case.key for case in self.cases() if begins and case.key.startswith(begins)]
        if len(found) != 1:
            raise UsageError(
                f"{self.path}: {len(found)} cases begin with '{begins}', expected one; `mt replay failures list`"
            )
        return found[0]

    def _known(self, key: str) -> FailureCase | None:
        row = self._store.execute(f"SELECT {', '.join(_COLUMNS)} FROM cases WHERE key = ?", (key,)).fetchone()
        return None if row is None else _case(row)

    def _put(self, case: FailureCase) -> None:
        row = [getattr(case, name) for name in _COLUMNS]
        row[_COLUMNS.index("pair")], row[_COLUMNS.index("bag")] = str(case.pair), as_stored(case.bag)
        marks = ", ".join("?" * (len(row) + 1))
        names = ", ".join(("key", *_COLUMNS))
        self._store.execute(f"INSERT OR REPLACE INTO cases ({names}) VALUES ({marks})", (case.key, *row))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, all or nothing; another run that writes is waited for."""
        with self._database_errors():
            self._store.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._store.execute("COMMIT")
            except BaseException:
                self._store.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _database_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise InfrastructureError(
                f"{self.path}: cannot be used as a database of failing cases: {error}; delete it, or name another file "
                "with --failures-file"
            ) from error


def _case(row: Sequence[Any]) -> FailureCase:
    values = dict(zip(_COLUMNS, row, strict=True))
    return FailureCase(**{**values, "bag": os.fsdecode(values["bag"]), "pair": Pair.parse(values["pair"])})


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
