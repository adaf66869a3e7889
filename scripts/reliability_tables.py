# SPDX-License-Identifier: Apache-2.0
"""Tables of ``docs/reliability.md`` from the figures that ``attacks.py`` and ``soak.py`` wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
KINDS = ("replay in process", "replay over topics", "closed loop", "live in shadow", "inline", "campaign", "moral")
FIGURES = Path(__file__).with_name("soak.json")
#: Slopes that are told: of processes that last as long as a piece.
_LASTING = 0.9


def attack_table(table: Table) -> str:
    """Return attacks by kind of run: tries and exit codes, and below why a cell does not apply."""
    rows = json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8"))["table"]
    reasons: dict[str, int] = {}
    lines = [(name, *(_cell(cells[kind], reasons) for kind in KINDS)) for name, cells in rows.items()]
    tries = sum(cell.get("tries", 0) for cells in rows.values() for cell in cells.values())
    wrong = sum(len(cell.get("wrong", ())) for cells in rows.values() for cell in cells.values())
    notes = "\n".join(f"- ({number}) {reason}." for reason, number in reasons.items())
    return f"{table(('attack', *KINDS), lines)}\n\n{tries} tries, {wrong} did not hold.\n\n{notes}"


def _cell(cell: Mapping[str, Any], reasons: dict[str, int]) -> str:
    if "not_applicable" in cell:
        return f"({reasons.setdefault(cell['not_applicable'], len(reasons) + 1)})"
    codes = ", ".join(f"exit {code}: {count}" for code, count in cell["codes"].items())
    return f"{cell['tries']}" + (f" ({codes})" if codes else "") + ("; **wrong**" if cell["wrong"] else "")


def soak_table(table: Table) -> str:
    """Return what all pieces of the soak came to together."""
    pieces = json.loads(FIGURES.read_text(encoding="utf-8"))["pieces"]
    hours = sum(piece["minutes"] for piece in pieces) / 60.0
    runs = table(
        ("run", "pairs offered", "unaccounted for", "deaths of its stack", "outcomes"),
        [_run(name, [piece[name] for piece in pieces]) for name in ("live", "campaign")],
    )
    slopes = table(
        ("process", "piece", "memory, first to last", "slope"),
        [row for number, piece in enumerate(pieces, 1) for row in _slopes(number, piece)],
    )
    kept = {"segments of shared memory": "segments_left", "processes": "left_running"}
    left = ", ".join(f"{sum(piece[key] for piece in pieces)} {what}" for what, key in kept.items())
    doctor = ", ".join(str(piece["doctor"]) for piece in pieces)
    head = f"{hours:.1f} of 8 hours, in {len(pieces)} piece{'s' if len(pieces) > 1 else ''}."
    return f"{head}\n\n{runs}\n\n{slopes}\n\nLeft at the end: {left}; exit code of `mt doctor`: {doctor}."


def drive_table(table: Table) -> str:
    """Return what became of memory over a long drive."""
    drive = json.loads(FIGURES.read_text(encoding="utf-8"))["drive"]
    rows = [
        (
            name.rpartition(" ")[0],
            f"{row['memory_mb'][0]:g} to {row['memory_mb'][1]:g} MB",
            f"{row['bytes_per_pair']:,} bytes",
        )
        for name, row in drive["processes"].items()
    ]
    lost = sum(drive[key] for key in ("unaccounted", "journal_missing", "journal_doubled"))
    pairs = f"{drive['offered']:,} pairs offered, {lost} unaccounted for"
    head = (
        f"{drive['bundles']:,} bundles ({drive['bundles'] / 600:g} minutes of driving) in {drive['took_s']} s; {pairs}."
    )
    return f"{head}\n\n{table(('process', 'memory in the second half, first to last', 'for each pair'), rows)}"


def _run(name: str, parts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    outcomes: Counter[str] = Counter()
    for part in parts:
        outcomes.update(part["outcomes"])
    keys = ("unaccounted", "journal_missing", "journal_doubled")
    return (
        {"live": "`mt live`", "campaign": "`mt campaign`"}[name],
        f"{sum(part['offered'] for part in parts):,}",
        str(sum(part[key] for part in parts for key in keys)),
        str(sum(sum(part["deaths"].values()) for part in parts)),
        ", ".join(f"{outcome} {count:,}" for outcome, count in outcomes.most_common()),
    )


def _slopes(number: int, piece: Mapping[str, Any]) -> list[tuple[str, ...]]:
    lasting = {n: row for n, row in piece["processes"].items() if row["minutes"] > _LASTING * piece["minutes"]}
    return [
        (
            name.rpartition(" ")[0],
            str(number),
            f"{row['memory_mb'][0]:g} to {row['memory_mb'][1]:g} MB",
            f"{row['slope_mb_per_h']:+.1f} MB/h",
        )
        for name, row in lasting.items()
    ]
