# SPDX-License-Identifier: Apache-2.0
"""Bird's-eye views of a pair: both clouds, both outputs, and lost, gained and added obstacles.

Colours are those of Okabe and Ito (Color Universal Design, 2008); marks also differ in shape.
"""

from __future__ import annotations

import base64
import io

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from mt_nodes.engine.pair_view import Floats, PairView, Texts

BLACK, BLUE, ORANGE, VERMILLION, GREEN, PURPLE = "#000000", "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7"
GREY = "#8A8A8A"


def draw(view: PairView) -> tuple[str, str]:
    """Return the pictures of the source and of the follow-up as data URIs (SVG, the points in it as pixels)."""
    return _picture(view, "source"), _picture(view, "followup")


def _picture(view: PairView, arm: str) -> str:
    x0, x1, y0, y1 = view.window
    width, height = y1 - y0, x1 - x0
    scale = 7.5 / max(width, height)
    figure = Figure(figsize=(width * scale + 0.6, height * scale + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    panel(figure.add_subplot(), view, arm)
    return data_uri(figure)


def panel(axes: Axes, view: PairView, arm: str) -> None:
    """Draw one arm, ``source`` or ``followup``, on axes."""
    x0, x1, y0, y1 = view.window
    followup = arm == "followup"
    _zones(axes, view)
    _points(axes, view, getattr(view, f"{arm}_xyz"), GREY, 0.6)
    _points(axes, view, view.added_xyz if followup else np.empty((0, 3)), PURPLE, 9.0)
    _boxes(axes, getattr(view, f"{arm}_boxes"), getattr(view, f"{arm}_labels"), ORANGE if followup else BLUE)
    _marks(axes, view)
    axes.set(xlim=(y1, y0), ylim=(x0, x1), aspect="equal", xlabel="y, to the left (m)", ylabel="x, forward (m)")
    axes.tick_params(labelsize=9)


def _zones(axes: Axes, view: PairView) -> None:
    for polygon, style, width in ((view.region, "-", 1.4), (view.keep, "--", 1.0)):
        if len(polygon):
            closed = np.concatenate([polygon, polygon[:1]])
            axes.plot(closed[:, 1], closed[:, 0], style, color=BLACK, linewidth=width)


def _points(axes: Axes, view: PairView, xyz: Floats, colour: str, area: float) -> None:
    x0, x1, y0, y1 = view.window
    visible = xyz[(xyz[:, 0] >= x0) & (xyz[:, 0] <= x1) & (xyz[:, 1] >= y0) & (xyz[:, 1] <= y1)]
    axes.scatter(visible[:, 1], visible[:, 0], s=area, c=colour, marker="o", linewidths=0, rasterized=True)


def _boxes(axes: Axes, boxes: Floats, labels: Texts, colour: str) -> None:
    axes.add_collection(PolyCollection(list(corners(boxes)), facecolors="none", edgecolors=colour, linewidths=2.0))
    for box, label in zip(boxes, labels, strict=False):
        if label == "unknown":  # of a stack without classes: it would only hide what lies below
            continue
        axes.annotate(
            str(label),
            (box[1], box[0]),
            xytext=(0, 9),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            clip_on=True,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
        )


def corners(boxes: Floats) -> Floats:
    """Return the footprints of boxes (M, 7) as (M, 4, 2), y before x as in the picture."""
    unit = np.array([[0.5, 0.5], [0.5, -0.5], [-0.5, -0.5], [-0.5, 0.5]])
    local = unit[None] * boxes[:, None, 3:5]
    cos, sin = np.cos(boxes[:, 6])[:, None], np.sin(boxes[:, 6])[:, None]
    x = boxes[:, None, 0] + cos * local[..., 0] - sin * local[..., 1]
    y = boxes[:, None, 1] + sin * local[..., 0] + cos * local[..., 1]
    return np.asarray(np.stack([y, x], axis=-1))


def _marks(axes: Axes, view: PairView) -> None:
    for places, marker, colour in ((view.lost_at, "X", VERMILLION), (view.gained_at, "P", GREEN)):
        # hollow, so that a small box below stays visible
        axes.scatter(
            places[:, 1],
            places[:, 0],
            s=260,
            marker=marker,
            facecolors="none",
            edgecolors=colour,
            linewidths=2.2,
            zorder=5,
        )


def data_uri(figure: Figure) -> str:
    """Return a figure as a data URI (SVG); equal figures give equal bytes: no date, no random ids."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "mt_nodes"}):
        figure.savefig(buffer, format="svg", dpi=130, metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(buffer.getvalue()).decode()}"
