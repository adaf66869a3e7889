# SPDX-License-Identifier: Apache-2.0
"""Faces of traffic signs and lights, drawn by code after the German and the Californian catalogues.

German numbers are those of the StVO's annexes, Californian codes those of the Manual on Uniform Traffic Control Devices
(MUTCD). Sizes: German discs 0.6 m across and triangles 0.9 m wide (size 2, for 50 to 100 km/h), stop signs 0.75 m
(MUTCD 2003, table 2B-1, which also has the yield sign 0.9 m wide); distance markers 0.3 m by 1.0 m, 0.3 m above ground
(German Reich, 1934). The other sizes are assumed, and drawings are by eye: what a driver takes them for, no templates.
Lenses of lights are 0.2 m across.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.scene.canvas import Canvas, Point, Rgb
from mt_nodes.world.scene.symbols import arrow, car, children, deer, letters, pedestrian, ring, slash, u_turn, worker

Outline = tuple[Point, ...]

WHITE, BLACK, RED, BLUE = (0.8, 0.8, 0.78), (0.015, 0.015, 0.015), (0.5, 0.015, 0.025), (0.01, 0.08, 0.4)
YELLOW, ORANGE, LIME, GREEN = (0.82, 0.5, 0.01), (0.82, 0.25, 0.01), (0.6, 0.78, 0.04), (0.01, 0.22, 0.11)


def _turned(sides: int, radius_m: float, first_rad: float) -> Outline:
    angles = first_rad + 2.0 * np.pi * np.arange(sides) / sides
    return tuple((float(radius_m * np.cos(a)), float(radius_m * np.sin(a))) for a in angles)


def _rectangle(width_m: float, height_m: float) -> Outline:
    x, y = width_m / 2.0, height_m / 2.0
    return ((-x, -y), (x, -y), (x, y), (-x, y))


DISC = _turned(32, 0.3, 0.0)
OCTAGON = _turned(8, 0.375 / float(np.cos(np.pi / 8)), np.pi / 8)
TRIANGLE, UPSIDE_DOWN = _turned(3, 0.52, np.pi / 2), _turned(3, 0.52, -np.pi / 2)
DIAMOND = _turned(4, 0.54, 0.0)
PENTAGON: Outline = ((-0.4, -0.45), (0.4, -0.45), (0.4, 0.1), (0.0, 0.45), (-0.4, 0.1))
CROSS: Outline = tuple(
    (float(x), float(y))
    for x, y in (
        (-0.5, -0.33), (-0.39, -0.47), (0.0, -0.12), (0.39, -0.47), (0.5, -0.33), (0.14, 0.0),
        (0.5, 0.33), (0.39, 0.47), (0.0, 0.12), (-0.39, 0.47), (-0.5, 0.33), (-0.14, 0.0),
    )
)  # fmt: skip


@dataclass(frozen=True)
class Sign:
    """A sign: its name, its outline (x to the viewer's right, y up, metres), its background, and its symbol.

    ``draw(canvas, value)`` gets the sign's number, if it has one; ``value`` is then the default. ``low_m`` is the
    height of its lower edge: 2.0 m is the minimum beside a carriageway by the German VwV-StVO.
    """

    what: str
    outline: Outline
    ground: Rgb
    draw: Callable[[Canvas, int], None]
    value: int = 0
    low_m: float = 2.0

    @property
    def size_m(self) -> tuple[float, float]:
        """Width and height."""
        corners = np.array(self.outline)
        width, height = (2.0 * np.abs(corners).max(axis=0)).tolist()
        return width, height


def _stop(c: Canvas, value: int) -> None:
    _inset(c, OCTAGON, 0.955, WHITE)
    _inset(c, OCTAGON, 0.9, RED)
    c.text("STOP", (0.0, 0.0), 0.25, 0.6, WHITE)


def _inset(c: Canvas, outline: Outline, share: float, colour: Rgb) -> None:
    c.polygon([(x * share, y * share) for x, y in outline], colour)


def _edged(c: Canvas, value: int, outline: Outline, inner: Rgb, share: float) -> None:
    _inset(c, outline, share, inner)


def _yield_us(c: Canvas, value: int) -> None:
    c.polygon([(-0.2, 0.07), (0.2, 0.07), (0.0, -0.29)], WHITE)
    c.text("YIELD", (0.0, 0.165), 0.09, 0.45, WHITE)


def _ringed(c: Canvas, value: int, draw: Callable[[Canvas], None] | None = None) -> None:
    ring(c, 0.285, 0.065, RED)
    if draw is not None:
        draw(c)


def _speed(c: Canvas, value: int) -> None:
    ring(c, 0.285, 0.065, RED)
    c.text(str(value), (0.0, 0.0), 0.22, 0.36, BLACK)


def _speed_us(c: Canvas, value: int) -> None:
    _framed(c, 0.6, 0.75)
    letters(c, ("SPEED", "LIMIT"), 0.26, 0.1, 0.13, 0.46, BLACK)
    c.text(str(value), (0.0, -0.16), 0.26, 0.46, BLACK)


def _minimum(c: Canvas, value: int) -> None:
    ring(c, 0.295, 0.015, WHITE)
    c.text(str(value), (0.0, 0.0), 0.24, 0.38, WHITE)


def _zone(c: Canvas, value: int) -> None:
    _framed(c, 0.7, 0.84)
    c.disc((0.0, 0.1), 0.26, RED)
    c.disc((0.0, 0.1), 0.2, WHITE)
    c.text(str(value), (0.0, 0.1), 0.19, 0.3, BLACK)
    c.text("ZONE", (0.0, -0.29), 0.13, 0.5, BLACK)


def _framed(c: Canvas, width_m: float, height_m: float, colour: Rgb = BLACK, ground: Rgb = WHITE) -> None:
    c.polygon(_rectangle(width_m - 0.03, height_m - 0.03), colour)
    c.polygon(_rectangle(width_m - 0.06, height_m - 0.06), ground)


def _no_entry(c: Canvas, value: int) -> None:
    c.polygon(_rectangle(0.46, 0.11), WHITE)


def _do_not_enter(c: Canvas, value: int) -> None:
    c.disc((0.0, 0.0), 0.35, RED)
    c.polygon(_rectangle(0.54, 0.1), WHITE)
    c.text("DO NOT", (0.0, 0.17), 0.1, 0.45, WHITE)
    c.text("ENTER", (0.0, -0.17), 0.1, 0.42, WHITE)


def _wrong_way(c: Canvas, value: int) -> None:
    _framed(c, 0.9, 0.6, WHITE, RED)
    letters(c, ("WRONG", "WAY"), 0.12, 0.17, 0.25, 0.72, WHITE)


def _warning(c: Canvas, value: int, draw: Callable[[Canvas], None]) -> None:
    _inset(c, TRIANGLE, 0.72, WHITE)
    draw(c)


def _exclamation(c: Canvas) -> None:
    c.line([(0.0, 0.2), (0.0, -0.01)], 0.07, BLACK)
    c.disc((0.0, -0.13), 0.045, BLACK)


def _crossroads(c: Canvas) -> None:
    arrow(c, (0.0, -0.17), (0.0, 0.24), 0.07, BLACK)
    c.line([(-0.17, -0.02), (0.17, -0.02)], 0.04, BLACK)


def _diamond(c: Canvas, value: int, draw: Callable[[Canvas], None], ground: Rgb) -> None:
    _inset(c, DIAMOND, 0.96, BLACK)
    _inset(c, DIAMOND, 0.92, ground)
    draw(c)


def _priority(c: Canvas, value: int) -> None:
    _inset(c, DIAMOND, 0.97, WHITE)
    _inset(c, DIAMOND, 0.6, YELLOW)


def _st_andrew(c: Canvas, value: int) -> None:
    for side in (1.0, -1.0):
        for a, b in ((0.32, 0.78), (-0.32, -0.78)):
            c.line([(0.45 * a * side, 0.4 * a), (0.57 * b * side, 0.52 * b)], 0.12, RED)


def _crossbuck(c: Canvas, value: int) -> None:
    letters(c, ("RAIL", "ROAD"), 0.04, 0.07, 0.08, 0.2, BLACK)
    for x, y in ((-0.3, 0.28), (0.3, 0.28), (-0.3, -0.28), (0.3, -0.28)):
        c.text("X" if x * y > 0 else "RR", (x, y), 0.07, 0.1, BLACK)


def _bus_stop(c: Canvas, value: int) -> None:
    c.disc((0.0, 0.0), 0.3, GREEN)
    c.disc((0.0, 0.0), 0.25, YELLOW)
    c.text("H", (0.0, 0.0), 0.28, 0.3, GREEN)


def _school(c: Canvas, value: int) -> None:
    _inset(c, PENTAGON, 0.95, BLACK)
    _inset(c, PENTAGON, 0.9, LIME)
    children(c, (0.0, -0.07), 0.5, BLACK)


def _must_turn(c: Canvas, value: int) -> None:
    _framed(c, 0.75, 0.75)
    letters(c, ("RIGHT", "LANE", "MUST", "TURN RIGHT"), 0.24, 0.1, 0.16, 0.6, BLACK)


def _forbidden(c: Canvas, value: int, draw: Callable[[Canvas], None]) -> None:
    _framed(c, 0.6, 0.6)
    draw(c)
    ring(c, 0.26, 0.045, RED)
    slash(c, 0.24, 0.045, RED)


def _left_arrow(c: Canvas) -> None:
    c.line([(0.07, -0.16), (0.07, 0.05)], 0.055, BLACK)
    arrow(c, (0.07, 0.05), (-0.16, 0.05), 0.055, BLACK)


def _road_work(c: Canvas) -> None:
    letters(c, ("ROAD", "WORK", "AHEAD"), 0.17, 0.12, 0.17, 0.5, BLACK)


def _chevrons(c: Canvas, value: int) -> None:
    for tip in (-0.62, -0.12, 0.38):
        c.line([(tip + 0.24, 0.25), (tip, 0.0), (tip + 0.24, -0.25)], 0.16, RED)


def _marker(c: Canvas, value: int) -> None:
    for low in (-0.35, 0.0):
        c.polygon([(-0.15, low), (0.15, low + 0.14), (0.15, low + 0.3), (-0.15, low + 0.16)], RED)


_SQUARE, _TALL = _rectangle(0.75, 0.75), _rectangle(0.6, 0.75)

SIGNS: dict[str, Sign] = {
    "stop": Sign("stop (206, R1-1)", OCTAGON, RED, _stop),
    "yield": Sign("yield (205)", UPSIDE_DOWN, RED, partial(_edged, outline=UPSIDE_DOWN, inner=WHITE, share=0.68)),
    "yield_us": Sign("yield (R1-2)", UPSIDE_DOWN, RED, _yield_us),
    "speed_limit": Sign("maximum speed in km/h (274)", DISC, WHITE, _speed, 30),
    "speed_limit_us": Sign("maximum speed in mph (R2-1)", _TALL, WHITE, _speed_us, 25),
    "minimum_speed": Sign("minimum speed in km/h (275)", DISC, BLUE, _minimum, 30),
    "zone_30": Sign("beginning of a zone of 30 km/h (274.1)", _rectangle(0.7, 0.84), WHITE, _zone, 30),
    "no_entry": Sign("no entry (267)", DISC, RED, _no_entry),
    "do_not_enter": Sign("do not enter (R5-1)", _SQUARE, WHITE, _do_not_enter),
    "wrong_way": Sign("wrong way (R5-1a)", _rectangle(0.9, 0.6), RED, _wrong_way),
    "no_vehicles": Sign("closed to vehicles of all kinds (250)", DISC, WHITE, _ringed),
    "no_motor_vehicles": Sign("closed to cars (251)", DISC, WHITE, partial(_ringed, draw=partial(car, colour=BLACK))),
    "warning": Sign("danger (101)", TRIANGLE, RED, partial(_warning, draw=_exclamation)),
    "work_zone": Sign("road works (123)", TRIANGLE, RED, partial(_warning, draw=partial(worker, colour=BLACK))),
    "work_zone_us": Sign("road work ahead (W20-1)", DIAMOND, ORANGE, partial(_diamond, draw=_road_work, ground=ORANGE)),
    "children": Sign(
        "children (136)",
        TRIANGLE,
        RED,
        partial(_warning, draw=partial(children, at=(0.0, -0.05), height_m=0.33, colour=BLACK)),
    ),
    "school_pentagon": Sign("school (S1-1), five-sided", PENTAGON, LIME, _school),
    "right_of_way": Sign("right of way at the next crossing (301)", TRIANGLE, RED, partial(_warning, draw=_crossroads)),
    "priority_road": Sign("priority road (306)", DIAMOND, BLACK, _priority),
    "st_andrews_cross": Sign("level crossing (201)", CROSS, WHITE, _st_andrew),
    "crossbuck": Sign("railroad crossing (R15-1)", CROSS, WHITE, _crossbuck),
    "chevrons": Sign("bend to the left (625)", _rectangle(1.5, 0.5), WHITE, _chevrons, low_m=0.8),
    "distance_marker": Sign("160 m to a level crossing (159)", _rectangle(0.3, 1.0), WHITE, _marker, low_m=0.3),
    "bus_stop": Sign("bus stop (224)", DISC, YELLOW, _bus_stop),
    "right_lane_must_turn_right": Sign("right lane must turn right (R3-7R)", _SQUARE, WHITE, _must_turn),
    "no_left_turn": Sign("no left turn (R3-2)", _rectangle(0.6, 0.6), WHITE, partial(_forbidden, draw=_left_arrow)),
    "no_u_turn": Sign(
        "no U-turn (R3-4)", _rectangle(0.6, 0.6), WHITE, partial(_forbidden, draw=partial(u_turn, colour=BLACK))
    ),
    "animal_warning": Sign(
        "deer (W11-3)", DIAMOND, YELLOW, partial(_diamond, draw=partial(deer, colour=BLACK), ground=YELLOW)
    ),
    "pedestrian_warning": Sign(
        "pedestrians (W11-2)",
        DIAMOND,
        YELLOW,
        partial(_diamond, draw=partial(pedestrian, at=(0.0, 0.0), height_m=0.55, colour=BLACK), ground=YELLOW),
    ),
}


@lru_cache(maxsize=64)
def face_of(sign: str, value: int) -> Singles:
    """Return the face (h, w, 3) of a sign, linear red, green, blue; cached."""
    shape = SIGNS[sign]
    canvas = Canvas(shape.size_m, shape.ground)
    shape.draw(canvas, value)
    return canvas.face()
