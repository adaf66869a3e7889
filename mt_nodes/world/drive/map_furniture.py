# SPDX-License-Identifier: Apache-2.0
"""Speed limits, traffic lights and signs of OpenDRIVE and Lanelet2 files, for the lanes that were read of them.

Of Lanelet2, limits and lights are those of its library (:func:`mt_nodes.data.hd_maps.lanelet_file.read_lanelet_rules`);
signs are not read. Of OpenDRIVE, limits are those of ``lane/speed``, else of ``road/type/speed``; what changes within a
lane's section is a limit from there on. A ``signal`` of a type of :data:`LIGHTS` is a light, and of :data:`SIGNS` a
sign (type codes of OpenDRIVE 1.8, chapter 14, and of the German StVO's catalogue). It stands at its s and t, and is for
those who drive as its orientation says; a light's stop line is beside it, in each lane of its ``validity``, else of
that direction.

Neither has programmes: lights are green for 12 s, yellow for 3 s and red for 15 s (assumed), those across at other
times.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mt_nodes.data.hd_maps.lanelet_file import read_lanelet_rules
from mt_nodes.world.drive.road_map import Lane, Limit, Sign, TrafficLight
from mt_nodes.world.drive.scenario import Pose

#: Signals with lamps for vehicles: OpenDRIVE's own codes of lights with three lamps.
LIGHTS = ("1000001", "1000009", "1000011")
#: Of codes of Germany (StVO), also where a country is not said: faces; a limit's value is its number, else its subtype.
SIGNS = {"206": "stop", "205": "yield", "274": "speed_limit", "275": "minimum_speed", "274.1": "zone_30"}
SIGNS |= {"267": "no_entry", "250": "no_vehicles", "251": "no_motor_vehicles", "101": "warning", "123": "work_zone"}
SIGNS |= {"136": "children", "301": "right_of_way", "306": "priority_road", "201": "st_andrews_cross"}
_GERMAN = ("", "de", "deu", "germany", "opendrive")
_UNITS_MPS = {"m/s": 1.0, "km/h": 1.0 / 3.6, "mph": 0.44704}
#: For roads without a limit: the German recommendation.
_NO_LIMIT_MPS = 130.0 / 3.6
_GREEN_S, _YELLOW_S, _RED_S = 12.0, 3.0, 15.0
_ACROSS = 0.7


@dataclass(frozen=True)
class Furniture:
    """What a file has beside its lanes: lanes with their limits, limits within lanes, lights and signs.

    ``left_out``: types of signals that are neither.
    """

    lanes: tuple[Lane, ...]
    limits: tuple[Limit, ...] = ()
    signals: tuple[TrafficLight, ...] = ()
    signs: tuple[Sign, ...] = ()
    left_out: tuple[str, ...] = ()


def open_drive_furniture(path: str, lanes: Sequence[Lane]) -> Furniture:
    """Return lanes of a file with its limits, and its lights and signs.

    ``lanes``: for vehicles, with stations of their road's reference line.
    """
    root = ET.parse(path).getroot()
    by_road: dict[str, list[Lane]] = {}
    for lane in lanes:
        by_road.setdefault(lane.name.split("/")[0], []).append(lane)
    changed: dict[str, Lane] = {}
    limits: list[Limit] = []
    signals: list[TrafficLight] = []
    signs: list[Sign] = []
    left_out: dict[str, None] = {}
    for road in root.iterfind("road"):
        own = by_road.get(road.get("id", ""), [])
        for lane in own:
            first, *later = _limits_along(road, lane)
            changed[lane.name] = replace(lane, limit_mps=first[1] or lane.limit_mps)
            limits += (Limit(lane.pose_at(_station(lane, s)), limit) for s, limit in later if limit)
        for signal in road.iterfind("signals/signal"):
            kind = signal.get("type", "")
            if kind in LIGHTS:
                signals += _lights(road, signal, own)
            elif kind in SIGNS and signal.get("country", "").lower() in _GERMAN:
                signs += (Sign(SIGNS[kind], pose, _number(signal)) for pose in _poses(road, signal, own)[:1])
            else:
                left_out[f"{signal.get('country', '')} {kind}".strip()] = None
    kept = tuple(changed.get(lane.name, lane) for lane in lanes)
    return Furniture(kept, tuple(limits), tuple(phased(signals)), tuple(signs), tuple(left_out))


def lanelet_furniture(path: str, origin_deg: tuple[float, float] | None, lanes: Sequence[Lane]) -> Furniture:
    """Return lanes of a Lanelet2 file with its limits, and its lights: named by element, further lanes ``id@lane``."""
    limits, lights = read_lanelet_rules(Path(path), origin_deg)
    named = {lane.name: lane for lane in lanes if lane.on_road}
    signals: list[TrafficLight] = []
    for light in lights:
        if (lane := named.get(light.lane_id)) is None:
            continue
        stop = lane.length_m if light.stop_m is None else lane.station_of(*light.stop_m.tolist())[0]
        x, y = light.post_m.tolist()
        name = light.light_id if not lights_named(signals, light.light_id) else f"{light.light_id}@{lane.name}"
        signals.append(TrafficLight(name, Pose(x, y, lane.pose_at(stop).yaw_rad), _programme(0.0), lane.name, stop))
    kept = tuple(
        replace(lane, limit_mps=limits[lane.name]) if lane.on_road and lane.name in limits else lane for lane in lanes
    )
    return Furniture(kept, signals=tuple(phased(signals)))


def _limits_along(road: ET.Element, lane: Lane) -> list[tuple[float, float | None]]:
    """Return where along the reference line which limit begins on a lane, in the direction of driving."""
    if not lane.reference_m:
        return [(0.0, None)]
    begin, end = lane.reference_m[0][0], lane.reference_m[-1][0]
    section = road.findall("lanes/laneSection")[int(lane.name.split("/")[1])]
    speeds = section.findall(f".//lane[@id='{lane.name.split('/')[-1]}']/speed")
    found = {begin + float(one.get("sOffset", 0.0)): _speed(one) for one in speeds}
    if not found:
        types = [(float(one.get("s", 0.0)), one.find("speed")) for one in road.iterfind("type")]
        found = {max(s, begin): None if speed is None else _speed(speed) for s, speed in types if s < end}
    rows = sorted((s, limit) for s, limit in found.items() if s < end)
    if rows and lane.reference_m[0][1] > lane.reference_m[-1][1]:  # driven against the reference line
        ends = [s for s, _ in rows[1:]] + [end]
        rows = [(stop, limit) for (_, limit), stop in zip(rows, ends, strict=True)][::-1]
    return rows or [(begin, None)]


def _speed(element: ET.Element) -> float | None:
    text = element.get("max", "")
    if text in ("no limit", "undefined", ""):
        return _NO_LIMIT_MPS if text == "no limit" else None
    try:
        return float(text) * _UNITS_MPS.get(element.get("unit", "m/s"), 1.0)
    except ValueError:
        return None


def _station(lane: Lane, s: float) -> float:
    reference, stations = zip(*lane.reference_m, strict=True)
    return float(np.interp(s, reference, stations))


def _number(signal: ET.Element) -> int:
    """Return the number on a sign, 0 if it has none."""
    for text in (signal.get("value", ""), signal.get("subtype", "")):
        try:
            number = round(float(text))
        except ValueError:
            continue
        if 0 < number < 200:
            return number
    return 0


def _directed(road: ET.Element, signal: ET.Element, lanes: Sequence[Lane]) -> Iterator[tuple[Lane, float]]:
    """Yield the lanes that a signal is for, and the station beside it."""
    s = float(signal.get("s", 0.0))
    valid = [(int(v.get("fromLane", 0)), int(v.get("toLane", 0))) for v in signal.iterfind("validity")]
    wanted = {"+": 1.0, "-": -1.0}.get(signal.get("orientation", "none"), 0.0)
    for lane in lanes:
        number = int(lane.name.split("/")[-1])
        if not lane.reference_m or not lane.reference_m[0][0] - 1e-6 <= s <= lane.reference_m[-1][0] + 1e-6:
            continue
        along = 1.0 if lane.reference_m[-1][1] >= lane.reference_m[0][1] else -1.0
        if valid and not any(min(pair) <= number <= max(pair) for pair in valid):
            continue
        if wanted in (0.0, along):
            yield lane, _station(lane, s)


def _poses(road: ET.Element, signal: ET.Element, lanes: Sequence[Lane]) -> list[Pose]:
    """Return the pose of a signal's post for each lane that it is for, with the direction of driving there."""
    found = []
    for lane, station in _directed(road, signal, lanes):
        at = lane.pose_at(station)
        along = 1.0 if lane.reference_m[-1][1] >= lane.reference_m[0][1] else -1.0
        # Its t is from the reference line, which lies as far from the lane's middle as that is wide from there.
        aside = along * (float(signal.get("t", 0.0)) - _middle_t(road, lane, float(signal.get("s", 0.0))))
        x, y = at.x_m - aside * math.sin(at.yaw_rad), at.y_m + aside * math.cos(at.yaw_rad)
        found.append(Pose(x, y, at.yaw_rad))
    return found


