# SPDX-License-Identifier: Apache-2.0
"""Camera images of a pair: both images, output boxes and paths, and what was lost and gained."""

from __future__ import annotations

import base64
from html import escape

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.engine.pair_view import Floats, PairView, Texts
from mt_nodes.report.picture_colours import BLUE, GREEN, ORANGE, PURPLE, VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, number, path

#: Boxes (K, 4), the shape that marks their middles, and its colour.
Mark = tuple[Floats, str, str]
#: Boxes (K, 4) or places (N, 2) along a path, their colour and dashes.
Line = tuple[Floats, str, str]
#: Width of a picture in units of the SVG, and the shapes of marks in those.
_WIDTH = 520.0
#: Height of a line of text, and room for a class.
_LINE, _NAME = 12.0, 60.0
_CROSS, _PLUS = "M-10-10l20 20M10-10l-20 20", "M-12 0h24M0-12v24"


def draw(view: PairView) -> tuple[str, str]:
    """Return the pictures of the source and of the follow-up as data URIs (SVG, the pictures in it as pixels)."""
    # Lost boxes are marked where the follow-up should show them, which may be elsewhere, as in a mirror.
    marks = ((view.lost_px, _CROSS, VERMILLION), (view.gained_px, _PLUS, GREEN))
    before = ((view.source_lines_px, BLUE, ""),)
    after = ((view.followup_lines_px, ORANGE, ""), (view.expected_lines_px, BLUE, "6 4"))
    found = ((view.followup_px, ORANGE, ""), (view.added_px, PURPLE, "2 3"))
    names = (view.source_px, view.source_px_labels), (view.followup_px, view.followup_px_labels)
    source = _picture(view.source_image, ((view.source_px, BLUE, ""),), before, names[0])
    return source, _picture(view.followup_image, found, after, names[1], marks)


def _picture(
    jpeg: npt.NDArray[np.uint8],
    boxes: tuple[Line, ...],
    paths: tuple[Line, ...],
    names: tuple[Floats, Texts],
    marks: tuple[Mark, ...] = (),
) -> str:
    data = np.asarray(jpeg, np.uint8)
    height, width = _size(data)
    scale = _WIDTH / width
    uri = f"data:image/jpeg;base64,{base64.b64encode(data.tobytes()).decode()}"
    parts = [f'<image width="{_WIDTH:g}" height="{number(height * scale)}" href="{uri}"/>']
    for places, colour, dashes in boxes:
        parts += [_line(corners_of(box) * scale, colour, dashes, closed=True) for box in places.tolist()]
    parts += [_line(way * scale, colour, dashes) for way, colour, dashes in paths if len(way)]
    for places, shape, colour in marks:
        parts += [_mark(x, y, shape, colour) for x, y in ((places[:, :2] + places[:, 2:]) / 2.0 * scale).tolist()]
    parts += _names(names[0] * scale, names[1])
    return data_uri(document(_WIDTH, height * scale, parts))


def _names(boxes: Floats, labels: Texts) -> list[str]:
    """Return the class of each box (M, 4) above it, or below where there is no room; of those that overlap the first.

    Old results have none.
    """
    taken: list[tuple[float, float]] = []
    texts = []
    for (x0, y0, _, y1), label in zip(boxes.tolist(), labels.tolist(), strict=False):
        y = y0 - 4.0 if y0 > _LINE + 4.0 else y1 + _LINE
        if all(abs(y - y_) > _LINE or abs(x0 - x_) > _NAME for x_, y_ in taken):
            taken.append((x0, y))
            texts.append(f'<text class="halo wide" x="{number(x0)}" y="{number(y)}">{escape(label)}</text>')
    return texts


def _size(jpeg: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """Return height and width of an image in pixels. Raises InfrastructureError: it is none."""
    image = cv2.imdecode(jpeg, cv2.IMREAD_GRAYSCALE)
    if image is None:
        raise InfrastructureError(f"got {len(jpeg)} bytes that are no image, expected a JPEG")
    height, width = image.shape[:2]
    return height, width


def corners_of(box: list[float]) -> Floats:
    """Return the corners (4, 2) of a box x0, y0, x1, y1."""
    x0, y0, x1, y1 = box
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def _line(places: Floats, colour: str, dashes: str, *, closed: bool = False) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="{path(places, closed=closed)}" fill="none" stroke="{colour}" stroke-width="2.2"{dashed}/>'


def _mark(x: float, y: float, shape: str, colour: str) -> str:
    at = f'd="{shape}" fill="none" transform="translate({number(x)} {number(y)})"'
    return f'<path {at} stroke="#fff" stroke-width="5.5"/><path {at} stroke="{colour}" stroke-width="3.2"/>'
