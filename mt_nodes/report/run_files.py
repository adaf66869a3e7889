# SPDX-License-Identifier: Apache-2.0
"""Files that are made from journal and summary: at the end of a run, and again by ``mt report``."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.engine.finish import Line, Summary, read_summary, sum_up, write_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.run_record import read_record
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.engine.waivers import Waiver, apply_waivers
from mt_nodes.report.csv_pairs import write_pairs_csv, write_pairs_parquet
from mt_nodes.report.evidence_view import write_views
from mt_nodes.report.html import write_report
from mt_nodes.report.journal_contents import JournalReader
from mt_nodes.report.junit import write_junit


class ReportTables:
    """``pairs.csv`` (and ``.parquet``), ``junit.xml`` and ``report.html``, from the lines of a journal that pass.

    ``out``: results directory. ``relations``: that were offered. ``drives``: pairs of drives that the report shows
    beside violated ones, or ``all``. ``pairs``: violated pairs that it shows with pictures beside the worst ones.
    """

    def __init__(
        self, out: Path, relations: Sequence[RelationInfo], drives: Collection[str] = (), pairs: Collection[str] = ()
    ) -> None:
        self._out, self._shown = out, (drives, pairs)
        self._reader = JournalReader(out, {relation.id: relation.requirement for relation in relations})

    def passing(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines as they are, and take in what they tell."""
        return self._reader.passing(lines)

    def write(self, summary: Mapping[str, Any]) -> Path:
        """Write all of it, ``summary.json`` being there, and return the report."""
        journal, out = self._reader.contents, self._out
        write_pairs_csv(out / "pairs.csv", journal.rows)
        write_pairs_parquet(out / "pairs.parquet", journal.rows)
        write_junit(out / "junit.xml", summary)
        return write_report(out, *self._shown, journal)


def write_files(
    out: Path,
    summary: Mapping[str, Any],
    lines: Iterable[Line],
    drives: Collection[str] = (),
    pairs: Collection[str] = (),
) -> Path:
    """Write ``summary.json`` and the tables of a run that is over; return the report. See :class:`ReportTables`.

    ``lines``: of the journal, read once; of a long one do not keep them, hand on what reads them.
    """
    write_summary(out, summary)
    relations = [RelationInfo.of({**relation, "id": name}) for name, relation in summary["relations"].items()]
    tables = ReportTables(out, relations, drives, pairs)
    deque(tables.passing(lines), maxlen=0)
    return tables.write(summary)


def remake(
    out: Path, waivers: Sequence[Waiver] | None = None, drives: Collection[str] = (), pairs: Collection[str] = ()
) -> Summary:
    """Make the files of a run again and return its summary; ``waivers`` replace those of the run.

    ``drives`` and ``pairs`` are as in :func:`write_files`. A run that was killed has no summary: one is made from what
    it had judged.
    Raises MtError: it has no journal, or journal or summary are damaged.
    """
    journal = out / "result.jsonl"
    summary = read_summary(out) if (out / "summary.json").exists() else summary_of_a_killed_run(out)
    if waivers is not None:
        summary = apply_waivers(summary, read_journal(journal), waivers)
    write_views(out, pairs)
    write_files(out, summary, read_journal(journal), drives, pairs)
    return summary


def summary_of_a_killed_run(out: Path) -> Summary:
    """Make the summary of a run that was killed. Raises MtError: it has no journal, or no run.json."""
    first = next(read_journal(out / "result.jsonl"), {})
    record = read_record(out)
    offered: Sequence[str] = first.get("relations", [])
    infos = [RelationInfo.of(r) for r in record["relations"] if r["id"] in offered]
    cut_off = f"the run was cut off before its end; `mt replay --resume {out}` goes on with it"
    waivers = record["request"].get("waivers")
    file = Path(record["directory"]) / waivers if waivers else None
    return sum_up(out, infos, waivers=file, infrastructure=cut_off)
