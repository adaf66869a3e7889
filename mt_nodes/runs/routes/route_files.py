# SPDX-License-Identifier: Apache-2.0
"""Files of a finished experiment on routes: ``routes.json``, and a picture of the worst pair of each relation.

A map made for routes: streets of uneven blocks, some of them missing, so that ways compete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.jsonl import jsonable, write_result
from mt_nodes.data.hd_maps.hd_map import HdLane, HdMap
from mt_nodes.data.verdict import Outcome
from mt_nodes.report.categories import render
from mt_nodes.report.picture_colours import BLUE, VERMILLION
from mt_nodes.runs.routes.route_run import RoutePair
from mt_nodes.world.drive.grid_maps import grid
from mt_nodes.world.drive.map_parts import parallel_line
from mt_nodes.world.drive.road_map import Lane, RoadMap

RESULT, PICTURE = "routes.json", "routes.png"


def write_routes(out: Path, table: Mapping[str, Any], hd_map: HdMap, pairs: Sequence[RoutePair]) -> list[Path]:
    """Write the files and return their paths; there is no picture without a violated pair.

    Raises InfrastructureError: they cannot be written.
    """
    worst = worst_pairs(pairs)
    try:
        write_result(out / RESULT, jsonable({**table, "cases": [pair.as_plain() for pair in pairs]}))
        if worst:
            (out / PICTURE).write_bytes(render(_figure(hd_map, worst), "png"))
    except OSError as error:
        raise cannot_write(out, error) from error
    return [out / RESULT, *([out / PICTURE] if worst else [])]


def worst_pairs(pairs: Sequence[RoutePair]) -> list[RoutePair]:
    """Return the pair of each relation that violates it by the most metres."""
    found: dict[str, RoutePair] = {}
    for pair in pairs:
        if pair.outcome is Outcome.VIOLATED and pair.excess_m > getattr(found.get(pair.relation), "excess_m", 0.0):
            found[pair.relation] = pair
    return list(found.values())


def _figure(hd_map: HdMap, worst: Sequence[RoutePair]) -> Figure:
    columns = min(3, len(worst))
    rows = -(-len(worst) // columns)
    figure = Figure(figsize=(5.0 * columns, 4.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, pair in zip(panels, worst, strict=False):
        _panel(axes, hd_map, pair)
    for axes in panels[len(worst) :]:
        axes.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def _panel(axes: Axes, hd_map: HdMap, pair: RoutePair) -> None:
    for lane in hd_map.lanes:
        axes.fill(*zip(*lane.left_m, *lane.right_m[::-1], strict=True), color="#dddddd", linewidth=0)
    source, *others = pair.routes
    axes.plot(*source.points_m.T, color=BLUE, linewidth=4, alpha=0.7, label="route")
    for number, other in enumerate(others):
        label = "route of the changed question" if number == 0 else None
        axes.plot(*other.points_m.T, color=VERMILLION, linewidth=1.8, linestyle="--", label=label)
    query, goals = pair.queries[0], [q.goal.xy_m for q in pair.queries]
    axes.plot(*query.start.xy_m, "o", color="black", label="start")
    axes.plot(*zip(*goals, strict=True), "s", color="black", markerfacecolor="none", linestyle="none", label="goals")
    for place in (place for q in pair.queries for place in q.closed):
        axes.plot(*place.xy_m, "x", color="black", markersize=10, markeredgewidth=3)
    axes.set_title(f"{pair.relation} {pair.number}\n{pair.reason}", fontsize=9)
    axes.set_aspect("equal", adjustable="datalim")


NAME = "borough"
_X_M, _Y_M = (0.0, 90.0, 260.0, 340.0, 560.0, 640.0), (0.0, 130.0, 200.0, 420.0, 500.0)
#: Streets that are not there, from the crossing in this column and row to the right or upwards.
_MISSING_RIGHT, _MISSING_UP = {(1, 1), (2, 3), (4, 2)}, {(2, 0), (3, 2), (1, 3)}


def borough() -> HdMap:
    """Return the lanes of the map."""
    columns, rows = range(len(_X_M)), range(len(_Y_M))
    crossings = {f"{i}_{j}": (_X_M[i], _Y_M[j]) for i in columns for j in rows}
    right = [(f"{i}_{j}", f"{i + 1}_{j}") for i in columns[:-1] for j in rows if (i, j) not in _MISSING_RIGHT]
    up = [(f"{i}_{j}", f"{i}_{j + 1}") for i in columns for j in rows[:-1] if (i, j) not in _MISSING_UP]
    return _lanes_of(grid(NAME, crossings, [*right, *up]))


def _lanes_of(road_map: RoadMap) -> HdMap:
    lanes = [_lane(lane) for lane in road_map.lanes.values() if lane.on_road]
    return HdMap(road_map.name, tuple(lanes))


def _lane(lane: Lane) -> HdLane:
    line = np.asarray(lane.middle_m, dtype=np.float64)
    left, right = (parallel_line(line, side * lane.width_m / 2.0) for side in (1.0, -1.0))
    return HdLane(lane.name, "driving", left, right)
