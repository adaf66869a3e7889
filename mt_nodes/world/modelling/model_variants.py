# SPDX-License-Identifier: Apache-2.0
"""Variants of the detailed objects, by kind and number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from mt_nodes.world.modelling.bicycle import Cycle, cyclist_on
from mt_nodes.world.modelling.car_livery import Livery
from mt_nodes.world.modelling.car_shapes import ESTATE, SALOON, SMALL, SUV, CarShape
from mt_nodes.world.modelling.motorcar import motorcar
from mt_nodes.world.modelling.motorcycle import Machine, motorcyclist_on
from mt_nodes.world.modelling.person import dressed
from mt_nodes.world.modelling.quadrupeds import Beast, animal
from mt_nodes.world.modelling.shading import DetailedMesh, interpolated
from mt_nodes.world.modelling.wardrobe import ADULTS, BRUNETTE, GREY
from mt_nodes.world.scene.appearance import PAINT_COLOURS, Paint, Surface, SurfaceColours
from mt_nodes.world.scene.lamps import OFF
from mt_nodes.world.scene.materials import PAINTS

#: Variants of a frequent kind.
VARIANTS = 10

_CAR_SHAPES: tuple[CarShape, ...] = (SMALL, SALOON, ESTATE, SUV)
#: Bodies and paints of ten cars, the plates of which no office has issued.
_CARS: tuple[tuple[int, str, str], ...] = (
    (0, "silver", "KA MT 427"), (1, "black", "MT XN 105"), (2, "grey", "S MT 9310"), (3, "white", "HD MT 74"),
    (0, "red", "B MT 2208"), (1, "blue", "M MT 6631"), (0, "white", "F MT 518"), (3, "black", "K MT 3027"),
    (2, "blue", "HH MT 86"), (0, "grey", "DD MT 943"),
)  # fmt: skip
_ROE = Beast(
    0.75,
    0.98,
    0.36,
    0.021,
    (0.68, 0.74, 0.4),
    0.24,
    (0.19, 0.085, 0.035),
    (0.35, 0.25, 0.16),
    (0.06, 0.035, 0.02),
    "roe",
    0.2,
    0.15,
    0.05,
    neck_wide=1.12,
    nose_wide=0.12,
)
_COW = Beast(
    1.45,
    1.9,
    0.84,
    0.05,
    (0.9, 0.2, 0.34),
    0.55,
    (0.62, 0.6, 0.55),
    (0.62, 0.6, 0.55),
    (0.014, 0.012, 0.011),
    "holstein",
    0.0,
    0.22,
    0.75,
    head_pitch_rad=0.85,
    skull=1.1,
    neck_wide=1.15,
    nose_wide=0.165,
)

_BOAR = Beast(
    0.9,
    1.3,
    0.62,
    0.04,
    (0.95, -0.12, 0.3),
    0.45,
    (0.05, 0.038, 0.028),
    (0.06, 0.045, 0.035),
    (0.02, 0.016, 0.013),
    "boar",
    0.0,
    0.12,
    0.22,
    slim=0.38,
    head_pitch_rad=0.45,
    reflectivity=0.3,
)
_DOG = Beast(
    0.57,
    0.66,
    0.29,
    0.022,
    (0.6, 0.7, 0.36),
    0.23,
    (0.4, 0.25, 0.11),
    (0.45, 0.33, 0.2),
    (0.3, 0.18, 0.08),
    "plain",
    0.0,
    0.1,
    0.3,
    head_pitch_rad=0.25,
)
_CAT = Beast(
    0.25,
    0.36,
    0.135,
    0.011,
    (0.65, 0.65, 0.3),
    0.12,
    (0.12, 0.1, 0.085),
    (0.3, 0.26, 0.22),
    (0.06, 0.05, 0.045),
    "plain",
    0.0,
    0.05,
    0.17,
    slim=0.4,
    head_pitch_rad=0.3,
    snout=0.3,
    skull=1.75,
)


def variants_of(kind: str) -> int:
    """Return the number of variants of a kind; 0 for one without a detailed mesh."""
    return VARIANTS if kind in _MAKERS else 0


def is_detailed(kind: str) -> bool:
    """Return whether a kind has a detailed mesh."""
    return kind in _MAKERS


@lru_cache(maxsize=64)
def detailed_mesh(kind: str, variant: int, paint: str = "") -> DetailedMesh:
    """Return the mesh of a variant, 1 to :data:`VARIANTS`, of a kind; cached.

    ``paint`` is one of :data:`.materials.PAINTS`, else the variant's own.
    """
    return _MAKERS[kind](variant - 1, paint)[0]


def detailed_object(kind: str, variant: int, lamps: str = OFF, paint: str = "") -> tuple[DetailedMesh, Paint]:
    """Return mesh and paint of a variant of a kind."""
    mesh, livery = _MAKERS[kind](variant - 1, paint)
    return mesh, _paint(mesh, livery, lamps)


def _paint(mesh: DetailedMesh, livery: Livery | None, lamps: str) -> Paint:
    table = np.column_stack([mesh.albedo, mesh.mirror]).astype(np.float32)

    def colours(surface: Surface) -> SurfaceColours:
        assert surface.triangle is not None and surface.share is not None and surface.normal is not None
        corners = mesh.triangles[surface.triangle].astype(np.int64)
        between = interpolated(table, corners, surface.share)
        albedo, mirror = between[:, :3], between[:, 3]
        if livery is None:
            return SurfaceColours(albedo, None, mirror)
        return livery.colours(surface.xyz_m, surface.normal, surface.pixel_m, corners[:, 0], albedo, mirror, lamps)

    return colours


Made = tuple[DetailedMesh, Livery | None]


@lru_cache(maxsize=32)
def _adult(number: int, paint: str) -> Made:
    return dressed(ADULTS[number]), None


@lru_cache(maxsize=32)
def _child(number: int, paint: str) -> Made:
    """Return a child of about seven in the colours of one of the adults, more vivid."""
    of = ADULTS[(number + 3) % len(ADULTS)]
    red, green, blue = (min(0.7, 1.5 * v + 0.02) for v in of.top)
    kind = "hoodie" if of.top_kind == "coat" else of.top_kind
    hair = "long" if of.hair_kind in ("bun", "long") else "short"
    grown = BRUNETTE if of.hair == GREY else of.hair
    return dressed(
        replace(
            of,
            stature_m=1.21,
            girth=0.95,
            top=(red, green, blue),
            top_kind=kind,
            hair_kind=hair,
            hair=grown,
            phase=0.1 * number,
        )
    ), None


@lru_cache(maxsize=32)
def _elderly(number: int, paint: str) -> Made:
    """Return an elderly person, bent, with a walking stick."""
    of = ADULTS[(number + 4) % len(ADULTS)]
    legs, top = ("trousers" if of.legs == "shorts" else of.legs), ("jacket" if of.top_kind == "hoodie" else of.top_kind)
    red, green, blue = (0.5 * v + 0.1 for v in of.top)
    hair = "cap" if of.hair_kind == "cap" else "bun" if of.hair_kind in ("bun", "long") else "short"
    return dressed(
        replace(of, stature_m=1.68, girth=1.05, bend_rad=0.3, vigour=0.5, hair=GREY, hair_kind=hair, legs=legs,
                top=(red, green, blue), top_kind=top, bag_kind="none", stripe=None, stick=True, bag=(0.06, 0.035, 0.02),
                phase=0.1 * number)
    ), None  # fmt: skip


@lru_cache(maxsize=32)
def _worker(number: int, paint: str) -> Made:
    """Return a construction worker: helmet, warning jacket with retro-reflective bands."""
    of = ADULTS[number]
    helmet = ((0.7, 0.5, 0.02), (0.65, 0.65, 0.63), (0.6, 0.1, 0.02), (0.03, 0.12, 0.4))[number % 4]
    vest = (0.75, 0.2, 0.02) if number % 2 else (0.55, 0.65, 0.05)
    return dressed(
        replace(of, top=vest, top_kind="jacket", hair_kind="helmet", bag=helmet, bag_kind="none", legs="trousers",
                trousers=(0.03, 0.04, 0.08), stripe=(0.6, 0.6, 0.58), vigour=0.5, shoes=(0.05, 0.035, 0.02))
    ), None  # fmt: skip


#: Frames, leans and pedals of ten bicycles.
_FRAMES = ((0.02, 0.1, 0.2), (0.25, 0.02, 0.02), (0.02, 0.02, 0.022), (0.03, 0.14, 0.06), (0.4, 0.4, 0.4))


@lru_cache(maxsize=32)
def _cyclist(number: int, paint: str) -> Made:
    of = ADULTS[(number + 2) % len(ADULTS)]
    lean = (0.42, 0.25, 0.6, 0.35, 0.5)[number % 5]
    kind = "hoodie" if of.top_kind == "coat" else of.top_kind
    helmet = ((0.03, 0.03, 0.03), (0.5, 0.5, 0.5), (0.4, 0.03, 0.03))[number % 3]
    legs = "trousers" if of.legs == "skirt" else of.legs
    rider = replace(of, top_kind=kind, legs=legs, bend_rad=lean, bag_kind="none")
    rider = replace(rider, hair_kind="helmet", bag=helmet) if number % 2 else rider
    return cyclist_on(Cycle(rider, _FRAMES[number % 5], lean, 0.1 * number, basket=number % 4 == 1)), None


#: Paints of five motorcycles, and colours of three helmets.
_TANKS = ((0.36, 0.02, 0.02), (0.02, 0.09, 0.3), (0.02, 0.02, 0.022), (0.03, 0.16, 0.05), (0.5, 0.5, 0.5))
_HELMETS = ((0.6, 0.6, 0.6), (0.02, 0.02, 0.022), (0.45, 0.05, 0.03))


@lru_cache(maxsize=32)
def _motor_cyclist(number: int, paint: str) -> Made:
    of = ADULTS[(number + 1) % len(ADULTS)]
    jacket = ((0.02, 0.02, 0.022), (0.06, 0.04, 0.03), (0.05, 0.05, 0.055), (0.2, 0.02, 0.02))[number % 4]
    trousers = (0.02, 0.02, 0.022) if number % 2 else of.trousers
    lean = (0.22, 0.4, 0.3)[number % 3]
    rider = replace(
        of, top=jacket, top_kind="jacket", legs="trousers", trousers=trousers, hair_kind="bald", bag_kind="none",
        stripe=(0.6, 0.6, 0.58) if number % 4 == 3 else None, bend_rad=lean, shoes=(0.02, 0.02, 0.021),
        stature_m=min(of.stature_m, 1.74),
    )  # fmt: skip
    machine = Machine(rider, _TANKS[number % 5], _HELMETS[number % 3], lean, screen=number % 3 == 1)
    return motorcyclist_on(machine), None


@lru_cache(maxsize=16)
def _car(number: int, paint: str) -> Made:
    shape, own, plate = _CARS[number]
    colour = paint or own
    return motorcar(_CAR_SHAPES[shape], PAINT_COLOURS[colour], plate, PAINTS[colour])


def _herd(first: Beast, **by_number: tuple[object, ...]) -> Callable[[int, str], Made]:
    """Return the maker of ten animals that differ in stride, in size, and in what is given by number."""

    @lru_cache(maxsize=16)
    def make(number: int, paint: str) -> Made:
        size = 1.0 + 0.02 * ((number * 7) % 10 - 5)
        grown = {name: size * getattr(first, name) for name in ("shoulder_m", "trunk_m", "girth_m")}
        other = {name: values[number % len(values)] for name, values in by_number.items()}
        return animal(replace(first, phase=0.1 * number, **{**grown, **other})), None

    return make


_MAKERS: dict[str, Callable[[int, str], Made]] = {
    "adult": _adult,
    "child": _child,
    "elderly": _elderly,
    "construction_worker": _worker,
    "cyclist": _cyclist,
    "motor_cyclist": _motor_cyclist,
    "car": _car,
    "deer": _herd(
        _ROE,
        antlers_m=(0.2, 0.0, 0.23, 0.0, 0.17),
        coat=((0.19, 0.085, 0.035), (0.16, 0.085, 0.045), (0.12, 0.085, 0.06)),
    ),
    "cow": _herd(_COW, dark=((0.014, 0.012, 0.011), (0.16, 0.06, 0.025), (0.02, 0.016, 0.014))),
    "boar": _herd(_BOAR),
    "cat": _herd(_CAT, coat=((0.12, 0.1, 0.085), (0.02, 0.018, 0.016), (0.35, 0.16, 0.06), (0.5, 0.46, 0.42))),
    "dog": _herd(_DOG, coat=((0.4, 0.25, 0.11), (0.02, 0.018, 0.016), (0.09, 0.045, 0.02), (0.5, 0.42, 0.3))),
}
