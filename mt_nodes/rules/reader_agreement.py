# SPDX-License-Identifier: Apache-2.0
"""Readers of rules side by side: what each reads, and how far they agree beyond chance (AutoMT's first question).

Agreement is that of Krippendorff's alpha (Content Analysis, 4th edition, 2019, chapter 12; nominal data) by the library
``krippendorff``, and Fleiss' kappa. A reader that finds no relation in a rule gives the value "none"; a reader that did
not answer gives no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError, needs_extra
from mt_nodes.base.stats.rater_agreement import fleiss_kappa, kappa_interval
from mt_nodes.rules.extraction import CandidateReading, Extraction
from mt_nodes.rules.statement import Statement

_NONE = "none"
#: What readers may agree on: the whole reading, and its parts.
ASPECTS: Mapping[str, Callable[[Statement], str]] = {
    "relations": lambda one: f"{one.road} {one.verb} {one.element} {one.behaviour}",
    "road": lambda one: one.road,
    "element": lambda one: one.element,
    "behaviour": lambda one: one.behaviour,
}


@dataclass(frozen=True)
class ReaderCounts:
    """What one reader makes of the rules.

    ``rules``, ``answered``, ``read``: rules in all, with an answer, and with a relation. ``judged``, ``rejected``:
    readings that the judge voted on, and rejected. ``agreement``: mean share of yes votes; None: nothing was judged.
    """

    reader: str
    rules: int
    answered: int
    read: int
    relations: int
    judged: int
    rejected: int
    agreement: float | None


@dataclass(frozen=True)
class Agreement:
    """Agreement of all readers on one aspect.

    ``rules``: with the answers of two readers at least. ``alike``: share of those on which all agree, None without any.
    ``alpha``, ``kappa``: None where not defined: too few answers, or a single value. ``interval``: 95 %, of kappa.
    """

    aspect: str
    rules: int
    alike: float | None
    alpha: float | None
    kappa: float | None
    interval: tuple[float, float] | None


def require_library() -> Any:
    """Return the library of Krippendorff's alpha. Raises UsageError: it is not installed."""
    with needs_extra("agreement", "agreement needs a library"):
        import krippendorff
    return krippendorff


def reader_counts(found: Sequence[Extraction]) -> list[ReaderCounts]:
    """Return the counts of each reader, in the order of the readers."""
    return [_counts(rows) for rows in _by_reader(found).values()]


def agreements(found: Sequence[Extraction]) -> list[Agreement]:
    """Return how far all readers agree, by aspect.

    Raises UsageError: there are fewer than two readers, or the library is not installed.
    """
    readers = _by_reader(found)
    if len(readers) < 2:
        raise UsageError(f"got {len(readers)} reader, expected two or more; type: --model NAME --model parser")
    return [_agreement(aspect, [_values(rows, aspect) for rows in readers.values()]) for aspect in ASPECTS]


def pairs(found: Sequence[Extraction]) -> dict[tuple[str, str], float | None]:
    """Return the share of rules that two readers read alike, of those that both answered, by their names."""
    values = {name: _values(rows, "relations") for name, rows in _by_reader(found).items()}
    return {(one, two): _alike([values[one], values[two]]) for one, two in combinations(values, 2)}


def as_plain(found: Sequence[Extraction]) -> dict[str, Any]:
    """Return all of it in the form of JSON."""
    return {
        "readers": [vars(one) for one in reader_counts(found)],
        "agreement": [vars(one) for one in agreements(found)],
        "pairs": [{"readers": list(names), "alike": share} for names, share in pairs(found).items()],
    }


def _by_reader(found: Sequence[Extraction]) -> dict[str, list[CandidateReading]]:
    rows: dict[str, list[CandidateReading]] = {}
    for one in (candidate for extraction in found for candidate in extraction.candidates):
        rows.setdefault(one.origin, []).append(one)
    return rows


def _counts(rows: Sequence[CandidateReading]) -> ReaderCounts:
    judged = [one.agreement for one in rows if one.agreement is not None and one.complete]
    return ReaderCounts(
        rows[0].origin,
        len(rows),
        sum(map(_answered, rows)),
        sum(bool(one.reading.statements) for one in rows),
        sum(len(one.reading.statements) for one in rows),
        len(judged),
        sum(one.rejected for one in rows),
        fmean(judged) if judged else None,
    )


def _answered(one: CandidateReading) -> bool:
    """Whether a reader answered; a reading whose judge did not answer is one, too."""
    return bool(one.reading.statements) or one.complete


def _values(rows: Sequence[CandidateReading], aspect: str) -> list[str | None]:
    """Return a reader's value of each rule; None where it did not answer."""
    return [_value(one, aspect) if _answered(one) else None for one in rows]


def _value(one: CandidateReading, aspect: str) -> str:
    return "; ".join(sorted(set(map(ASPECTS[aspect], one.reading.statements)))) or _NONE


def _agreement(aspect: str, values: Sequence[Sequence[str | None]]) -> Agreement:
    codes = {value: code for code, value in enumerate(sorted({v for row in values for v in row if v is not None}))}
    rules = list(zip(*values, strict=True))
    counts = np.array([[row.count(value) for value in codes] for row in rules], dtype=np.int64)
    paired = sum(len(row) - row.count(None) > 1 for row in rules)
    coded = np.array([[np.nan if value is None else codes[value] for value in row] for row in values])
    alpha = alpha_of(coded, len(codes), paired)
    return Agreement(aspect, paired, _alike(values), alpha, fleiss_kappa(counts), kappa_interval(counts))


def _alike(values: Sequence[Sequence[str | None]]) -> float | None:
    """Return the share of rules on which all that answered agree, of those that two answered at least."""
    rows = [[value for value in row if value is not None] for row in zip(*values, strict=True)]
    paired = [len(set(row)) == 1 for row in rows if len(row) > 1]
    return fmean(paired) if paired else None


def alpha_of(values: np.ndarray[Any, Any], different: int, paired: int, level: str = "nominal") -> float | None:
    """Return Krippendorff's alpha, None where it is not defined.

    ``values``: (raters, units), NaN where one gave none. ``different``: number of different values. ``paired``: number
    of units with two values at least. ``level``: of measurement, such as ``ordinal``.
    Raises UsageError: the library is not installed.
    """
    library = require_library()
    if different < 2 or not paired:
        return None
    alpha = float(library.alpha(reliability_data=values, level_of_measurement=level))
    return alpha if np.isfinite(alpha) else None
