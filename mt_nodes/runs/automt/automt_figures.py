# SPDX-License-Identifier: Apache-2.0
"""Figures of a finished experiment: violations by stack, and the paper's Figure 3, valid follow-ups by manipulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mt_nodes.base.wording import counted
from mt_nodes.report.picture_colours import BLUE, VERMILLION
from mt_nodes.rules.rates import NOT_RUN

Table = Mapping[str, Any]
#: Methods are told apart by colour (Okabe and Ito, 2008) and hatching.
_STYLES = (
    *((VERMILLION, ""), (BLUE, "////"), ("#E69F00", "...."), ("#999999", "xxxx")),
    *(("#009E73", "\\\\\\\\"), ("#CC79A7", "++++"), ("#56B4E9", "oo")),
)


def violations_figure(table: Table) -> Figure:
    """Return bars of violations per case by stack and method, a panel each region; a dash: the floor."""
    regions, stacks = table["regions"], table["stacks"]
    figure = Figure(figsize=(1.5 + max(3.4, 1.1 * len(stacks)) * len(regions), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(regions), sharey=True, squeeze=False)[0]
    for axes, (region, results) in zip(panels, regions.items(), strict=True):
        _panel(axes, region, results["violation"], stacks, table["identity"])
    panels[0].set_ylabel("violations, share of all cases (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _panel(axes: Axes, region: str, methods: Table, stacks: Sequence[str], identity: Table) -> None:
    run = {method: row for method, row in methods.items() if row != NOT_RUN}
    width = 0.8 / max(1, len(run))
    for i, (method, row) in enumerate(run.items()):
        colour, hatch = _STYLES[i % len(_STYLES)]
        at = [n - 0.4 + (i + 0.5) * width for n in range(len(stacks))]
        rates = [row[stack]["per_case"] for stack in stacks]
        heights = [100.0 * (one["share"] or 0.0) for one in rates]
        axes.bar(at, heights, width, color=colour, hatch=hatch, edgecolor="white", label=method.replace("_", " "))
        low = [height - 100.0 * (one["low"] or 0.0) for height, one in zip(heights, rates, strict=True)]
        high = [100.0 * (one["high"] or 0.0) - height for height, one in zip(heights, rates, strict=True)]
        spread = [[max(0.0, value) for value in side] for side in (low, high)]
        axes.errorbar(at, heights, spread, fmt="none", ecolor="black", capsize=2, linewidth=0.8)
    floors = [100.0 * (identity[stack]["per_case"]["share"] or 0.0) for stack in stacks]
    axes.hlines(
        floors,
        [n - 0.45 for n in range(len(stacks))],
        [n + 0.45 for n in range(len(stacks))],
        "black",
        "dashed",
        label="where nothing was changed",
    )
    axes.set_xticks(range(len(stacks)), stacks, fontsize=7, rotation=15)
    axes.set_ylim(-1.0, 100.0)  # so that a floor of 0 is seen
    axes.set_title(region)


def valid_by_manipulation(table: Table) -> dict[str, Counter[str]]:
    """Return method -> manipulation -> in how many cases its follow-up was valid; the paper's Figure 3."""
    methods = dict.fromkeys(one["method"] for one in table["judged"])
    return {
        method: Counter(
            f"{one['statement']['verb']} {one['statement']['element']}".replace("_", " ")
            for one in table["judged"]
            if one["method"] == method and one["validation"]["valid"] and one["statement"]
        )
        for method in methods
    }


def manipulations_figure(table: Table) -> Figure:
    """Return bars of valid follow-ups by manipulation and method, the most frequent at the top."""
    counts = valid_by_manipulation(table)
    total: Counter[str] = sum(counts.values(), Counter())
    names = [name for name, _ in sorted(total.items(), key=lambda item: (item[1], item[0]))]
    figure = Figure(figsize=(7.0, 1.6 + 0.24 * max(4, len(names))), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    width = 0.8 / max(1, len(counts))
    for i, (method, valid) in enumerate(counts.items()):
        colour, hatch = _STYLES[i % len(_STYLES)]
        at = [n + 0.4 - (i + 0.5) * width for n in range(len(names))]
        label = f"{method.replace('_', ' ')}: {counted(len(valid), 'kind')}, {valid.total()} valid"
        axes.barh(at, [valid[name] for name in names], width, color=colour, hatch=hatch, edgecolor="white", label=label)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel("valid follow-ups")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not names:
        axes.text(0.5, 0.5, "no follow-up was valid", ha="center", transform=axes.transAxes)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    return figure
