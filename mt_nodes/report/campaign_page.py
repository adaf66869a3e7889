# SPDX-License-Identifier: Apache-2.0
"""``report.html`` of a campaign: one self-contained page over all its cells, made from their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.worst import worst_first
from mt_nodes.report import effect
from mt_nodes.report.beside import Link, beside
from mt_nodes.report.coverage.coverage import CoverageCounter
from mt_nodes.report.coverage.coverage_view import coverage_html
from mt_nodes.report.html import SYMBOLS, environment

FILE = "report.html"
#: Failed drives on the page; ``summary.json`` has all.
LISTED = 200
#: Charts that are shown unfolded.
UNFOLDED = 6

Summary = Mapping[str, Any]


def write_campaign_page(out: Path) -> Path:
    """Write ``report.html`` of a campaign's directory and return its path.

    Reads ``summary.json``, and of each cell ``result.jsonl`` and ``ledger.jsonl``.

    Raises:
        MtError: the campaign has no summary, or a file of a cell is damaged.
    """
    summary = _summary(out)
    counter, worst = CoverageCounter(), {}
    directories = {cell: out / "cells" / cell for cell in summary["cells"]}
    for cell, directory in directories.items():
        if (directory / "result.jsonl").is_file():
            worst[cell] = _worst(directory, counter)
    coverage, about = counter.coverage, summary["campaign"]
    relations = {cell: each["relations"] for cell, each in summary["cells"].items()}
    page = (
        environment()
        .get_template("campaign.html.j2")
        .render(
            name=out.resolve().name,
            summary=summary,
            about=about,
            symbols=SYMBOLS,
            relations=list(dict.fromkeys(name for each in about["cells"].values() for name in each["relations"])),
            links={cell: _links(cell, worst.get(cell), directory) for cell, directory in directories.items()},
            beside=beside(out),
            offered=sum(each["offered"] for each in summary["cells"].values()),
            violated=sum(r["violated"] for each in relations.values() for r in each.values()),
            failed=_by_drive(about["failed"], len(summary["cells"]))[:LISTED],
            failed_count=len({each["drive"] for each in about["failed"]}),
            charts=effect.charts(relations, {cell: cell.rpartition("-seed")[0] for cell in about["cells"]}),
            unfolded=UNFOLDED,
            area=effect,
            coverage=coverage_html(coverage) if coverage.weathers else "",
        )
    )
    write_whole(out / FILE, page)
    return out / FILE


def _summary(out: Path) -> Summary:
    """Return the summary of the campaign.

    Raises:
        InfrastructureError: there is none yet, or one of another version.
    """
    path = out / "summary.json"
    sum_up = f"`mt campaign --resume {out} --minutes 0` writes one"
    try:
        summary: Summary = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{path}: cannot be read: {error}; {sum_up}") from error
    if "cells" not in summary.get("campaign", {}):
        raise InfrastructureError(f"{path}: has no list of cells; {sum_up}")
    return summary


def _worst(directory: Path, counter: CoverageCounter) -> dict[str, str]:
    """Return the worst violated pair of each relation of a cell, and count its pairs in the coverage."""
    worst: dict[str, Mapping[str, Any]] = {}
    for line in counter.passing(directory, read_journal(directory / "result.jsonl")):
        if line.get("outcome") != Outcome.VIOLATED.value or "@" in line["pair"].rpartition("/")[2]:
            continue
        known = worst.get(line["relation"])
        if known is None or worst_first(line) < worst_first(known):
            worst[line["relation"]] = line
    return {relation: line["pair"] for relation, line in worst.items()}


def _links(cell: str, worst: Mapping[str, str] | None, directory: Path) -> dict[str, Any]:
    """Return links to a cell's report, to the worst pair of each relation in it, and to further pages."""
    if worst is None:
        return {"report": "", "pairs": {}, "beside": []}
    home = f"cells/{quote(cell)}"
    report = f"{home}/{FILE}"
    pairs = {name: f"{report}#pair={quote(pair, '/@~')}" for name, pair in worst.items()}
    return {
        "report": report,
        "pairs": pairs,
        "beside": [Link(f"{home}/{href}", about) for href, about in beside(directory)],
    }


def _by_drive(failed: Sequence[Mapping[str, Any]], cells: int) -> list[dict[str, Any]]:
    """Return failed items by drive and error: a drive that cannot be read fails in every cell."""
    found: dict[tuple[int, str, str], list[str]] = {}
    for item in failed:
        found.setdefault((item["drive"], item["url"], item["trouble"]), []).append(item["cell"])
    return [
        {"drive": drive, "url": url, "trouble": trouble, "cells": "every cell" if len(of) == cells else ", ".join(of)}
        for (drive, url, trouble), of in sorted(found.items())
    ]
