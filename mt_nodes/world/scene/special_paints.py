# SPDX-License-Identifier: Apache-2.0
"""Paints of trams, farm vehicles, people who direct traffic, and roadside objects (see ``appearance.py``)."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.scene.meshes import CLOTH, DARK, FILM, GLASS, HORSE, PLASTIC, RETRO, SKIN, SLEEVE, STEEL, TYRE, WOOD
from mt_nodes.world.scene.palette import (
    BLACK,
    FACE,
    JEANS,
    METAL,
    ORANGE,
    PANE,
    RED,
    WHITE,
    YELLOW,
    Details,
    Rgb,
    person,
)

_LIME: Rgb = (0.62, 0.72, 0.03)
_SILVER, _BAY, _MANE, _CREAM = (0.6, 0.61, 0.6), (0.16, 0.075, 0.03), (0.03, 0.02, 0.015), (0.62, 0.53, 0.36)


def _is_material(material: Singles, value: float) -> np.ndarray:
    return np.asarray(np.abs(material - value) < 1e-4)


def _tram(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    body = ~_is_material(material, GLASS) & ~_is_material(material, DARK) & ~_is_material(material, TYRE)
    colours[body & (z > 1.28)] = _CREAM
    colours[body & (z > 2.62)] = (0.3, 0.3, 0.3)
    sides, ends = np.abs(y) > 1.2, np.abs(x) > 6.7
    colours[_is_material(material, GLASS)] = (0.13, 0.15, 0.17)  # high panes show the sky
    colours[sides & _is_material(material, GLASS) & (np.mod(x + 0.1, 1.3) < 0.16)] = _CREAM
    for door in (4.6, 0.2, -4.4):  # three doors, on the right
        colours[(y < -1.2) & (np.abs(x - door) < 0.62) & (z > 0.5) & (z < 2.45)] = PANE
        colours[(y < -1.2) & (np.abs(np.abs(x - door) - 0.62) < 0.06) & (z > 0.5) & (z < 2.45)] = (0.2, 0.02, 0.02)
        colours[(y < -1.2) & (np.abs(x - door) < 0.04) & (z > 0.5) & (z < 2.45)] = (0.2, 0.02, 0.02)
    lamps = ends & (np.hypot(np.abs(y) - 0.62, z - 0.86) < 0.13)
    colours[lamps & (x > 0)] = (0.8, 0.8, 0.78)
    colours[lamps & (x < 0)] = (0.4, 0.01, 0.01)
    colours[(x > 6.3) & (np.abs(y) < 0.6) & (z > 2.45) & (z < 2.7)] = BLACK
    colours[(x > 6.3) & (np.abs(y) < 0.5) & (np.abs(z - 2.58) < 0.06) & (np.mod(y, 0.16) < 0.1)] = YELLOW
    colours[_is_material(material, DARK) | (body & (z < 0.42))] = BLACK
    colours[z > 3.2] = METAL


def _gate(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    boom = y > -2.2
    colours[boom & (np.mod(y, 1.0) < 0.5)] = RED
    colours[_is_material(material, STEEL)] = METAL
    colours[_is_material(material, DARK)] = BLACK


def _high_visibility(jacket: Rgb, trousers: Rgb, hat: Rgb) -> Details:
    """Return the paint of a person in protective clothing: retro-reflective bands, headgear."""
    dressed = person(jacket, trousers, 1.75)

    def paint(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
        dressed(colours, x, y, z, material)
        colours[_is_material(material, SLEEVE)] = jacket
        colours[_is_material(material, SKIN)] = FACE
        colours[_is_material(material, RETRO)] = _SILVER
        colours[_is_material(material, WOOD)] = hat
        colours[_is_material(material, STEEL)] = METAL
        colours[_is_material(material, PLASTIC)] = WHITE

    return paint


def _guard(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    _high_visibility(_LIME, JEANS, BLACK)(colours, x, y, z, material)
    paddle = _is_material(material, FILM)
    colours[paddle] = RED
    out, up = y - 0.62, z - 1.83
    colours[paddle & (np.hypot(out, up) > 0.2)] = WHITE
    colours[paddle & (np.abs(up) < 0.055) & (np.abs(out) < 0.15) & (np.mod(out + 0.15, 0.085) < 0.055)] = WHITE


def _horse(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    coat = _is_material(material, HORSE)
    colours[coat] = _BAY
    colours[coat & (z < 0.32)] = _MANE


def _rider(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    _horse(colours, x, y, z, material)
    clothes = _is_material(material, CLOTH)
    colours[clothes] = (0.45, 0.05, 0.05)
    colours[clothes & (z < 1.62)] = (0.5, 0.47, 0.4)
    colours[clothes & (z < 1.15)] = BLACK
    colours[_is_material(material, SKIN) & (z > 2.42)] = BLACK


def _carriage(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    _horse(colours, x, y, z, material)
    colours[_is_material(material, WOOD)] = (0.12, 0.02, 0.02)
    colours[_is_material(material, DARK)] = BLACK
    clothes = _is_material(material, CLOTH)
    colours[clothes] = (0.05, 0.07, 0.05)
    colours[_is_material(material, RETRO)] = RED


def _tractor(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[_is_material(material, DARK)] = BLACK
    rims = np.hypot(x + 0.95, z - 0.85) < 0.42
    rims |= np.hypot(x - 1.3, z - 0.6) < 0.3
    colours[_is_material(material, TYRE) & rims] = YELLOW
    colours[(z > 2.6) & (np.abs(material - GLASS) > 1e-4)] = (0.65, 0.65, 0.62)
    lamps = (np.abs(y) > 0.6) & (np.abs(z - 1.62) < 0.09)
    colours[lamps & (x < -1.2)] = (0.4, 0.01, 0.01)


def _trailer(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    rear = x < -2.0
    colours[rear & (np.abs(y) < 0.02) & (z > 0.7)] = BLACK
    colours[rear & (np.abs(y) > 0.75) & (z > 0.62) & (z < 0.82)] = (0.4, 0.01, 0.01)
    across = np.abs(np.abs(y) - 0.55)
    colours[rear & (z > 0.62) & (z < 0.8) & (across < 0.11 * (0.8 - z) / 0.18)] = RED
    colours[rear & (np.abs(y) < 0.26) & (np.abs(z - 0.72) < 0.06)] = WHITE
    colours[_is_material(material, DARK)] = BLACK


def _load(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[_is_material(material, DARK)] = BLACK
    colours[_is_material(material, WOOD)] = (0.42, 0.27, 0.13)
    colours[_is_material(material, RETRO)] = RED
    colours[(x > 2.1) & (np.abs(material - GLASS) > 1e-4) & (z > 0.7)] = SPECIAL_COLOURS["load_carrier"]
    lamps = (x < -2.2) & (np.abs(y) > 0.75) & (np.abs(z - 0.95) < 0.1)
    colours[lamps] = (0.4, 0.01, 0.01)


def _delineator(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    slanted = z + 0.8 * y
    colours[(slanted > 0.72) & (slanted < 0.94)] = BLACK
    colours[_is_material(material, RETRO)] = (0.8, 0.5, 0.1)


def _rail(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[(z > 0.44) & (np.abs(np.abs(z - 0.595) - 0.075) > 0.045)] *= np.float32(0.6)
    colours[_is_material(material, DARK)] = (0.2, 0.2, 0.2)
    colours[_is_material(material, RETRO)] = (0.8, 0.5, 0.1)


def _bump(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[np.mod(y, 1.0) < 0.5] = YELLOW


def _island(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    colours[(z > 0.14) & (z < 0.16) & (np.abs(y) < 0.6) & (np.abs(x) < 1.9)] = (0.3, 0.26, 0.22)
    post = _is_material(material, FILM)
    colours[post] = (0.01, 0.08, 0.4)
    colours[post & (np.abs(z - 0.95 - 0.7 * (y - 0.0)) < 0.06)] = WHITE
    colours[_is_material(material, STEEL)] = METAL


def _gantry(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
    plate = _is_material(material, FILM)
    colours[plate] = (0.01, 0.08, 0.4)
    out, up = y - 0.6, z - 5.6
    edge = np.maximum(np.abs(out) - 1.42, np.abs(up) - 0.72)
    colours[plate & (edge > -0.06) & (edge < -0.01)] = WHITE
    for row, wide in ((0.38, 1.1), (0.0, 0.8)):
        words = (np.abs(up - row) < 0.12) & (np.abs(out - 0.2) < wide) & (np.mod(out, 0.26) < 0.18)
        colours[plate & words] = WHITE
    shaft = (np.abs(out + 0.0) < 0.05) & (up < -0.25) & (up > -0.62)
    head = (up > -0.45) & (np.abs(out) < 0.16 * (up + 0.25) / -0.2) & (up < -0.25)
    colours[plate & (shaft | head)] = WHITE


SPECIAL_COLOURS: dict[str, Rgb] = {
    "tram": (0.5, 0.035, 0.03),
    "crossing_gate": WHITE,
    "traffic_officer": _LIME,
    "crossing_guard": _LIME,
    "construction_worker": ORANGE,
    "horse_rider": _BAY,
    "horse_carriage": _BAY,
    "tractor": (0.03, 0.22, 0.05),
    "trailer": (0.62, 0.62, 0.6),
    "load_carrier": (0.05, 0.16, 0.36),
    "delineator": WHITE,
    "guardrail": (0.42, 0.43, 0.44),
    "speed_bump": BLACK,
    "traffic_island": (0.42, 0.41, 0.39),
    "gantry_sign": METAL,
}
SPECIAL_DETAILS: dict[str, Details] = {
    "tram": _tram,
    "crossing_gate": _gate,
    "traffic_officer": _high_visibility(_LIME, (0.02, 0.025, 0.05), WHITE),
    "crossing_guard": _guard,
    "construction_worker": _high_visibility(ORANGE, ORANGE, YELLOW),
    "horse_rider": _rider,
    "horse_carriage": _carriage,
    "tractor": _tractor,
    "trailer": _trailer,
    "load_carrier": _load,
    "delineator": _delineator,
    "guardrail": _rail,
    "speed_bump": _bump,
    "traffic_island": _island,
    "gantry_sign": _gantry,
}
