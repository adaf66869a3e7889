# SPDX-License-Identifier: Apache-2.0
"""Start triggers of an OpenSCENARIO file as conditions of our events."""

from __future__ import annotations

import itertools
import operator
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.scenario import EGO_NAME, EventCondition
from mt_nodes.world.drive.signals import COLOURS
from mt_nodes.world.scenarios.open_scenario.positions import Positions
from mt_nodes.world.scenarios.open_scenario.source import OpenScenarioFile

Group = tuple[EventCondition, ...]
RULES = {"lessThan": "<", "lessOrEqual": "<", "greaterThan": ">", "greaterOrEqual": ">", "equalTo": "="}
#: Of two entities, and of one: element -> quantity, the attribute with its value.
_OF_TWO = {
    "TimeHeadwayCondition": "headway_s",
    "TimeToCollisionCondition": "ttc_s",
    "RelativeDistanceCondition": "distance_m",
}
_OF_ONE = {
    "SpeedCondition": ("speed_mps", "value"),
    "AccelerationCondition": ("acceleration_mps2", "value"),
    "TraveledDistanceCondition": ("travelled_m", "value"),
    "StandStillCondition": ("standing_s", "duration"),
    "DistanceCondition": ("place_m", "value"),
    "ReachPositionCondition": ("place_m", "tolerance"),
}
_OTHERS = ("SimulationTimeCondition", "StoryboardElementStateCondition", "TrafficSignalCondition", "ParameterCondition")
READ = (*_OTHERS, *_OF_TWO, *_OF_ONE)
_STATES = dict.fromkeys(("startTransition", "runningState"), "begun")
_STATES |= dict.fromkeys(("endTransition", "stopTransition", "completeState"), "ended")
_NUMBERS: dict[str, Callable[[float, float], bool]] = {"<": operator.lt, ">": operator.gt, "=": operator.eq}


