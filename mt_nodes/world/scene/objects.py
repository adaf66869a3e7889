# SPDX-License-Identifier: Apache-2.0
"""The catalogue of objects for scenes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from mt_nodes.world.scene import animals, country, furniture, meshes, people, vehicles
from mt_nodes.world.scene.meshes import Mesh


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object.

    ``build``: mesh for a reflectivity of its main material; stands on z = 0, x forward, metres. ``label``: class that a
    detector should give it. ``reflectivity``: of the main material, diffuse, 0..1.
    """

    build: Callable[[float], Mesh]
    label: str
    reflectivity: float


#: Reflectivity at LiDAR wavelengths, near 0.9 µm; similar to those of the street's objects (``street.py``).
KINDS: dict[str, ObjectKind] = {
    "adult": ObjectKind(meshes.pedestrian, "pedestrian", 0.35),
    "child": ObjectKind(people.child, "pedestrian", 0.4),
    "elderly": ObjectKind(people.elderly, "pedestrian", 0.3),
    "wheelchair_user": ObjectKind(people.wheelchair_user, "pedestrian", 0.35),
    "roller_skater": ObjectKind(people.roller_skater, "pedestrian", 0.35),
    "cyclist": ObjectKind(meshes.cyclist, "cyclist", 0.35),
    "motor_cyclist": ObjectKind(people.motor_cyclist, "motorcycle", 0.25),
    "dog": ObjectKind(animals.dog, "animal", 0.4),
    "cat": ObjectKind(animals.cat, "animal", 0.4),
    "deer": ObjectKind(animals.deer, "animal", 0.4),
    "boar": ObjectKind(animals.boar, "animal", 0.3),
    "cow": ObjectKind(animals.cow, "animal", 0.4),
    "car": ObjectKind(meshes.car, "car", 0.4),
    "van": ObjectKind(meshes.van, "car", 0.5),
    "truck": ObjectKind(vehicles.truck, "truck", 0.4),
    "bus": ObjectKind(vehicles.bus, "bus", 0.4),
    "school_bus": ObjectKind(vehicles.school_bus, "bus", 0.5),
    "emergency_vehicle": ObjectKind(vehicles.emergency_vehicle, "car", 0.5),
    "construction_vehicle": ObjectKind(vehicles.construction_vehicle, "truck", 0.5),
    "cone": ObjectKind(furniture.traffic_cone, "unknown", 0.5),
    "barrier": ObjectKind(furniture.barrier, "unknown", 0.35),
    "box": ObjectKind(furniture.carton, "unknown", 0.5),
    "traffic_sign": ObjectKind(furniture.traffic_sign, "unknown", 1.0),
    "traffic_light": ObjectKind(furniture.traffic_light, "unknown", 0.1),
    "scooter_rider": ObjectKind(people.scooter_rider, "pedestrian", 0.35),
    "skateboarder": ObjectKind(people.skateboarder, "pedestrian", 0.35),
    "tricycle_rider": ObjectKind(people.tricycle_rider, "cyclist", 0.35),
    "quadricycle_rider": ObjectKind(people.quadricycle_rider, "cyclist", 0.35),
    "flag_bearer": ObjectKind(people.flag_bearer, "pedestrian", 0.35),
    "tow_truck": ObjectKind(vehicles.tow_truck, "truck", 0.5),
    "tram": ObjectKind(vehicles.tram, "bus", 0.42),
    "crossing_gate": ObjectKind(furniture.crossing_gate, "unknown", 0.6),
    "traffic_officer": ObjectKind(people.traffic_officer, "pedestrian", 0.35),
    "crossing_guard": ObjectKind(people.crossing_guard, "pedestrian", 0.35),
    "construction_worker": ObjectKind(people.construction_worker, "pedestrian", 0.35),
    "horse_rider": ObjectKind(country.horse_rider, "animal", 0.37),
    "horse_carriage": ObjectKind(country.horse_carriage, "animal", 0.37),
    "tractor": ObjectKind(country.tractor, "truck", 0.42),
    "trailer": ObjectKind(country.trailer, "truck", 0.5),
    "load_carrier": ObjectKind(country.load_carrier, "truck", 0.42),
    "delineator": ObjectKind(furniture.delineator, "unknown", 0.6),
    "guardrail": ObjectKind(furniture.guardrail, "unknown", 0.42),
    "speed_bump": ObjectKind(furniture.speed_bump, "unknown", 0.12),
    "traffic_island": ObjectKind(furniture.traffic_island, "unknown", 0.36),
    "gantry_sign": ObjectKind(furniture.gantry_sign, "unknown", 0.42),
}


@lru_cache
def mesh_of(kind: str) -> Mesh:
    """Return the mesh of a kind of :data:`KINDS`, cached."""
    return KINDS[kind].build(KINDS[kind].reflectivity)
