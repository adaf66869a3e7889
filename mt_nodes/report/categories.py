# SPDX-License-Identifier: Apache-2.0
"""The paper's category figure: for each n and category, the shares of pairs with fewer, as many and more obstacles.

Colours are those of Okabe and Ito (Color Universal Design, 2008); the parts differ in hatching as well.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mt_nodes.report.picture_colours import BLUE, VERMILLION
from mt_nodes.report.published_tables import OVERALL, categories

#: sign -> what it means, colour, hatching; from the bottom of a bar to its top.
PARTS = {
    ">": ("fewer in the follow-up, |O| > |O'|", VERMILLION, "////"),
    "<": ("more in the follow-up, |O| < |O'|", BLUE, "...."),
    "=": ("as many, |O| = |O'|", "#E4E4E4", ""),
}
FIGURE = "categories"
Rows = Sequence[Mapping[str, Any]]


def write_figure(rows: Rows, directory: Path) -> list[Path]:
    """Write ``categories.png`` and ``categories.svg``; equal tables give equal files."""
    figure, paths = _figure(rows), [directory / f"{FIGURE}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        path.write_bytes(render(figure, path.suffix[1:]))
    return paths


def figure_uri(rows: Rows) -> str:
    """Return the figure as a data URI (SVG)."""
    return f"data:image/svg+xml;base64,{base64.b64encode(render(_figure(rows), 'svg')).decode()}"


def _figure(rows: Rows) -> Figure:
    figure = Figure(figsize=(1.2 + 3.4 * max(1, len(rows)), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    names, top = categories(rows), _top(rows)
    panels = figure.subplots(1, max(1, len(rows)), sharey=True, squeeze=False)[0]
    for axes, row in zip(panels, rows, strict=False):
        _panel(axes, row, names, top)
    panels[0].set_ylabel("share of pairs (%)" + ("" if top >= 100 else f", cut at {top:g} %"))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _panel(axes: Axes, row: Mapping[str, Any], names: Sequence[str], top: float) -> None:
    cells = [row["counts"].get(name, dict.fromkeys(PARTS, 0)) for name in names]
    totals = [max(1, sum(c.values())) for c in cells]
    floor = [0.0] * len(names)
    for sign, (label, colour, hatch) in PARTS.items():
        heights = [100.0 * c[sign] / total for c, total in zip(cells, totals, strict=True)]
        axes.bar(range(len(names)), heights, 0.72, floor, label=label, color=colour, hatch=hatch, edgecolor="white")
        floor = [a + b for a, b in zip(floor, heights, strict=True)]
    for i, c in enumerate(cells):
        axes.text(i, 0.985 * top, f"{c['>']} / {c['<']}\nof {sum(c.values())}", ha="center", va="top", fontsize=7)
    ticks = ["overall" if name == OVERALL else name for name in names]
    axes.set_xticks(range(len(names)), ticks, rotation=35, ha="right", fontsize=8)
    axes.set(ylim=(0.0, top), title=f"n = {row['n']:,}")


def _top(rows: Rows) -> float:
    """Return the upper end of the axis (%): most pairs are equal, but the others must be visible."""
    shares = [
        100.0 * (cells[">"] + cells["<"]) / max(1, sum(cells.values()))
        for row in rows
        for cells in row["counts"].values()
    ]
    return next(
        step
        for step in (5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 75.0, 100.0)
        if step >= min(100.0, 1.2 * max(shares, default=0.0))
    )


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as a file of a kind; equal figures give equal bytes: no date, no random ids."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "mt_nodes", "hatch.linewidth": 0.6}):
        figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return buffer.getvalue()
