# SPDX-License-Identifier: Apache-2.0
"""Everything that is made from journal and summary: at the end of a run, and by ``mt report`` anew."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.directories import write_whole
from mt_nodes.errors import InfrastructureError
from mt_nodes.journal import read_journal
from mt_nodes.report.csv_pairs import pair_rows, write_pairs_csv, write_pairs_parquet
from mt_nodes.report.html import write_report
from mt_nodes.report.junit import write_junit
from mt_nodes.run_record import read_record
from mt_nodes.summary import RelationInfo, summarise
from mt_nodes.waivers import Waiver, load_waivers, marked

Summary = dict[str, Any]


def write_files(
    out: Path, summary: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], drives: Collection[str] = ()
) -> Path:
    """Write ``summary.json``, ``pairs.csv`` (and ``.parquet``), ``junit.xml`` and ``report.html``; return the last.

    Args:
        out: results directory with ``result.jsonl``.
        summary: as :func:`mt_nodes.summary.summarise` makes it.
        lines: of the journal.
        drives: pairs of drives that the report shows beside violated ones, or ``all``.
    """
    write_whole(out / "summary.json", json.dumps(summary, indent=2) + "\n")
    rows = pair_rows(lines, {name: r["requirement"] for name, r in summary["relations"].items()})
    write_pairs_csv(out / "pairs.csv", rows)
    write_pairs_parquet(out / "pairs.parquet", rows)
    write_junit(out / "junit.xml", summary)
    return write_report(out, drives)


def remake(out: Path, waivers: Sequence[Waiver] | None = None, drives: Collection[str] = ()) -> Summary:
    """Make the files of a run anew and return its summary; ``waivers`` replace those of the run.

    ``drives`` are pairs of drives that the report shows beside violated ones, or ``all``.

    A run that was killed has no summary: one is made of what had been judged by then.

    Raises:
        MtError: it has no journal, or journal or summary are damaged.
    """
    lines = list(read_journal(out / "result.jsonl"))
    summary = read_summary(out) if (out / "summary.json").exists() else summary_of_a_killed_run(out, lines)
    if waivers is not None:
        summary = marked(summary, lines, waivers)
    write_files(out, summary, lines, drives)
    return summary


def summary_of_a_killed_run(out: Path, lines: Sequence[Mapping[str, Any]]) -> Summary:
    """Sum up what a run that nobody could end had judged.

    Raises:
        MtError: there is no telling what was asked of it.
    """
    record = read_record(out)
    offered: Sequence[str] = next((line["relations"] for line in lines if line["type"] == "condition"), [])
    infos = [
        RelationInfo(r["id"], r["kind"], r["min_decided"], r["because"], tuple(r["requirement"]))
        for r in record["relations"]
        if r["id"] in offered
    ]
    cut_off = f"the run was cut off before its end; `mt replay --resume {out}` goes on with it"
    summary = summarise(lines, infos, infrastructure=cut_off)
    if waivers := record["request"].get("waivers"):
        summary = marked(summary, lines, load_waivers(Path(record["directory"]) / waivers))
    return summary


def read_summary(out: Path) -> Summary:
    """Return the ``summary.json`` of a results directory.

    Raises:
        InfrastructureError: it is missing, damaged or something else.
    """
    path = out / "summary.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            f"{path}: cannot be read: {error}; expected a results directory of a run; "
            "of one that was killed `mt report` makes a summary"
        ) from error
    if not isinstance(data, dict) or "relations" not in data:
        raise InfrastructureError(f"{path}: got no summary of a run; expected a results directory of a run")
    return data
