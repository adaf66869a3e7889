# SPDX-License-Identifier: Apache-2.0
"""Kinds of violations and cells of the domain in verdict lines, and what a run found that chose its pairs by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mt_nodes.base.wording import counted
from mt_nodes.data.polar_cells import Polar, cells_in, polar_of
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.plan import CHANCE, NEW_KINDS

#: What the obstacles that a check names did; the detail of a verdict has rows [x, y, class] of each.
_CHANGES = ("lost", "gained", "changed")
Line = Mapping[str, Any]
LabelledCell = tuple[str, Polar]


class ViolationKind(NamedTuple):
    """One kind of violation: of which relation, and which class was lost, gained or changed; empty where none was."""

    relation: str
    change: str = ""
    label: str = ""


def violated_cells(detail: Line) -> set[LabelledCell]:
    """Return class and cell of the obstacles that the detail of a violated pair names as lost, gained or changed."""
    rows = [row for change in _CHANGES for row in detail.get(f"{change}_at", ())]
    places = polar_of([row[:2] for row in rows]).tolist()
    return {(str(row[2]), Polar(*place)) for row, place in zip(rows, places, strict=True)}


def judged_cells(line: Line) -> set[LabelledCell]:
    """Return class and cell of the obstacles that a decided pair was judged by; none of a pair that was not decided."""
    return set(cells_in(line.get("detail", {}))) if Outcome(line["outcome"]).decided else set()


def kinds_of(line: Line) -> set[ViolationKind]:
    """Return the kinds of violation that a verdict line shows; none if its pair is not violated."""
    if line["outcome"] != Outcome.VIOLATED.value:
        return set()
    detail = line.get("detail", {})
    named = {(change, str(row[2])) for change in _CHANGES for row in detail.get(f"{change}_at", ())}
    return {ViolationKind(line["relation"], *each) for each in named} or {ViolationKind(line["relation"])}


def kind_words(kind: Line) -> str:
    """Return what a kind of a summary is beside its relation, such as ``pedestrian lost in 3 cells``."""
    what = f"{kind['label']} {kind['change']}".strip()
    return f"{what} in {counted(kind['cells'], 'cell')}" if what else "no obstacle named"


def explored_words(found: Line) -> str:
    """Return what an exploration of a summary found, in a sentence."""
    kinds, cells = found["kinds"], counted(found["cells"], "cell")
    how = "by chance" if found["by"] == CHANCE else "by what those before had found"
    head = f"{counted(found['pairs'], 'pair')} chosen {how}, decided in {cells} of class, range and bearing"
    if not kinds:
        return f"{head}: no violation found, which is no proof that there is none"
    last = f"the last new one at pair {kinds[-1]['at']}"
    return f"{head}: {counted(len(kinds), 'kind')} of violation found, {last}"


class Explored:
    """What a run found that chose its pairs, collected while the lines of its journal are read for something else."""

    def __init__(self) -> None:
        self.by = ""
        self._pairs = 0
        self._kinds: dict[ViolationKind, dict[str, Any]] = {}
        self._cells: set[LabelledCell] = set()

    @property
    def biased(self) -> bool:
        """Whether rates of violated pairs are not those of the drives: more was judged of what was violated."""
        return self.by == NEW_KINDS

    def passing(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines of a journal, and take in the pairs of relations among them."""
        for line in lines:
            if line.get("type") == "condition":
                self.by = line.get("explore_by", "")
            elif self.by and line.get("type") == "verdict" and "@" not in line["pair"].rpartition("/")[2]:
                self._take(line)
            yield line

    def _take(self, line: Line) -> None:
        self._pairs += 1
        self._cells |= judged_cells(line)
        for kind in kinds_of(line):
            row = self._kinds.setdefault(kind, {"first": line["pair"], "at": self._pairs, "pairs": 0, "cells": set()})
            row["pairs"] += 1
            row["cells"] |= {cell for cell in violated_cells(line.get("detail", {})) if cell[0] == kind.label}

    @property
    def plain(self) -> dict[str, Any]:
        """What a summary says of it: nothing of a run that judged everything.

        ``pairs``: of relations, in order of play. ``kinds``: each with the pair that showed it first, how many pairs
        had been judged by then (``at``), how many showed it, and in how many cells; in the order in which they were
        found. ``cells``: of class, range and bearing in which any pair was decided.
        """
        if not self.by:
            return {}
        kinds = [{**kind._asdict(), **row, "cells": len(row["cells"])} for kind, row in self._kinds.items()]
        return {"by": self.by, "pairs": self._pairs, "kinds": kinds, "cells": len(self._cells)}
