# SPDX-License-Identifier: Apache-2.0
"""The scene of a source case, from its topics: time, weather, road, objects, speed and steering.

Each fact has a source, and is unknown without one: nothing is guessed. Of several sources the most reliable counts: the
user, then a world's ground truth, then topics, then sensor measurements, then a vision-language model's description of
the pictures if one is used, then the output of the stack under test. An element is present, absent, or nobody looked
for it (:mod:`mt_nodes.relations.facts.presence`): labels of a data set know it exactly, detectors beside by their
recall.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import plain
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.relations.facts import scene_ego
from mt_nodes.relations.facts.condition import Predicate, element_of, presence_of
from mt_nodes.relations.facts.derived_facts import unless_denied, with_derived
from mt_nodes.relations.facts.presence import agreed_presence, by_labels
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known, unknown
from mt_nodes.rules import scene_world
from mt_nodes.rules.ontology import ANY_ROAD
from mt_nodes.rules.scene_light import light_in_pictures

#: Earlier stamps are seconds of a simulation or of a machine's uptime, not of a calendar (2000-01-01 UTC).
_CALENDAR_NS = 946_684_800 * 10**9
#: Hours of the clock that are day, or night, all year between 55° north and south, where most roads are: an assumption,
#: with room for summer time. Other hours depend on the place and the date.
_DAY_H, _NIGHT_H = (9.0, 15.0), (23.5, 3.0)


def of_stamps(bundles: Sequence[Bundle], utc_offset_h: float | None) -> Fact:
    """Return ``day`` or ``night`` by the hour of the middle stamp."""
    stamp_ns = bundles[len(bundles) // 2].stamp_ns
    if stamp_ns < _CALENDAR_NS:
        return unknown("stamps are of no calendar")
    if utc_offset_h is None:
        return unknown("stamps are UTC, and the local time there is not known")
    local = datetime.fromtimestamp(stamp_ns // 10**9, timezone(timedelta(hours=utc_offset_h)))
    hour, source = local.hour + local.minute / 60.0, f"stamps: {local:%H:%M} local time"
    if _DAY_H[0] <= hour < _DAY_H[1]:
        return Fact("day", source)
    if hour >= _NIGHT_H[0] or hour < _NIGHT_H[1]:
        return Fact("night", source)
    return unknown(f"{source}, when it is light or not by place and date")


def reconciled(hour: Fact, light: Fact) -> Fact:
    """Return the time of day from stamps and pictures: the known one, or both if they agree; else unknown."""
    if not (hour.known and light.known):
        return light if light.known else hour if hour.known else unknown(f"{light.source}; {hour.source}")
    if hour.value == light.value:
        return Fact(light.value, f"{light.source}; {hour.source}")
    return unknown(f"{hour.source} says {hour.value}, {light.source} say {light.value}")


#: Facts that are not predicates of conditions.
ROADS, OBJECTS, STEERING = "roads", "objects", "steering_rad"
#: Names under which a user says which elements are there, and which are not.
STATED = {"present": True, "absent": False}

Detector = Callable[[Bundle, Mapping[str, Any]], Facts]
"""Says which elements one frame shows, given the other facts; a :class:`~mt_nodes.rules.scene_detector.SceneDetector`.
"""


@dataclass(frozen=True)
class SceneFacts:
    """The known facts of a case.

    ``facts``: by name, as predicates of conditions, and ``has(element)``, whether one is present; in addition ``roads``
    (names that fit, without ``any_road``), ``objects`` (number by class) and ``steering_rad`` (of the road wheels,
    positive to the left).
    """

    facts: Facts

    def value(self, name: str) -> Any:
        """Return the value of a fact, None if unknown."""
        return self.facts[name].value if name in self.facts else None

    def source(self, name: str) -> str:
        """Return the source of a fact, or why it is unknown."""
        return self.facts[name].source if name in self.facts else "nothing says it"

    @property
    def known(self) -> dict[str, Any]:
        """Known predicates, for the evaluation of conditions."""
        extra = (ROADS, OBJECTS, STEERING)
        return {name: fact.value for name, fact in self.facts.items() if fact.known and name not in extra}

    @property
    def roads(self) -> tuple[str, ...]:
        """Road types that the case approaches, always including ``any_road``."""
        return (*(self.value(ROADS) or ()), ANY_ROAD)

    @property
    def query(self) -> str:
        """The words of the scene, for the search of similar relations."""
        parts = [
            *(self.value(ROADS) or ()),
            self.value("time_of_day"),
            self.value("weather"),
            *(self.value(OBJECTS) or ()),
        ]
        return " ".join(part.replace("_", " ") for part in parts if part)

    def as_paper(self) -> dict[str, Any]:
        """Return the description of AutoMT's second agent: the same keys, ``Unknown`` for unknown values."""
        speed, steering = self.value("speed_kmh"), self.value(STEERING)
        objects = self.value(OBJECTS)
        return {
            "Time": _title(self.value("time_of_day")),
            "Weather": _title(self.value("weather")),
            "RoadType": ", ".join(_title(road) for road in self.roads),
            "Objects": "Unknown"
            if objects is None
            else ", ".join(f"{n} {name}" for name, n in objects.items()) or "None",
            "EgoVehicle": {
                "Speed": "Unknown" if speed is None else f"{speed:.3f} km/h",
                "Steering Angle": "Unknown" if steering is None else f"{steering:.3f} rad",
            },
        }

    def as_plain(self) -> dict[str, Any]:
        """Return every fact with its source, in the form of JSON."""
        return {name: {"value": _plain(fact.value), "source": fact.source} for name, fact in self.facts.items()}


