# SPDX-License-Identifier: Apache-2.0
"""Maps of the world made of a user's OpenDRIVE (``.xodr``) or Lanelet2 (``.osm``) file.

The file's lanes become the world's: lanes for vehicles, with their neighbours and successors by where they lie, and
pavements. The carriageway is what those lanes, parking lanes, shoulders and borders cover, and kerbs are its edges.
Speed limits, traffic lights and signs are read, too (:mod:`mt_nodes.world.drive.map_furniture`).
What the world has beyond that is not in it: no height (the world is flat), no houses and no crossings; a lane has one
width, the median of those along it, and a speed limit that is assumed where the file has none.

A lane of OpenDRIVE is named ``road/section/lane``, and one of Lanelet2 by its number.
"""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from scipy.spatial import cKDTree

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.data.hd_maps.hd_map import VEHICLE_KINDS, HdLane, HdMap
from mt_nodes.data.hd_maps.opendrive_file import BORDER_STEP_M
from mt_nodes.data.hd_maps.road_area import RoadArea
from mt_nodes.world.drive.map_furniture import lanelet_furniture, open_drive_furniture
from mt_nodes.world.drive.map_parts import outline, surfaced
from mt_nodes.world.drive.road_map import Lane, RoadMap

#: Of vehicles' lanes these are no lanes to drive along, but part of the carriageway.
_BESIDE = ("shoulder", "parking", "stop")
#: Kinds that are paved besides, and lanes for people on foot: lane types of OpenDRIVE 1.8 (table 91) and subtypes of
#: Lanelet2's tagging page.
_PAVED, _ON_FOOT = ("border", "restricted", "median"), ("sidewalk", "walking", "walkway", "shared_walkway")
#: Assumed where a file's limits are not read: of towns, 50 km/h, and on foot.
_LIMIT_MPS, _WALKING_MPS = 13.9, 3.0
#: A lane leads into another that begins this near its end, and not more than this aside of its direction. Borders of
#: neighbours lie this near each other.
_JOINT_M, _JOINT_RAD, _SHARED_M = 0.5, np.radians(45.0), 0.25
#: A lane that is shorter or narrower is left out: tapers, and rests of sections.
_LEAST_M, _NARROW_M = 0.5, 1.0
#: Pieces of lanes overlap by this much, so that rounding leaves no gap between them. Middles are thinned by so much.
_OVERLAP_M = 0.005
_STRAIGHT_M = 0.02
#: Every so many of a border's points its stations are kept.
_KNOT_ROWS = 10
_ORIGIN = re.compile(r"(.+\.osm)@(-?[\d.]+),(-?[\d.]+)")


@dataclass(frozen=True, eq=False)
class _Way:
    """A lane's borders (K, 2) and middle (K, 2) in the direction of driving."""

    lane: HdLane
    middle_m: Floats
    width_m: float


def load_map_file(name: str) -> RoadMap:
    """Return the map of a file.

    ``name``: path of an OpenDRIVE or a Lanelet2 file; ``town.osm@49.0,8.4`` gives latitude and longitude of the origin
    of the frame of a Lanelet2 file in degrees.
    Raises UsageError: it cannot be read, or has no lane for vehicles.
    """
    found = _ORIGIN.fullmatch(name)
    try:
        origin = (float(found[2]), float(found[3])) if found else None
    except ValueError as error:
        raise UsageError(f"map {name}: {error}") from error
    return _built(name, found[1] if found else name, origin, digest_of(name))


def digest_of(name: str) -> str:
    """Return the SHA-256 of a map's file. Raises UsageError: it cannot be read."""
    found = _ORIGIN.fullmatch(name)
    try:
        return hashlib.sha256(Path(found[1] if found else name).read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"map {name}: {error}") from error


@lru_cache(maxsize=8)
def _built(name: str, path: str, origin: tuple[float, float] | None, digest: str) -> RoadMap:
    everything = (*VEHICLE_KINDS, *_PAVED, *_ON_FOOT)
    hd_map = RoadArea(path, kinds=everything, origin_deg=origin, sha256=digest).hd_map()
    ways = [way for lane in hd_map.lanes if (way := _way(lane)) is not None]
    driven = [way for way in ways if way.lane.kind in VEHICLE_KINDS and way.lane.kind not in _BESIDE]
    if not driven:
        raise UsageError(f"map {name}: got no lane for vehicles, expected one of {', '.join(VEHICLE_KINDS)}")
    lanes = _lanes(driven)
    spans = _spans(path) if path.endswith(".xodr") else {}
    lanes = [replace(lane, reference_m=_reference(way, spans)) for lane, way in zip(lanes, driven, strict=True)]
    lanes += [_on_foot(way) for way in ways if way.lane.kind in _ON_FOOT]
    paved = HdMap(name, tuple(way.lane for way in ways if way.lane.kind not in _ON_FOOT)).pieces
    is_open_drive = path.endswith(".xodr")
    found = open_drive_furniture(path, lanes) if is_open_drive else lanelet_furniture(path, origin, lanes)
    road = surfaced(name, found.lanes, shapely.union_all(shapely.buffer(paved, _OVERLAP_M, join_style="mitre")))
    return replace(road, signals=found.signals, signs=found.signs, limits=found.limits)


