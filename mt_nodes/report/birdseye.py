# SPDX-License-Identifier: Apache-2.0
"""Bird's-eye views of a pair: both clouds, both outputs, what is lost, gained and added; ahead is to the right."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

import numpy as np

from mt_nodes.base.arrays import Ints
from mt_nodes.data.rotations import rectangle_corners
from mt_nodes.engine.pair_view import Floats, PairView, Texts
from mt_nodes.report.picture_colours import BLUE, GREEN, GREY, LIGHT_BLUE, ORANGE, PURPLE, VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, indexed_png, number, path, ticks

#: Width and largest height of a picture without its axes, and the room for those, in units of the SVG.
_WIDTH, _MOST_HEIGHT, _LEFT, _BELOW = 500.0, 640.0, 26.0, 18.0
#: Pixels of the points' image in a unit: sharp on a screen of twice the density.
_PIXELS = 2
#: Opacities of one, two and more points in a pixel; half the side of an added point, in pixels.
_POINTS, _ADDED_PX = ((GREY, 0.0), (GREY, 0.55), (GREY, 0.75), (GREY, 1.0), (PURPLE, 1.0)), 2
#: So many added points are drawn larger.
_FEW = 20
#: A lost or gained obstacle belongs to the box whose centre is this near.
_SAME_M = 1.5
#: Width and height of a letter of a label.
_LETTER, _LINE = 6.2, 12.0
#: Room between two numbers of the axis, from which on the last one says what it is.
_UNIT = 80.0


class _Canvas(NamedTuple):
    """A window of the ground, x0, x1, y0, y1 in metres, on the picture."""

    window: tuple[float, float, float, float]
    scale: float

    @classmethod
    def of(cls, window: tuple[float, float, float, float]) -> _Canvas:
        x0, x1, y0, y1 = window
        return cls(window, min(_WIDTH / (x1 - x0), _MOST_HEIGHT / (y1 - y0)))

    @property
    def size(self) -> tuple[float, float]:
        x0, x1, y0, y1 = self.window
        return (x1 - x0) * self.scale, (y1 - y0) * self.scale

    def places(self, xy: Floats) -> Floats:
        """Return places (N, 2) x, y in metres as (N, 2) right, down in units of the picture."""
        x0, _, _, y1 = self.window
        ground = np.asarray(xy, dtype=np.float64).reshape(-1, 2)
        return np.column_stack([ground[:, 0] - x0, y1 - ground[:, 1]]) * self.scale


def draw(view: PairView) -> tuple[str, str]:
    """Return the pictures of the source and of the follow-up as data URIs (SVG, the points in it as pixels)."""
    none = np.empty((0, 3))
    return _picture(view, "source", none, BLUE), _picture(view, "followup", view.added_xyz, ORANGE)


def _picture(view: PairView, arm: str, added: Floats, colour: str) -> str:
    xyz, boxes, labels = (getattr(view, f"{arm}_{name}") for name in ("xyz", "boxes", "labels"))
    lines, occupied = getattr(view, f"{arm}_lines"), getattr(view, f"{arm}_occupied")
    canvas = _Canvas.of(view.window)
    width, height = canvas.size
    dark = LIGHT_BLUE if colour == BLUE else colour
    style = (
        f".box,.way{{fill:none;stroke:{colour};stroke-width:2}}.cells{{fill:{colour};opacity:.35}}"
        f".mark{{fill:none;stroke-width:3.2}}"
        f".mark.lost{{stroke:{VERMILLION}}}.mark.gained{{stroke:{GREEN}}}.under{{stroke:#fff;stroke-width:6.5;opacity:.85}}"
        f"text.lost{{fill:#a03c00;font-weight:700}}text.gained{{fill:#00674b;font-weight:700}}"
        f"@media (prefers-color-scheme:dark){{.box,.way{{stroke:{dark}}}.cells{{fill:{dark}}}.under{{stroke:#15181c}}"
        f"text.lost{{fill:#ff9a5c}}text.gained{{fill:#4fd1a5}}}}"
    )
    clip = f'<clipPath id="c"><rect width="{number(width)}" height="{number(height)}"/></clipPath>'
    ground = (*_grid(canvas), _points(canvas, xyz, added), *_few(canvas, added))
    inner = (*ground, *_lines(canvas, lines, occupied), *_zones(canvas, view), *_boxes(canvas, boxes))
    marked = (*_marks(canvas, view), *_labels(canvas, view, boxes, labels, "" if colour == BLUE else " lost"))
    body = f'<g transform="translate({_LEFT} 0)">{clip}<g clip-path="url(#c)">{"".join((*inner, *marked))}</g>'
    parts = [body, *_axes(canvas), "</g>"]
    return data_uri(document(width + _LEFT + 2.0, height + _BELOW, parts, style))


def _grid(canvas: _Canvas) -> Iterator[str]:
    (x0, x1, y0, y1), (width, height) = canvas.window, canvas.size
    for right, _ in canvas.places(np.array([[x, 0.0] for x in ticks(x0, x1, 8)])):
        yield f'<path class="grid" d="M{number(right)} 0V{number(height)}"/>'
    for _, down in canvas.places(np.array([[0.0, y] for y in ticks(y0, y1, 6)])):
        yield f'<path class="grid" d="M0 {number(down)}H{number(width)}"/>'
    if x0 < 0.0 < x1 and y0 < 0.0 < y1:  # the ego vehicle, which looks ahead
        ego = canvas.places(np.array([[1.6, 0.0], [-1.6, 1.0], [-0.9, 0.0], [-1.6, -1.0]]))
        yield f'<path d="{path(ego, closed=True)}" fill="{GREY}"><title>ego vehicle</title></path>'


def _axes(canvas: _Canvas) -> Iterator[str]:
    (x0, x1, y0, y1), (width, height) = canvas.window, canvas.size
    yield f'<rect class="grid" width="{number(width)}" height="{number(height)}"/>'
    at = [x for x in ticks(x0, x1, 8) if x0 + 1.0 < x < x1 - 2.0]
    for x, (right, _) in zip(at, canvas.places(np.array([[x, 0.0] for x in at])), strict=True):
        room = canvas.scale * (at[1] - at[0]) > _UNIT if len(at) > 1 else True
        unit = (" m ahead" if room else " m") if x == at[-1] else ""
        text_x = min(right, width - _LETTER * len(unit))  # its end lies within the picture
        yield f'<text x="{number(text_x)}" y="{number(height + 13)}" text-anchor="middle">{x:g}{unit}</text>'
    at = [y for y in ticks(y0, y1, 6) if y0 + 0.5 < y < y1 - 0.5]
    for y, (_, down) in zip(at, canvas.places(np.array([[0.0, y] for y in at])), strict=True):
        yield f'<text class="wide" x="-4" y="{number(down + 4)}" text-anchor="end">{y:g}</text>'


def _points(canvas: _Canvas, xyz: Floats, added: Floats) -> str:
    """Return the image of the points; one has two pixels each way, an added one five."""
    width, height = canvas.size
    columns, rows = round(width * _PIXELS), round(height * _PIXELS)
    image = np.zeros((rows, columns), np.uint8)
    right, down = _pixels(canvas, xyz, columns, rows)
    hits = np.bincount(down * columns + right, minlength=rows * columns).reshape(rows, columns)
    hits[1:] += hits[:-1].copy()
    hits[:, 1:] += hits[:, :-1].copy()
    image[:] = np.minimum(hits, 3)
    right, down = _pixels(canvas, added, columns, rows)
    steps = range(-_ADDED_PX, _ADDED_PX + 1)
    for dx, dy in ((dx, dy) for dx in steps for dy in steps if abs(dx) + abs(dy) < 2 * _ADDED_PX):
        image[np.clip(down + dy, 0, rows - 1), np.clip(right + dx, 0, columns - 1)] = len(_POINTS) - 1
    uri = indexed_png(image, _POINTS)
    return f'<image width="{number(width)}" height="{number(height)}" href="{uri}"/>'


def _few(canvas: _Canvas, added: Floats) -> Iterator[str]:
    """Yield larger dots for added points that are so few that one looks for them."""
    for right, down in canvas.places(added[:, :2]).tolist() if len(added) <= _FEW else ():
        yield f'<circle cx="{number(right)}" cy="{number(down)}" r="4" fill="{PURPLE}"/>'


def _pixels(canvas: _Canvas, xyz: Floats, columns: int, rows: int) -> tuple[Ints, ...]:
    at = canvas.places(xyz[:, :2]) * _PIXELS
    inside = at[((at >= 0) & (at < (columns, rows))).all(axis=1)].astype(np.int64)  # a place that is NaN is not seen
    return inside[:, 0], inside[:, 1]


def _zones(canvas: _Canvas, view: PairView) -> Iterator[str]:
    for polygon, dashes in ((view.region, ""), (view.keep, ' stroke-dasharray="5 4"')):
        if len(polygon):
            yield f'<path class="line"{dashes} d="{path(canvas.places(polygon), closed=True)}"/>'


def _lines(canvas: _Canvas, lines: Floats, occupied: Floats) -> Iterator[str]:
    """Yield what is occupied, a hole in it left out, and lanes and paths."""
    if len(occupied):
        yield f'<path class="cells" fill-rule="evenodd" d="{path(canvas.places(occupied))}"/>'
    if len(lines):
        yield f'<path class="way" d="{path(canvas.places(lines))}"/>'


def _boxes(canvas: _Canvas, boxes: Floats) -> Iterator[str]:
    for footprint in rectangle_corners(boxes[:, :2], boxes[:, 3:5], boxes[:, 6]):
        yield f'<path class="box" d="{path(canvas.places(footprint), closed=True)}"/>'


def _marks(canvas: _Canvas, view: PairView) -> Iterator[str]:
    """Yield a cross with a hollow middle for what is lost, a plus for what is gained: a small box stays visible."""
    shapes = (
        (view.lost_at, "lost", "M-9-9l5 5M9-9l-5 5M-9 9l5-5M9 9l-5-5"),
        (view.gained_at, "gained", "M-11 0h7M11 0h-7M0-11v7M0 11v-7"),
    )
    for places, name, shape in shapes:
        for right, down in canvas.places(places).tolist():
            at = f'transform="translate({number(right)} {number(down)})"'
            yield f'<path class="mark under" {at} d="{shape}"/><path class="mark {name}" {at} d="{shape}"/>'


def _labels(canvas: _Canvas, view: PairView, boxes: Floats, labels: Texts, lost: str) -> Iterator[str]:
    """Yield what is lost and gained by name, then the classes of all other boxes where there is room for them."""
    taken: list[tuple[float, float, float, float]] = []
    texts = []
    for places, name, what in ((view.lost_at, "lost", lost), (view.gained_at, "gained", " gained")):
        texts += [(place, f"{_label_of(place, view, name)}{what}".strip(), name) for place in places]
    special = np.concatenate([view.lost_at, view.gained_at]).reshape(-1, 2)
    for box, label in zip(boxes, labels, strict=False):
        # "unknown" is every label of a stack without classes: it would only hide what lies below.
        if str(label) != "unknown" and not (np.hypot(*(special - box[:2]).T) < _SAME_M).any():
            texts.append((box[:2], str(label), "wide"))
    for place, text, name in texts:
        if not np.isfinite(place).all():
            continue
        (right, down), half = canvas.places(place)[0].tolist(), _LETTER * len(text) / 2.0
        for offset in (-14.0, 22.0):
            spot = (right - half, down + offset - _LINE, right + half, down + offset)
            if not any(_overlap(spot, other) for other in taken) and spot[1] >= 0.0:
                taken.append(spot)
                yield (
                    f'<text class="halo {name}" x="{number(right)}" y="{number(down + offset)}" '
                    f'text-anchor="middle">{escape(text)}</text>'
                )
                break


def _label_of(place: Floats, view: PairView, name: str) -> str:
    """Return the class of what is lost (in the source) or gained (in the follow-up), empty where no box is there."""
    boxes, labels = (
        (view.source_boxes, view.source_labels) if name == "lost" else (view.followup_boxes, view.followup_labels)
    )
    away = np.hypot(*(boxes[:, :2] - place).T) if len(boxes) else np.empty(0)
    return str(labels[int(away.argmin())]) if len(away) and len(labels) == len(away) and away.min() < _SAME_M else ""


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
