# SPDX-License-Identifier: Apache-2.0
"""Files that are made from journal and summary: at the end of a run, and again by ``mt report``."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.run_record import read_record
from mt_nodes.engine.score_file import read_scores
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.engine.waivers import Waiver, load_waivers, marked
from mt_nodes.report.csv_pairs import write_pairs_csv, write_pairs_parquet
from mt_nodes.report.evidence_view import write_views
from mt_nodes.report.html import read_contents, write_report
from mt_nodes.report.junit import write_junit

Summary = dict[str, Any]


def write_files(
    out: Path,
    summary: Mapping[str, Any],
    lines: Iterable[Mapping[str, Any]],
    drives: Collection[str] = (),
    pairs: Collection[str] = (),
) -> Path:
    """Write ``summary.json``, ``pairs.csv`` (and ``.parquet``), ``junit.xml`` and ``report.html``; return the last.

    Args:
        out: results directory with ``result.jsonl``.
        summary: as :func:`mt_nodes.engine.summary.summary.summarise` makes it.
        lines: of the journal, read once; pass an iterator, a long journal need not fit into memory.
        drives: pairs of drives to show beside violated ones, or ``all``.
        pairs: violated pairs to show with pictures beside the worst ones.
    """
    write_whole(out / "summary.json", json.dumps(summary, indent=2) + "\n")
    journal = read_contents(out, lines, {name: r["requirement"] for name, r in summary["relations"].items()})
    write_pairs_csv(out / "pairs.csv", journal.rows)
    write_pairs_parquet(out / "pairs.parquet", journal.rows)
    write_junit(out / "junit.xml", summary)
    return write_report(out, drives, pairs, journal)


def remake(
    out: Path,
    waivers: Sequence[Waiver] | None = None,
    drives: Collection[str] = (),
    pairs: Collection[str] = (),
) -> Summary:
    """Make the files of a run again and return its summary; ``waivers`` replace those of the run.

    ``drives`` and ``pairs`` are as in :func:`write_files`. A run that was killed has no summary: one is made from what
    it had judged.

    Raises:
        MtError: it has no journal, or journal or summary are damaged.
    """
    journal = out / "result.jsonl"
    summary = read_summary(out) if (out / "summary.json").exists() else summary_of_a_killed_run(out)
    if waivers is not None:
        summary = marked(summary, read_journal(journal), waivers)
    write_views(out, pairs)
    write_files(out, summary, read_journal(journal), drives, pairs)
    return summary


def summary_of_a_killed_run(out: Path) -> Summary:
    """Make the summary of a run that was killed.

    Raises:
        MtError: it has no journal, or no run.json.
    """
    journal = out / "result.jsonl"
    first = next(read_journal(journal), {})
    record = read_record(out)
    offered: Sequence[str] = first.get("relations", [])
    infos = [RelationInfo.of(r) for r in record["relations"] if r["id"] in offered]
    killed = f"the run was killed before its end; `mt replay --resume {out}` goes on"
    summary = summarise(chain(read_journal(journal), read_scores(out)), infos, infrastructure=killed)
    if waivers := record["request"].get("waivers"):
        summary = marked(summary, read_journal(journal), load_waivers(Path(record["directory"]) / waivers))
    return summary


def read_summary(out: Path) -> Summary:
    """Return the ``summary.json`` of a results directory.

    Raises:
        InfrastructureError: it is missing, damaged or no summary.
    """
    path = out / "summary.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            f"{path}: cannot be read: {error}; expected a results directory of a run; of a killed run `mt report` "
            "makes the summary"
        ) from error
    if not isinstance(data, dict) or "relations" not in data:
        raise InfrastructureError(f"{path}: is no summary of a run; expected a results directory of a run")
    return data
