# SPDX-License-Identifier: Apache-2.0
"""Positions of an OpenSCENARIO file."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.scenarios.open_scenario.source import OpenScenarioFile


@dataclass(frozen=True)
class Positions:
    """Positions on a map; ``placed`` are the poses of the entities placed so far."""

    source: OpenScenarioFile
    road: RoadMap
    placed: Mapping[str, Pose]

    def pose(self, position: ET.Element | None) -> Pose | None:
        """Return the pose of a ``Position``, None if it is of an unsupported kind."""
        kind = position[0] if position is not None and len(position) else None
        read = None if kind is None else _READ.get(kind.tag)
        if kind is None or read is None:
            self.source.refuse(f"<{'no Position' if kind is None else kind.tag}>", f"one of {', '.join(_READ)}")
            return None
        return read(self, kind)

    def _world(self, element: ET.Element) -> Pose:
        x, y, yaw = (self.source.number(element, key) for key in ("x", "y", "h"))
        return Pose(x, y, yaw)

    def _lane(self, element: ET.Element) -> Pose | None:
        road, number = element.get("roadId", ""), element.get("laneId", "")
        lane = self.road.lanes.get(f"{road}.{number}") or self.road.lanes.get(road)
        if lane is None and (found := self._on_reference(element, road, number)) is not None:
            return found
        if lane is None:
            hint = suggest(road, self.road.lanes)
            self.source.refuse(f"road '{road}' lane '{number}'", f"a lane of map '{self.road.name}'{hint}")
            return None
        pose = lane.pose_at(self.source.number(element, "s"), self.source.number(element, "offset"))
        return replace(pose, yaw_rad=pose.yaw_rad + self._turned(element))

    def _on_reference(self, element: ET.Element, road: str, number: str) -> Pose | None:
        """Return the pose at a station of an OpenDRIVE road, on its lane there; None if it has no such lane.

        The pose has the direction of driving; an offset is to the left of the reference line.
        """
        s = self.source.number(element, "s")
        for lane in self.road.lanes.values():
            if not lane.reference_m or not lane.name.startswith(f"{road}/") or lane.name.split("/")[-1] != number:
                continue
            reference, stations = zip(*lane.reference_m, strict=True)
            if reference[0] - 1e-6 <= s <= reference[-1] + 1e-6:
                along = 1.0 if stations[-1] >= stations[0] else -1.0
                station = float(np.interp(s, reference, stations))
                pose = lane.pose_at(station, along * self.source.number(element, "offset"))
                return replace(pose, yaw_rad=pose.yaw_rad + self._turned(element))
        return None

    def _relative(self, element: ET.Element) -> Pose | None:
        name = element.get("entityRef", "")
        at = self.placed.get(name)
        if at is None:
            self.source.refuse(f"<{element.tag} entityRef='{name}'>", "somebody who is placed before")
            return None
        dx, dy = self.source.number(element, "dx"), self.source.number(element, "dy")
        if element.tag == "RelativeObjectPosition":
            c, s = math.cos(at.yaw_rad), math.sin(at.yaw_rad)
            dx, dy = c * dx - s * dy, s * dx + c * dy
        return Pose(at.x_m + dx, at.y_m + dy, at.yaw_rad + self._turned(element))

    def _relative_lane(self, element: ET.Element) -> Pose | None:
        """Return the pose some lanes to the left and metres ahead of somebody, along the lane there."""
        name = element.get("entityRef", "")
        at = self.placed.get(name)
        if at is None:
            self.source.refuse(f"<{element.tag} entityRef='{name}'>", "somebody who is placed before")
            return None
        own = self.road.nearest_lane(at.x_m, at.y_m)
        parts, step = own.name.split("/"), round(self.source.number(element, "dLane"))
        if len(parts) != 3:
            self.source.refuse(f"<{element.tag}>", "an OpenDRIVE map")
            return None
        number = int(parts[2]) + step
        number += 0 if number * int(parts[2]) > 0 or not step else (1 if step > 0 else -1)
        lane = self.road.lanes.get(f"{parts[0]}/{parts[1]}/{number}")
        if lane is None:
            self.source.refuse(f"<{element.tag} dLane='{step}'> of '{name}'", f"a lane of road {parts[0]}")
            return None
        ahead = self.source.number(element, "dsLane", self.source.number(element, "ds"))
        ahead *= 1.0 if math.cos(lane.pose_at(0.0).yaw_rad - own.pose_at(0.0).yaw_rad) > 0.0 else -1.0
        pose = lane.pose_at(lane.station_of(at.x_m, at.y_m)[0] + ahead, self.source.number(element, "offset"))
        return replace(pose, yaw_rad=pose.yaw_rad + self._turned(element))

    def _turned(self, element: ET.Element) -> float:
        return self.source.number(element.find("Orientation"), "h")


_READ: dict[str, Callable[[Positions, ET.Element], Pose | None]] = {
    "WorldPosition": Positions._world,
    "LanePosition": Positions._lane,
    "RelativeWorldPosition": Positions._relative,
    "RelativeLanePosition": Positions._relative_lane,
    "RelativeObjectPosition": Positions._relative,
}
