# SPDX-License-Identifier: Apache-2.0
"""A trend as one self-contained page: the rate of each relation over the versions, with its interval."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.jsonl import in_utf8
from mt_nodes.report.birdseye import BLUE, GREY, VERMILLION, data_uri
from mt_nodes.report.comparison import FAIL
from mt_nodes.report.html import SYMBOLS, environment

_HERE = Path(__file__).parent / "templates"
#: Longest label of the axis; longer ones lose their beginning, because paths differ at their ends.
_MAX_LABEL = 24
#: The report in a version's results directory.
REPORT = "report.html"


def write_page(path: Path, found: Mapping[str, Any]) -> None:
    """Write what :func:`mt_nodes.report.trend.versions.trend` found as HTML, plots as SVG in it; it has no script.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    shared = environment()
    loader = jinja2.ChoiceLoader([jinja2.FileSystemLoader(_HERE), *([shared.loader] if shared.loader else [])])
    labels = [version["label"] for version in found["versions"]]
    rows = [{**row, "plot": plot(row, labels)} for row in found["relations"]]
    reports = [_link(path.parent, Path(version["path"]) / REPORT) for version in found["versions"]]
    template = shared.overlay(loader=loader).get_template("trend.html.j2")
    page = template.render(found=found, rows=rows, reports=reports, symbols=SYMBOLS)
    try:
        write_whole(path, page)
    except OSError as error:
        raise cannot_write(path, error) from error


def _link(directory: Path, report: Path) -> str:
    """Return a relative link from a directory to a report; empty where there is no report."""
    if not report.is_file():
        return ""
    # Resolved: a browser goes up by names even through links, and `latest` will be another run tomorrow.
    return quote(os.fsencode(os.path.relpath(report.resolve(), directory.absolute())))


def plot(row: Mapping[str, Any], labels: Sequence[str]) -> str:
    """Return the rates of a relation over the versions (percent, 95 % intervals) as a data URI (SVG).

    A version in which the relation is FAIL has a filled square, any other an open circle; changes are dashed lines.
    """
    figure = Figure(figsize=(max(5.0, 1.2 + 0.8 * len(labels)), 3.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    known = [(at, p) for at, p in enumerate(row["points"]) if p and p["rate"] is not None]
    axes.plot([at for at, _ in known], [100 * p["rate"] for _, p in known], color=GREY, linewidth=1.0, zorder=1)
    for at, point in known:
        failed = point["outcome"] == FAIL
        colour = VERMILLION if failed else BLUE
        low, high = (100 * end for end in point["ci95"])
        axes.vlines(at, low, high, color=colour, linewidth=1.6)
        face = colour if failed else "white"
        # A marker at a rate of zero, on the edge of the plot, is not clipped.
        style: dict[str, Any] = {"color": colour, "markerfacecolor": face, "markersize": 7, "clip_on": False}
        axes.plot(at, 100 * point["rate"], "s" if failed else "o", zorder=3, **style)
    for change in row["changes"]:
        axes.axvline(labels.index(change["version"]) - 0.5, color="black", linestyle="--", linewidth=1.0)
    axes.set_xticks(range(len(labels)), [_cut(label) for label in labels], rotation=30, ha="right", fontsize=8)
    axes.set(xlim=(-0.6, len(labels) - 0.4), ylabel="violated (%)")
    axes.set_ylim(bottom=0.0)
    return data_uri(figure)


def _cut(label: str) -> str:
    shown = in_utf8(label)
    return shown if len(shown) <= _MAX_LABEL else f"…{shown[-_MAX_LABEL:]}"
