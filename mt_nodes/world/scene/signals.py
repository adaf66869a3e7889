# SPDX-License-Identifier: Apache-2.0
"""Faces of traffic lights: the lit lens and its shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.scene.canvas import Canvas, Point, Rgb
from mt_nodes.world.scene.symbols import arrow

_HOUSING, _DARK, _PITCH_M, _LENS_M = (0.02, 0.022, 0.02), 0.12, 0.3, 0.1
#: The hood around each lens, seen from below: its radius, and the dark inside.
_HOOD_M, _BLACK = 0.125, (0.004, 0.004, 0.004)
#: Light of a lit lens relative to full scale: nearly saturated for a camera exposed for the street.
_SHINES: dict[str, Rgb] = {"red": (1.0, 0.16, 0.1), "yellow": (1.0, 0.72, 0.12), "green": (0.25, 1.0, 0.7)}
_COLOURS = ("red", "yellow", "green")


@dataclass(frozen=True)
class LightState:
    """A state of a traffic light.

    Attributes:
        what: its name. colour: of the lit lens. row: the lit lens, counted from above.
        lenses: number of lenses, one above the other.
        arrow_to: tip of an arrow that is lit instead of the full lens, in shares of its radius.
    """

    what: str
    colour: str
    row: int
    lenses: int = 3
    arrow_to: Point | None = None

    @property
    def size_m(self) -> tuple[float, float]:
        """Width and height of the housing."""
        return _PITCH_M, _PITCH_M * self.lenses


LEFT = (-0.75, 0.0)
SIGNALS: dict[str, LightState] = {
    "red": LightState("red", "red", 0),
    "yellow": LightState("yellow", "yellow", 1),
    "green": LightState("green", "green", 2),
    "red_arrow": LightState("red arrow to the left", "red", 0, arrow_to=LEFT),
    "yellow_arrow": LightState("yellow arrow to the left", "yellow", 1, arrow_to=LEFT),
    "green_arrow": LightState("green arrow to the left", "green", 2, arrow_to=LEFT),
    "out_of_order": LightState("no light: out of order", "red", -1),
    "flashing_red": LightState("red beacon of one lens, as it flashes", "red", 0, lenses=1),
    "flashing_yellow": LightState("yellow beacon of one lens, as it flashes", "yellow", 0, lenses=1),
}


@lru_cache
def faces_of(signal: str) -> tuple[Singles, Singles]:
    """Return albedo and glow (h, w, 3) of a light, cached."""
    shape = SIGNALS[signal]
    albedo, glow = Canvas(shape.size_m, _HOUSING), Canvas(shape.size_m, (0.0, 0.0, 0.0))
    for row in range(shape.lenses):
        center = (0.0, _PITCH_M * ((shape.lenses - 1) / 2.0 - row))
        own = shape.colour if row == shape.row else _COLOURS[row]
        red, green, blue = _SHINES[own]
        albedo.disc(center, _HOOD_M, _BLACK)
        albedo.disc(center, _LENS_M, (_DARK * red, _DARK * green, _DARK * blue))
        if row == shape.row:
            _shine(glow, center, shape)
    return albedo.face(), np.asarray(glow.face())


def _shine(glow: Canvas, center: Point, state: LightState) -> None:
    colour = _SHINES[state.colour]
    if state.arrow_to is None:
        glow.disc(center, _LENS_M, colour)
        return
    (x, y), (dx, dy) = center, (_LENS_M * state.arrow_to[0], _LENS_M * state.arrow_to[1])
    arrow(glow, (x - dx, y - dy), (x + dx, y + dy), 0.035, colour)
