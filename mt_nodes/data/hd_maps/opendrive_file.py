# SPDX-License-Identifier: Apache-2.0
"""Lanes of an OpenDRIVE file, read by the library ``pyxodr``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError, needs_extra
from mt_nodes.data.hd_maps.hd_map import HdLane, HdMap, Line

#: Step of pyxodr along the reference line; which of its points are used (a chord of 0.5 m errs by 3 mm at 10 m radius).
_STEP_M, _EVERY = 0.1, 5
#: So far apart, along the reference line, are the points of borders.
BORDER_STEP_M = _STEP_M * _EVERY
#: pyxodr refuses an arc whose first step turns by more, and leaves a plot in the current directory.
_TURN_RAD = 0.09


def read_opendrive(path: Path) -> HdMap:
    """Read the lanes of a file; coordinates are those of the file's inertial frame, in metres.

    Raises UsageError: the library is missing, or cannot read the file, or finds no lane in it.
    """
    with needs_extra("maps", f"{path}: OpenDRIVE needs pyxodr"):
        from pyxodr.road_objects.network import RoadNetwork
    try:
        network = RoadNetwork(str(path), resolution=_STEP_M)
        _refuse_tight_arcs(network.root)
        lanes = tuple(lane for road in network.get_roads() for lane in _lanes(road))
    except Exception as error:  # whatever the library raises about a file is a fact about that file
        raise UsageError(f"{path}: pyxodr cannot read this OpenDRIVE file ({error})") from error
    if not lanes:
        raise UsageError(f"{path}: got an OpenDRIVE file without a lane")
    return HdMap(path.name, lanes)


def _refuse_tight_arcs(root: Any) -> None:
    for geometry in root.iterfind("road/planView/geometry"):
        arc, length_m = geometry.find("arc"), float(geometry.get("length"))
        step_m = length_m / (max(int(length_m / _STEP_M), 2) - 1)
        if arc is not None and abs(float(arc.get("curvature"))) * step_m / 2.0 > _TURN_RAD:
            raise ValueError(f"an arc of {length_m:g} m with curvature {arc.get('curvature')} per metre")


def _lanes(road: Any) -> list[HdLane]:
    drives_right = road.traffic_orientation.name == "RIGHT"
    return [
        HdLane(f"{road.id}/{number}/{lane.id}", str(lane.type), *_borders(lane, drives_right=drives_right))
        for number, section in enumerate(road.lane_sections)
        for lane in section.lanes
        if len(lane.boundary_line) > 1
    ]


def _borders(lane: Any, *, drives_right: bool) -> tuple[Line, Line]:
    """Return the left and the right border in the direction of driving: lanes with positive ids lie on the left."""
    inner, outer = _thin(lane.lane_reference_line), _thin(lane.boundary_line)
    left, right = (outer, inner) if lane.id > 0 else (inner, outer)
    if (lane.id > 0) == drives_right:
        return right[::-1], left[::-1]
    return left, right


def _thin(border: Any) -> Line:
    line = np.asarray(border, dtype=np.float64)[:, :2]
    rows = np.unique([*range(0, len(line), _EVERY), len(line) - 1])
    return np.asarray(line[rows])
