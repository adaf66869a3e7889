# SPDX-License-Identifier: Apache-2.0
"""``pairs.csv``, and ``pairs.parquet`` where ``pyarrow`` is installed: one row per pair."""

from __future__ import annotations

import csv
import importlib.util
import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from mt_nodes.data.polar_cells import JUDGED_IN
from mt_nodes.data.verdict import OBJECTS, OBJECTS_BY, Pair
from mt_nodes.engine.summary.verdict_rows import PairRow
from mt_nodes.relations.checks.controls import COMMANDED

#: Keys of a verdict's detail with rows [x m, y m, class]; the first that has any counts.
_PLACES = ("lost_at", "gained_at", "changed_at")
#: The same in a camera image, rows [x0, y0, x1, y1, class] in pixels, which have no range.
_BOXES = ("lost_px", "gained_px")


class VerdictObstacle(NamedTuple):
    """Classes of the obstacles, sorted and joined by ``;``, empty if unknown; range of the nearest in m, or None.

    Ranges are from the origin of the frame that the check judges in.
    """

    classes: str = ""
    range_m: float | None = None


def obstacle_of(detail: Mapping[str, Any]) -> VerdictObstacle:
    """Return the obstacle that a verdict is about, from its ``detail``.

    That is the lost one, else the gained, else the changed one; where objects were added, those that were not found,
    else all. A pair that holds may have only the classes that were judged.
    """
    if rows := _first(detail, _PLACES):
        return VerdictObstacle(
            _classes(row[2:] for row in rows), round(min(math.hypot(row[0], row[1]) for row in rows), 2)
        )
    if rows := _first(detail, _BOXES):
        return VerdictObstacle(_classes(row[4:] for row in rows))
    if rows := detail.get(OBJECTS, ()):
        missed = [row for row in rows if not row[1]] or rows
        in_metres = detail.get(OBJECTS_BY, {}).get("unit") == "m"
        return VerdictObstacle(
            _classes(row[2:] for row in missed), min(row[0] for row in missed) if in_metres else None
        )
    return VerdictObstacle(";".join(sorted(detail.get(JUDGED_IN, ()))))


def _first(detail: Mapping[str, Any], names: Sequence[str]) -> Sequence[Sequence[Any]]:
    return next((rows for name in names if (rows := detail.get(name))), ())


def _classes(labels: Any) -> str:
    return ";".join(sorted({str(label[0]) for label in labels if label}))


#: Numeric columns and their Parquet types.
NUMBERS = {
    **dict.fromkeys(("episode", "bundle", "lost", "gained"), "int64"),
    **dict.fromkeys(("measured", "bound", "margin", "range_m"), "float64"),
}


COLUMNS = PairRow._fields[:-1]


def pair_rows(
    verdicts: Iterable[Mapping[str, Any]], requirements: Mapping[str, Sequence[str]] | None = None
) -> list[PairRow]:
    """Return one row per verdict line of a journal, see :class:`PairRows`."""
    rows = PairRows(requirements)
    for line in verdicts:
        rows.take(line)
    return rows.sorted()


class PairRows:
    """One row a verdict line of a journal.

    ``requirements``: the user's ids by relation; several are joined by ``;``.
    """

    def __init__(self, requirements: Mapping[str, Sequence[str]] | None = None) -> None:
        self._requirements = {relation: ";".join(ids) for relation, ids in (requirements or {}).items()}
        self._rows: list[PairRow] = []

    def take(self, line: Mapping[str, Any]) -> None:
        """Take a line in, if it is a verdict."""
        if line.get("type") == "verdict":
            self._rows.append(_row(line, self._requirements))

    def sorted(self) -> list[PairRow]:
        """Return the rows, sorted by pair so that equal runs give equal files."""
        return sorted(self._rows, key=_order)


def write_pairs_csv(path: Path, rows: Iterable[PairRow]) -> None:
    """Write the rows; a missing value is an empty cell, as is the bundle when a whole episode was judged."""
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(map(itemgetter(slice(len(COLUMNS))), rows))


def write_pairs_parquet(path: Path, rows: Sequence[PairRow]) -> bool:
    """Write the rows with the same columns, missing values as null; return False without ``pyarrow``."""
    if importlib.util.find_spec("pyarrow") is None:
        return False
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, getattr(pyarrow, NUMBERS.get(name, "string"))()) for name in COLUMNS])
    columns = [_column(list(map(itemgetter(at), rows)), field.type) for at, field in enumerate(schema)]
    with path.open("wb") as file:  # pyarrow refuses a path that is not UTF-8
        pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), file)
    return True


def _column(values: Sequence[Any], kind: Any) -> Any:
    """Return the Arrow array of Python values.

    Made of buffers: of Python objects ``pyarrow.array`` asks whether they are pandas', which imports pandas, for 0.2 s.
    """
    import pyarrow

    if kind != pyarrow.string():
        valid = np.packbits(np.array([value is not None for value in values], bool), bitorder="little")
        numbers = np.array([0 if value is None else value for value in values], kind.to_pandas_dtype())
        return pyarrow.Array.from_buffers(kind, len(values), [pyarrow.py_buffer(valid), pyarrow.py_buffer(numbers)])
    texts = [value.encode("utf-8", "backslashreplace") for value in values]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:  # more than one array of texts holds
        return pyarrow.array([text.decode() for text in texts], kind)
    buffers = [None, pyarrow.py_buffer(ends.astype(np.int32)), pyarrow.py_buffer(b"".join(texts))]
    return pyarrow.Array.from_buffers(kind, len(texts), buffers)


def _row(line: Mapping[str, Any], requirements: Mapping[str, str]) -> PairRow:
    pair, detail = Pair.parse(line["pair"]), line.get("detail", {})
    obstacle, judged_for = obstacle_of(detail), intern(pair.judged_for)
    # Texts that many pairs share are stored once.
    return PairRow(
        pair=line["pair"],
        episode=pair.episode,
        bundle=pair.bundle,
        relation=intern(pair.relation),
        draw=intern(pair.draw),
        judged_for=judged_for,
        requirement=requirements.get(judged_for, ""),
        outcome=intern(line["outcome"]),
        measured=line.get("measured"),
        bound=line.get("bound"),
        margin=line.get("margin"),
        unit=intern(line.get("unit", "")),
        lost=line.get("lost", 0),
        gained=line.get("gained", 0),
        reason=line.get("reason", ""),
        object_class=intern(obstacle.classes),
        range_m=obstacle.range_m,
        truth=intern(line.get("truth", {}).get("case", "")),
        commanded=tuple(detail[COMMANDED]) if COMMANDED in detail else None,
    )


def _order(row: PairRow) -> tuple[Any, ...]:
    return row.episode, -1 if row.bundle is None else row.bundle, row.relation, row.draw