def describe(
    bundles: Sequence[Bundle],
    outputs: Sequence[Output] = (),
    *,
    known_facts: Facts | None = None,
    model_facts: Facts | None = None,
    detectors: Sequence[Detector] = (),
    utc_offset_h: float | None = None,
    wheelbase_m: float = 2.7,
) -> SceneFacts:
    """Return the scene of a case. Raises UsageError: there is no bundle.

    Args:
        bundles: of the case, in order; its reference frame is the middle one.
        outputs: the stack's answer to each of them; empty: not used.
        known_facts: facts known in advance (:func:`given`, :func:`mt_nodes.rules.scene_world.world_facts`).
        model_facts: facts from a model's view of the pictures (:mod:`mt_nodes.rules.scene_by_model`); None: not used.
        detectors: beside the stack; each says which elements the reference frame shows and lacks.
        utc_offset_h: of local time at the recording; None if unknown, so that stamps give no hour.
        wheelbase_m: of the ego vehicle, for its steering.
    """
    if not bundles:
        raise UsageError("got a case without bundles, expected one at the least")
    light = light_in_pictures(bundles)
    light["time_of_day"] = reconciled(of_stamps(bundles, utc_offset_h), light["time_of_day"])
    ego = scene_ego.ego_motion(bundles, outputs, wheelbase_m)
    middle = bundles[len(bundles) // 2]
    by_topic, by_stack = ({OBJECTS: scene_world.objects_of(middle, of)} for of in ((), outputs))
    surer = first_known(*map(with_derived, (known_facts or {}, ego, light, by_topic)))
    known = {name: fact for name, fact in surer.items() if fact.known}
    # An unknown fact gives the reason of the last source.
    by_model = with_derived(unless_denied(model_facts or {}, surer))
    merged = first_known(known, by_model, by_stack, surer, {ROADS: unknown("no map, and nobody says it")})
    values = {name: fact.value for name, fact in merged.items() if fact.known}
    detected = [detector(middle, values) for detector in detectors]
    exact = (known_facts or {}, by_labels(middle.truth))
    return SceneFacts({**merged, **agreed_presence(exact, (*detected, _named_objects(by_model)))})


def _named_objects(facts: Facts) -> Facts:
    """Return the presence of the objects that a model names; what it does not name may be there all the same."""
    objects = facts.get(OBJECTS, unknown(""))
    return {presence_of(name): Fact(True, objects.source) for name in objects.value or ()}


def given(
    values: Mapping[str, Any], predicates: Mapping[str, Predicate], elements: Collection[str] = frozenset()
) -> Facts:
    """Return the user's facts, with the kinds of the ontology's predicates.

    ``elements``: names of elements; ``present`` and ``absent`` name some, ``has(element)`` is true or false.
    Raises UsageError: naming an unknown fact, or a value of the wrong kind; an element is said to be present and
    absent.
    """
    facts = dict(_presence(values, elements))
    for name, value in values.items():
        if name in (ROADS, OBJECTS):
            facts[name] = value
        elif name not in STATED and not element_of(name):
            facts[name] = _of_kind(name, value, predicates)
    return {name: Fact(value, "given by the user") for name, value in facts.items()}


def _of_kind(name: str, value: Any, predicates: Mapping[str, Predicate]) -> Any:
    kinds: dict[str, tuple[type, ...]] = {"flag": (bool,), "number": (int, float), "name": (str,)}
    if name != STEERING and name not in predicates:
        raise UsageError(f"fact '{name}': there is none of this name{suggest(name, (*predicates, *STATED))}")
    kind = "number" if name == STEERING else predicates[name].kind
    if not isinstance(value, kinds[kind]) or (kind == "number" and isinstance(value, bool)):
        raise UsageError(f"fact '{name}': got {value!r}, expected a {kind}")
    return value


def _presence(values: Mapping[str, Any], elements: Collection[str]) -> Iterator[tuple[str, bool]]:
    stated: dict[str, bool] = {}
    for fact, value in values.items():
        if (element := element_of(fact)) and not isinstance(value, bool):
            raise UsageError(f"fact '{fact}': got {value!r}, expected true (present) or false (absent)")
        names = (element,) if element else _names(value) if fact in STATED else ()
        for name in names:
            if name not in elements:
                raise UsageError(f"fact '{fact}': no element '{name}'{suggest(str(name), elements)}")
            present = bool(value) if element else STATED[fact]
            if stated.setdefault(name, present) != present:
                raise UsageError(f"fact '{fact}': {name} is said to be present and absent; say one of them")
            yield presence_of(name), present


def _names(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _title(name: str | None) -> str:
    return "Unknown" if name is None else name.replace("_", " ").title()


def _plain(value: Any) -> Any:
    return plain(sorted(value) if isinstance(value, frozenset) else value)
