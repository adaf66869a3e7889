# SPDX-License-Identifier: Apache-2.0
"""``pairs.csv``, and ``pairs.parquet`` where ``pyarrow`` is there: one row a pair, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.verdict import Pair

COLUMNS = (
    *("pair", "episode", "bundle", "relation", "draw", "judged_for", "requirement", "outcome"),
    *("measured", "bound", "margin", "unit", "lost", "gained", "reason"),
)
#: Columns that are no text, as Parquet has them.
NUMBERS = {
    **dict.fromkeys(("episode", "bundle", "lost", "gained"), "int64"),
    **dict.fromkeys(("measured", "bound", "margin"), "float64"),
}
Row = dict[str, Any]


def pair_rows(
    verdicts: Iterable[Mapping[str, Any]], requirements: Mapping[str, Sequence[str]] | None = None
) -> list[Row]:
    """Return one row a verdict line of a journal, sorted by pair so that equal runs give equal files.

    ``requirements`` are the user's ids by relation; several are joined by ``;``.
    """
    carried = requirements or {}
    rows = [_row(line, carried) for line in verdicts if line.get("type") == "verdict"]
    return sorted(rows, key=_order)


def write_pairs_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows; what was not measured is an empty cell, so is the bundle when a whole episode was judged."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_pairs_parquet(path: Path, rows: Sequence[Row]) -> bool:
    """Write the rows with the same columns (what is empty in CSV is null); False where ``pyarrow`` is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        return False
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, getattr(pyarrow, NUMBERS.get(name, "string"))()) for name in COLUMNS])
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), path)
    return True


def _row(line: Mapping[str, Any], requirements: Mapping[str, Sequence[str]]) -> Row:
    pair = Pair.parse(line["pair"])
    identity = {name: getattr(pair, name) for name in ("episode", "bundle", "draw", "judged_for")}
    return {**line, **identity, "requirement": ";".join(requirements.get(pair.judged_for, ()))}


def _order(row: Row) -> tuple[Any, ...]:
    bundle = -1 if row["bundle"] is None else row["bundle"]
    return row["episode"], bundle, row["relation"], row["draw"]
