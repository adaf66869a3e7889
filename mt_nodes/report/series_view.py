# SPDX-License-Identifier: Apache-2.0
"""Draws what a verdict over a sequence was judged by."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mt_nodes.courses import ANSWER_MS, COMMANDED
from mt_nodes.errors import InfrastructureError
from mt_nodes.report.birdseye import BLUE, GREY, ORANGE, data_uri
from mt_nodes.report.stretches import ARMS


def draw_stretches(path: Path) -> str:
    """Return a picture of a table as a data URI: each number over time, of both arms; grey where the arms settled.

    Raises:
        InfrastructureError: the table cannot be read.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        time_s = [(int(row["stamp_ns"]) - int(rows[0]["stamp_ns"])) * 1e-9 for row in rows]
        told = {name: _columns(rows, name) for name in (*COMMANDED, ANSWER_MS) if rows and f"source_{name}" in rows[0]}
        answered = _columns(rows, "answered")
    except (OSError, ValueError, KeyError) as error:
        raise InfrastructureError(f"{path}: cannot be read as the table of a sequence: {error}") from error
    shown = {name: arms for name, arms in told.items() if any(v == v for arm in arms for v in arm)}
    figure = Figure(figsize=(7.5, 0.7 + 1.5 * max(1, len(shown))), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0]
    begins = [at for at, (a, b) in enumerate(itertools.pairwise(rows)) if a["stretch"] != b["stretch"]]
    for axes, (name, arms) in zip(panels, (shown or {"answered": answered}).items(), strict=True):
        _panel(axes, name, time_s, arms, begins)
    panels[-1].set_xlabel("time (s)")
    return data_uri(figure)


def _columns(rows: Sequence[dict[str, str]], name: str) -> list[list[float]]:
    return [[float(row[f"{arm}_{name}"] or math.nan) for row in rows] for arm in ARMS]


def _panel(axes: Axes, name: str, time_s: list[float], arms: list[list[float]], begins: list[int]) -> None:
    for arm, values, colour, style in zip(ARMS, arms, (BLUE, ORANGE), ("-", "--"), strict=True):
        axes.plot(time_s, values, style, color=colour, linewidth=1.6, label=arm.replace("followup", "follow-up"))
    for at in begins:
        axes.axvspan(time_s[at], time_s[at + 1], color=GREY, alpha=0.3, linewidth=0)
    axes.set_ylabel(name.replace("_", " "), fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(color=GREY, alpha=0.3)
    axes.legend(fontsize=8, loc="upper right")
