# SPDX-License-Identifier: Apache-2.0
"""What was tried: range × bearing × class × weather, how often, how often violated, and what never was."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mt_nodes.base import plugins
from mt_nodes.data.polar_cells import BEARING_DEG, RANGE_M, Polar, cells_in, polar_of
from mt_nodes.data.verdict import SCHEMA, Outcome
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import FILE as LEDGER
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.engine.results_dirs import results_of

#: Every direction, from the rightmost on, behind the ego at both ends.
BEARINGS_DEG = tuple(range(-180, 180, BEARING_DEG))
#: Of the ground, at least so much is asked about, whether anything was there or not.
LEAST_RANGE_M = 40
#: Rows [x, y, class] of a verdict's detail: whom a check names.
_NAMED_AT = ("lost_at", "gained_at", "changed_at")
#: Mutations of the camera that are weather or light; all joint ones are.
_LIGHT = ("dusk", "low_sun", "night")
_VOLUMES = ("added", "removed", "occluded")
_VIOLATED = Outcome.VIOLATED.value
#: Weather where a mutation leaves it as it was.
AS_RECORDED = "as recorded"


class CoverageCell(NamedTuple):
    """One cell: place, class, and the weather that a relation made."""

    range_m: int
    bearing_deg: int
    label: str
    weather: str


@dataclass
class CellCount:
    """Pairs that concern a cell."""

    tried: int = 0
    violated: int = 0


@dataclass
class Totals:
    """Pairs of one weather: decided and violated, and those of them of which nobody told where they were."""

    decided: int = 0
    violated: int = 0
    decided_nowhere: int = 0
    violated_nowhere: int = 0


@dataclass(frozen=True)
class Coverage:
    """What some runs tried.

    Attributes:
        cells: that any pair concerns. A pair counts once in each of its cells.
        weathers: totals of pairs by weather; each pair counts once.
        undecided: pairs of relations that were offered and not decided.
    """

    cells: Mapping[CoverageCell, CellCount] = field(default_factory=dict)
    weathers: Mapping[str, Totals] = field(default_factory=dict)
    undecided: int = 0

    @property
    def labels(self) -> list[str]:
        """Classes that any pair concerns."""
        return sorted({cell.label for cell in self.cells})

    @property
    def ranges_m(self) -> list[int]:
        """Near ends of the cells of range, up to the farthest that any pair concerns."""
        farthest = max((cell.range_m + RANGE_M for cell in self.cells), default=0)
        return list(range(0, max(LEAST_RANGE_M, farthest), RANGE_M))

    def grid(self, label: str, weather: str) -> Iterator[tuple[CoverageCell, CellCount]]:
        """Yield every cell of a class and a weather, those never tried with counts of 0."""
        for near_m, bearing_deg in itertools.product(self.ranges_m, BEARINGS_DEG):
            cell = CoverageCell(near_m, bearing_deg, label, weather)
            yield cell, self.cells.get(cell, CellCount())

    @property
    def never(self) -> int:
        """How many cells were never tried, of all classes and weathers that the runs know."""
        grids = itertools.product(self.labels, self.weathers)
        return sum(not count.tried for label, weather in grids for _, count in self.grid(label, weather))

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON holds: cells that were tried, totals, and how many never were."""
        return {
            "schema": SCHEMA,
            "range_m": RANGE_M,
            "bearing_deg": BEARING_DEG,
            "ranges_m": self.ranges_m,
            "bearings_deg": list(BEARINGS_DEG),
            "classes": self.labels,
            "cells": [{**cell._asdict(), **vars(count)} for cell, count in sorted(self.cells.items())],
            "never_tried": self.never,
            "weathers": {weather: vars(totals) for weather, totals in sorted(self.weathers.items())},
            "undecided": self.undecided,
        }


