# SPDX-License-Identifier: Apache-2.0
"""The drawing of an argument in the Goal Structuring Notation: goals above, what supports them below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from mt_nodes.report.svg_parts import document, number

Element = Mapping[str, Any]
_STYLE = """
text{font-size:11px}.id{font-weight:700}
.shape{fill:#fff;stroke:#3d444b;stroke-width:1.3}.arrow{fill:none;stroke:#3d444b;stroke-width:1.2}
.tip{fill:#3d444b}.open{fill:#fff}
.violated,.gap{fill:#fde8e6;stroke:#c4231b;stroke-width:2.2}.waived{fill:#fff3d6;stroke:#a56a00;stroke-width:2.2}
@media (prefers-color-scheme:dark){
.shape{fill:#1c2126;stroke:#aab2ba}.arrow{stroke:#aab2ba}.tip{fill:#aab2ba}.open{fill:#15181c}
.violated,.gap{fill:#4a1512;stroke:#ff7b72}.waived{fill:#3d2c05;stroke:#e3b341}}
"""
_WIDE, _LINE, _LETTERS = 196.0, 14.0, 30
_GAP_X, _GAP_Y, _MARGIN = 22.0, 34.0, 12.0
#: A solution is a circle, which has less room in its corners.
_CIRCLE, _CIRCLE_LETTERS = 146.0, 20
_MOST_LINES = 6


class _Box(NamedTuple):
    """Where an element stands: its middle, the upper edge, width and height."""

    x: float
    y: float
    wide: float
    high: float


def argument_svg(elements: Mapping[str, Element]) -> str:
    """Return the drawing of an argument's elements, as :func:`~mt_nodes.report.safety_argument.safety_argument`."""
    top = next(iter(elements))
    boxes: dict[str, _Box] = {}
    width = _room(elements, top) + 2 * _MARGIN
    _place(elements, top, width / 2, _MARGIN, boxes)
    height = max(box.y + box.high for box in boxes.values()) + _MARGIN + 16.0
    parts = [*_arrows(elements, boxes), *(_drawn(name, elements[name], box) for name, box in boxes.items())]
    return document(width, height, parts, _STYLE)


def _lines(name: str, element: Element) -> list[str]:
    letters = _CIRCLE_LETTERS if _kind(name) == "Sn" else _LETTERS
    found = textwrap.wrap(element["text"], letters)
    return found if len(found) <= _MOST_LINES else [*found[: _MOST_LINES - 1], f"{found[_MOST_LINES - 1][:-1]}…"]


def _kind(name: str) -> str:
    return name.rstrip("0123456789")


def _size(name: str, element: Element) -> tuple[float, float]:
    if _kind(name) == "Sn":
        return _CIRCLE, _CIRCLE
    return _WIDE, 30.0 + _LINE * len(_lines(name, element))


def _beside(element: Element) -> float:
    """Return the room that the contexts of an element take on each side, one column."""
    return _WIDE + _GAP_X if element.get("inContextOf") else 0.0


def _room(elements: Mapping[str, Element], name: str) -> float:
    beside = elements[name].get("supportedBy", ())
    inner = sum(_room(elements, one) for one in beside) + _GAP_X * max(0, len(beside) - 1)
    return max(_size(name, elements[name])[0] + 2 * _beside(elements[name]), inner)


def _place(elements: Mapping[str, Element], name: str, x: float, y: float, boxes: dict[str, _Box]) -> None:
    element = elements[name]
    boxes[name] = _Box(x, y, *_size(name, element))
    free = [y, y]
    for at, one in enumerate(element.get("inContextOf", ())):  # by turns left and right, one below the other
        step = (_WIDE + _GAP_X) * (1 if at % 2 else -1)
        boxes[one] = _Box(x + step, free[at % 2], *_size(one, elements[one]))
        free[at % 2] += boxes[one].high + _GAP_Y / 2
    below = max(y + boxes[name].high + _GAP_Y, *free)
    beside = element.get("supportedBy", [])
    left = x - (sum(_room(elements, one) for one in beside) + _GAP_X * max(0, len(beside) - 1)) / 2
    for one in beside:
        room = _room(elements, one)
        _place(elements, one, left + room / 2, below, boxes)
        left += room + _GAP_X


def _arrows(elements: Mapping[str, Element], boxes: Mapping[str, _Box]) -> Iterator[str]:
    for name, element in elements.items():
        start = boxes[name]
        for one in element.get("supportedBy", ()):
            yield _down(start, boxes[one])
        for one in element.get("inContextOf", ()):
            end = boxes[one]
            side = 1.0 if end.x > start.x else -1.0
            y, y0 = end.y + end.high / 2, start.y + start.high / 2
            x0, x1 = start.x + side * start.wide / 2, end.x - side * end.wide / 2
            back = x1 - side * 9
            data = f"M{number(x0)} {number(y0)}H{number(x0 + side * 6)}V{number(y)}H{number(x1)}"
            yield f'<path class="arrow" d="{data}"/>'
            yield _polygon("arrow open", (x1, y), (back, y - 4), (back, y + 4))


def _down(start: _Box, end: _Box) -> str:
    """Return the filled arrow of support."""
    y0, y1 = start.y + start.high, end.y
    middle = y1 - _GAP_Y / 2
    data = f"M{number(start.x)} {number(y0)}V{number(middle)}H{number(end.x)}V{number(y1)}"
    tip = _polygon("tip", (end.x, y1), (end.x - 4, y1 - 8), (end.x + 4, y1 - 8))
    return f'<path class="arrow" d="{data}"/>{tip}'


def _polygon(css: str, *corners: tuple[float, float]) -> str:
    return f'<polygon class="{css}" points="{" ".join(f"{number(x)},{number(y)}" for x, y in corners)}"/>'


def _drawn(name: str, element: Element, box: _Box) -> str:
    css = f"shape {element.get('status', '')}".strip()
    lines = _lines(name, element)
    first = box.y + (box.high - _LINE * (len(lines) + 1)) / 2 + 11.0
    texts = [f'<text class="id" x="{number(box.x)}" y="{number(first)}" text-anchor="middle">{name}</text>'] + [
        f'<text x="{number(box.x)}" y="{number(first + _LINE * (at + 1))}" text-anchor="middle">{escape(line)}</text>'
        for at, line in enumerate(lines)
    ]
    open_mark = _diamond(box, css) if element.get("undeveloped") else ""
    title = f"<title>{escape(name)}: {escape(element['text'])}</title>"
    return f"<g>{title}{_shape(_kind(name), box, css)}{open_mark}{''.join(texts)}</g>"


def _shape(kind: str, box: _Box, css: str) -> str:
    left, right, top, bottom = box.x - box.wide / 2, box.x + box.wide / 2, box.y, box.y + box.high
    if kind == "Sn":
        y = number(box.y + box.high / 2)
        return f'<circle class="{css}" cx="{number(box.x)}" cy="{y}" r="{number(box.wide / 2)}"/>'
    if kind == "S":
        return _polygon(css, (left + 8, top), (right + 8, top), (right - 8, bottom), (left - 8, bottom))
    size = f'width="{number(box.wide)}" height="{number(box.high)}"'
    rounded = {"C": 18, "A": 40, "J": 40}.get(kind, 0)
    mark = f'<text class="id" x="{number(right - 4)}" y="{number(bottom + 10)}">{kind}</text>' if kind in "AJ" else ""
    return f'<rect class="{css}" x="{number(left)}" y="{number(top)}" {size} rx="{rounded}"/>{mark}'


def _diamond(box: _Box, css: str) -> str:
    x, y = box.x, box.y + box.high
    return _polygon(css, (x, y), (x + 9, y + 9), (x, y + 18), (x - 9, y + 9))
