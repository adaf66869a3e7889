# SPDX-License-Identifier: Apache-2.0
"""The scene of a source case, from what its topics say: time, weather, road, objects, speed and steering.

Each fact says where it is from, and is unknown where nothing says it: it is never guessed. Of several sources the
surest counts: the user, then a world that knows, then what is told on topics, then what is measured on sensors, then
what a vision-language model sees in the pictures if one is asked, then what the stack under test says it sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import plain
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.relations.facts import scene_ego
from mt_nodes.relations.facts.condition import Predicate
from mt_nodes.relations.facts.derived_facts import unless_denied, with_derived
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known, unknown
from mt_nodes.rules import scene_objects
from mt_nodes.rules.ontology import ANY_ROAD
from mt_nodes.rules.scene_light import seen_light
from mt_nodes.rules.scene_time import of_stamps, reconciled

#: Facts that are no predicates of conditions.
ROADS, OBJECTS, STEERING = "roads", "objects", "steering_rad"


@dataclass(frozen=True)
class SceneFacts:
    """What is known of a case.

    Attributes:
        facts: by name, as predicates of conditions are called; beside them ``roads`` (names that fit, without
            ``any_road``), ``objects`` (how many of each class) and ``steering_rad`` (of the road wheels, positive to
            the left).
    """

    facts: Facts

    def value(self, name: str) -> Any:
        """Return what is known, None for nothing."""
        return self.facts[name].value if name in self.facts else None

    def source(self, name: str) -> str:
        """Return where a fact is from, or why it is not known."""
        return self.facts[name].source if name in self.facts else "nothing says it"

    @property
    def known(self) -> dict[str, Any]:
        """What conditions are evaluated on: predicates whose value is known."""
        beside = (ROADS, OBJECTS, STEERING)
        return {name: fact.value for name, fact in self.facts.items() if fact.known and name not in beside}

    @property
    def roads(self) -> tuple[str, ...]:
        """Road types that the case approaches, ``any_road`` always among them."""
        return (*(self.value(ROADS) or ()), ANY_ROAD)

    @property
    def query(self) -> str:
        """The words of the scene, to look for relations that are near to it."""
        parts = [
            *(self.value(ROADS) or ()),
            self.value("time_of_day"),
            self.value("weather"),
            *(self.value(OBJECTS) or ()),
        ]
        return " ".join(part.replace("_", " ") for part in parts if part)

    def as_paper(self) -> dict[str, Any]:
        """Return the description of AutoMT's second agent: the same keys, ``Unknown`` for what is not known."""
        speed, steering = self.value("speed_kmh"), self.value(STEERING)
        seen = self.value(OBJECTS)
        return {
            "Time": _title(self.value("time_of_day")),
            "Weather": _title(self.value("weather")),
            "RoadType": ", ".join(_title(road) for road in self.roads),
            "Objects": "Unknown" if seen is None else ", ".join(f"{n} {name}" for name, n in seen.items()) or "None",
            "EgoVehicle": {
                "Speed": "Unknown" if speed is None else f"{speed:.3f} km/h",
                "Steering Angle": "Unknown" if steering is None else f"{steering:.3f} rad",
            },
        }

    def as_plain(self) -> dict[str, Any]:
        """Return every fact with its source, as JSON can hold it."""
        return {name: {"value": _plain(fact.value), "source": fact.source} for name, fact in self.facts.items()}


def describe(
    bundles: Sequence[Bundle],
    outputs: Sequence[Output] = (),
    *,
    told: Facts | None = None,
    seen: Facts | None = None,
    utc_offset_h: float | None = None,
    wheelbase_m: float = 2.7,
) -> SceneFacts:
    """Return the scene of a case.

    Args:
        bundles: of the case, in order; its reference frame is the middle one.
        outputs: what the stack answered to each of them; none: it is not asked.
        told: what is known beforehand (:func:`given`, :func:`mt_nodes.rules.scene_world.told_by_world`).
        seen: what a model sees in the pictures (:mod:`mt_nodes.rules.scene_by_model`); None: none is asked.
        utc_offset_h: of local time where the bag was recorded; None: not known, so stamps say no hour.
        wheelbase_m: of the ego-vehicle, for its steering.

    Raises:
        UsageError: there is no bundle.
    """
    if not bundles:
        raise UsageError("got a case without bundles, expected one at the least")
    light = seen_light(bundles)
    light["time_of_day"] = reconciled(of_stamps(bundles, utc_offset_h), light["time_of_day"])
    ego = scene_ego.told_motion(bundles, outputs, wheelbase_m)
    middle = bundles[len(bundles) // 2]
    by_topic, by_stack = ({OBJECTS: scene_objects.objects_of(middle, of)} for of in ((), outputs))
    surer = first_known(*map(with_derived, (told or {}, ego, light, by_topic)))
    known = {name: fact for name, fact in surer.items() if fact.known}
    # Of what nobody knows it says why whoever was asked last does not.
    by_model = with_derived(unless_denied(seen or {}, surer))
    return SceneFacts(first_known(known, by_model, by_stack, surer, {ROADS: unknown("no map, and nobody says it")}))


def given(values: Mapping[str, Any], predicates: Mapping[str, Predicate]) -> Facts:
    """Return facts that the user states, with the kinds of the ontology's predicates.

    Raises:
        UsageError: names what is no fact, or whose value is of another kind.
    """
    kinds: dict[str, tuple[type, ...]] = {"flag": (bool,), "number": (int, float), "name": (str,)}
    for name, value in values.items():
        if name in (ROADS, OBJECTS):
            continue
        if name != STEERING and name not in predicates:
            raise UsageError(f"fact '{name}': there is none of this name{suggest(name, predicates)}")
        kind = "number" if name == STEERING else predicates[name].kind
        if not isinstance(value, kinds[kind]) or (kind == "number" and isinstance(value, bool)):
            raise UsageError(f"fact '{name}': got {value!r}, expected a {kind}")
    return {name: Fact(value, "given by the user") for name, value in values.items()}


def _title(name: str | None) -> str:
    return "Unknown" if name is None else name.replace("_", " ").title()


def _plain(value: Any) -> Any:
    return plain(sorted(value) if isinstance(value, frozenset) else value)
