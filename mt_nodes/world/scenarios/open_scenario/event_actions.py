# SPDX-License-Identifier: Apache-2.0
"""Actions of OpenSCENARIO's events that actors carry out while they are under way: speeds, lane changes, lights."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.map_furniture import lights_named
from mt_nodes.world.drive.road_map import Lane, RoadMap
from mt_nodes.world.drive.scenario import Pose, Waypoint
from mt_nodes.world.scenarios.open_scenario.conditions import colour_of
from mt_nodes.world.scenarios.open_scenario.source import OpenScenarioFile

_UNITS = {"time": "s", "distance": "m", "rate": "rate"}
#: Somebody follows its lane for so far; a way has a speed, whatever the events say.
_FOLLOWS_M, _NOMINAL_MPS = 3000.0, 1.0
#: Assumed where an offset within a lane has no limit of its lateral acceleration.
_ASIDE_MPS2 = 1.0
#: A lane is somebody's if its direction is his by so much (cosine).
_ALIKE = 0.7


@dataclass
class LanePlace:
    """Where somebody is by the events so far.

    Attributes:
        lane, station_m: its lane, and where along. yaw_rad: its own direction of driving. against: that is not the
            lane's, as with who overtakes on the lane of those who come towards it.
        left_m: how far to the left of the middle of its first lane its way runs.
        middle_m: how far to the left of the middle of its first lane that of its present one runs.
        sign: 1 if it drives along the road's reference line, -1 against it.
    """

    lane: Lane
    station_m: float
    yaw_rad: float
    left_m: float
    sign: float
    against: bool = False
    middle_m: float = 0.0


def lane_place(road: RoadMap, pose: Pose) -> LanePlace | None:
    """Return the lane of an OpenDRIVE road at a pose along it; None if there is none."""
    lane = road.nearest_lane(pose.x_m, pose.y_m)
    station, left = lane.station_of(pose.x_m, pose.y_m)
    yaw = lane.pose_at(station).yaw_rad
    alike = math.cos(yaw - pose.yaw_rad)
    if not lane.reference_m or abs(alike) < _ALIKE or abs(left) > lane.width_m:
        return None
    (_, first), (_, last) = lane.reference_m[0], lane.reference_m[-1]
    way = math.copysign(1.0, alike)
    yaw += 0.0 if alike > 0.0 else math.pi
    return LanePlace(lane, station, yaw, way * left, way if last >= first else -way, alike < 0.0)


def lane_way(road: RoadMap, place: LanePlace, speed_mps: float) -> list[Waypoint]:
    """Return the way along a lane and those that follow it, straight on, as they go; against it, to its begin."""
    if place.against:
        knots = [0.0, *place.lane.stations_m[place.lane.stations_m < place.station_m - 0.5].tolist()]
        poses = [place.lane.pose_at(knot, -place.left_m) for knot in sorted(set(knots), reverse=True)]
        return [Waypoint(pose.x_m, pose.y_m, speed_mps if speed_mps > 0.0 else _NOMINAL_MPS) for pose in poses]
    lane, station, gone = place.lane, place.station_m, 0.0
    way: list[Waypoint] = []
    seen: set[str] = set()
    while gone < _FOLLOWS_M and lane.name not in seen:
        seen.add(lane.name)
        for knot in [*(s for s in lane.stations_m.tolist() if s > station + 0.5), lane.length_m]:
            pose = lane.pose_at(knot, place.left_m)
            if not way or math.hypot(pose.x_m - way[-1].x_m, pose.y_m - way[-1].y_m) > 0.2:
                way.append(Waypoint(pose.x_m, pose.y_m, speed_mps if speed_mps > 0.0 else _NOMINAL_MPS))
        gone += lane.length_m - station
        if not lane.next:
            break
        lane, station = road.lanes[lane.next[0]], 0.0
    return way


@dataclass(frozen=True)
class EventActions:
    """Reads actions into events; ``names`` are those of entities as events call them."""

    source: OpenScenarioFile
    road: RoadMap
    names: dict[str, str]

    def speed(self, action: ET.Element, actor: str) -> dict[str, Any] | None:
        """Return what a ``LongitudinalAction`` makes of an event."""
        speed = action.find("SpeedAction")
        if speed is None:
            self.source.refuse(f"<{action[0].tag if len(action) else action.tag}> of '{actor}'", "a SpeedAction")
            return None
        target = speed.find("SpeedActionTarget/*")
        given = {"speed_mps": self.source.number(target, "value"), **self._dynamics(speed.find("SpeedActionDynamics"))}
        if target is None or target.tag == "AbsoluteTargetSpeed":
            return given
        given["continuous"] = target.get("continuous") == "true"
        given["relative_to"] = self.names.get(target.get("entityRef", ""), "")
        if target.get("speedTargetValueType") == "factor":
            given |= {"factor": given["speed_mps"], "speed_mps": 0.0}
        return given

    def lateral(self, action: ET.Element, actor: str, places: dict[str, LanePlace | None]) -> dict[str, Any] | None:
        """Return what a ``LateralAction`` makes of an event, and note the lane that its actor is on then."""
        kind, place = action[0], places.get(actor)
        if kind.tag not in ("LaneChangeAction", "LaneOffsetAction"):
            got = f"<LateralAction> of '{actor}' in a Story: <{kind.tag}>"
            self.source.refuse(got, "LaneChangeAction or LaneOffsetAction")
            return None
        if place is None:
            self.source.refuse(f"<{kind.tag}> of '{actor}', who is on no lane of an OpenDRIVE file", "somebody on one")
            return None
        if kind.tag == "LaneOffsetAction":
            return self._offset(kind, actor, place)
        offset = place.sign * self.source.number(kind, "targetLaneOffset")
        lane = self._target_lane(kind, actor, place, places)
        if lane is None:
            return None
        at = place.lane.pose_at(place.station_m)
        station = lane.station_of(at.x_m, at.y_m)[0]
        there, yaw = lane.pose_at(station), place.yaw_rad
        place.middle_m += (there.y_m - at.y_m) * math.cos(yaw) - (there.x_m - at.x_m) * math.sin(yaw)
        place.lane, place.station_m = lane, station
        aside = place.middle_m - place.left_m + offset
        return {"aside_m": aside, **self._dynamics(kind.find("LaneChangeActionDynamics"))}

    def _target_lane(
        self, kind: ET.Element, actor: str, place: LanePlace, places: dict[str, LanePlace | None]
    ) -> Lane | None:
        target = kind.find("LaneChangeTarget/*")
        road, section, _ = place.lane.name.split("/")
        value = round(self.source.number(target, "value"))
        if target is not None and target.tag == "RelativeTargetLane":
            other = places.get(self.names.get(target.get("entityRef", ""), ""))
            if other is None:
                self.source.refuse(f"<{target.tag} entityRef='{target.get('entityRef')}'>", "somebody on a lane")
                return None
            begin = int(other.lane.name.split("/")[-1])
            value = begin + value + (0 if (begin + value) * begin > 0 else int(math.copysign(1, value)) if value else 0)
        lane = self.road.lanes.get(f"{road}/{section}/{value}")
        if lane is None:
            known = [name.split("/")[-1] for name in self.road.lanes if name.startswith(f"{road}/{section}/")]
            self.source.refuse(f"lane {value} as target of '{actor}'", f"one of road {road}: {', '.join(known)}")
        return lane

    def _offset(self, kind: ET.Element, actor: str, place: LanePlace) -> dict[str, Any] | None:
        target = kind.find("LaneOffsetTarget/AbsoluteTargetLaneOffset")
        if target is None:
            self.source.refuse(f"<LaneOffsetAction> of '{actor}' relative to others", "AbsoluteTargetLaneOffset")
            return None
        value = place.sign * self.source.number(target, "value")
        dynamics = kind.find("LaneOffsetActionDynamics")
        shape = dynamics.get("dynamicsShape", "step") if dynamics is not None else "step"
        most = self.source.number(dynamics, "maxLateralAcc", _ASIDE_MPS2) or _ASIDE_MPS2
        # The largest lateral acceleration of (1 - cos(pi t / T)) d / 2 is d / 2 (pi / T)^2.
        aside = place.middle_m - place.left_m + value
        return {"aside_m": aside, "over": math.pi * math.sqrt(abs(value) / (2.0 * most)), "shape": shape}

    def lights(self, action: ET.Element) -> dict[str, str] | None:
        """Return what a ``GlobalAction`` makes lights show; None if it is another action."""
        state = action.find("TrafficSignalAction/TrafficSignalStateAction")
        if action.tag != "InfrastructureAction" or state is None:
            return None
        name, colour = state.get("name", ""), colour_of(state.get("state", ""))
        if not colour:
            self.source.refuse(f"<{state.tag} state='{state.get('state')}'>", "a colour, or lamps that are on and off")
            return {}
        if not (known := lights_named(self.road.signals, name)):
            own = [light.name for light in self.road.signals]
            self.source.refuse(f"<{state.tag} name='{name}'>", f"a light of the map{suggest(name, own)}")
        return dict.fromkeys(known, colour)

    def _dynamics(self, dynamics: ET.Element | None) -> dict[str, Any]:
        if dynamics is None:
            return {}
        unit = _UNITS.get(dynamics.get("dynamicsDimension", "time"), "s")
        shape = dynamics.get("dynamicsShape", "linear")
        return {"over": self.source.number(dynamics, "value"), "over_unit": unit, "shape": shape}


def programmes_of(source: OpenScenarioFile, road: RoadMap) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the programmes of lights by ``TrafficSignals`` of a file: the phases of each controller, in turn."""
    found: dict[str, list[tuple[str, float]]] = {}
    for controller in source.root.findall("RoadNetwork/TrafficSignals/TrafficSignalController"):
        if controller.get("delay") or controller.get("reference"):
            source.refuse(f"<TrafficSignalController name='{controller.get('name')}'> after another one", "no delay")
        for phase in controller.findall("Phase"):
            seconds = source.number(phase, "duration")
            for state in phase.findall("TrafficSignalState"):
                colour = colour_of(state.get("state", ""))
                if not colour:
                    source.refuse(f"<TrafficSignalState state='{state.get('state')}'>", "a colour, or lamps on and off")
                for name in lights_named(road.signals, state.get("trafficSignalId", "")) or [f"{state.attrib}"]:
                    found.setdefault(name, []).append((colour or "red", seconds))
    return {name: tuple(row) for name, row in found.items()}
