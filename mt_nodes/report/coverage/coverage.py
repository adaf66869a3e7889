# SPDX-License-Identifier: Apache-2.0
"""Coverage: pairs by range × bearing × class × weather, how many are violated, and what was never tried."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
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
from mt_nodes.engine.summary.explored import LabelledCell, violated_cells

#: All bearings; behind the ego vehicle at both ends.
BEARINGS_DEG = tuple(range(-180, 180, BEARING_DEG))
#: Smallest range of the maps, even if nothing was there.
LEAST_RANGE_M = 40
#: Camera mutations that are weather or light, as all joint ones are.
_LIGHT = ("dusk", "low_sun", "night")
_VOLUMES = ("added", "removed", "occluded")
_VIOLATED = Outcome.VIOLATED.value
#: Weather without such a mutation.
AS_RECORDED = "as recorded"


class CoverageCell(NamedTuple):
    """One cell: place, class, and weather of the follow-up."""

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
    """Pairs of one weather: decided and violated, and those of them without a place."""

    decided: int = 0
    violated: int = 0
    decided_nowhere: int = 0
    violated_nowhere: int = 0


@dataclass(frozen=True)
class Coverage:
    """Coverage of some runs.

    ``cells``: those that any pair concerns. A pair counts once in each of its cells. ``weathers``: totals of pairs by
    weather; each pair counts once. ``undecided``: pairs of relations that were offered and not decided.
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
        """Near ends of the range cells, up to the farthest that any pair concerns."""
        farthest = max((cell.range_m + RANGE_M for cell in self.cells), default=0)
        return list(range(0, max(LEAST_RANGE_M, farthest), RANGE_M))

    def grid(self, label: str, weather: str) -> Iterator[tuple[CoverageCell, CellCount]]:
        """Yield every cell of a class and a weather; cells that were never tried have counts of 0."""
        for near_m, bearing_deg in itertools.product(self.ranges_m, BEARINGS_DEG):
            cell = CoverageCell(near_m, bearing_deg, label, weather)
            yield cell, self.cells.get(cell, CellCount())

    @property
    def never(self) -> int:
        """Number of cells that were never tried, over all classes and weathers of the runs."""
        grids = itertools.product(self.labels, self.weathers)
        return sum(not count.tried for label, weather in grids for _, count in self.grid(label, weather))

    def as_plain(self) -> dict[str, Any]:
        """Return plain data: the cells that were tried, totals, and the number of cells never tried."""
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
    """Return the coverage of runs: their decided pairs, without control and sham.

    The cells of a pair are those of the obstacles that its check judged, else those of the volumes that the mutation
    added, removed or occluded. A violated pair is violated in the cells of the obstacles that the check names as lost,
    gained or changed, in all of its cells if it names none. Range and bearing are from the origin of the frame of the
    obstacles, which is the ego's unless a relation says otherwise.
    ``directories``: as :func:`results_of` takes them.
    Raises UsageError: one of them holds no results. InfrastructureError: a line is damaged.
    """
    counter = CoverageCounter()
    for directory in itertools.chain.from_iterable(map(results_of, directories)):
        for _ in counter.passing(directory, read_journal(directory / "result.jsonl")):
            pass
    return counter.coverage


class CoverageCounter:
    """Counts the pairs of runs while others read their journals."""

    def __init__(self) -> None:
        self._tried: dict[str, Counter[LabelledCell]] = defaultdict(Counter)
        self._violated: dict[str, Counter[LabelledCell]] = defaultdict(Counter)
        self._weathers: dict[str, Totals] = defaultdict(Totals)
        self._undecided = 0

    @property
    def coverage(self) -> Coverage:
        """Coverage so far."""
        cells = {
            CoverageCell(*place, label, weather): CellCount(count, self._violated[weather][label, place])
            for weather, tried in self._tried.items()
            for (label, place), count in tried.items()
        }
        return Coverage(cells, dict(self._weathers), self._undecided)

    def passing(self, directory: Path, lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a run's journal unchanged, and count them.

        Raises InfrastructureError: a line of its ledger is damaged.
        """
        weather_of, volumes = _followups(directory)
        for line in lines:
            # Pairs of control and sham have an ``@``.
            if line.get("type") == "verdict" and "@" not in line["pair"].rpartition("/")[2]:
                self._take(line, weather_of.get(line["relation"], AS_RECORDED), volumes.get(line["pair"], set()))
            yield line

    def _take(self, line: Mapping[str, Any], weather: str, volumes: set[tuple[str, Polar]]) -> None:
        if not Outcome(line["outcome"]).decided:
            self._undecided += 1
            return
        totals, detail, violated = self._weathers[weather], line.get("detail", {}), line["outcome"] == _VIOLATED
        violated_in = violated_cells(detail) if violated else set()
        tried = set(cells_in(detail)) or volumes
        # A silent arm or a wrong command names no obstacle: then all cells of the pair are violated.
        violated_in = violated_in or (tried if violated else set())
        totals.decided += 1
        totals.violated += violated
        totals.decided_nowhere += not (tried | violated_in)
        totals.violated_nowhere += violated and not violated_in
        self._tried[weather].update(tried | violated_in)
        self._violated[weather].update(violated_in)


def _followups(directory: Path) -> tuple[dict[str, str], dict[str, set[tuple[str, Polar]]]]:
    """Return the weather of each relation, and of each pair the classes and cells of its volumes."""
    weather_of: dict[str, str] = {}
    volumes: dict[str, set[tuple[str, Polar]]] = {}
    lines = read_ledger(directory) if (directory / LEDGER).is_file() else iter(())
    for line in lines:
        if line["type"] != "followup":
            continue
        if line["relation"] not in weather_of:
            weather_of[line["relation"]] = weather([mutation["name"] for mutation in line["mutations"]])
        named = [v for kind in _VOLUMES for v in line["effects"].get(kind, ())]
        if named:
            places = polar_of([v["center_m"][:2] for v in named]).tolist()
            volumes[line["pair"]] = {(v["label"], Polar(*p)) for v, p in zip(named, places, strict=True)}
    return weather_of, volumes


def weather(mutations: Sequence[str]) -> str:
    """Return the weather that mutations make: their names, such as fog or night, or ``as recorded``."""
    found = [name for name in mutations if name in _LIGHT or _folder(name) == "joint"]
    return " + ".join(dict.fromkeys(found)) or AS_RECORDED


def _folder(mutation: str) -> str:
    cls = plugins.get("mutations", mutation)
    parts = cls.__module__.split(".") if cls else []
    return parts[3] if parts[:3] == ["mt_nodes", "relations", "mutations"] and len(parts) > 3 else ""
