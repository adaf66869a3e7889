# SPDX-License-Identifier: Apache-2.0
"""The table of processor time in a campaign's store, which one that an older version began does not have."""

from __future__ import annotations

import dataclasses
import json
import sqlite3

from mt_nodes.base.record_shapes import NUMBER, Shape
from mt_nodes.runs.campaign.item import ItemCpu

#: Of the text in a row.
CPU_SHAPE: Shape = {"seconds": NUMBER, "relations": {"*": [NUMBER, int]}}


def put_cpu(db: sqlite3.Connection, place: int, cpu: ItemCpu | None) -> None:
    """Put what was measured of an item in the place of what was known; None: it was not measured."""
    db.execute("CREATE TABLE IF NOT EXISTS cpu (place INTEGER PRIMARY KEY, result TEXT NOT NULL)")
    if cpu is None:
        db.execute("DELETE FROM cpu WHERE place = ?", (place,))
    else:
        db.execute("INSERT OR REPLACE INTO cpu VALUES (?, ?)", (place, json.dumps(dataclasses.asdict(cpu))))


def cpu_of_state(db: sqlite3.Connection, state: str) -> list[tuple[str, str]]:
    """Return cell and text of each measured item of a state, in plan order."""
    if not _made(db):
        return []
    query = "SELECT cell, result FROM cpu JOIN items USING (place) WHERE state = ? ORDER BY place"
    return db.execute(query, (state,)).fetchall()


def cpu_bytes(db: sqlite3.Connection) -> bytes:
    """Return what a digest takes in of it: nothing where there are no rows."""
    rows = db.execute("SELECT * FROM cpu ORDER BY place").fetchall() if _made(db) else []
    return repr(rows).encode() if rows else b""


def _made(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'cpu'").fetchone())
