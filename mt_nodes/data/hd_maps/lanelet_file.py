# SPDX-License-Identifier: Apache-2.0
"""Lanes of a Lanelet2 map (OSM), read by the library ``lanelet2``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError, needs_extra
from mt_nodes.data.hd_maps.hd_map import HdLane, HdMap, Line, borders_of_same_length

_LOCAL = ("local_x", "local_y")


def read_lanelets(path: Path, origin_deg: tuple[float, float] | None) -> HdMap:
    """Read the lanelets of a map.

    ``origin_deg``: (latitude, longitude) of the frame's origin, for a map in degrees: coordinates are then metres of
    UTM from there. None: points carry ``local_x`` and ``local_y`` in metres, as Autoware's maps do.
    Raises UsageError: the library is missing, or cannot read the file; or points have no place in metres.
    """
    layer = _loaded(path, origin_deg)
    lanes = tuple(_lane(lanelet, path, local=origin_deg is None) for lanelet in layer)
    if not lanes:
        raise UsageError(f"{path}: got a Lanelet2 map without a lanelet")
    return HdMap(path.name, tuple(sorted(lanes, key=lambda lane: int(lane.lane_id))))


@dataclass(frozen=True)
class LaneLight:
    """A traffic light of a lanelet.

    Attributes:
        light_id: of its regulatory element. post_m: (2,) where it hangs. stop_m: (2,) middle of its stop line, None: it
            has none.
    """

    lane_id: str
    light_id: str
    post_m: Line
    stop_m: Line | None


def read_lanelet_rules(path: Path, origin_deg: tuple[float, float] | None) -> tuple[dict[str, float], list[LaneLight]]:
    """Return the speed limits in m/s for vehicles, by lanelet, and the traffic lights of lanelets.

    Limits are those of lanelet2's traffic rules for Germany: of regulatory elements and attributes, else those of the
    place (50 km/h in towns). Arguments and errors are those of :func:`read_lanelets`.
    """
    layer, local = _loaded(path, origin_deg), origin_deg is None
    import lanelet2

    german, vehicle = lanelet2.traffic_rules.Locations.Germany, lanelet2.traffic_rules.Participants.Vehicle
    rules = lanelet2.traffic_rules.create(german, vehicle)
    limits = {str(lanelet.id): float(rules.speedLimit(lanelet).speedLimitMPS) for lanelet in layer}
    lights = []
    for lanelet in layer:
        for light in lanelet.trafficLights():
            posts, stop = list(light.trafficLights), light.stopLine
            post = _line(posts[0], path, local=local).mean(axis=0) if posts else None
            line = _line(stop, path, local=local).mean(axis=0) if stop else None
            if post is not None:
                lights.append(LaneLight(str(lanelet.id), str(light.id), post, line))
    return {lane: limit for lane, limit in limits.items() if limit > 0.0}, lights


def _loaded(path: Path, origin_deg: tuple[float, float] | None) -> Any:
    """Return the lanelets of a file."""
    with needs_extra("maps", f"{path}: Lanelet2 maps need lanelet2"):
        import lanelet2
    origin = (0.0, 0.0) if origin_deg is None else origin_deg
    projector = (lanelet2.projection.MercatorProjector if origin_deg is None else lanelet2.projection.UtmProjector)(
        lanelet2.io.Origin(*origin)
    )
    try:
        return lanelet2.io.load(str(path), projector).laneletLayer
    except RuntimeError as error:
        raise UsageError(f"{path}: lanelet2 cannot read this map ({str(error).strip()})") from error


def _lane(lanelet: Any, path: Path, *, local: bool) -> HdLane:
    left, right = (_line(bound, path, local=local) for bound in (lanelet.leftBound, lanelet.rightBound))
    kind = dict(lanelet.attributes).get("subtype", "")
    return HdLane(str(lanelet.id), kind, *borders_of_same_length(left, right))


def _line(bound: Any, path: Path, *, local: bool) -> Line:
    if not local:
        return np.array([(point.x, point.y) for point in bound], dtype=np.float64)
    try:
        return np.array([[float(point.attributes[key]) for key in _LOCAL] for point in bound], dtype=np.float64)
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"{path}: its points have no local_x and local_y in metres; give the origin of the map's frame: "
            "origin_deg: [LATITUDE, LONGITUDE]"
        ) from error
