# SPDX-License-Identifier: Apache-2.0
"""``pairs.csv``: one row a pair, for spreadsheets and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mt_nodes.verdict import Pair

COLUMNS = (
    *("pair", "episode", "bundle", "relation", "draw", "judged_for", "outcome"),
    *("measured", "bound", "margin", "unit", "lost", "gained", "reason"),
)


def write_pairs_csv(path: Path, verdicts: Iterable[Mapping[str, Any]]) -> None:
    """Write the verdict lines of a journal, sorted by pair so that equal runs give equal files.

    What was not measured is an empty cell; the bundle is empty when a whole episode was judged.
    """
    rows = [_row(line) for line in verdicts if line.get("type") == "verdict"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=_order))


def _row(line: Mapping[str, Any]) -> dict[str, Any]:
    pair = Pair.parse(line["pair"])
    identity = {name: getattr(pair, name) for name in ("episode", "bundle", "draw", "judged_for")}
    return {**line, **identity}


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    bundle = -1 if row["bundle"] is None else row["bundle"]
    return row["episode"], bundle, row["relation"], row["draw"]
