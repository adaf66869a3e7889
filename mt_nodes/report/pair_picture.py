# SPDX-License-Identifier: Apache-2.0
"""The picture of a violated pair as one SVG, source beside follow-up: for notebooks, tickets and failed tests."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

from mt_nodes.base.errors import MtError
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.pair_view import PairView, evidence_file, load_view
from mt_nodes.report.evidence_view import write_views
from mt_nodes.report.svg_parts import document, number

ARMS = ("source", "follow-up")
#: Room between the pictures and above them, in units of the SVG.
_GAP, _ABOVE = 12.0, 18.0
_SIZE = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def pair_svg(results_dir: Path, pair: Pair) -> str | None:
    """Return the picture of a pair; None if nothing of it can be drawn, as of a drive or a pair without evidence."""
    try:
        if not evidence_file(results_dir, pair).exists():
            write_views(results_dir, [str(pair)])
        view = load_view(evidence_file(results_dir, pair))
    except (MtError, OSError):
        return None
    return _side_by_side(view)


def _side_by_side(view: PairView) -> str:
    from mt_nodes.report import birdseye, camera_view

    uris = (camera_view if len(view.source_image) else birdseye).draw(view)
    sizes = [_size(uri) for uri in uris]
    width = sum(wide for wide, _ in sizes) + _GAP
    height = max(high for _, high in sizes) + _ABOVE
    return document(width, height, _parts(uris, sizes))


def _parts(uris: tuple[str, str], sizes: list[tuple[float, float]]) -> Iterator[str]:
    left = 0.0
    for title, uri, (wide, high) in zip(ARMS, uris, sizes, strict=True):
        yield f'<text x="{number(left + wide / 2)}" y="13" text-anchor="middle">{title}</text>'
        yield f'<image x="{number(left)}" y="{_ABOVE:g}" width="{number(wide)}" height="{number(high)}" href="{uri}"/>'
        left += wide + _GAP


def _size(uri: str) -> tuple[float, float]:
    found = _SIZE.search(base64.b64decode(uri.partition(",")[2]))
    assert found is not None, "every picture states its size"
    width, height = map(float, found.groups())
    return width, height
