# SPDX-License-Identifier: Apache-2.0
"""Coverage as heat maps of range and bearing for each class and weather, and as a table for terminals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape

from mt_nodes.base.wording import counted
from mt_nodes.data.polar_cells import BEARING_DEG, RANGE_M
from mt_nodes.report.coverage.coverage import BEARINGS_DEG, CellCount, Coverage, CoverageCell

COLUMNS = ("class", "weather", "cells", "tried", "violated", "never tried")
_STYLE = """<style>
.mt-coverage{font:14px system-ui,sans-serif}
.mt-coverage>div{overflow-x:auto}
.mt-coverage table{border-collapse:collapse;margin:0 1.5em 1.5em 0;display:inline-table;width:auto}
.mt-coverage caption{text-align:left;font-weight:600;padding:.3em 0}
.mt-coverage th{font-weight:400;padding:.1em .4em;text-align:right;border:0}
.mt-coverage td{border:1px solid #8886;min-width:2.6em;height:1.7em;text-align:center;padding:.1em .3em}
.mt-coverage th[scope=col]{text-align:center}
.mt-coverage th,.mt-coverage td{white-space:nowrap}
.mt-coverage .never{background:repeating-linear-gradient(45deg,#8883 0 3px,transparent 3px 7px)}
</style>"""
#: Opacities: a single pair is still visible.
_FAINTEST, _STRONGEST = 0.15, 0.85


def rows(coverage: Coverage) -> list[tuple[str, ...]]:
    """Return a row for each class and weather, with the cells of :data:`COLUMNS`."""
    table: list[tuple[str, ...]] = []
    for label, weather in _grids(coverage):
        counts = [count for _, count in coverage.grid(label, weather)]
        tried, violated = sum(c.tried > 0 for c in counts), sum(c.violated > 0 for c in counts)
        table.append((label, weather, str(len(counts)), str(tried), str(violated), str(len(counts) - tried)))
    return table


def summary(coverage: Coverage) -> list[str]:
    """Return sentences about the pairs: how many were decided, and how many have no place."""
    lines = []
    for weather, t in sorted(coverage.weathers.items()):
        nowhere = f"; {t.decided_nowhere} of them without a place" if t.decided_nowhere else ""
        lines.append(f"{weather}: {t.violated} of {counted(t.decided, 'pair')} violated{nowhere}")
    return [*lines, f"{counted(coverage.undecided, 'pair')} not decided"]


def coverage_html(coverage: Coverage) -> str:
    """Return an HTML fragment with its style: a map for each class and weather, and what the maps do not show."""
    most = max((count.tried for count in coverage.cells.values()), default=1)
    maps = [_map(coverage, label, weather, most) for label, weather in _grids(coverage)]
    items = "".join(f"<li>{escape(line)}</li>" for line in summary(coverage))
    key = (
        f"Cells of {RANGE_M} m by {BEARING_DEG}°, seen from the ego vehicle: ahead in the middle, left on the left, "
        "far at the top. Violated pairs / pairs; hatched: never tried."
    )
    return f'{_STYLE}<div class="mt-coverage"><p>{key}</p><div>{"".join(maps)}</div><ul>{items}</ul></div>'


def coverage_page(coverage: Coverage) -> str:
    """Return a page with :func:`coverage_html`."""
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Coverage</title>'
    scheme = '<meta name="color-scheme" content="light dark"></head>'
    return f"{head}{scheme}<body><h1>Coverage</h1>{coverage_html(coverage)}</body></html>\n"


def _grids(coverage: Coverage) -> Sequence[tuple[str, str]]:
    return list(itertools.product(coverage.labels, sorted(coverage.weathers)))


def _map(coverage: Coverage, label: str, weather: str, most: int) -> str:
    counts = dict(coverage.grid(label, weather))
    leftmost_first = BEARINGS_DEG[::-1]
    lines = []
    for near_m in reversed(coverage.ranges_m):
        cells = (CoverageCell(near_m, bearing, label, weather) for bearing in leftmost_first)
        row = "".join(_cell(cell, counts[cell], most) for cell in cells)
        lines.append(f'<tr><th scope="row">{near_m} to {near_m + RANGE_M} m</th>{row}</tr>')
    heads = "".join(f'<th scope="col">{bearing + BEARING_DEG // 2}°</th>' for bearing in leftmost_first)
    caption = f"<caption>{escape(label)}, {escape(weather)}</caption>"
    return f"<table>{caption}{''.join(lines)}<tr><th></th>{heads}</tr></table>"


def _cell(cell: CoverageCell, count: CellCount, most: int) -> str:
    where = f"{cell.range_m} to {cell.range_m + RANGE_M} m, {cell.bearing_deg}° to {cell.bearing_deg + BEARING_DEG}°"
    if not count.tried:
        return f'<td class="never" title="{where}: never tried"></td>'
    share = count.violated / count.tried if count.violated else count.tried / most
    shade = _FAINTEST + (_STRONGEST - _FAINTEST) * share
    colour = f"rgba({'214,39,40' if count.violated else '44,130,70'},{shade:.2f})"
    title = f"{where}: {count.violated} of {count.tried} violated"
    return f'<td style="background:{colour}" title="{title}">{count.violated}/{count.tried}</td>'
