# SPDX-License-Identifier: Apache-2.0
"""Scene facts from a closed-loop world: hour and weather, the map, and everything that stands or moves there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.data.association import footprints
from mt_nodes.data.lanes import SignalStates
from mt_nodes.data.messages import Bundle, Odometry
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.relations.facts.condition import HAS, LOOKED_FOR
from mt_nodes.relations.facts.scene_facts import Fact, Facts, unknown
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route, lane_of
from mt_nodes.world.drive.scenario import Environment, Pose, Scenario
from mt_nodes.world.drive.signals import COLOURS
from mt_nodes.world.scene.faces import SIGNS
from mt_nodes.world.scene.objects import KINDS

#: Objects farther away do not count, nor detections with lower scores.
NEAR_M, SURE = 60.0, 0.5


def objects_of(bundle: Bundle, outputs: Sequence[Output]) -> Fact:
    """Return the number of near objects in the middle of a case by class, most frequent first."""
    detections = next((m.data for m in bundle.world_messages if isinstance(m.data, Detections)), None)
    if detections is not None:
        return Fact(_counts(detections), f"objects as the world tells them, within {NEAR_M:g} m")
    answer = outputs[len(outputs) // 2] if outputs else None
    if answer is not None and answer.detections is not None:
        return Fact(_counts(answer.detections), f"detections of the stack within {NEAR_M:g} m")
    if answer is not None and answer.boxes is not None:
        return Fact(_counts(answer.boxes), "boxes of the stack in the image")
    return unknown("neither a world nor the stack tells objects")


def _counts(detections: Detections | ImageBoxes) -> dict[str, int]:
    sure = detections.finite & (detections.score >= SURE)
    if isinstance(detections, Detections):
        sure &= np.hypot(detections.center_m[:, 0], detections.center_m[:, 1]) <= NEAR_M
    found = Counter(detections.label[sure].tolist())
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


#: A place this near ahead counts as approached.
AHEAD_M = 50.0
#: Anybody this near to the centre of the way is in it: half a car's width plus a margin.
_HALF_LANE_M = 1.2
#: Names of kinds of objects and faces of signs in the ontology, where they differ; those of all kinds with a label.
_LABELS = {
    "pedestrian": ("pedestrian",),
    "animal": ("animal",),
    "car": ("motor_vehicle",),
    "motorcycle": ("motor_vehicle",),
    "truck": ("motor_vehicle", "multi_track_motor_vehicle"),
    "bus": ("motor_vehicle", "multi_track_motor_vehicle"),
}
#: Kinds that are signs and lights, which are told by their faces and colours.
_POSTS = {"traffic_light", "traffic_sign"}
_KINDS = {
    "adult": ("pedestrian",),
    "elderly": ("senior", "pedestrian"),
    "child": ("child", "pedestrian"),
    "motor_cyclist": ("motorcyclist",),
    "cow": ("livestock", "animal"),
    "deer": ("deer", "animal"),
    "boar": ("boar", "animal"),
    "dog": ("dog", "animal"),
    "car": ("other_vehicle", "motor_vehicle"),
    "van": ("other_vehicle", "motor_vehicle"),
    "truck": ("multi_track_motor_vehicle", "motor_vehicle"),
    "bus": ("public_bus", "line_bus"),
}
_SIGNS = {"stop": "stop_sign", "yield": "yield_sign", "yield_us": "yield_sign"} | dict.fromkeys(
    ("speed_limit", "speed_limit_us"), "speed_limit_sign"
)


def world_facts(scenario: Scenario, road: RoadMap, bundle: Bundle) -> Facts:
    """Return the facts of a scenario and its map at the instant of a bundle.

    With odometry in the bundle, roads and objects are those ahead of it, else of the scenario's start.
    """
    odometry = next((m.data for m in bundle.world_messages if isinstance(m.data, Odometry)), None)
    ego_pose = Pose(odometry.x_m, odometry.y_m, odometry.yaw_rad) if odometry else scenario.ego.start
    way = Route(road, ego_pose, scenario.ego.target)
    poses = way.pose[np.hypot(way.pose[:, 0] - ego_pose.x_m, way.pose[:, 1] - ego_pose.y_m) <= AHEAD_M]
    facts = _weather(scenario.environment)
    facts["roads"] = Fact(tuple(_roads(road, way, poses, ego_pose)), f"map '{road.name}', {AHEAD_M:g} m ahead")
    detections = next((m.data for m in bundle.world_messages if isinstance(m.data, Detections)), None)
    if detections is not None:
        facts |= _nearby_facts(scenario, road, bundle, detections, ego_pose)
        facts |= _in_the_way(scenario, detections, poses, ego_pose)
    return facts


def _weather(environment: Environment) -> Facts:
    source = "the scenario's environment"
    darkness = light_of(environment).darkness
    falling = "snow" if environment.snow > 0.0 else "rain" if environment.rain > 0.0 else ""
    time = "day" if darkness == 0.0 else "night" if darkness == 1.0 else "dusk"
    return {
        "time_of_day": Fact(time, source),
        "weather": Fact(falling or ("fog" if environment.fog > 0.0 else "clear"), source),
        "weather_clear": Fact(not falling, source),
        "visibility_good": Fact(environment.fog == 0.0, source),
        "surface_dry": Fact(max(environment.wetness, environment.rain, environment.snow) == 0.0, source),
    }


def _roads(road: RoadMap, way: Route, poses: Floats, ego_pose: Pose) -> Iterator[str]:
    """Yield the road types within :data:`AHEAD_M` on the way, and that of the whole map."""
    line = shapely.LineString(poses[:, :2]) if len(poses) > 1 else shapely.Point(ego_pose.x_m, ego_pose.y_m)
    left_m = AHEAD_M + lane_of(road, ego_pose).station_of(ego_pose.x_m, ego_pose.y_m)[0]
    for name in way.lanes:
        left_m -= road.lanes[name].length_m
        if left_m >= 0.0 and len(road.lanes[name].next) > 1:
            yield "intersection"
            break
    if any(line.intersects(shapely.Polygon(crossing.outline_m)) for crossing in road.crossings):
        yield "crosswalk"
    if road.name.startswith("bridge"):
        yield "bridge"


def _nearby_facts(scenario: Scenario, road: RoadMap, bundle: Bundle, detections: Detections, ego_pose: Pose) -> Facts:
    """Return the names of all near elements: objects all around, lights and signs ahead."""
    near = detections.track_id[np.hypot(detections.center_m[:, 0], detections.center_m[:, 1]) <= NEAR_M].tolist()
    kinds = [actor.kind for actor in scenario.actors if actor.name in near]
    names = {name for kind in kinds for name in _names_of(kind)}
    names |= {"obstacle" for thing in scenario.obstacles if thing.name in near}
    names |= {_SIGNS.get(s.face, f"{s.face}_sign") for s in road.signs if _ahead(ego_pose, s.pose)}
    around = shapely.Point(ego_pose.x_m, ego_pose.y_m).buffer(NEAR_M)
    names |= {"crosswalk_markings" for c in road.crossings if around.intersects(shapely.Polygon(c.outline_m))}
    states = next((m.data for m in bundle.world_messages if isinstance(m.data, SignalStates)), None)
    if states is not None:
        stops = [Pose(*row) for row in states.stop.tolist()]
        names |= {f"{c}_light" for c, stop in zip(states.colour, stops, strict=True) if _ahead(ego_pose, stop)}
    elif road.signals:
        return {}
    source = f"the world tells all within {NEAR_M:g} m"
    return {
        HAS: Fact(frozenset(names), source),
        LOOKED_FOR: Fact(_told_elements(), source),
        "children_visible": Fact("child" in names, source),
    }


@lru_cache(maxsize=1)
def _told_elements() -> frozenset[str]:
    """Return the elements that a world tells if they are there; it has no name for a queue or an oncoming vehicle."""
    kinds = {name for kind in KINDS if kind not in _POSTS for name in _names_of(kind)}
    signs = {_SIGNS.get(face, f"{face}_sign") for face in SIGNS}
    return frozenset(kinds | signs | {f"{colour}_light" for colour in COLOURS} | {"crosswalk_markings", "obstacle"})


def _names_of(kind: str) -> tuple[str, ...]:
    return (*_KINDS.get(kind, (kind,)), *_LABELS.get(facts_of(kind).label, ()))


def _ahead(ego_pose: Pose, place: Pose) -> bool:
    """Return whether something lies ahead, near, and faces the ego."""
    x, y = place.x_m - ego_pose.x_m, place.y_m - ego_pose.y_m
    forward = x * np.cos(ego_pose.yaw_rad) + y * np.sin(ego_pose.yaw_rad)
    return bool(0.0 < forward <= NEAR_M and np.hypot(x, y) <= NEAR_M and np.cos(place.yaw_rad - ego_pose.yaw_rad) > 0.7)


def _in_the_way(scenario: Scenario, detections: Detections, poses: Floats, ego_pose: Pose) -> Facts:
    """Return whether the way ahead is clear, and the distance of the ego's front from what is in it."""
    if len(poses) < 2:
        return {}
    rows = detections.take(detections.center_m[:, 0] > 0.0)
    c, s = np.cos(ego_pose.yaw_rad), np.sin(ego_pose.yaw_rad)
    lane = shapely.LineString((poses[:, :2] - (ego_pose.x_m, ego_pose.y_m)) @ np.array([[c, -s], [s, c]])).buffer(
        _HALF_LANE_M
    )
    front_m = scenario.ego.vehicle.front_m
    gaps = [
        max(0.0, float(center[0]) - float(size[0]) / 2.0 - front_m)
        for center, size, box in zip(rows.center_m, rows.size_m, footprints(rows), strict=True)
        if lane.intersects(box)
    ]
    source = f"objects as the world tells them, on the way ahead for {AHEAD_M:g} m"
    return {"path_clear": Fact(not gaps, source), "lead_gap_m": Fact(min(gaps, default=float("inf")), source)}
