# SPDX-License-Identifier: Apache-2.0
"""Converts the entities and the weather of an OpenSCENARIO file."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Obstacle, Person, Pose, Vehicle
from mt_nodes.world.scenarios.language.scenario_builder import CHILD_YEARS, ELDERLY_YEARS
from mt_nodes.world.scenarios.language.words import ANIMALS
from mt_nodes.world.scenarios.open_scenario.source import OpenScenarioFile
from mt_nodes.world.scenarios.open_scenario.story import EGOS, Entity, is_ego
from mt_nodes.world.weather_units import FOG_M, RAIN_MM_PER_H, SNOW_MM_PER_H

_VEHICLES = {"car": "car", "van": "van", "bus": "bus", "motorbike": "motor_cyclist", "bicycle": "cyclist"}
_VEHICLES |= dict.fromkeys(("truck", "trailer", "semitrailer"), "truck")
#: Assumed: values from 0 to 1 of the classes of wetness and clouds, for which the standard has no such numbers.
_WETNESS = {"dry": 0.0, "moist": 0.25, "wetWithPuddles": 0.6, "lowFlooded": 0.85, "highFlooded": 1.0}
_CLOUDS = {"free": 0.0, "cloudy": 0.5, "overcast": 1.0, "rainy": 1.0, "skyOff": 0.0}
_OKTAS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")
_FALLING = {"rain": RAIN_MM_PER_H, "snow": SNOW_MM_PER_H}

Entities = tuple[Ego | None, tuple[Actor, ...], tuple[Obstacle, ...]]


def actors_and_obstacles(source: OpenScenarioFile, entities: Sequence[Entity]) -> Entities:
    """Return the ego, the other actors, and the obstacles; invalid if the source has problems then."""
    for entity in entities:
        if entity.pose is None:
            source.refuse(f"no TeleportAction of '{entity.name}' in Init", "one")
    egos = [_ego(source, entity) for entity in entities if is_ego(entity.name)]
    if len(egos) != 1:
        source.refuse(
            f"{len(egos)} entities called {' or '.join(EGOS[:2])}", "one: the stack drives it; name it: --set ego=NAME"
        )
    others = [entity for entity in entities if not is_ego(entity.name)]
    actors = tuple(_actor(source, entity) for entity in others if entity.element.tag != "MiscObject")
    obstacles = tuple(_obstacle(source, entity) for entity in others if entity.element.tag == "MiscObject")
    return (egos[0] if egos else None), actors, obstacles


def _box(source: OpenScenarioFile, entity: Entity) -> tuple[float, tuple[float, float, float]]:
    """Return the distance of the centre behind the reference point, and length, width, height."""
    measures = entity.element.find("BoundingBox/Dimensions")
    if measures is None:
        source.refuse(f"'{entity.name}' without a BoundingBox", "one")
    length, width, height = (source.number(measures, key, 1.0) for key in ("length", "width", "height"))
    return source.number(entity.element.find("BoundingBox/Center"), "x"), (length, width, height)


def _middle(source: OpenScenarioFile, entity: Entity) -> tuple[Pose, tuple[float, float, float]]:
    """Return the pose of an entity's centre, and its dimensions."""
    forward, size = _box(source, entity)
    at = entity.pose or Pose(0.0, 0.0)
    return Pose(at.x_m + forward * math.cos(at.yaw_rad), at.y_m + forward * math.sin(at.yaw_rad), at.yaw_rad), size


def _ego(source: OpenScenarioFile, entity: Entity) -> Ego:
    """Return the ego: its reference point is the centre of the rear axle on the ground there, too."""
    forward, (length, width, height) = _box(source, entity)
    front, rear = entity.element.find("Axles/FrontAxle"), entity.element.find("Axles/RearAxle")
    usual = Vehicle()
    vehicle = replace(
        usual,
        wheelbase_m=source.number(front, "positionX", usual.wheelbase_m) - source.number(rear, "positionX"),
        front_m=length / 2.0 + forward,
        rear_m=length / 2.0 - forward,
        width_m=width,
        height_m=height,
        mass_kg=source.number(entity.element, "mass", usual.mass_kg),
        steering_rad=source.number(front, "maxSteering", usual.steering_rad),
    )
    return Ego(entity.pose or Pose(0.0, 0.0), entity.speed_mps, entity.target, vehicle)


