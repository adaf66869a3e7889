# SPDX-License-Identifier: Apache-2.0
"""Everything that is made from journal and summary: at the end of a run, and by ``mt report`` anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.errors import InfrastructureError
from mt_nodes.journal import read_journal
from mt_nodes.report.csv_pairs import pair_rows, write_pairs_csv, write_pairs_parquet
from mt_nodes.report.html import write_report
from mt_nodes.report.junit import write_junit
from mt_nodes.waivers import Waiver, marked

Summary = dict[str, Any]


def write_files(out: Path, summary: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Path:
    """Write ``summary.json``, ``pairs.csv`` (and ``.parquet``), ``junit.xml`` and ``report.html``; return the last.

    Args:
        out: results directory with ``result.jsonl``.
        summary: as :func:`mt_nodes.summary.summarise` makes it.
        lines: of the journal.
    """
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    rows = pair_rows(lines, {name: r["requirement"] for name, r in summary["relations"].items()})
    write_pairs_csv(out / "pairs.csv", rows)
    write_pairs_parquet(out / "pairs.parquet", rows)
    write_junit(out / "junit.xml", summary)
    return write_report(out)


def remake(out: Path, waivers: Sequence[Waiver] | None = None) -> Summary:
    """Make the files of a finished run anew and return its summary; ``waivers`` replace those of the run.

    Raises:
        MtError: it has no journal or no summary, or they are damaged.
    """
    lines, summary = list(read_journal(out / "result.jsonl")), read_summary(out)
    if waivers is not None:
        summary = marked(summary, lines, waivers)
    write_files(out, summary, lines)
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
        raise InfrastructureError(f"{path}: cannot be read: {error}; expected a results directory of a run") from error
    if not isinstance(data, dict) or "relations" not in data:
        raise InfrastructureError(f"{path}: got no summary of a run; expected a results directory of a run")
    return data
