# SPDX-License-Identifier: Apache-2.0
"""``report.html`` of a run that only watched: rates by cell, their confidence sequences over time, violations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import write_whole
from mt_nodes.base.jsonl import read_lines, read_result
from mt_nodes.base.stats.event_rate import event_rate
from mt_nodes.engine.summary.watch_sums import AXES, FILE, SHAPES, watch_summary
from mt_nodes.engine.summary.watch_words import cell_words, duration, interval, rate
from mt_nodes.report.html import environment
from mt_nodes.report.picture_colours import BLUE, GREY, LIGHT_BLUE, VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, number, path, ticks

_WIDTH, _HEIGHT, _LEFT, _ABOVE, _BELOW = 560.0, 170.0, 64.0, 10.0, 36.0
_STYLE = (
    f".band{{fill:{BLUE};fill-opacity:.2}}.rate{{fill:none;stroke:{BLUE};stroke-width:2}}.most{{stroke:{VERMILLION};"
    f"stroke-dasharray:5 4}}@media (prefers-color-scheme:dark){{.rate{{stroke:{LIGHT_BLUE}}}.band{{fill:{GREY}}}}}"
)


def write_watch_page(out: Path) -> Path:
    """Write ``report.html`` of a run that only watched, and return its path. Raises MtError: its summary is damaged."""
    summary = watch_result(out)
    relations = [_section(name, each) for name, each in summary["watched"].items()]
    template = environment().get_template("watch.html.j2")
    write_whole(out / "report.html", template.render(name=out.resolve().name, summary=summary, relations=relations))
    return out / "report.html"


def watch_result(out: Path) -> dict[str, Any]:
    """Return the summary of a run that only watches; of one without a summary, what its journal comes to so far.

    Raises InfrastructureError: summary or journal is damaged.
    """
    if (out / "summary.json").exists():
        return read_result(out / "summary.json", "expected a results directory of `mt live --watch-only`")
    return watch_summary(read_lines(out / FILE, SHAPES), infrastructure="the run goes on, or ended without a summary")


def _section(name: str, each: Mapping[str, Any]) -> dict[str, Any]:
    shown = {
        **each,
        "name": name,
        "watched": duration(each["watched_s"]),
        "rate": rate(each),
        "interval": interval(each),
    }
    cells = [_cell(row) for row in each["cells"]]
    along = [row for row in cells if len(row["cell"]) == 1]
    whole = [row for row in cells if len(row["cell"]) == len(AXES)]
    picture = course_picture(each["course"], each["tolerated_per_h"]) if each["watched_s"] > 0.0 else ""
    return {**shown, "along": along, "whole": whole, "picture": picture}


def _cell(row: Mapping[str, Any]) -> dict[str, Any]:
    words = {"words": cell_words(row["cell"]), "watched": duration(row["watched_s"])}
    return {**row, **words, "rate": rate(row), "interval": interval(row)}


def course_picture(course: Sequence[Sequence[float]], tolerated_per_h: float | None) -> str:
    """Return the rate with its confidence sequence over the time watched, as a data URI."""
    height = _ABOVE + _HEIGHT + _BELOW
    return data_uri(document(_LEFT + _WIDTH + 20, height, _marks(course, tolerated_per_h), _STYLE))


def _marks(course: Sequence[Sequence[float]], tolerated_per_h: float | None) -> Iterator[str]:
    rows = [(seconds, event_rate(int(events), seconds)) for seconds, events in course if seconds > 0.0]
    known = [(s, r.per_h, r.low, r.high) for s, r in rows if r.per_h is not None and r.low is not None and r.high]
    longest = known[-1][0]
    # What the first minutes leave open would make all else flat.
    top = 3.0 * max(known[-1][3], tolerated_per_h or 0.0)

    def place(seconds: float, value: float) -> tuple[float, float]:
        return _LEFT + _WIDTH * seconds / longest, _ABOVE + _HEIGHT * (1.0 - min(value, top) / top)

    for value in ticks(0.0, top, 5):
        y = place(0.0, value)[1]
        yield f'<path class="grid" d="M{_LEFT:g} {number(y)}h{_WIDTH:g}"/>'
        yield f'<text x="{_LEFT - 6:g}" y="{number(y + 4)}" text-anchor="end">{value:g}</text>'
    unit, scale = ("h", 3600.0) if longest >= 7200.0 else ("min", 60.0) if longest >= 120.0 else ("s", 1.0)
    for value in ticks(0.0, longest / scale, 6):
        x = place(value * scale, 0.0)[0]
        yield f'<text x="{number(x)}" y="{_ABOVE + _HEIGHT + 16:g}" text-anchor="middle">{value:g}</text>'
    middle = _LEFT + _WIDTH / 2.0
    yield f'<text x="{middle:g}" y="{_ABOVE + _HEIGHT + 31:g}" text-anchor="middle">time watched, {unit}</text>'
    band = [place(s, high) for s, _, _, high in known] + [place(s, low) for s, _, low, _ in reversed(known)]
    yield f'<path class="band" d="{path(band, closed=True)}"/>'
    yield f'<path class="rate" d="{path([place(s, value) for s, value, _, _ in known])}"/>'
    if tolerated_per_h is not None:
        yield f'<path class="most" d="M{_LEFT:g} {number(place(0.0, tolerated_per_h)[1])}h{_WIDTH:g}"/>'