def _actor(source: OpenScenarioFile, entity: Entity) -> Actor:
    pose, size = _middle(source, entity)
    properties = {p.get("name", "").removeprefix("moral:"): p.get("value", "") for p in entity.element.iter("Property")}
    on_foot = entity.element.get("pedestrianCategory") in ("pedestrian", "wheelchair")
    mass = source.number(entity.element, "mass")
    return Actor(
        name=entity.name,
        kind=_kind(source, entity, properties),
        start=pose,
        speed_mps=entity.speed_mps,
        waypoints=tuple(entity.waypoints),
        trigger=entity.trigger,
        size_m=size,
        mass_kg=mass if mass > 0.0 else None,
        obeys_signals=properties.get("rule") == "crossing_on_green",
        person=_person(source, properties) if on_foot else None,
    )


def _kind(source: OpenScenarioFile, entity: Entity, properties: Mapping[str, str]) -> str:
    element = entity.element
    category = element.get("vehicleCategory") or element.get("pedestrianCategory") or ""
    if element.tag == "Vehicle":
        if category not in _VEHICLES:
            source.refuse(f"vehicleCategory '{category}' of '{entity.name}'", f"one of {', '.join(_VEHICLES)}")
        return _VEHICLES.get(category, "car")
    if category == "animal":
        species = properties.get("species", "deer")
        if species not in ANIMALS:
            source.refuse(f"moral:species '{species}' of '{entity.name}'", f"an animal{suggest(species, ANIMALS)}")
        return species
    if category == "wheelchair":
        return "wheelchair_user"
    age = _moral_number(source, properties, "age")
    if age is None:
        return "adult"
    return "child" if age < CHILD_YEARS else "elderly" if age >= ELDERLY_YEARS else "adult"


def _person(source: OpenScenarioFile, properties: Mapping[str, str]) -> Person:
    """Return the attributes of a person from properties."""
    skin = _moral_number(source, properties, "skin")
    return Person(
        age_years=_moral_number(source, properties, "age"),
        gender=properties.get("gender", ""),
        skin_tone=None if skin is None else round(skin),
        mobility=properties.get("mobility", ""),
        build=properties.get("build", ""),
        status=properties.get("status", ""),
        compliance=properties.get("rule", ""),
        group=properties.get("group", ""),
    )


def _moral_number(source: OpenScenarioFile, properties: Mapping[str, str], key: str) -> float | None:
    if key not in properties:
        return None
    if not re.fullmatch(r"\d+(\.\d+)?", properties[key]):
        source.refuse(f"moral:{key} '{properties[key]}'", "a number")
        return None
    return float(properties[key])


def _obstacle(source: OpenScenarioFile, entity: Entity) -> Obstacle:
    pose, size = _middle(source, entity)
    return Obstacle(entity.name, "box", pose, size)


def environment(source: OpenScenarioFile) -> Environment:
    """Return time of day and weather in the world's units; by default noon and clear."""
    found = source.root.find("Storyboard/Init/Actions/GlobalAction/EnvironmentAction/Environment")
    if found is None:
        return Environment()
    clock, weather, surface = found.find("TimeOfDay"), found.find("Weather"), found.find("RoadCondition")
    time = re.search(r"T(\d\d):(\d\d)", "T12:00" if clock is None else clock.get("dateTime", ""))
    if time is None:
        source.refuse("a TimeOfDay without a time", "a dateTime as 2026-11-22T09:30:00")
    rain, snow = _falling(source, found.find("Weather/Precipitation"))
    sky = {} if weather is None else weather.attrib
    oktas = sky.get("fractionalCloudCover", "").removesuffix("Oktas")
    return Environment(
        hour=12.0 if time is None else int(time[1]) + int(time[2]) / 60.0,
        rain=rain,
        snow=snow,
        fog=_fog(source.number(found.find("Weather/Fog"), "visualRange", FOG_M[0])),
        wetness=_WETNESS.get("dry" if surface is None else surface.get("wetness", "dry"), 0.0),
        cloudiness=_OKTAS.index(oktas) / 8.0 if oktas in _OKTAS else _CLOUDS.get(sky.get("cloudState", "free"), 0.0),
    )


def _falling(source: OpenScenarioFile, element: ET.Element | None) -> tuple[float, float]:
    """Return rain and snow, 0 to 1; intensities have that scale in version 1.0, and mm/h since."""
    kind = "dry" if element is None else element.get("precipitationType", "dry")
    if kind not in _FALLING:
        return 0.0, 0.0
    share = source.number(element, "intensity", source.number(element, "precipitationIntensity") / _FALLING[kind])
    share = min(1.0, max(0.0, share))
    return (share, 0.0) if kind == "rain" else (0.0, share)


def _fog(seen_m: float) -> float:
    """Return the fog, 0 to 1, for a visual range, linear in its logarithm as in the world's weather."""
    thickest_m = max(seen_m, FOG_M[1])
    return max(0.0, math.log(thickest_m / FOG_M[0]) / math.log(FOG_M[1] / FOG_M[0]))
