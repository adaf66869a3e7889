# SPDX-License-Identifier: Apache-2.0
"""``report.html`` of a campaign: one self-contained page over all its cells, made from their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mt_nodes.base.directories import write_whole
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.finish import read_campaign_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.next_steps import NextStep, pair_steps
from mt_nodes.engine.summary.campaign_headline import CampaignHeadline, campaign_headline
from mt_nodes.engine.worst import PICTURED, worst_first
from mt_nodes.report import effect, pair_views
from mt_nodes.report.beside import Link, beside
from mt_nodes.report.coverage.coverage import CoverageCounter
from mt_nodes.report.coverage.coverage_view import coverage_html
from mt_nodes.report.html import SYMBOLS, environment

FILE = "report.html"
#: Failed drives on the page; ``summary.json`` has all.
LISTED = 200
#: Charts that are shown unfolded.
UNFOLDED = 6

Line = Mapping[str, Any]


def write_campaign_page(out: Path, cost: Mapping[str, Any]) -> Path:
    """Write ``report.html`` of a campaign's directory and return its path.

    Reads ``summary.json``, and of each cell ``result.jsonl`` and ``ledger.jsonl``. ``cost``: content of ``cost.json``,
    empty if there is none.
    Raises MtError: the campaign has no summary, or a file of a cell is damaged.
    """
    summary = read_campaign_summary(out)
    counter, worst = CoverageCounter(), {}
    directories = {cell: out / "cells" / cell for cell in summary["cells"]}
    for cell, directory in directories.items():
        if (directory / "result.jsonl").is_file():
            worst[cell] = _worst(directory, counter)
    coverage, about = counter.coverage, summary["campaign"]
    relations = {cell: each["relations"] for cell, each in summary["cells"].items()}
    charts = effect.charts(relations, {cell: cell.rpartition("-seed")[0] for cell in about["cells"]})
    links = {cell: _links(cell, worst.get(cell), directory) for cell, directory in directories.items()}
    context = campaign_headline(summary)
    pictured, costs = _pictured(out, context, worst, relations), cost_rows(cost)
    page = (
        environment()
        .get_template("campaign.html.j2")
        .render(
            name=out.resolve().name,
            summary=summary,
            about=about,
            symbols=SYMBOLS,
            relations=list(dict.fromkeys(name for each in about["cells"].values() for name in each["relations"])),
            links=links,
            found=context.found,
            next_steps=_steps(out, pictured),
            pictured=pictured,
            counted=counted,
            beside=beside(out),
            offered=sum(each["offered"] for each in summary["cells"].values()),
            violated=sum(r["violated"] for each in relations.values() for r in each.values()),
            failed=_by_drive(about["failed"], len(summary["cells"]))[:LISTED],
            failed_count=len({each["drive"] for each in about["failed"]}),
            charts=charts,
            parts=_parts(len(pictured) > 1, bool(costs), bool(charts), bool(coverage.weathers)),
            costs=costs,
            unfolded=UNFOLDED,
            area=effect,
            coverage=coverage_html(coverage) if coverage.weathers else "",
            maps=len(coverage.labels) * len(coverage.weathers),
        )
    )
    write_whole(out / FILE, page)
    return out / FILE


def _pictured(
    out: Path, summary: CampaignHeadline, worst: Mapping[str, Mapping[str, Line]], relations: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the worst pair of each relation of each cell with its pictures, that of the headline first."""
    lines = [(cell, line) for cell, by_relation in worst.items() for line in by_relation.values()]

    def place(one: tuple[str, Line]) -> tuple[bool, float, str]:
        cell, line = one
        first = (cell, line["relation"]) == (summary.cell, summary.found.relation)
        return not first, -(relations[cell][line["relation"]]["rate"] or 0.0), cell

    return [
        {
            **{key: line[key] for key in ("relation", "pair", "reason", "lost", "gained")},
            **{"cell": cell, "row": relations[cell][line["relation"]]},
            **pair_views.shown(out / "cells" / cell, line["pair"], turning=False),
        }
        for cell, line in sorted(lines, key=place)[:PICTURED]
    ]


def _parts(pictures: bool, costs: bool, charts: bool, coverage: bool) -> list[tuple[str, str]]:
    """Return anchor and name of each part of the page."""
    parts = (
        (True, "outcomes", "Outcomes"),
        (pictures, "more", "More violations"),
        (True, "items", "Items"),
        (True, "cells", "Cells"),
        (costs, "cost", "Cost"),
        (charts, "effects", "Effect of parameters"),
        (coverage, "coverage", "Coverage"),
    )
    return [(anchor, name) for present, anchor, name in parts if present]


def _steps(out: Path, pictured: Sequence[Mapping[str, Any]]) -> list[NextStep]:
    """Return what to do with the worst pair, files being seen from the campaign's directory."""
    if not pictured:
        return []
    cell = pictured[0]["cell"]
    steps = pair_steps(out / "cells" / cell, pictured[0]["pair"])
    return [replace(step, file=step.file and f"cells/{cell}/{step.file}") for step in steps]


def _worst(directory: Path, counter: CoverageCounter) -> dict[str, Mapping[str, Any]]:
    """Return the verdict line of the worst pair of each relation of a cell, and count its pairs in the coverage."""
    worst: dict[str, Mapping[str, Any]] = {}
    for line in counter.passing(directory, read_journal(directory / "result.jsonl")):
        if line.get("outcome") != Outcome.VIOLATED.value or "@" in line["pair"].rpartition("/")[2]:
            continue
        known = worst.get(line["relation"])
        if known is None or worst_first(line) < worst_first(known):
            worst[line["relation"]] = line
    return worst


def _links(cell: str, worst: Mapping[str, Line] | None, directory: Path) -> dict[str, Any]:
    """Return links to a cell's report, to the worst pair of each relation in it, and to further pages."""
    if worst is None:
        return {"report": "", "pairs": {}, "beside": []}
    home = f"cells/{quote(cell)}"
    report = f"{home}/{FILE}"
    pairs = {name: f"{report}#pair={quote(line['pair'], '/@~')}" for name, line in worst.items()}
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


NOT_MEASURED = "not measured"
#: Of a row that is of no relation.
SHARED, WHOLE = "shared", "all"


def cost_rows(cost: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of the table: of each cell its relations, what they share, and all of it."""
    return [row for cell, found in cost.get("cells", {}).items() for row in _rows(cell, found)]


def _rows(cell: str, found: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    cpu, relations = found.get("cpu") or {}, found.get("relations", {})
    measured = cpu.get("relations", {})
    for name in dict.fromkeys((*relations, *measured)):
        own = measured.get(name, {})
        stored = relations.get(name, {}).get("evidence_gb_per_1000_violated")
        yield _row(cell, name, own.get("cpu_s"), own.get("pairs_per_core_hour"), stored)
    if cpu:
        yield _row(cell, SHARED, cpu["shared_s"])
    yield _row(cell, WHOLE, cpu.get("seconds"), cpu.get("pairs_per_core_hour"), found["evidence_gb_per_1000_violated"])


def _row(
    cell: str, name: str, cpu_s: float | None, rate: float | None = None, stored: float | None = None
) -> dict[str, str]:
    return {
        "cell": cell,
        "name": name,
        "cpu": NOT_MEASURED if cpu_s is None else f"{cpu_s:,.1f}",
        "rate": "-" if rate is None else f"{rate:,.0f}",
        "stored": "-" if stored is None else f"{stored:.3f}",
    }
