# SPDX-License-Identifier: Apache-2.0
"""Physical facts of road users: size, mass, top speed, on wheels or on foot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.scenario import Actor
from mt_nodes.world.scene.objects import KINDS, mesh_of

ON_WHEELS = frozenset({"car", "truck", "bus", "motorcycle", "cyclist"})
"""Labels of kinds that drive: they keep to lanes and turn gently."""

#: Masses in kg. From the defaults of SUMO's vehicle types: adult (70, with clothes and bag 75), motorcycle (200 and a
#: rider), car 1500, delivery van 5000 (gross; here half loaded), truck 12000, bus 12000. The others are assumed,
#: typical ones. The ratio of masses determines the severity of an impact for each side.
_MASS_KG = {
    "adult": 75.0,
    "child": 21.0,
    "elderly": 70.0,
    "wheelchair_user": 100.0,
    "roller_skater": 75.0,
    "cyclist": 90.0,
    "motor_cyclist": 275.0,
    "dog": 30.0,
    "cat": 4.5,
    "deer": 60.0,
    "boar": 80.0,
    "cow": 600.0,
    "car": 1500.0,
    "van": 3500.0,
    "truck": 12000.0,
    "bus": 12000.0,
    "school_bus": 12000.0,
    "emergency_vehicle": 3500.0,
    "construction_vehicle": 12000.0,
    "cone": 4.0,
    "barrier": 500.0,
    "box": 10.0,
    "traffic_sign": 30.0,
    "traffic_light": 100.0,
    "scooter_rider": 90.0,
    "skateboarder": 78.0,
    "tricycle_rider": 95.0,
    "quadricycle_rider": 110.0,
    "flag_bearer": 77.0,
    "tow_truck": 8000.0,
    "tram": 16000.0,
    "crossing_gate": 300.0,
    "traffic_officer": 78.0,
    "crossing_guard": 78.0,
    "construction_worker": 80.0,
    "horse_rider": 620.0,
    "horse_carriage": 1000.0,
    "tractor": 4500.0,
    "trailer": 800.0,
    "load_carrier": 6500.0,
    "delineator": 3.0,
    "guardrail": 200.0,
    "speed_bump": 120.0,
    "traffic_island": 2500.0,
    "gantry_sign": 900.0,
}
#: Faster than anybody of a label: sprinters reach 12, deer 20, the fastest cyclists 25 m/s; assumed.
_TOP_MPS = {"pedestrian": 13.0, "animal": 21.0, "cyclist": 25.0, "unknown": 25.0}
TOP_MPS = 70.0
"""Faster than any vehicle goes here."""


@dataclass(frozen=True)
class Facts:
    """Facts of a kind.

    Attributes:
        size_m: length, width, height of its mesh. middle_m: centre of these bounds on the ground in the mesh's frame:
            rendering subtracts it, because an actor's pose is its centre.
        top_mps: faster than it ever goes.
    """

    label: str
    size_m: tuple[float, float, float]
    middle_m: tuple[float, float]
    mass_kg: float
    top_mps: float

    @property
    def on_wheels(self) -> bool:
        """Whether it drives."""
        return self.label in ON_WHEELS


@lru_cache
def facts_of(kind: str) -> Facts:
    """Return the facts of a kind of :data:`mt_nodes.world.scene.objects.KINDS`."""
    label, vertices = KINDS[kind].label, mesh_of(kind).vertices_m
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    length, width, height = (float(extent) for extent in high - low)
    x, y = (float(middle) for middle in (low + high)[:2] / 2.0)
    return Facts(label, (length, width, height), (x, y), _MASS_KG[kind], _TOP_MPS.get(label, TOP_MPS))


def size_of(actor: Actor) -> tuple[float, float, float]:
    """Return length, width and height of an actor in metres."""
    return actor.size_m or facts_of(actor.kind).size_m


def mass_of(actor: Actor) -> float:
    """Return the mass of an actor in kg."""
    return actor.mass_kg or facts_of(actor.kind).mass_kg


def sizes(actors: tuple[Actor, ...]) -> Floats:
    """Return (N, 3) the sizes of actors."""
    return np.array([size_of(actor) for actor in actors]).reshape(-1, 3)
