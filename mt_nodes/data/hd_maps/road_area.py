# SPDX-License-Identifier: Apache-2.0
"""The part of a high-definition map that is a region: the lanes around the ego vehicle, or those of a route."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import refuse_unknown
from mt_nodes.data.hd_maps.hd_map import VEHICLE_KINDS, HdMap
from mt_nodes.data.hd_maps.lanelet_file import read_lanelets
from mt_nodes.data.hd_maps.opendrive_file import read_opendrive
from mt_nodes.data.transforms import EGO_FRAME

#: Pieces of lanes overlap by this much, so that rounding leaves no gap between them.
_OVERLAP_M = 1e-3
_KEYS = ("map", "along", "kinds", "reach_m", "extend_m", "origin_deg", "ego_frame_id", "sha256")


@dataclass(frozen=True)
class RoadArea:
    """Which lanes of which map form the region.

    As Apollo's map-based filter of a LiDAR's points does: the roads within a distance of the ego, made a little wider.

    Attributes:
        map: path of a Lanelet2 file (``.osm``) or an OpenDRIVE file (``.xodr``).
        along: lanes of a route, by number; empty: every lane.
        kinds: kinds of lanes; by default those for vehicles.
        reach_m: how far from the ego lanes count. extend_m: how far the region extends beyond their borders.
        origin_deg: latitude and longitude of the origin of the map's frame, for a Lanelet2 file in degrees.
        sha256: digest of the file, so that a run does not go on with another map.
    """

    map: str
    along: tuple[str, ...] = ()
    kinds: tuple[str, ...] = VEHICLE_KINDS
    reach_m: float = 60.0
    extend_m: float = 0.0
    origin_deg: tuple[float, float] | None = None
    ego_frame_id: str = EGO_FRAME
    sha256: str = ""

    @classmethod
    def of_file(cls, path: Path, origin_deg: tuple[float, float] | None = None) -> RoadArea:
        """Return all lanes for vehicles of a map. Raises UsageError: it cannot be read."""
        return cls(str(path), origin_deg=origin_deg, sha256=_digest(path, "map"))

    def hd_map(self) -> HdMap:
        """Return the chosen lanes; the file is read once.

        Raises UsageError: the file cannot be read, is another one than ``sha256`` says, or has no such lane.
        """
        return _chosen(self)

    def around(self, to_map: npt.NDArray[Any]) -> tuple[tuple[tuple[float, float], ...], ...]:
        """Return outlines of the lanes around the ego, in its frame; empty if no lane is in reach.

        ``to_map``: (4, 4) pose of the ego in the map's frame.
        """
        x_m, y_m = to_map[:2, 3]
        pieces = self.hd_map().near(float(x_m), float(y_m), self.reach_m)
        wide = shapely.buffer(pieces, self.extend_m + _OVERLAP_M, join_style="mitre")
        reach = shapely.Point(x_m, y_m).buffer(self.reach_m)
        parts = shapely.get_parts(shapely.intersection(wide, reach))
        rings = [np.asarray(part.exterior.coords)[:-1, :2] for part in parts if part.geom_type == "Polygon"]
        return tuple(_seen_from(to_map, ring) for ring in rings)


def load_road_area(value: Any, where: str, folder: Path) -> RoadArea:
    """Make a road area from its mapping in a region's file, whose folder relative paths start from; reads the map.

    Raises UsageError: an unknown key, a value that does not fit, or a map that cannot be read.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("map"), str):
        raise UsageError(f"{where}: got {value!r}, expected a mapping with map: FILE.osm or FILE.xodr")
    refuse_unknown(value, _KEYS, where)
    path = (folder / value["map"]).expanduser().absolute()
    given: dict[str, Any] = {
        key: _CONVERT[key](value[key], f"{where}.{key}") for key in value if key not in ("map", "sha256")
    }
    area = RoadArea(str(path), **given, sha256=_digest(path, f"{where}: map"))
    if value.get("sha256") not in (None, "", area.sha256):
        raise UsageError(f"{where}: {path} has changed: its SHA-256 was {value['sha256']} and is {area.sha256}")
    area.hd_map()
    return area


def _digest(path: Path, where: str) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"{where}: cannot read {path} ({error.strerror})") from error


@lru_cache(maxsize=8)
def _read(path: str, origin_deg: tuple[float, float] | None, sha256: str) -> HdMap:
    if path.endswith(".xodr"):
        return read_opendrive(Path(path))
    if path.endswith(".osm"):
        return read_lanelets(Path(path), origin_deg)
    raise UsageError(f"{path}: got a map that is neither Lanelet2 (.osm) nor OpenDRIVE (.xodr)")


@lru_cache(maxsize=16)
def _chosen(area: RoadArea) -> HdMap:
    return _read(area.map, area.origin_deg, area.sha256).chosen(area.kinds, area.along)


def _seen_from(to_map: npt.NDArray[Any], ring: Floats) -> tuple[tuple[float, float], ...]:
    """Return corners at the height of the ego, given in the map's frame, in that of the ego."""
    away = np.column_stack([ring - to_map[:2, 3], np.zeros(len(ring))])
    return tuple((float(x), float(y)) for x, y in (away @ to_map[:3, :3])[:, :2])


def _words(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise UsageError(f"{where}: got {value!r}, expected a list of names")
    return tuple(str(one) for one in value)


def _lanes_of_route(value: Any, where: str) -> tuple[str, ...]:
    return () if value in ([], ()) else _words(value, where)


def _positive(value: Any, where: str) -> float:
    number = _not_negative(value, where)
    if number == 0.0:
        raise UsageError(f"{where}: got 0, expected metres above 0")
    return number


def _not_negative(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value < np.inf:
        raise UsageError(f"{where}: got {value!r}, expected metres, 0 or more")
    return float(value)


def _origin(value: Any, where: str) -> tuple[float, float] | None:
    if value is None:
        return None
    fits = isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value)
    if not fits or not (abs(value[0]) <= 90.0 and abs(value[1]) <= 180.0):
        raise UsageError(f"{where}: got {value!r}, expected [latitude, longitude] in degrees")
    return float(value[0]), float(value[1])


def _frame(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where}: got {value!r}, expected the name of a frame")
    return value


_CONVERT = {
    "along": _lanes_of_route,
    "kinds": _words,
    "reach_m": _positive,
    "extend_m": _not_negative,
    "origin_deg": _origin,
    "ego_frame_id": _frame,
}