def _way(lane: HdLane) -> _Way | None:
    """Return the middle and the width of a lane, None if it is too short or too narrow to drive along."""
    width = np.linalg.norm(lane.left_m - lane.right_m, axis=1)
    middle = np.asarray(shapely.LineString((lane.left_m + lane.right_m) / 2.0).simplify(_STRAIGHT_M).coords)
    steps = np.linalg.norm(np.diff(middle, axis=0), axis=1)
    middle = middle[np.concatenate([[True], steps > 1e-3])]
    if len(middle) < 2 or steps.sum() < _LEAST_M or float(np.median(width)) < _NARROW_M:
        return None
    return _Way(lane, middle, float(np.median(width)))


def _lanes(ways: Sequence[_Way]) -> list[Lane]:
    """Return lanes with their successors and neighbours, by where they lie."""
    names = [way.lane.lane_id for way in ways]
    begins, ends = (np.array([way.middle_m[row] for way in ways]) for row in (0, -1))
    first = np.array([_direction(way.middle_m[:2]) for way in ways])
    last = np.array([_direction(way.middle_m[-2:]) for way in ways])
    after = cKDTree(begins).query_ball_point(ends, _JOINT_M)
    beside = _neighbours(ways)
    lanes = []
    for row, way in enumerate(ways):
        nexts = [one for one in after[row] if abs(_turned(first[one] - last[row])) < _JOINT_RAD]
        nexts = [one for one in nexts if one != row or len(way.middle_m) > 2]  # a circle leads into itself
        nexts.sort(key=lambda one: abs(_turned(last[one] - last[row])))  # straight on first
        left, right = (names[one] if one is not None else "" for one in beside[row])
        lanes.append(
            Lane(
                names[row],
                outline(way.middle_m),
                way.width_m,
                _LIMIT_MPS,
                left=left,
                right=right,
                next=tuple(names[one] for one in nexts),
            )
        )
    return lanes


def _neighbours(ways: Sequence[_Way]) -> list[tuple[int | None, int | None]]:
    """Return for each lane the one to its left and to its right in the same direction: they share a border."""
    halves = [_half_way(way) for way in ways]
    left, right, direction = (np.array([half[k] for half in halves]) for k in range(3))
    trees = cKDTree(right), cKDTree(left)
    found = []
    for row in range(len(ways)):
        sides = []
        for place, tree in zip((left[row], right[row]), trees, strict=True):
            rows = [
                one
                for one in tree.query_ball_point(place, 8.0 * _SHARED_M)
                if one != row and abs(_turned(direction[one] - direction[row])) < _JOINT_RAD / 2.0
            ]
            sides.append(min(rows, key=lambda one: float(np.hypot(*(tree.data[one] - place))), default=None))
        found.append((sides[0], sides[1]))
    return found


def _half_way(way: _Way) -> tuple[Floats, Floats, float]:
    """Return the places of both borders half way along a lane, and its direction there."""
    middle = shapely.LineString((way.lane.left_m + way.lane.right_m) / 2.0)
    row = min(int(np.searchsorted(_stations(way), middle.length / 2.0)), len(way.lane.left_m) - 2)
    along = (way.lane.left_m + way.lane.right_m)[row : row + 2] / 2.0
    return way.lane.left_m[row], way.lane.right_m[row], _direction(along)


def _stations(way: _Way) -> Floats:
    middle = (way.lane.left_m + way.lane.right_m) / 2.0
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(middle, axis=0), axis=1))])


def _on_foot(way: _Way) -> Lane:
    return Lane(way.lane.lane_id, outline(way.middle_m), way.width_m, _WALKING_MPS, on_road=False)


def _direction(points: Floats) -> float:
    along = points[1] - points[0]
    return float(np.arctan2(along[1], along[0]))


def _turned(angle: Any) -> float:
    return float((angle + np.pi) % (2.0 * np.pi) - np.pi)


def _spans(path: str) -> dict[str, tuple[float, float, bool]]:
    """Return for ``road/section`` where it begins and ends along the road, and whether traffic keeps to the right."""
    spans: dict[str, tuple[float, float, bool]] = {}
    for road in ET.parse(path).getroot().iterfind("road"):
        begins = [float(section.get("s", 0.0)) for section in road.iterfind("lanes/laneSection")]
        ends = [*begins[1:], float(road.get("length", 0.0))]
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            spans[f"{road.get('id')}/{number}"] = begin, end, road.get("rule", "RHT") != "LHT"
    return spans


def _reference(way: _Way, spans: dict[str, tuple[float, float, bool]]) -> tuple[tuple[float, float], ...]:
    """Return stations of a road's reference line and those of a lane beside them, the former ascending.

    Points of its borders lie beside even steps of the reference line; the last step may be shorter.
    """
    section, _, number = way.lane.lane_id.rpartition("/")
    if section not in spans:
        return ()
    begin, end, keeps_right = spans[section]
    station = _stations(way)
    reference = np.minimum(begin + BORDER_STEP_M * np.arange(len(station)), end)
    reference[-1] = end
    rows = np.unique([*range(0, len(station), _KNOT_ROWS), len(station) - 1])
    if (int(number) > 0) == keeps_right:  # driven against the reference line
        station = station[::-1]
    return tuple(zip(reference[rows].tolist(), station[rows].tolist(), strict=True))
