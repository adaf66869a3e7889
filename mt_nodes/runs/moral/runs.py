# SPDX-License-Identifier: Apache-2.0
"""The journal of a campaign, ``result.jsonl``: every run once, then what the cases and principles came to.

A campaign is a function of what was asked and of what its runs came to. So to go on with one that was cut short it
begins anew and finds the runs of before here; nothing else need be kept, and both make the same journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import StackError
from mt_nodes.base.jsonl import LineFile, jsonable, read_lines
from mt_nodes.base.params import plain, structure
from mt_nodes.data.verdict import SCHEMA
from mt_nodes.engine.journal import refuse_other_condition
from mt_nodes.engine.summary.deaths import Deaths, death_line
from mt_nodes.runs.moral.observations import Observation, RunSpec

FILE = "result.jsonl"
#: Lines of which a later one takes the place of an earlier one, and what they are known by.
NAMED = {name: name for name in ("check", "case", "principle", "revealing")}


class Runs:
    """Every run that was driven, by what it was asked as; opening the file of before goes on with it."""

    def __init__(self, path: Path, condition: Mapping[str, Any]) -> None:
        """Open or make the file.

        ``condition``: what the first line says.
        Raises UsageError: it is of a campaign under another condition, or another process is writing to it.
        InfrastructureError: a line is damaged.
        """
        self._file = LineFile(path)
        self._known: dict[str, Observation] = {}
        self._last: dict[tuple[str, Any], dict[str, Any]] = {}
        self.deaths = Deaths()
        first = jsonable({"schema": SCHEMA, "type": "condition", **condition})
        lines = list(read_lines(path))
        if lines:
            refuse_other_condition(path, lines[0], first)
        else:
            self._file.append(first)
        for line in lines:
            self._remember(line)

    def __len__(self) -> int:
        """How many runs are known."""
        return len(self._known)

    def known(self, spec: RunSpec) -> Observation | None:
        """Return what came of a run, None if it has not been driven."""
        return self._known.get(spec.key)

    def add(self, spec: RunSpec, case: str, observation: Observation) -> None:
        """Write down what came of a run that was not known. ``case``: for which it was driven first."""
        identity = {"dilemma": spec.dilemma.name, "swapped": spec.swapped, "stream": spec.stream, "number": spec.number}
        self._file.append({"type": "run", "run": spec.key, "case": case, **identity, **plain(observation)})
        self._known[spec.key] = observation

    def death(self, error: StackError) -> None:
        """Write down that the stack died."""
        self._file.append(line := death_line(error))
        self.deaths.take(line)

    def note(self, line: Mapping[str, Any]) -> None:
        """Write down a line of :data:`NAMED`, unless the last one of that name says the same."""
        record = jsonable(plain(line))
        key = record["type"], record[NAMED[record["type"]]]
        if self._last.get(key) != record:
            self._file.append(record)
            self._last[key] = record

    def last(self, kind: str, name: Any) -> dict[str, Any] | None:
        """Return the last line of a name, None if there is none."""
        return self._last.get((kind, name))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _remember(self, line: dict[str, Any]) -> None:
        if line["type"] == "run":
            self._known[line["run"]] = observation_of(line)
        elif line["type"] in NAMED:
            self._last[line["type"], line[NAMED[line["type"]]]] = line
        self.deaths.take(line)


def observation_of(line: Mapping[str, Any]) -> Observation:
    """Return what a run's line tells."""
    observation: Observation = structure(
        Observation, {name: line[name] for name in Observation.__dataclass_fields__ if name in line}
    )
    return observation
