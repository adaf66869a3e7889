# SPDX-License-Identifier: Apache-2.0
"""Draws the rooms of the package and the imports between them as SVG; no other program and no network is needed."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, COLUMN_WIDTH, MARGIN = 120, 34, 64, 170, 10
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#7986cb"/></marker>'
)


def svg(imports: Mapping[str, set[str]]) -> str:
    """Return the picture: a room stands above all that it imports from.

    :param imports: room -> the rooms to which an arrow leads
    """
    rows: dict[int, list[str]] = {}
    for room in sorted(imports):
        rows.setdefault(_height(room, imports), []).append(room)
    width = max(map(len, rows.values())) * COLUMN_WIDTH + 2 * MARGIN
    height = len(rows) * ROW_HEIGHT - (ROW_HEIGHT - BOX_HEIGHT) + 2 * MARGIN
    places = {
        room: (
            width / 2 + (column - (len(rooms) - 1) / 2) * COLUMN_WIDTH,
            MARGIN + (max(rows) - row) * ROW_HEIGHT,
        )
        for row, rooms in rows.items()
        for column, room in enumerate(rooms)
    }
    arrows = [_arrow(places[room], places[other]) for room in sorted(imports) for other in sorted(imports[room])]
    boxes = [_box(room, *places[room]) for room in sorted(imports)]
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}">'
    return "\n".join([frame, f"<defs>{HEAD}</defs>", *arrows, *boxes, "</svg>"]) + "\n"


def _height(room: str, imports: Mapping[str, set[str]]) -> int:
    """Return the length of the longest chain of imports below a room."""
    return max((1 + _height(other, imports) for other in imports[room]), default=0)


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    points = f'x1="{start[0]:g}" y1="{start[1] + BOX_HEIGHT:g}" x2="{end[0]:g}" y2="{end[1]:g}"'
    return f'<line {points} stroke="#7986cb" stroke-width="1.5" marker-end="url(#head)"/>'


def _box(room: str, x: float, y: float) -> str:
    outline = f'x="{x - BOX_WIDTH / 2:g}" y="{y:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"'
    text = f'x="{x:g}" y="{y + BOX_HEIGHT / 2 + 5:g}" text-anchor="middle" font-family="sans-serif" font-size="15"'
    return f'<rect {outline} fill="#e8eaf6" stroke="#3f51b5"/><text {text} fill="#1a237e">{escape(room)}</text>'
