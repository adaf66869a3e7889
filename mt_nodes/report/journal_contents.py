# SPDX-License-Identifier: Apache-2.0
"""What a report needs of a run's journal, collected in one pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.summary.verdict_rows import PairRow
from mt_nodes.report.coverage.coverage import Coverage, CoverageCounter
from mt_nodes.report.csv_pairs import PairRows


class JournalContents(NamedTuple):
    """Contents of a journal: the condition line, the pairs, sorted, and their coverage."""

    condition: dict[str, Any]
    rows: list[PairRow]
    coverage: Coverage


class JournalReader:
    """Collects the contents of a journal while another reader consumes its lines.

    ``results_dir``: whose journal it is. ``requirements``: the user's ids by relation.
    """

    def __init__(self, results_dir: Path, requirements: Mapping[str, Sequence[str]] | None = None) -> None:
        self._results_dir = results_dir
        self._condition: dict[str, Any] = {}
        self._rows, self._tried = PairRows(requirements), CoverageCounter()

    def passing(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the lines unchanged, and collect their contents.

        Raises InfrastructureError: a line of the run's ledger is damaged.
        """
        for line in self._tried.passing(self._results_dir, lines):
            if line.get("type") == "condition":
                self._condition.update({k: v for k, v in line.items() if k not in ("schema", "type", "crc32")})
            self._rows.take(line)
            yield line

    @property
    def contents(self) -> JournalContents:
        """Contents of the lines read so far."""
        return JournalContents(self._condition, self._rows.sorted(), self._tried.coverage)


def read_contents(results_dir: Path) -> JournalContents:
    """Read the journal of a results directory."""
    reader = JournalReader(results_dir)
    deque(reader.passing(read_journal(results_dir / "result.jsonl")), maxlen=0)
    return reader.contents
