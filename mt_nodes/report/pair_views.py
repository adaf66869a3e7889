# SPDX-License-Identifier: Apache-2.0
"""Views of one violated pair: pictures, and the same data packed for the script that turns them.

What draws them is imported late: most reports show no pair.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.pair_view import PairView, evidence_file, load_view
from mt_nodes.engine.series_tables import series_file
from mt_nodes.report.page_data import packed

if TYPE_CHECKING:
    from mt_nodes.report.series_view import SeriesView

#: Most points of each kind (in both clouds, in one alone) in the page; others are dropped at random.
MAX_POINTS = 60_000
#: Smallest step of point coordinates: smaller moves are not shown.
_MIN_STEP_M = 0.001
_MAX_STEPS = np.iinfo(np.int16).max
_IN_PICTURE = (
    *("source_px", "followup_px", "lost_px", "gained_px", "added_px"),
    *("source_lines_px", "followup_lines_px", "expected_lines_px"),
)
_ON_GROUND = (
    *("source_boxes", "followup_boxes", "lost_at", "gained_at", "region", "keep"),
    *("source_lines", "followup_lines", "source_occupied", "followup_occupied"),
)


def shown(results_dir: Path, text: str, *, turning: bool = True) -> dict[str, Any]:
    """Return the template's data of a pair: ``views``, ``added``, ``series``, ``packed``, ``note``, parts of a legend.

    Damaged evidence must not make the report fail: ``note`` says what is wrong.
    ``text``: the pair. ``turning``: whether the page can turn it, for which it is ``packed``.
    """
    pair = Pair.parse(text)
    nothing: dict[str, Any] = {"views": [], "added": 0, "series": None, "packed": "", "note": "", **_shown_parts(None)}
    table, arrays = series_file(results_dir, pair), evidence_file(results_dir, pair)
    try:
        if table.exists():
            return {**nothing, **_series(table, turning)}
        if not arrays.exists():
            return {**nothing, "note": f"No picture: {arrays.parent.name}/{arrays.name} is missing."}
        view = load_view(arrays)
        views = {"views": _views(view), "added": len(view.added_xyz), "packed": packed_view(view) if turning else ""}
    except InfrastructureError as error:
        return {**nothing, "note": f"No picture: {error}"}
    return {**nothing, **views, **_shown_parts(view)}


def _shown_parts(view: PairView | None) -> dict[str, bool]:
    """Return what the legend of a picture has to explain."""
    return {
        "cloud": view is not None and len(view.source_xyz) > 0,
        "camera": view is not None and len(view.source_image) > 0,
        "keep": view is not None and len(view.keep) > 0,
    }


def _series(table: Path, turning: bool) -> dict[str, str]:
    from mt_nodes.report.series_view import draw_series, read_series

    series = read_series(table)
    return {"series": draw_series(series), "packed": packed_series(series) if turning else ""}


def _views(view: PairView) -> list[tuple[str, str]]:
    from mt_nodes.report import birdseye, camera_view

    camera = [camera_view.draw(view)] if len(view.source_image) else []
    return camera if camera and not len(view.source_xyz) else [*camera, birdseye.draw(view)]


def packed_view(view: PairView) -> str:
    """Return clouds, outputs and pictures of a pair as one text (see :mod:`mt_nodes.report.page_data`).

    Points (N, 3) are int16 steps from the header's ``origin_m``: ``kept`` are in both clouds, ``removed`` in the source
    alone, ``added`` in the follow-up alone or added by the mutation beyond the stored part of the cloud.
    """
    header: dict[str, Any] = {
        "labels": {arm: getattr(view, f"{arm}_labels").tolist() for arm in ("source", "followup")},
        "px_labels": {arm: getattr(view, f"{arm}_px_labels").tolist() for arm in ("source", "followup")},
        "window": view.window,
    }
    arrays: dict[str, npt.NDArray[Any]] = {}
    if len(view.source_xyz) or len(view.followup_xyz):
        cloud, origin, step = _cloud(view)
        arrays |= {name: _thinned(points) for name, points in cloud.items()}
        counts = {name: len(points) for name, points in cloud.items()}
        left_out = sum(counts.values()) - sum(len(points) for points in arrays.values())
        header |= {"origin_m": origin, "step_m": step, "counts": counts, "left_out": left_out}
        arrays |= {name: np.asarray(getattr(view, name), dtype=np.float32) for name in _ON_GROUND}
    if len(view.source_image):
        arrays |= {name: np.asarray(getattr(view, name), np.uint8) for name in ("source_image", "followup_image")}
        arrays |= {name: np.asarray(getattr(view, name), dtype=np.float32) for name in _IN_PICTURE}
    return packed(header, arrays)


def packed_series(view: SeriesView) -> str:
    """Return the outputs of both arms over time as one text, with names such as ``source_steering_rad``."""
    arrays = {"time_s": view.time_s, "stretch": view.stretch, "changed": view.changed}
    arms = {
        f"{arm}_{name}": arms[at]
        for name, arms in view.outputs.items()
        for at, arm in enumerate(("source", "followup"))
    }
    return packed({"outputs": list(view.outputs)}, {**arrays, **arms})


def _cloud(view: PairView) -> tuple[dict[str, npt.NDArray[np.int16]], list[float], float]:
    clouds = (view.source_xyz, view.followup_xyz, view.added_xyz)
    every = np.concatenate([np.asarray(cloud, dtype=np.float64) for cloud in clouds])
    low, high = every.min(axis=0), every.max(axis=0)
    origin = (low + high) / 2.0
    step = max(_MIN_STEP_M, float((high - low).max()) / (2.0 * _MAX_STEPS))
    source, followup, beyond = (np.round((cloud - origin) / step).astype(np.int16) for cloud in clouds)
    stays = np.isin(_keys(followup), _keys(source))
    new = np.concatenate([followup[~stays], beyond])
    cloud = {
        "kept": followup[stays],
        "removed": source[~np.isin(_keys(source), _keys(followup))],
        "added": new[np.unique(_keys(new), return_index=True)[1]],
    }
    return cloud, origin.round(4).tolist(), step


def _keys(points: npt.NDArray[np.int16]) -> Ints:
    """Return one number (N,) for each place (N, 3)."""
    x, y, z = (points.astype(np.int64) & 0xFFFF).T
    return np.asarray((x << 32) | (y << 16) | z)


def _thinned(points: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    if len(points) <= MAX_POINTS:
        return points
    return points[np.sort(np.random.default_rng(0).permutation(len(points))[:MAX_POINTS])]
