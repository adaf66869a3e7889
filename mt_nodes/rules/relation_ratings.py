# SPDX-License-Identifier: Apache-2.0
"""People rate relations: is a relation a valid reading of its rule, and is it clear? (AutoMT's table VII.)

A sheet is a CSV file with one relation a row, which each rater fills in: 5 (strongly agree) to 1 (strongly disagree)
under ``valid`` and ``clear``, nothing where they cannot tell. Agreement is Fleiss' kappa, and Krippendorff's alpha on
ordinal data.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.stats.rater_agreement import fleiss_kappa, kappa_interval
from mt_nodes.base.yaml_files import read_text
from mt_nodes.rules.reader_agreement import alpha_of
from mt_nodes.rules.rule_sets import RuleSet
from mt_nodes.rules.store_entry import Entry

POINTS = (5, 4, 3, 2, 1)
QUESTIONS = ("valid", "clear")
_TOLD = ("relation", "region", "rule", "rule text", "relation text")
COLUMNS = (*_TOLD, *QUESTIONS, "comment")


@dataclass(frozen=True)
class RatedQuestion:
    """All raters' answers to one question about the relations of one region.

    ``answers``: number of each of :data:`POINTS`. ``relations``: rated by two people at least. ``kappa``, ``alpha``:
    None where not defined. ``interval``: 95 %, of kappa.
    """

    region: str
    question: str
    answers: tuple[int, ...]
    relations: int
    kappa: float | None
    interval: tuple[float, float] | None
    alpha: float | None

    @property
    def shares(self) -> tuple[float, ...] | None:
        """Share of each of :data:`POINTS`, None without an answer."""
        return tuple(n / sum(self.answers) for n in self.answers) if sum(self.answers) else None


def sheet(entries: Sequence[Entry], sets: Sequence[RuleSet], count: int, seed: int = 0) -> str:
    """Return an empty sheet: up to ``count`` relations of each region by lot, each with one of its rules.

    Raises UsageError: no relation has a rule with a text.
    """
    texts = {(one.region, rule.id): rule.text for one in sets for rule in one.rules.values()}
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for entry in entries:
        named = next((rule for rule in entry.statement.rules if (entry.region, rule) in texts), None)
        if named is not None:
            told = (entry.index, entry.region, named, texts[entry.region, named], entry.text)
            rows.setdefault(entry.region, []).append(told)
    if not rows:
        raise UsageError("no relation of the store has a rule of these sets; name the rules that it was made of")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for of_region in rows.values():
        drawn = random.Random(seed).sample(of_region, min(count, len(of_region)))
        writer.writerows((*row, "", "", "") for row in sorted(drawn))
    return text.getvalue()


def read_sheets(paths: Sequence[Path]) -> dict[str, list[dict[str, str]]]:
    """Return the rows of filled-in sheets by rater, the name of the file.

    Raises UsageError: a file is no such sheet, has another answer, or is of other relations than the first one.
    """
    sheets: dict[str, list[dict[str, str]]] = {}
    for path in paths:
        if path.stem in sheets:
            raise UsageError(f"{path}: got a second sheet of '{path.stem}', expected one file for each rater, by name")
        sheets[path.stem] = _rows(path)
        first = next(iter(sheets.values()))
        if [_told(row) for row in sheets[path.stem]] != [_told(row) for row in first]:
            raise UsageError(f"{path}: its relations are not those of {paths[0]}; give all raters copies of one sheet")
    return sheets


def rated(sheets: Mapping[str, Sequence[Mapping[str, str]]]) -> list[RatedQuestion]:
    """Return the answers and the agreement by region and question.

    Raises UsageError: nothing is rated, or the library is not installed.
    """
    first = next(iter(sheets.values()))
    regions = list(dict.fromkeys(row["region"] for row in first))
    found = [_rated(region, question, sheets) for region in regions for question in QUESTIONS]
    if not any(sum(one.answers) for one in found):
        raise UsageError(f"no sheet has an answer under {' or '.join(QUESTIONS)}, expected 1 to 5")
    return found


def _rated(region: str, question: str, sheets: Mapping[str, Sequence[Mapping[str, str]]]) -> RatedQuestion:
    points = np.array(
        [[float(row[question] or "nan") for row in rows if row["region"] == region] for rows in sheets.values()]
    )
    counts = np.stack([(points == point).sum(axis=0) for point in POINTS], axis=1).astype(np.int64)
    paired = int((counts.sum(axis=1) > 1).sum())
    different = len(np.unique(points[np.isfinite(points)]))
    alpha = alpha_of(points, different, paired, level="ordinal")
    answers = tuple(int(n) for n in counts.sum(axis=0))
    return RatedQuestion(region, question, answers, paired, fleiss_kappa(counts), kappa_interval(counts), alpha)


def _rows(path: Path) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(read_text(path)))
    if missing := [name for name in COLUMNS[:-1] if name not in (reader.fieldnames or ())]:
        raise UsageError(f"{path}: no column '{missing[0]}'; expected a sheet of `mt rules review --sheet`")
    rows = [{str(key): (value or "").strip() for key, value in row.items() if key} for row in reader]
    if not rows:
        raise UsageError(f"{path}: got no relation, expected a sheet of `mt rules review --sheet`")
    for number, row in enumerate(rows, 2):
        for question in QUESTIONS:
            if row[question] not in ("", *map(str, POINTS)):
                raise UsageError(f"{path}:{number}: {question}: got '{row[question]}', expected 1 to 5 or nothing")
    return rows


def _told(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in _TOLD)
