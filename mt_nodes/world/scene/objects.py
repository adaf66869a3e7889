# SPDX-License-Identifier: Apache-2.0
"""The catalogue of objects that can be put into a scene."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from mt_nodes.world.scene import (
    animals,
    country,
    furniture,
    meshes,
    people,
    rail,
    riders,
    road_edge,
    signallers,
    vehicles,
)
from mt_nodes.world.scene.meshes import Mesh


@dataclass(frozen=True)
class Kind:
    """One kind of object.

    Attributes:
        build: mesh of a reflectivity of its main material; stands on z = 0, x forward, metres.
        label: class that a detector would give it. reflectivity: of the main material, diffuse, 0..1.
    """

    build: Callable[[float], Mesh]
    label: str
    reflectivity: float


#: Reflectivity at the wavelengths of LiDARs, near 0.9 µm; those of the street's things (``street.py``) are alike.
KINDS: dict[str, Kind] = {
    "adult": Kind(meshes.pedestrian, "pedestrian", 0.35),
    "child": Kind(people.child, "pedestrian", 0.4),
    "elderly": Kind(people.elderly, "pedestrian", 0.3),
    "wheelchair_user": Kind(people.wheelchair_user, "pedestrian", 0.35),
    "roller_skater": Kind(people.roller_skater, "pedestrian", 0.35),
    "cyclist": Kind(meshes.cyclist, "cyclist", 0.35),
    "motor_cyclist": Kind(people.motor_cyclist, "motorcycle", 0.25),
    "dog": Kind(animals.dog, "animal", 0.4),
    "deer": Kind(animals.deer, "animal", 0.4),
    "boar": Kind(animals.boar, "animal", 0.3),
    "cow": Kind(animals.cow, "animal", 0.4),
    "car": Kind(meshes.car, "car", 0.4),
    "van": Kind(meshes.van, "car", 0.5),
    "truck": Kind(vehicles.truck, "truck", 0.4),
    "bus": Kind(vehicles.bus, "bus", 0.4),
    "school_bus": Kind(vehicles.school_bus, "bus", 0.5),
    "emergency_vehicle": Kind(vehicles.emergency_vehicle, "car", 0.5),
    "construction_vehicle": Kind(vehicles.construction_vehicle, "truck", 0.5),
    "cone": Kind(furniture.traffic_cone, "unknown", 0.5),
    "barrier": Kind(furniture.barrier, "unknown", 0.35),
    "box": Kind(furniture.carton, "unknown", 0.5),
    "traffic_sign": Kind(furniture.traffic_sign, "unknown", 1.0),
    "traffic_light": Kind(furniture.traffic_light, "unknown", 0.1),
    "scooter_rider": Kind(riders.scooter_rider, "pedestrian", 0.35),
    "skateboarder": Kind(riders.skateboarder, "pedestrian", 0.35),
    "tricycle_rider": Kind(riders.tricycle_rider, "cyclist", 0.35),
    "quadricycle_rider": Kind(riders.quadricycle_rider, "cyclist", 0.35),
    "flag_bearer": Kind(riders.flag_bearer, "pedestrian", 0.35),
    "tow_truck": Kind(riders.tow_truck, "truck", 0.5),
    "tram": Kind(rail.tram, "bus", 0.42),
    "crossing_gate": Kind(rail.crossing_gate, "unknown", 0.6),
    "traffic_officer": Kind(signallers.traffic_officer, "pedestrian", 0.35),
    "crossing_guard": Kind(signallers.crossing_guard, "pedestrian", 0.35),
    "construction_worker": Kind(signallers.construction_worker, "pedestrian", 0.35),
    "horse_rider": Kind(country.horse_rider, "animal", 0.37),
    "horse_carriage": Kind(country.horse_carriage, "animal", 0.37),
    "tractor": Kind(country.tractor, "truck", 0.42),
    "trailer": Kind(country.trailer, "truck", 0.5),
    "load_carrier": Kind(country.load_carrier, "truck", 0.42),
    "delineator": Kind(road_edge.delineator, "unknown", 0.6),
    "guardrail": Kind(road_edge.guardrail, "unknown", 0.42),
    "speed_bump": Kind(road_edge.speed_bump, "unknown", 0.12),
    "traffic_island": Kind(road_edge.traffic_island, "unknown", 0.36),
    "gantry_sign": Kind(road_edge.gantry_sign, "unknown", 0.42),
}


@lru_cache
def mesh_of(kind: str) -> Mesh:
    """Return the mesh of a kind of :data:`KINDS`, made once."""
    return KINDS[kind].build(KINDS[kind].reflectivity)
