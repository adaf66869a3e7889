# SPDX-License-Identifier: Apache-2.0
"""Outputs of both arms over a sequence, over time: read from their table, and drawn."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.arm_series import ANSWER_MS, COMMANDED
from mt_nodes.engine.series_tables import ARMS
from mt_nodes.report.birdseye import BLUE, GREY, ORANGE, data_uri

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeriesView:
    """Outputs of both arms over N instants.

    Attributes:
        time_s: (N,) since the first instant.
        stretch: (N,) number of the uninterrupted part; between two parts the arms settled.
        changed: (N,) whether a follow-up was sent.
        outputs: name -> (N,) of the source and of the follow-up arm, NaN where there is none.
    """

    time_s: Floats
    stretch: Floats
    changed: Floats
    outputs: Mapping[str, tuple[Floats, Floats]]


def read_series(path: Path) -> SeriesView:
    """Read the table of a sequence; without any output it has ``answered`` (0 or 1).

    Raises:
        InfrastructureError: the table cannot be read.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        time_s = np.array([int(row["stamp_ns"]) - int(rows[0]["stamp_ns"]) for row in rows], dtype=np.float64) * 1e-9
        outputs = {n: _columns(rows, n) for n in (*COMMANDED, ANSWER_MS) if rows and f"source_{n}" in rows[0]}
        shown = {name: arms for name, arms in outputs.items() if any(np.isfinite(arm).any() for arm in arms)}
        stretch, changed = (np.array([float(row[name]) for row in rows]) for name in ("stretch", "changed"))
        return SeriesView(time_s, stretch, changed, shown or {"answered": _columns(rows, "answered")})
    except (OSError, ValueError, KeyError) as error:
        raise InfrastructureError(f"{path}: cannot be read as the table of a sequence: {error}") from error


def draw_series(view: SeriesView) -> str:
    """Return a picture as a data URI: each output of both arms over time; grey where the arms settled."""
    figure = Figure(figsize=(7.5, 0.7 + 1.5 * len(view.outputs)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(view.outputs), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, arms) in zip(panels, view.outputs.items(), strict=True):
        _panel(axes, name, view, arms)
    panels[-1].set_xlabel("time (s)")
    return data_uri(figure)


def _columns(rows: Sequence[dict[str, str]], name: str) -> tuple[Floats, Floats]:
    source, followup = (np.array([float(row[f"{arm}_{name}"] or "nan") for row in rows]) for arm in ARMS)
    return source, followup


def _panel(axes: Axes, name: str, view: SeriesView, arms: tuple[Floats, Floats]) -> None:
    for arm, values, colour, style in zip(ARMS, arms, (BLUE, ORANGE), ("-", "--"), strict=True):
        axes.plot(view.time_s, values, style, color=colour, linewidth=1.6, label=arm.replace("followup", "follow-up"))
    for at in np.flatnonzero(np.diff(view.stretch)).tolist():
        axes.axvspan(view.time_s[at], view.time_s[at + 1], color=GREY, alpha=0.3, linewidth=0)
    axes.set_ylabel(name.replace("_", " "), fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(color=GREY, alpha=0.3)
    axes.legend(fontsize=8, loc="upper right")