@dataclass(frozen=True)
class Triggers:
    """Reads triggers.

    Attributes:
        names: entities by their names in the file, as conditions call them. half_m: half their lengths.
        elements: events by the storyboard's elements that they are part of.
    """

    source: OpenScenarioFile
    positions: Positions
    names: Mapping[str, str]
    half_m: Mapping[str, float]
    elements: Mapping[str, tuple[str, ...]]

    def groups(self, trigger: ET.Element | None) -> tuple[Group, ...]:
        """Return groups of conditions of which one must hold wholly; none: at once."""
        found: list[Group] = []
        for group in trigger.findall("ConditionGroup") if trigger is not None else ():
            alternatives = [self._alternatives(condition) for condition in group.findall("Condition")]
            found += (tuple(itertools.chain(*row)) for row in itertools.product(*alternatives))
        return () if any(not group for group in found) else tuple(found)

    def _alternatives(self, condition: ET.Element) -> list[Group]:
        """Return what a condition comes to: one of these must hold wholly."""
        inner = next((one for one in condition.iter() if one.tag in READ), None)
        if inner is None:
            tags = [one.tag for one in condition.iter() if one.tag.endswith("Condition") and one.tag[:2] != "By"]
            self.source.refuse(f"<{tags[-1]}>", f"one of {', '.join(READ)}")
            return [()]
        edge, delay_s = condition.get("conditionEdge", "none"), self.source.number(condition, "delay")
        where = condition.find("ByEntityCondition/TriggeringEntities")
        if where is None:
            found = self._by_value(inner)
            groups: list[Group] = [(found,)] if found is not None else [()]
        else:
            each = [self._by_entity(inner, one.get("entityRef", "")) for one in where.findall("EntityRef")]
            known = [one for one in each if one is not None]
            groups = [tuple(known)] if where.get("triggeringEntitiesRule") == "all" else [(one,) for one in known]
        return [tuple(replace(one, edge=edge, delay_s=delay_s) for one in group) for group in groups] or [()]

    def _by_value(self, inner: ET.Element) -> EventCondition | None:
        """Return a condition about time, events or lights; None for one that always holds, or is refused."""
        if inner.tag == "SimulationTimeCondition":
            return EventCondition("time_s", rule=self._rule(inner), value=self.source.number(inner, "value"))
        if inner.tag == "StoryboardElementStateCondition":
            name, state = inner.get("storyboardElementRef", ""), inner.get("state", "")
            if name not in self.elements or state not in _STATES:
                known = f"an element that is read{suggest(name, self.elements)}, in one of {', '.join(_STATES)}"
                self.source.refuse(f"<{inner.tag} storyboardElementRef='{name}' state='{state}'>", known)
                return None
            return EventCondition(_STATES[state], names=self.elements[name])
        if inner.tag == "TrafficSignalCondition":
            colour = colour_of(inner.get("state", ""))
            if not colour:
                self.source.refuse(f"<{inner.tag} state='{inner.get('state')}'>", f"one of {', '.join(COLOURS)}")
            return EventCondition("light", names=(inner.get("name", ""),), colour=colour)
        self._parameter(inner)
        return None

    def _parameter(self, inner: ET.Element) -> None:
        """Refuse a condition about a parameter that does not hold: nothing sets parameters while it is played."""
        got, wanted = inner.get("parameterRef", ""), inner.get("value", "")
        value = self.source.values.get(got.removeprefix("$"), got)
        try:
            holds = _NUMBERS[self._rule(inner)](float(value), float(wanted))
        except ValueError:
            holds = inner.get("rule") == "equalTo" and value == wanted
        if not holds:
            self.source.refuse(f"<{inner.tag} parameterRef='{got}'>, which never holds", f"--set {got}={wanted}")

    def _by_entity(self, inner: ET.Element, entity: str) -> EventCondition | None:
        of, rule = self._name(inner, entity), self._rule(inner)
        if inner.tag in _OF_ONE:
            quantity, key = _OF_ONE[inner.tag]
            rule = ">" if inner.tag in ("TraveledDistanceCondition", "StandStillCondition") else rule
            rule = "<" if inner.tag == "ReachPositionCondition" else rule
            place = self.positions.pose(inner.find("Position")) if quantity == "place_m" else None
            if quantity == "acceleration_mps2" and of != EGO_NAME:
                self.source.refuse(f"<{inner.tag}> of '{entity}'", "of the ego")
            if inner.get("direction"):
                self.source.refuse(f"<{inner.tag} direction='{inner.get('direction')}'>", "none: along the way")
            return EventCondition(quantity, of, rule=rule, value=self.source.number(inner, key), place=place)
        target = inner.find("TimeToCollisionConditionTarget/EntityRef")
        name = inner.get("entityRef") or (target.get("entityRef", "") if target is not None else "")
        if not name:
            self.source.refuse(f"<{inner.tag}> to a Position", "to an entity")
            return None
        if inner.get("relativeDistanceType") == "lateral":
            self.source.refuse(
                f"<{inner.tag} relativeDistanceType='lateral'>", "another: distances of middles are read"
            )
        to = self._name(inner, name)
        apart = self.half_m.get(of, 0.0) + self.half_m.get(to, 0.0) if inner.get("freespace") == "true" else 0.0
        value = self.source.number(inner, "value")
        return EventCondition(_OF_TWO[inner.tag], of, to, rule=rule, value=value, less_m=apart)

    def _name(self, inner: ET.Element, entity: str) -> str:
        if entity not in self.names:
            known = f"an entity that moves{suggest(entity, self.names)}"
            self.source.refuse(f"<{inner.tag}> of '{entity}'", known)
        return self.names.get(entity, EGO_NAME)

    def _rule(self, inner: ET.Element) -> str:
        rule = inner.get("rule", "greaterThan")
        if rule not in RULES:
            self.source.refuse(f"<{inner.tag} rule='{rule}'>", f"one of {', '.join(RULES)}")
        return RULES.get(rule, "<")


def colour_of(state: str) -> str:
    """Return the colour of a light's state, empty if it is not known.

    States are names of colours, or lamps from the top that are on or off, as in ``off;off;on`` (OpenSCENARIO leaves
    their meaning to the simulator; this is that of esmini's files).
    """
    if state.lower() in COLOURS:
        return state.lower()
    lamps = [lamp.strip().lower() == "on" for lamp in state.split(";")]
    order = {3: ("red", "yellow", "green"), 2: ("red", "green")}.get(len(lamps), ())
    shines = [colour for colour, on in zip(order, lamps, strict=False) if on]
    return shines[0] if shines else ""


def all_in(groups: Sequence[Group], more: Group) -> tuple[Group, ...]:
    """Return groups with further conditions in each."""
    return tuple((*group, *more) for group in groups) if groups else ((more,) if more else ())
