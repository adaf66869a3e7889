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
from mt_nodes.world.drive.scenario import EGO_NAME, EventCondition, Pose, StoryEvent, Trigger, Waypoint
from mt_nodes.world.scenarios.language.scenario_builder import DURATION_S
from mt_nodes.world.scenarios.open_scenario.conditions import Triggers, all_in
from mt_nodes.world.scenarios.open_scenario.event_actions import EventActions, LanePlace, lane_place, lane_way
from mt_nodes.world.scenarios.open_scenario.positions import Positions
from mt_nodes.world.scenarios.open_scenario.source import OpenScenarioFile

EGOS = ("ego", "hero", "ego_vehicle", "egovehicle")
"""What the ego is called, in whatever letters."""
_THINGS = ("Vehicle", "Pedestrian", "MiscObject")
_ROUTES = ("AcquirePositionAction", "AssignRouteAction", "FollowTrajectoryAction")
#: Of all that Init says of no entity, the environment is read.
_SURROUNDINGS = ("EnvironmentAction",)
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
    """An entity: the pose of its reference point, its way, and whether events change how it moves."""

    name: str
    element: ET.Element
    speed_mps: float = 0.0
    waypoints: list[Waypoint] = field(default_factory=list)
    target: Pose | None = None
    trigger: Trigger = field(default_factory=Trigger)
    pose: Pose | None = None
    underway: bool = False


