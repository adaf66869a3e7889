# SPDX-License-Identifier: Apache-2.0
"""The picture of a violated pair as a PNG, source beside follow-up: for terminals, notebooks and tickets."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import MtError
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.pair_view import PairView, evidence_file, load_view
from mt_nodes.report.evidence_view import write_views

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARMS = {"source": "source", "followup": "follow-up"}
_PANEL_IN, _DPI = 5.0, 100


def pair_png(results_dir: Path, pair: Pair) -> bytes | None:
    """Return the picture of a pair; None if nothing of it can be drawn, as of a drive or a pair without evidence."""
    try:
        if not evidence_file(results_dir, pair).exists():
            write_views(results_dir, [str(pair)])
        view = load_view(evidence_file(results_dir, pair))
    except (MtError, OSError):
        return None
    buffer = io.BytesIO()
    _figure(view).savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()


def _figure(view: PairView) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import
    from matplotlib.figure import Figure

    from mt_nodes.report import birdseye, camera_view

    x0, x1, y0, y1 = view.window
    wide, high = (_PANEL_IN * side / max(y1 - y0, x1 - x0) for side in (y1 - y0, x1 - x0))
    draw = birdseye.panel
    if len(view.source_image):
        draw, wide, high = camera_view.panel, _PANEL_IN, 0.6 * _PANEL_IN
    figure = Figure(figsize=(2.0 * wide + 1.6, high + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (arm, title) in zip(figure.subplots(1, 2), ARMS.items(), strict=True):
        draw(axes, view, arm)
        axes.set_title(title)
    return figure
