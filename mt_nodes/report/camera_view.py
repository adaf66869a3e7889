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
_WIDTH_IN = 7.5


def draw(view: PairView) -> tuple[str, str]:
    """Return the pictures of the source and of the follow-up as data URIs (SVG, the pictures in it as pixels)."""
    # Lost boxes are marked where the follow-up should show them, which may be elsewhere, as in a mirror.
    marks = ((view.lost_px, "X", VERMILLION), (view.gained_px, "P", GREEN))
    before = ((view.source_path_px, BLUE, "-"),)
    after = ((view.followup_path_px, ORANGE, "-"), (view.expected_path_px, BLUE, "--"))
    found = ((view.followup_px, ORANGE, "-"), (view.added_px, PURPLE, ":"))
    source = _picture(view.source_image, ((view.source_px, BLUE, "-"),), before)
    return source, _picture(view.followup_image, found, after, marks)


def _picture(
    jpeg: npt.NDArray[np.uint8], boxes: tuple[Line, ...], paths: tuple[Line, ...], marks: tuple[Mark, ...] = ()
) -> str:
    rgb = cv2.cvtColor(cv2.imdecode(np.asarray(jpeg, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    height, width = rgb.shape[:2]
    figure = Figure(figsize=(_WIDTH_IN, _WIDTH_IN * height / width + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.imshow(rgb)
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
    return data_uri(figure)


def _boxes(axes: Axes, boxes: Floats, colour: str, style: str) -> None:
    for x0, y0, x1, y1 in boxes.tolist():
        axes.add_patch(
            Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=2.0, linestyle=style)
        )
