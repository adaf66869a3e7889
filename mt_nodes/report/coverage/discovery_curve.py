# SPDX-License-Identifier: Apache-2.0
"""How many kinds of violations an exploration had found after how many pairs, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mt_nodes.report.picture_colours import VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, number, path, ticks

_WIDTH, _HEIGHT, _LEFT, _ABOVE, _BELOW = 470.0, 150.0, 44.0, 8.0, 36.0


def discovery_curve(found: Mapping[str, Any]) -> str:
    """Return the curve of ``explored`` of a summary as a data URI: pairs judged to the right, kinds found upwards."""
    style = f".found{{fill:none;stroke:{VERMILLION};stroke-width:2}}"
    return data_uri(document(_LEFT + _WIDTH + 14, _ABOVE + _HEIGHT + _BELOW, _parts(found), style))


def _parts(found: Mapping[str, Any]) -> Iterator[str]:
    pairs, at = found["pairs"], [kind["at"] for kind in found["kinds"]]
    across, up = _WIDTH / pairs, _HEIGHT / len(at)
    floor = _ABOVE + _HEIGHT
    for kinds in ticks(0.0, len(at), 4):
        y = number(floor - kinds * up)
        yield f'<path class="grid" d="M{number(_LEFT)} {y}h{number(_WIDTH)}"/>'
        yield f'<text x="{number(_LEFT - 5)}" y="{y}" dy="4" text-anchor="end">{kinds:g}</text>'
    for count in ticks(0.0, pairs, 6):
        x = number(_LEFT + count * across)
        yield f'<text x="{x}" y="{number(floor + 16)}" text-anchor="middle">{count:g}</text>'
    steps = [(0, 0), *(place for known, pair in enumerate(at) for place in ((pair, known), (pair, known + 1)))]
    points = [(_LEFT + pair * across, floor - known * up) for pair, known in (*steps, (pairs, len(at)))]
    yield f'<path class="found" d="{path(points)}"/>'
    yield f'<text x="{number(_LEFT + _WIDTH)}" y="{number(floor + 31)}" text-anchor="end">pairs judged</text>'
    yield f'<text x="{number(_LEFT + 5)}" y="{number(_ABOVE + 9)}">kinds of violation found</text>'