def _middle_t(road: ET.Element, lane: Lane, s: float) -> float:
    """Return how far to the left of the reference line a lane's middle is at a station of it."""
    section = road.findall("lanes/laneSection")[int(lane.name.split("/")[1])]
    number, begin = int(lane.name.split("/")[-1]), float(section.get("s", 0.0))
    side = 1 if number > 0 else -1
    widths = {
        int(one.get("id", 0)): _cubic(one.findall("width"), s - begin, "sOffset")
        for one in section.iterfind(".//lane")
        if int(one.get("id", 0)) * side > 0 and abs(int(one.get("id", 0))) <= abs(number)
    }
    within = sum(width for id_, width in widths.items() if id_ != number) + widths.get(number, 0.0) / 2.0
    return _cubic(road.findall("lanes/laneOffset"), s, "s") + side * within


def _cubic(rows: Sequence[ET.Element], at: float, key: str) -> float:
    """Return the value of the last of several cubics that begins before a place."""
    begun = [row for row in rows if float(row.get(key, 0.0)) <= at + 1e-9]
    if not begun:
        return 0.0
    row = max(begun, key=lambda one: float(one.get(key, 0.0)))
    ds = at - float(row.get(key, 0.0))
    return sum(float(row.get(name, 0.0)) * ds**power for power, name in enumerate("abcd"))