class Story:
    """The entities of a file after all of its actions."""

    def __init__(self, source: OpenScenarioFile, road: RoadMap) -> None:
        self._source, self._road = source, road
        self._placed: dict[str, Pose] = {}
        self._positions = Positions(source, road, self._placed)
        self._by_name = {entity.name: entity for entity in self._found()}
        self._names = {name: EGO_NAME if is_ego(name) else name for name in self._by_name}
        for private in source.root.findall("Storyboard/Init/Actions/Private"):
            self._begin(private)
        for action in source.root.findall("Storyboard/Init/Actions/*"):
            if action.tag != "Private" and (inner := action[0].tag if len(action) else action.tag) not in _SURROUNDINGS:
                source.refuse(f"<{inner}> in Init", f"{', '.join(_SURROUNDINGS)}, or actions of entities")
        self.events: list[StoryEvent] = []
        self._lanes: dict[str, LanePlace | None] = {
            self._names[e.name]: lane_place(road, e.pose) for e in self._by_name.values() if e.pose is not None
        }
        self._first_lanes = {name: place and replace(place) for name, place in self._lanes.items()}
        self._actions = EventActions(source, road, self._names)
        half = {
            name: source.number(e.element.find("BoundingBox/Dimensions"), "length") / 2.0
            for name, e in self._by_name.items()
        }
        self._triggers = Triggers(source, self._positions, self._names, half, self._elements())
        for act in source.root.findall("Storyboard/Story/Act"):
            self._act(act)
        for entity in self._by_name.values():
            self._follow_lane(entity)

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
        relative = action.find("SpeedAction/SpeedActionTarget/RelativeTargetSpeed")
        if relative is not None and (other := self._named(relative)) is not None:
            value = self._source.number(relative, "value")
            factor = relative.get("speedTargetValueType") == "factor"
            return max(0.0, other.speed_mps * value if factor else other.speed_mps + value)
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

    def _elements(self) -> dict[str, tuple[str, ...]]:
        """Return the names of events by each element of the storyboard that they are part of."""
        found: dict[str, list[str]] = {}
        for story in self._source.root.findall("Storyboard/Story"):
            for act in story.findall("Act"):
                for group in act.findall("ManeuverGroup"):
                    for manoeuvre in group.findall("Maneuver"):
                        for event in manoeuvre.findall("Event"):
                            actions = [action.get("name", "") for action in event.findall("Action")]
                            around = (part.get("name", "") for part in (story, act, group, manoeuvre, event))
                            for name in dict.fromkeys((*around, *actions)):
                                found.setdefault(name, []).append(event.get("name", ""))
        return {name: tuple(dict.fromkeys(names)) for name, names in found.items() if name}

    def _act(self, act: ET.Element) -> None:
        """Read an act: its start is an event, too, on which its own wait."""
        trigger = act.find("StartTrigger")
        begins = self._triggers.groups(trigger)
        started = f"start of {act.get('name', 'act')}"
        if begins:
            self.events.append(StoryEvent(started, begins))
        for group in act.findall("ManeuverGroup"):
            named = [self._named(ref) for ref in group.findall("Actors/EntityRef")]
            entities = [entity for entity in named if entity is not None]
            for event in group.findall("Maneuver/Event"):
                self._event(event, entities, [trigger] if trigger is not None else [], started if begins else "")

    def _event(self, event: ET.Element, entities: Sequence[Entity], acts: Sequence[ET.Element], started: str) -> None:
        for action in event.findall("Action"):
            self._global(event, action, started)
            for entity in entities:
                for part in action.findall("PrivateAction/*"):
                    self._action(event, part, entity, [*acts, *event.findall("StartTrigger")], started)

    def _action(
        self, event: ET.Element, action: ET.Element, entity: Entity, triggers: Sequence[ET.Element], started: str
    ) -> None:
        if action.tag == "RoutingAction":
            self._routed(action, entity)
            if not is_ego(entity.name):
                self._triggered(triggers, entity)
        elif is_ego(entity.name) or action.tag in _NOBODY:
            # How the ego drives is left to the stack; that it was done then is known to conditions all the same.
            self._happens(event, started)
        elif action.tag not in ("LongitudinalAction", "LateralAction"):
            self._source.refuse(f"<{action.tag}> of '{entity.name}' in a Story", "an action that is read")
        elif action.tag == "LongitudinalAction" and self._first_motion(entity):
            entity.speed_mps = self._speed(action)
            self._triggered(triggers, entity)
        elif self._lanes.get(entity.name) is None and action.tag == "LongitudinalAction" and entity.waypoints:
            self._source.refuse(f"<{action.tag}> of '{entity.name}' on its way", "an action that is read")
        else:
            self._underway(event, action, entity, started)

    def _first_motion(self, entity: Entity) -> bool:
        """Tell whether an entity, on no lane of an OpenDRIVE file, has not moved yet."""
        return self._lanes.get(entity.name) is None and not entity.waypoints and entity.speed_mps == 0.0

    def _underway(self, event: ET.Element, action: ET.Element, entity: Entity, started: str) -> None:
        """Read what an entity does while it moves, or once an event lets it."""
        lateral = action.tag == "LateralAction"
        given = (
            self._actions.lateral(action, entity.name, self._lanes)
            if lateral
            else self._actions.speed(action, entity.name)
        )
        if given is not None:
            entity.underway = True
            self.events.append(StoryEvent(self._free(event), self._when(event, started), entity.name, **given))

    def _happens(self, event: ET.Element, started: str) -> None:
        self.events.append(StoryEvent(self._free(event), self._when(event, started)))

    def _free(self, event: ET.Element) -> str:
        """Return the name of an event; if several actions make several of it, those after the first have numbers."""
        name = event.get("name", "")
        count = sum(one.name == name or one.name.startswith(f"{name} #") for one in self.events)
        return f"{name} #{count + 1}" if count else name

    def _when(self, event: ET.Element, started: str) -> tuple[tuple[EventCondition, ...], ...]:
        most = self._source.number(event, "maximumExecutionCount", 1.0)
        if most != 1.0:
            self._source.refuse(f"event '{event.get('name')}' up to {most:g} times", "maximumExecutionCount 1")
        groups = self._triggers.groups(event.find("StartTrigger"))
        return all_in(groups, (EventCondition("begun", names=(started,)),) if started else ())

    def _global(self, event: ET.Element, action: ET.Element, started: str) -> None:
        for other in (*action.findall("GlobalAction/*"), *action.findall("UserDefinedAction")):
            lights = self._actions.lights(other)
            if lights is None:
                self._source.refuse(f"<{other.tag}> in a Story", "actions of entities, or TrafficSignalStateAction")
            else:
                self.events.append(StoryEvent(self._free(event), self._when(event, started), lights=lights))

    def _follow_lane(self, entity: Entity) -> None:
        """Give who moves, and has no way of its own, one along its lane of an OpenDRIVE file."""
        place = self._first_lanes.get(entity.name)
        moves = entity.speed_mps > 0.0 or entity.underway
        if is_ego(entity.name) or place is None or entity.waypoints or not moves or entity.element.tag != "Vehicle":
            return
        entity.waypoints = lane_way(self._road, place, entity.speed_mps)

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
