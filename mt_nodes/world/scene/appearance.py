# SPDX-License-Identifier: Apache-2.0
"""Colours of the catalogue's objects for cameras.

Colours are linear albedos, red, green, blue, 0 to 1, chosen to look typical; a LiDAR's reflectivity does not affect
them, but identifies materials (tyres, panes, skin). Emitted light is separate, as glow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Ints, Mask, Singles
from mt_nodes.world.scene.furniture import RETRO_REFLECTIVE
from mt_nodes.world.scene.lamps import LAMPS, OFF
from mt_nodes.world.scene.meshes import GLASS, SKIN, STEEL, TYRE
from mt_nodes.world.scene.palette import (
    BLACK,
    BLUE,
    FACE,
    JEANS,
    METAL,
    ORANGE,
    PANE,
    RED,
    RUBBER,
    WHITE,
    YELLOW,
    Details,
    Rgb,
    car_body,
    person,
    seated,
)
from mt_nodes.world.scene.special_paints import SPECIAL_COLOURS, SPECIAL_DETAILS

#: Colours of the paints of :data:`.materials.PAINTS`, which says what LiDARs see of them.
PAINT_COLOURS: dict[str, Rgb] = {
    "white": WHITE,
    "silver": (0.5, 0.51, 0.5),
    "red": (0.42, 0.02, 0.02),
    "blue": (0.03, 0.1, 0.26),
    "grey": (0.16, 0.165, 0.17),
    "black": BLACK,
}
_MATERIALS = {TYRE: RUBBER, GLASS: PANE, SKIN: FACE}


@dataclass(frozen=True, eq=False)
class Surface:
    """Visible places on an object.

    Attributes:
        xyz_m: (N, 3) in the object's own frame: x ahead, z up. reflectivity: (N,) of the mesh there.
        pixel_m: width of a pixel at the object. triangle: (N,) and share: (N, 3) of its corners, where known.
        normal: (N, 3).
    """

    xyz_m: Singles
    reflectivity: Singles
    pixel_m: float = 0.01
    triangle: Ints | None = None
    share: Singles | None = None
    normal: Singles | None = None


@dataclass(frozen=True, eq=False)
class SurfaceColours:
    """Colours of visible places: albedo (N, 3), and glow (N, 3), in shares of full scale.

    ``mirror``: (N,) reflectance at normal incidence. ``glass``: (N,) which are panes. None: as the mesh says.
    """

    albedo: Singles
    glow: Singles | None = None
    mirror: Singles | None = None
    glass: Mask | None = None


Paint = Callable[[Surface], SurfaceColours]


def paint_of(kind: str, lamps: str = OFF, paint: str = "") -> Paint:
    """Return the paint of a kind of the catalogue; ``lamps`` is one of :data:`LAMPS` for it.

    ``paint`` names a colour of :data:`PAINT_COLOURS` in place of its own.
    """
    main = PAINT_COLOURS.get(paint, _MAIN[kind])
    if lamps == OFF:
        return lambda surface: SurfaceColours(_painted(kind, surface, main))
    shining = LAMPS[kind][lamps]

    def shine(surface: Surface) -> SurfaceColours:
        albedo, glow = _painted(kind, surface, main), np.zeros((len(surface.xyz_m), 3), np.float32)
        at = surface.xyz_m.copy()
        if shining.both_sides:
            at[:, 1] = np.abs(at[:, 1])
        for center in shining.centers_m:
            near = np.linalg.norm(at - np.array(center, np.float32), axis=1) < shining.radius_m
            glow[near] = shining.colour
        return SurfaceColours(albedo, glow)

    return shine


def main_colour(kind: str) -> Rgb:
    """Return the dominant colour of a kind: its paint, its clothes, its fur."""
    return _MAIN[kind]


def _painted(kind: str, surface: Surface, main: Rgb) -> Singles:
    colours = np.empty((len(surface.xyz_m), 3), np.float32)
    colours[:] = main
    for value, colour in _MATERIALS.items():
        colours[np.abs(surface.reflectivity - value) < 1e-4] = colour
    if (details := _DETAILS.get(kind)) is not None:
        x, y, z = surface.xyz_m.T
        details(colours, x, y, z, surface.reflectivity)
    return colours


def _motorcycle(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[(z > 0.6) & (z < 0.9) & (np.abs(y) < 0.16)] = RED
    colours[np.abs(material - 0.4) < 1e-4] = METAL
    colours[np.abs(material - SKIN) < 1e-4] = (0.65, 0.65, 0.67)  # a helmet


def _bus(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    glass = np.abs(material - GLASS) < 1e-4
    colours[glass & (np.mod(x, 1.5) < 0.12) & (np.abs(y) > 1.2)] = BLACK
    ends, lamp = np.abs(x) > 5.85, (z > 0.6) & (z < 0.85) & (np.abs(y) > 0.85)
    colours[ends & lamp & (x < 0)] = (0.4, 0.01, 0.01)
    colours[ends & lamp & (x > 0)] = (0.8, 0.8, 0.78)
    colours[(z < 0.4) & (np.abs(material - TYRE) > 1e-4)] = BLACK


def _school_bus(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    glass = np.abs(material - GLASS) < 1e-4
    colours[glass & (np.mod(x, 0.8) < 0.12) & (np.abs(y) > 1.1)] = _MAIN["school_bus"]
    sides = np.abs(y) > 1.15
    for height in (0.75, 1.05):
        colours[sides & (np.abs(z - height) < 0.04)] = BLACK
    colours[(np.abs(material - RETRO_REFLECTIVE) < 1e-4)] = RED  # the stop arm
    rear = x < -5.4
    colours[rear & (z > 0.6) & (z < 0.8) & (np.abs(y) > 0.9)] = (0.4, 0.01, 0.01)
    colours[(z < 0.4) & (np.abs(material - TYRE) > 1e-4)] = BLACK


def _ambulance(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    car_body(6.0, (0.8, 1.0), 1.02)(colours, x, y, z, material)
    colours[np.abs(material - RETRO_REFLECTIVE) < 1e-4] = RED
    colours[(x < -2.9) & (np.abs(z - 1.2) < 0.14)] = RED
    colours[(x < -2.9) & (np.abs(y) < 0.75) & (z > 1.6) & (z < 2.3)] = PANE
    colours[(x > 2.3) & (z > 1.15)] = PANE
    colours[(np.abs(material - 0.3) < 1e-4) & (z > 2.55)] = BLUE


def _truck(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[(x < 2.2) & (z > 1.1)] = (0.6, 0.6, 0.58)
    colours[np.abs(material - 0.1) < 1e-4] = BLACK
    colours[np.abs(material - RETRO_REFLECTIVE) < 1e-4] = np.where(
        np.mod(y[np.abs(material - RETRO_REFLECTIVE) < 1e-4] * 4.0, 2.0)[:, None] < 1.0, RED, YELLOW
    )
    colours[(x < -4.2) & (np.abs(y) < 0.02) & (z > 1.3)] = BLACK


def _van(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    car_body(5.6, (0.75, 0.95), 1.0)(colours, x, y, z, material)
    colours[(x > 1.7) & (z > 1.25) & (z < 2.1)] = PANE
    colours[(x < -2.7) & (np.abs(y) < 0.8) & (z > 1.4) & (z < 2.0)] = PANE


def _cow(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    patches = np.sin(5.1 * x + 1.3) * np.sin(4.3 * z + 2.0 * np.sign(y)) + 0.35 * np.sin(9.0 * x * z)
    colours[patches > 0.05] = BLACK


def _deer(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[(x < -0.43) & (z > 0.5)] = WHITE  # what a fleeing deer shows
    colours[z < 0.4] *= np.float32(0.7)


def _cone(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[((z > 0.25) & (z < 0.38)) | ((z > 0.5) & (z < 0.6))] = WHITE
    colours[z < 0.045] = BLACK


def _barrier(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    band = (z > 0.45) & (z < 0.75)
    colours[band & (np.mod(y + z, 0.5) < 0.25)] = RED
    colours[band & (np.mod(y + z, 0.5) >= 0.25)] = WHITE


def _loader(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[np.abs(material - 0.3) < 1e-4] = (0.1, 0.1, 0.1)
    rear = (x < -3.1) & (z > 0.9)
    colours[rear & (np.mod(y + z, 0.4) < 0.2)] = RED
    colours[rear & (np.mod(y + z, 0.4) >= 0.2)] = WHITE


def _carton(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    tape = (np.abs(y) < 0.03) | ((np.abs(x) < 0.03) & (z > 0.59))
    colours[tape] *= np.float32(0.55)


def _sign_back(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[np.abs(material - STEEL) < 1e-4] = METAL
    plate = z > 2.0
    rim = np.hypot(y, z - 2.3) > 0.24
    colours[plate & (x < -0.055) & rim] = RED
    colours[plate & (x >= -0.055)] = METAL


def _light_head(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[np.abs(material - STEEL) < 1e-4] = METAL
    for middle, lens in ((3.0, (0.12, 0.01, 0.01)), (2.7, (0.14, 0.08, 0.01)), (2.4, (0.01, 0.1, 0.06))):
        colours[(x < -0.25) & (np.hypot(y, z - middle) < 0.1)] = lens


def _flag(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    person(_MAIN["flag_bearer"], (0.035, 0.035, 0.04), 1.75)(colours, x, y, z, material)
    colours[np.abs(material - 0.5) < 1e-4] = RED
    colours[(y > 0.5) & (z < 1.42) & (z > 1.3)] = _MAIN["flag_bearer"]


def _tow(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[np.abs(material - 0.1) < 1e-4] = METAL
    colours[(x > 1.7) & (x < 3.2) & (np.abs(y) > 1.14) & (z > 1.6) & (z < 2.3)] = PANE
    rear = (x < -3.4) & (z > 0.75)
    colours[rear & (np.mod(y, 0.5) < 0.25)] = RED
    colours[(np.abs(material - 0.3) < 1e-4) & (z > 2.4)] = ORANGE


_MAIN: dict[str, Rgb] = {
    "adult": (0.1, 0.16, 0.34),
    "child": (0.62, 0.44, 0.03),
    "elderly": (0.2, 0.17, 0.13),
    "wheelchair_user": (0.33, 0.04, 0.05),
    "roller_skater": (0.05, 0.34, 0.2),
    "cyclist": (0.48, 0.08, 0.04),
    "motor_cyclist": BLACK,
    "dog": (0.4, 0.25, 0.11),
    "cat": (0.12, 0.11, 0.1),
    "deer": (0.22, 0.11, 0.05),
    "boar": (0.06, 0.045, 0.035),
    "cow": (0.72, 0.7, 0.66),
    "car": (0.03, 0.1, 0.26),
    "van": (0.68, 0.68, 0.66),
    "truck": (0.03, 0.1, 0.3),
    "bus": (0.55, 0.5, 0.35),
    "school_bus": (0.8, 0.42, 0.01),
    "emergency_vehicle": (0.78, 0.77, 0.72),
    "construction_vehicle": (0.78, 0.42, 0.02),
    "cone": ORANGE,
    "barrier": (0.4, 0.39, 0.37),
    "box": (0.38, 0.24, 0.12),
    "traffic_sign": WHITE,
    "traffic_light": BLACK,
    "scooter_rider": (0.42, 0.3, 0.08),
    "skateboarder": (0.35, 0.05, 0.22),
    "tricycle_rider": (0.08, 0.3, 0.12),
    "quadricycle_rider": (0.3, 0.12, 0.4),
    "flag_bearer": ORANGE,
    "tow_truck": YELLOW,
    **SPECIAL_COLOURS,
}
_DETAILS: dict[str, Details] = {
    "adult": person(_MAIN["adult"], (0.035, 0.035, 0.04), 1.75),
    "child": person(_MAIN["child"], JEANS, 1.21),
    "elderly": person(_MAIN["elderly"], (0.12, 0.11, 0.1), 1.6),
    "roller_skater": person(_MAIN["roller_skater"], BLACK, 1.8),
    "wheelchair_user": seated(_MAIN["wheelchair_user"], JEANS, 0.66, 1.32),
    "cyclist": seated(_MAIN["cyclist"], JEANS, 1.0, 1.66),
    "motor_cyclist": _motorcycle,
    "car": car_body(4.4, (0.62, 0.82), 0.9),
    "van": _van,
    "truck": _truck,
    "bus": _bus,
    "school_bus": _school_bus,
    "emergency_vehicle": _ambulance,
    "construction_vehicle": _loader,
    "deer": _deer,
    "cow": _cow,
    "cone": _cone,
    "barrier": _barrier,
    "box": _carton,
    "traffic_sign": _sign_back,
    "traffic_light": _light_head,
    "scooter_rider": seated(_MAIN["scooter_rider"], JEANS, 1.0, 1.86),
    "skateboarder": seated(_MAIN["skateboarder"], JEANS, 0.82, 1.58),
    "tricycle_rider": seated(_MAIN["tricycle_rider"], JEANS, 0.72, 1.42),
    "quadricycle_rider": seated(_MAIN["quadricycle_rider"], JEANS, 0.72, 1.42),
    "flag_bearer": _flag,
    "tow_truck": _tow,
    **SPECIAL_DETAILS,
}