def _lights(road: ET.Element, signal: ET.Element, lanes: Sequence[Lane]) -> Iterator[TrafficLight]:
    """Yield a light for each lane that a signal is for: the first has its id as name, the others ``id@lane``."""
    poses = _poses(road, signal, lanes)
    for number, ((lane, station), pose) in enumerate(zip(_directed(road, signal, lanes), poses, strict=True)):
        name = signal.get("id", "") + (f"@{lane.name}" if number else "")
        yield TrafficLight(name, pose, _programme(0.0), lane.name, station)


def _programme(later_s: float) -> tuple[tuple[str, float], ...]:
    own = (("green", _GREEN_S), ("yellow", _YELLOW_S), ("red", _RED_S))
    return own if not later_s else (("red", _RED_S), ("green", _GREEN_S), ("yellow", _YELLOW_S))


def phased(signals: Sequence[TrafficLight]) -> Iterator[TrafficLight]:
    """Yield lights, those across the first one's direction with their green while that one is red."""
    for light in signals:
        across = abs(math.cos(light.pose.yaw_rad - signals[0].pose.yaw_rad)) < _ACROSS
        yield replace(light, programme=_programme(_RED_S if across else 0.0))


def lights_named(signals: Sequence[TrafficLight], name: str) -> list[str]:
    """Return the names of all lights that a signal's id stands for."""
    return [light.name for light in signals if light.name == name or light.name.startswith(f"{name}@")]
