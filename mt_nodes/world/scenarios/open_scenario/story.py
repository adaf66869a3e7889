# SPDX-License-Identifier: Apache-2.0
"""Entities of an OpenSCENARIO file with their starts, ways and triggers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Pose, Trigger, Waypoint
from mt_nodes.world.scenarios.language.scenario_builder import DURATION_S
from mt_nodes.world.scenarios.open_scenario.positions import Positions
from mt_nodes.world.scenarios.open_scenario.source import OpenScenarioFile

EGOS = ("ego", "hero", "ego_vehicle", "egovehicle")
"""What the ego is called, in whatever letters."""
_THINGS = ("Vehicle", "Pedestrian", "MiscObject")
_ROUTES = ("AcquirePositionAction", "AssignRouteAction", "FollowTrajectoryAction")
#: Who controls an entity elsewhere is nobody here.
_NOBODY = ("ControllerAction", "ActivateControllerAction")
_NEARER = ("lessThan", "lessOrEqual")
_CONDITIONS = {
    "SimulationTimeCondition": "after_s",
    "RelativeDistanceCondition": "ego_within_m",
    "TimeHeadwayCondition": "ego_within_s",
    "TimeToCollisionCondition": "ego_within_s",
}


def is_ego(name: str) -> bool:
    """Whether an entity of a name is the one that the stack drives."""
    return name.lower() in EGOS


@dataclass
class Entity:
    """An entity: the pose of its reference point, and its way."""

    name: str
    element: ET.Element
    speed_mps: float = 0.0
    waypoints: list[Waypoint] = field(default_factory=list)
    target: Pose | None = None
    trigger: Trigger = field(default_factory=Trigger)
    pose: Pose | None = None


class Story:
    """The entities of a file after all of its actions."""

    def __init__(self, source: OpenScenarioFile, road: RoadMap) -> None:
        self._source = source
        self._placed: dict[str, Pose] = {}
        self._positions = Positions(source, road, self._placed)
        self._by_name = {entity.name: entity for entity in self._found()}
        for private in source.root.findall("Storyboard/Init/Actions/Private"):
            self._begin(private)
        for event, entities, triggers in self._events():
            for entity in entities:
                self._event(event, entity, triggers)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """All entities, in the order of the file."""
        return tuple(self._by_name.values())

    def _found(self) -> Iterator[Entity]:
        for each in self._source.root.findall("Entities/ScenarioObject"):
            name = each.get("name", "")
            thing = next((child for child in each if child.tag in _THINGS), None)
            if thing is None:
                inner = each[0].tag if len(each) else "nothing"
                self._source.refuse(f"'{name}' as {inner}", f"{', '.join(_THINGS)} of its own")
            else:
                yield Entity(name, thing)

    def _named(self, element: ET.Element) -> Entity | None:
        name = element.get("entityRef", "")
        if name not in self._by_name:
            self._source.refuse(f"<{element.tag} entityRef='{name}'>", f"an entity{suggest(name, self._by_name)}")
        return self._by_name.get(name)

    # Actions.

    def _begin(self, private: ET.Element) -> None:
        """Apply the initial state of an entity."""
        entity = self._named(private)
        if entity is None:
            return
        for action in private.findall("PrivateAction/*"):
            if action.tag == "TeleportAction":
                entity.pose = self._positions.pose(action.find("Position")) or Pose(0.0, 0.0)
                self._placed[entity.name] = entity.pose
            elif action.tag == "LongitudinalAction":
                entity.speed_mps = self._speed(action)
            elif action.tag == "RoutingAction":
                self._routed(action, entity)
            elif action.tag not in _NOBODY:
                self._source.refuse(f"<{action.tag}> in Init", "an action that is read")

    def _speed(self, action: ET.Element) -> float:
        target = action.find("SpeedAction/SpeedActionTarget/AbsoluteTargetSpeed")
        if target is None:
            self._source.refuse(f"<{action.tag}>", "a SpeedAction with AbsoluteTargetSpeed")
        return self._source.number(target, "value")

    def _routed(self, action: ET.Element, entity: Entity) -> None:
        """Apply a route to an entity; the last place of the ego is its target."""
        for part in action:
            if part.tag not in _ROUTES:
                self._source.refuse(f"<{part.tag}>", f"one of {', '.join(_ROUTES)}")
        goals = [*self._places(action, entity), *self._line(action, entity)]
        if is_ego(entity.name):
            entity.target = goals[-1][0] if goals else entity.target
            return
        for pose, speed in goals:
            if speed <= 0.0:
                self._source.refuse(f"a way of '{entity.name}' without a speed", "one above 0")
            entity.waypoints.append(Waypoint(pose.x_m, pose.y_m, speed))

    def _places(self, action: ET.Element, entity: Entity) -> Iterator[tuple[Pose, float]]:
        """Yield the places of a route, with the entity's own speed."""
        found = action.findall("AcquirePositionAction/Position")
        found += action.findall("AssignRouteAction/Route/Waypoint/Position")
        for pose in map(self._positions.pose, found):
            if pose is not None:
                yield pose, entity.speed_mps

    def _line(self, action: ET.Element, entity: Entity) -> Iterator[tuple[Pose, float]]:
        """Yield the places of a polyline after its first, with speeds by its times, else the entity's own."""
        vertices = action.findall("FollowTrajectoryAction//Polyline/Vertex")
        timed = [(self._positions.pose(v.find("Position")), self._source.number(v, "time")) for v in vertices]
        for (begin, begin_s), (end, end_s) in pairwise(timed):
            if begin is None or end is None:
                return
            way_m = math.dist((begin.x_m, begin.y_m), (end.x_m, end.y_m))
            yield end, way_m / (end_s - begin_s) if end_s > begin_s else entity.speed_mps
        if action.find("FollowTrajectoryAction") is not None and not vertices:
            self._source.refuse(f"a trajectory of '{entity.name}' without vertices", "a Polyline")

    def _events(self) -> Iterator[tuple[ET.Element, Sequence[Entity], Sequence[ET.Element]]]:
        """Yield each event, its entity, and its start triggers."""
        for act in self._source.root.findall("Storyboard/Story/Act"):
            for group in act.findall("ManeuverGroup"):
                named = [self._named(ref) for ref in group.findall("Actors/EntityRef")]
                for event in group.findall("Maneuver/Event"):
                    triggers = [*act.findall("StartTrigger"), *event.findall("StartTrigger")]
                    yield event, [entity for entity in named if entity is not None], triggers

    def _event(self, event: ET.Element, entity: Entity, triggers: Sequence[ET.Element]) -> None:
        for action in event.findall("Action/PrivateAction/*"):
            if action.tag == "RoutingAction":
                self._routed(action, entity)
            elif is_ego(entity.name) or action.tag in _NOBODY:
                continue  # how the ego drives is left to the stack
            elif action.tag != "LongitudinalAction" or entity.waypoints:
                self._source.refuse(f"<{action.tag}> of '{entity.name}' in a Story", "an action that is read")
            else:
                entity.speed_mps = self._speed(action)
        for other in (*event.findall("Action/GlobalAction/*"), *event.findall("Action/UserDefinedAction")):
            self._source.refuse(f"<{other.tag}> in a Story", "actions of entities")
        if not is_ego(entity.name):
            self._triggered(triggers, entity)

    # Conditions.

    def _triggered(self, triggers: Sequence[ET.Element], entity: Entity) -> None:
        """Set when an entity begins to move: as soon as all conditions hold."""
        for trigger in triggers:
            groups = trigger.findall("ConditionGroup")
            if len(groups) > 1:
                self._source.refuse(f"{len(groups)} ConditionGroups for '{entity.name}'", "one: all of it must hold")
            for condition in trigger.findall("ConditionGroup/Condition"):
                self._condition(condition, entity)

    def _condition(self, condition: ET.Element, entity: Entity) -> None:
        inner = next((e for e in condition.iter() if e.tag in _CONDITIONS), None)
        if inner is None:
            tags = [e.tag for e in condition.iter() if e.tag.endswith("Condition") and not e.tag.startswith("By")]
            self._source.refuse(f"<{tags[-1]}> for '{entity.name}'", f"one of {', '.join(_CONDITIONS)}")
            return
        key, value = _CONDITIONS[inner.tag], self._source.number(inner, "value")
        names = {ref.get("entityRef", "") for ref in condition.iter()} - {""}
        if key == "after_s":
            value = max(entity.trigger.after_s, value + self._source.number(condition, "delay"))
        elif inner.get("rule") not in _NEARER or not any(map(is_ego, names)):
            about = f"<{inner.tag} rule='{inner.get('rule')}'> of {', '.join(sorted(names))}"
            self._source.refuse(about, "that the ego comes nearer than a value (rule lessThan)")
        entity.trigger = replace(entity.trigger, **{key: value})


def duration_s(source: OpenScenarioFile) -> float:
    """Return the longest duration."""
    stops = source.root.findall("Storyboard/StopTrigger//SimulationTimeCondition")
    return min((source.number(stop, "value", DURATION_S) for stop in stops), default=DURATION_S)
