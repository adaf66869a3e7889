# SPDX-License-Identifier: Apache-2.0
"""Schema versions of a store: their changes, and which files may be opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from mt_nodes.base.errors import UsageError

#: Identifies a store of relations among SQLite files: "mtrs" as a number.
APPLICATION_ID = 0x6D747273

_STATEMENTS = """
CREATE TABLE statements (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    road TEXT NOT NULL,
    verb TEXT NOT NULL,
    element TEXT NOT NULL,
    place TEXT NOT NULL,
    behaviour TEXT NOT NULL,
    condition TEXT NOT NULL,
    rules TEXT NOT NULL,
    region TEXT NOT NULL,
    origin TEXT NOT NULL,
    prompt_id TEXT NOT NULL,
    answer_id TEXT NOT NULL,
    executions INTEGER NOT NULL DEFAULT 0 CHECK (executions >= 0),
    UNIQUE (region, origin, road, verb, element, place, behaviour, condition)
)"""
#: Words are looked up by stem; the index holds no texts of its own and is updated by triggers.
_WORDS = """
CREATE VIRTUAL TABLE words USING fts5 (
    text, element, condition, rules, content = 'statements', content_rowid = 'id', tokenize = 'porter unicode61'
)"""
_TAKEN_IN = "INSERT INTO words (rowid, text, element, condition, rules)"
_NEW = "VALUES (new.id, new.text, new.element, new.condition, new.rules)"
_TAKEN_OUT = (
    "INSERT INTO words (words, rowid, text, element, condition, rules) "
    "VALUES ('delete', old.id, old.text, old.element, old.condition, old.rules)"
)
#: The first n of these make version n from an empty file.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (_STATEMENTS,),
    (
        _WORDS,
        "INSERT INTO words (words) VALUES ('rebuild')",
        f"CREATE TRIGGER added AFTER INSERT ON statements BEGIN {_TAKEN_IN} {_NEW}; END",
        f"CREATE TRIGGER removed AFTER DELETE ON statements BEGIN {_TAKEN_OUT}; END",
        "CREATE TRIGGER changed AFTER UPDATE OF text, element, condition, rules ON statements "
        f"BEGIN {_TAKEN_OUT}; {_TAKEN_IN} {_NEW}; END",
    ),
    (
        "ALTER TABLE statements ADD COLUMN agreement REAL",
        "ALTER TABLE statements ADD COLUMN rejected INTEGER NOT NULL DEFAULT 0 CHECK (rejected IN (0, 1))",
    ),
)
VERSION = len(MIGRATIONS)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring a store to the present version, within the open transaction; an empty file becomes a store.

    Raises UsageError: it is no store, or one of a later version; nothing is changed.
    """
    for steps in MIGRATIONS[checked_version(db, path) :]:
        for step in steps:
            db.execute(step)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def checked_version(db: sqlite3.Connection, path: Path) -> int:
    """Return the version of a store, 0 for an empty file.

    Raises UsageError: it is no store, or one of a later version.
    """
    (kind,), (version,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
    if kind != APPLICATION_ID and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise UsageError(f"{path}: a SQLite file of something else, expected a store of relations; name another file")
    if version > VERSION:
        raise UsageError(
            f"{path}: a store of version {version}, this mt_nodes knows up to {VERSION}; use a newer mt_nodes, or "
            "another file"
        )
    return int(version)
