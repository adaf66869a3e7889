# SPDX-License-Identifier: Apache-2.0
"""Camera images of a pair: both images, output boxes and paths, and what was lost and gained."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mt_nodes.engine.pair_view import Floats, PairView
from mt_nodes.report.birdseye import BLUE, GREEN, ORANGE, PURPLE, VERMILLION, data_uri

#: Boxes (K, 4), the shape that marks their middles, and its colour.
Mark = tuple[Floats, str, str]
#: Boxes (K, 4) or places (N, 2) along a path, their colour and style.
Line = tuple[Floats, str, str]
#: Boxes, paths and marks of one image.
Drawn = tuple[tuple[Line, ...], tuple[Line, ...], tuple[Mark, ...]]
_WIDTH_IN = 7.5


def draw(view: PairView) -> tuple[str, str]:
    """Return the pictures of the source and of the follow-up as data URIs (SVG, the pictures in it as pixels)."""
    return _picture(view, "source"), _picture(view, "followup")


def _picture(view: PairView, arm: str) -> str:
    rgb = _decoded(view, arm)
    figure = Figure(figsize=(_WIDTH_IN, _WIDTH_IN * rgb.shape[0] / rgb.shape[1] + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    _draw_on(figure.add_subplot(), view, arm, rgb)
    return data_uri(figure)


def panel(axes: Axes, view: PairView, arm: str) -> None:
    """Draw the image of one arm, ``source`` or ``followup``, and its outputs on axes."""
    _draw_on(axes, view, arm, _decoded(view, arm))


def _decoded(view: PairView, arm: str) -> npt.NDArray[np.uint8]:
    jpeg = np.asarray(getattr(view, f"{arm}_image"), np.uint8)
    return np.asarray(cv2.cvtColor(cv2.imdecode(jpeg, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))


def _draw_on(axes: Axes, view: PairView, arm: str, rgb: npt.NDArray[np.uint8]) -> None:
    height, width = rgb.shape[:2]
    axes.imshow(rgb)
    boxes, paths, marks = _source(view) if arm == "source" else _followup(view)
    for places, line, style in boxes:
        _boxes(axes, places, line, style)
    for way, line, style in paths:
        axes.plot(way[:, 0], way[:, 1], style, color=line, linewidth=2.2)
    for places, marker, mark in marks:
        middle = (places[:, :2] + places[:, 2:]) / 2.0
        axes.scatter(
            middle[:, 0], middle[:, 1], s=260, marker=marker, facecolors="none", edgecolors=mark, linewidths=2.2
        )
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), xlabel="x (px)", ylabel="y (px)")
    axes.tick_params(labelsize=9)


def _source(view: PairView) -> Drawn:
    return ((view.source_px, BLUE, "-"),), ((view.source_path_px, BLUE, "-"),), ()


def _followup(view: PairView) -> Drawn:
    found = ((view.followup_px, ORANGE, "-"), (view.added_px, PURPLE, ":"))
    after = ((view.followup_path_px, ORANGE, "-"), (view.expected_path_px, BLUE, "--"))
    # Lost boxes are marked where the follow-up should show them, which may be elsewhere, as in a mirror.
    return found, after, ((view.lost_px, "X", VERMILLION), (view.gained_px, "P", GREEN))


def _boxes(axes: Axes, boxes: Floats, colour: str, style: str) -> None:
    for x0, y0, x1, y1 in boxes.tolist():
        axes.add_patch(
            Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=2.0, linestyle=style)
        )