def coverage(directories: Iterable[Path]) -> Coverage:
    """Read what runs tried: pairs of relations that were decided; control and sham are not counted.

    Where a check tells whom it judged, those are the cells; else the volumes are that the mutation added, took away or
    hid. A violated pair is violated in the cells of those whom the check names as lost, gained or changed, where it
    names nobody in all of its cells. Range and bearing are from the origin of the frame that they are told in, which is
    the ego's unless a relation says else.

    Args:
        directories: as :func:`results_of` takes them.

    Raises:
        UsageError: one of them holds no results.
        InfrastructureError: a line is damaged.
    """
    tried = CoverageCounter()
    for directory in itertools.chain.from_iterable(map(results_of, directories)):
        for _ in tried.passing(directory, read_journal(directory / "result.jsonl")):
            pass
    return tried.coverage


class CoverageCounter:
    """Counts what runs tried while somebody else reads their lines."""

    def __init__(self) -> None:
        self._cells: dict[CoverageCell, CellCount] = defaultdict(CellCount)
        self._weathers: dict[str, Totals] = defaultdict(Totals)
        self._undecided = 0

    @property
    def coverage(self) -> Coverage:
        """What was counted so far."""
        return Coverage(dict(self._cells), dict(self._weathers), self._undecided)

    def passing(self, directory: Path, lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a run's journal as they are, and count them.

        Raises:
            InfrastructureError: a line of its ledger is damaged.
        """
        weather_of, volumes = _made(directory)
        for line in lines:
            # Those of control and sham say ``@``.
            if line.get("type") == "verdict" and "@" not in line["pair"].rpartition("/")[2]:
                self._take(line, weather_of.get(line["relation"], AS_RECORDED), volumes.get(line["pair"], set()))
            yield line

    def _take(self, line: Mapping[str, Any], weather: str, volumes: set[tuple[str, Polar]]) -> None:
        if not Outcome(line["outcome"]).decided:
            self._undecided += 1
            return
        totals, detail, violated = self._weathers[weather], line.get("detail", {}), line["outcome"] == _VIOLATED
        blamed = _blamed(detail) if violated else set()
        tried = set(cells_in(detail)) or volumes
        # Nobody is blamed by name where an arm fell silent, or a command was wrong: then all of its cells are.
        blamed = blamed or (tried if violated else set())
        totals.decided += 1
        totals.violated += violated
        totals.decided_nowhere += not (tried | blamed)
        totals.violated_nowhere += violated and not blamed
        for label, place in tried | blamed:
            count = self._cells[CoverageCell(*place, label, weather)]
            count.tried += 1
            count.violated += (label, place) in blamed


def _blamed(detail: Mapping[str, Any]) -> set[tuple[str, Polar]]:
    rows = [row for name in _NAMED_AT for row in detail.get(name, ())]
    places = polar_of([row[:2] for row in rows]).tolist()
    return {(str(row[2]), Polar(*place)) for row, place in zip(rows, places, strict=True)}


def _made(directory: Path) -> tuple[dict[str, str], dict[str, set[tuple[str, Polar]]]]:
    """Return the weather of each relation, and of each pair the classes and cells of its volumes."""
    weather_of: dict[str, str] = {}
    volumes: dict[str, set[tuple[str, Polar]]] = {}
    lines = read_ledger(directory) if (directory / LEDGER).is_file() else iter(())
    for line in lines:
        if line["type"] != "followup":
            continue
        if line["relation"] not in weather_of:
            weather_of[line["relation"]] = weather([made["name"] for made in line["mutations"]])
        named = [v for kind in _VOLUMES for v in line["effects"].get(kind, ())]
        if named:
            places = polar_of([v["center_m"][:2] for v in named]).tolist()
            volumes[line["pair"]] = {(v["label"], Polar(*p)) for v, p in zip(named, places, strict=True)}
    return weather_of, volumes


def weather(mutations: Sequence[str]) -> str:
    """Return the weather that mutations make, by their names: fog, night …, or ``as recorded``."""
    found = [name for name in mutations if name in _LIGHT or _folder(name) == "joint"]
    return " + ".join(dict.fromkeys(found)) or AS_RECORDED


def _folder(mutation: str) -> str:
    cls = plugins.get("mutations", mutation)
    parts = cls.__module__.split(".") if cls else []
    return parts[3] if parts[:3] == ["mt_nodes", "relations", "mutations"] and len(parts) > 3 else ""
