# SPDX-License-Identifier: Apache-2.0
"""Outputs of both arms over a sequence, over time: read from their table, and drawn."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.arm_series import ANSWER_MS, COMMANDED
from mt_nodes.engine.series_tables import ARMS
from mt_nodes.report.picture_colours import BLUE, GREY, LIGHT_BLUE, ORANGE
from mt_nodes.report.svg_parts import data_uri, document, number, path, ticks

#: A panel in units of the SVG: its width and height, the room for numbers beside it, its name above, and its pitch.
_WIDTH, _HIGH, _LEFT, _ABOVE = 500, 88, 44, 18
_PANEL = _ABOVE + _HIGH + 10


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

    Raises InfrastructureError: the table cannot be read.
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
    times = view.time_s[np.isfinite(view.time_s)]
    span = (float(times.min()), float(times.max())) if len(times) else (0.0, 1.0)
    panels = [
        f'<g transform="translate({_LEFT} {at * _PANEL + _ABOVE})">{"".join(_panel(name, view, arms, span))}</g>'
        for at, (name, arms) in enumerate(view.outputs.items())
    ]
    below = len(panels) * _PANEL
    at = ticks(*span, 8)
    axis = [
        f'<text x="{number(_LEFT + _across(t, span))}" y="{below + 14}" text-anchor="middle">'
        f"{t:g}{' s' if t == at[-1] else ''}</text>"
        for t in at
    ]
    style = (
        f".source{{stroke:{BLUE}}}.followup{{stroke:{ORANGE};stroke-dasharray:6 3}}.curve{{fill:none;stroke-width:1.8}}"
        f"@media (prefers-color-scheme:dark){{.source{{stroke:{LIGHT_BLUE}}}}}"
    )
    return data_uri(document(_LEFT + _WIDTH + 14.0, below + 18.0, [*panels, *axis], style))


def _columns(rows: Sequence[dict[str, str]], name: str) -> tuple[Floats, Floats]:
    source, followup = (np.array([float(row[f"{arm}_{name}"] or "nan") for row in rows]) for arm in ARMS)
    return source, followup


def _panel(name: str, view: SeriesView, arms: tuple[Floats, Floats], span: tuple[float, float]) -> Iterator[str]:
    finite = np.concatenate([arm[np.isfinite(arm)] for arm in arms])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
    yield f'<text x="0" y="-5">{escape(name.replace("_", " "))}</text>'
    yield f'<rect class="grid" width="{_WIDTH}" height="{_HIGH}"/>'
    for at in np.flatnonzero(np.diff(view.stretch)).tolist():
        left, right = (_across(float(t), span) for t in view.time_s[at : at + 2])
        yield f'<rect x="{number(left)}" width="{number(right - left)}" height="{_HIGH}" fill="{GREY}" opacity=".3"/>'
    for value in ticks(low, high, 4):
        down = number(_HIGH * (high - value) / (high - low))
        yield f'<path class="grid" d="M0 {down}H{_WIDTH}"/>'
        yield f'<text x="-4" y="{down}" dy="4" text-anchor="end">{value:g}</text>'
    for arm, values in zip(ARMS, arms, strict=True):
        across = np.array([_across(t, span) for t in view.time_s.tolist()])
        places = np.column_stack([across, _HIGH * (high - values) / (high - low)])
        yield f'<path class="curve {arm}" d="{path(places)}"/>'


def _across(time_s: float, span: tuple[float, float]) -> float:
    return _WIDTH * (time_s - span[0]) / ((span[1] - span[0]) or 1.0)
