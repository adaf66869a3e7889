# SPDX-License-Identifier: Apache-2.0
"""Camera images of a pair: both images, output boxes and paths, and what was lost and gained."""

from __future__ import annotations

import base64

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.engine.pair_view import Floats, PairView
from mt_nodes.report.picture_colours import BLUE, GREEN, ORANGE, PURPLE, VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, number, path

#: Boxes (K, 4), the shape that marks their middles, and its colour.
Mark = tuple[Floats, str, str]
#: Boxes (K, 4) or places (N, 2) along a path, their colour and dashes.
Line = tuple[Floats, str, str]
#: Width of a picture in units of the SVG, and the shapes of marks in those.
_WIDTH = 520.0
_CROSS, _PLUS = "M-10-10l20 20M10-10l-20 20", "M-12 0h24M0-12v24"


def draw(view: PairView) -> tuple[str, str]:
    """Return the pictures of the source and of the follow-up as data URIs (SVG, the pictures in it as pixels)."""
    # Lost boxes are marked where the follow-up should show them, which may be elsewhere, as in a mirror.
    marks = ((view.lost_px, _CROSS, VERMILLION), (view.gained_px, _PLUS, GREEN))
    before = ((view.source_path_px, BLUE, ""),)
    after = ((view.followup_path_px, ORANGE, ""), (view.expected_path_px, BLUE, "6 4"))
    found = ((view.followup_px, ORANGE, ""), (view.added_px, PURPLE, "2 3"))
    source = _picture(view.source_image, ((view.source_px, BLUE, ""),), before)
    return source, _picture(view.followup_image, found, after, marks)


def _picture(
    jpeg: npt.NDArray[np.uint8], boxes: tuple[Line, ...], paths: tuple[Line, ...], marks: tuple[Mark, ...] = ()
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
    return data_uri(document(_WIDTH, height * scale, parts))


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
