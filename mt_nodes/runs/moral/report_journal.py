# SPDX-License-Identifier: Apache-2.0
"""The journal of a campaign as it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.jsonl import read_lines
from mt_nodes.base.params import structure
from mt_nodes.base.record_shapes import Shape
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.runs import FILE, NAMED

Line = Mapping[str, Any]
#: What is read of a case or a principle.
SHAPES: dict[str, Shape] = {
    "case": {
        **dict.fromkeys(("case", "principle", "outcome", "reason", "changed", "stream"), str),
        **{"source": {"name": str}, "runs": int, "numbers": {}},
    },
    "principle": {
        **dict.fromkeys(("principle", "title", "outcome", "why", "kind"), str),
        **dict.fromkeys(("cases", "holds", "violated", "unknown", "not_applicable", "runs"), int),
        "search": {"*": int},
    },
}


@dataclass(frozen=True, eq=False)
class MoralJournal:
    """What a journal says, of each thing the last line.

    Attributes:
        directory: of the results. condition: the first line. runs: lines of runs, by their key, in the order driven.
        cases, principles, revealing: lines by name, in the order told.
    """

    directory: Path
    condition: Line
    runs: Mapping[str, Line]
    cases: Mapping[str, Line]
    principles: Mapping[str, Line]
    revealing: Mapping[int, Line]

    @classmethod
    def load(cls, directory: Path) -> MoralJournal:
        """Read a results directory. Raises UsageError: it holds no campaign. InfrastructureError: a line is damaged."""
        path = directory / FILE
        if not is_campaign(directory):
            raise UsageError(f"{path}: expected the journal of `mt experiment moral`")
        lines = list(read_lines(path, SHAPES))
        found: dict[str, dict[Any, Line]] = {name: {} for name in ("run", *NAMED)}
        for line in lines[1:]:
            if line["type"] in found:
                found[line["type"]][line[NAMED.get(line["type"], "run")]] = line
        return cls(directory, lines[0], found["run"], found["case"], found["principle"], found["revealing"])

    def case(self, name: str) -> Line:
        """Return the line of a case. Raises UsageError: there is none of that name."""
        if name not in self.cases:
            raise UsageError(f"{self.directory}: no case '{name}'{suggest(name, self.cases, 'cases.csv lists them')}")
        return self.cases[name]

    def driven(self, case: Line) -> dict[RunSpec, Line]:
        """Return the runs of a case's scenarios that its verdict may rest on, in the order driven."""
        dilemmas = dilemmas_of(case)
        streams = case["stream"], "control", f"{case['stream']}_control"
        lines = (line for line in self.runs.values() if line["stream"] in streams)
        specs = {
            line["run"]: RunSpec(dilemma, line["swapped"], line["stream"], line["number"])
            for line in lines
            for dilemma in dilemmas
            if dilemma.name == line["dilemma"]
        }
        return {spec: self.runs[key] for key, spec in specs.items() if spec.key == key}


def is_campaign(directory: Path) -> bool:
    """Tell whether a directory holds the results of a campaign: its journal begins with principles."""
    path = directory / FILE
    first = next(read_lines(path), None) if path.is_file() else None
    return first is not None and "principles" in first


def dilemmas_of(line: Line) -> tuple[Dilemma, ...]:
    """Return the source of a case, and its follow-up where it has one."""
    return tuple(structure(Dilemma, line[name]) for name in ("source", "followup") if line[name] is not None)
