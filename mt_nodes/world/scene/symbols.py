# SPDX-License-Identifier: Apache-2.0
"""Symbols on the faces of traffic signs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mt_nodes.world.scene.canvas import Canvas, Point, Rgb


def letters(
    c: Canvas, lines: Sequence[str], top_m: float, height_m: float, pitch_m: float, width_m: float, colour: Rgb
) -> None:
    """Write lines under each other; the middle of the first is at ``top_m``."""
    for number, words in enumerate(lines):
        c.text(words, (0.0, top_m - number * pitch_m), height_m, width_m, colour)


def ring(c: Canvas, radius_m: float, width_m: float, colour: Rgb) -> None:
    """Draw a ring within a radius."""
    angles = np.linspace(0.0, 2.0 * np.pi, 65)
    middle = radius_m - width_m / 2.0
    c.line([(float(middle * np.cos(a)), float(middle * np.sin(a))) for a in angles], width_m, colour)


def slash(c: Canvas, radius_m: float, width_m: float, colour: Rgb) -> None:
    """Draw a bar from the upper left to the lower right."""
    end = radius_m * 0.7
    c.line([(-end, end), (end, -end)], width_m, colour)


def arrow(c: Canvas, tail: Point, tip: Point, width_m: float, colour: Rgb) -> None:
    """Draw a straight arrow."""
    along = np.subtract(tip, tail)
    along = along / np.hypot(*along)
    across, neck = np.array([-along[1], along[0]]), np.subtract(tip, 2.0 * width_m * along)
    c.line([tail, (float(neck[0]), float(neck[1]))], width_m, colour)
    barbs = [tuple(neck + side * 1.5 * width_m * across) for side in (1.0, -1.0)]
    c.polygon([tip, barbs[0], barbs[1]], colour)


def u_turn(c: Canvas, colour: Rgb) -> None:
    """Draw an arrow that turns back to the left."""
    angles = np.linspace(0.0, np.pi, 17)
    bow = [(float(0.09 * np.cos(a)), float(0.05 + 0.09 * np.sin(a))) for a in angles]
    c.line([(0.09, -0.17), *bow], 0.05, colour)
    arrow(c, (-0.09, 0.05), (-0.09, -0.14), 0.05, colour)


def car(c: Canvas, colour: Rgb) -> None:
    """Draw a car seen from the front."""
    c.polygon([(-0.12, -0.07), (0.12, -0.07), (0.12, 0.02), (-0.12, 0.02)], colour)
    c.polygon([(-0.1, 0.0), (-0.07, 0.1), (0.07, 0.1), (0.1, 0.0)], colour)
    for x in (-0.09, 0.09):
        c.line([(x, -0.07), (x, -0.11)], 0.04, colour)


def pedestrian(c: Canvas, at: Point, height_m: float, colour: Rgb) -> None:
    """Draw a walker, seen from the side; ``at`` is the middle."""
    x, y, h = *at, height_m
    c.disc((x, y + 0.42 * h), 0.08 * h, colour)
    c.line([(x, y + 0.27 * h), (x, y - 0.05 * h)], 0.15 * h, colour)
    for foot, hand in ((-0.2, 0.2), (0.2, -0.2)):
        c.line([(x, y - 0.05 * h), (x + foot * h, y - 0.45 * h)], 0.09 * h, colour)
        c.line([(x, y + 0.28 * h), (x + hand * h, y + 0.0 * h)], 0.06 * h, colour)


def children(c: Canvas, at: Point, height_m: float, colour: Rgb) -> None:
    """Draw two children, one taller than the other."""
    x, y = at
    pedestrian(c, (x - 0.2 * height_m, y), height_m, colour)
    pedestrian(c, (x + 0.25 * height_m, y - 0.1 * height_m), 0.8 * height_m, colour)


def worker(c: Canvas, colour: Rgb) -> None:
    """Draw a man who shovels a heap."""
    c.disc((-0.03, 0.18), 0.035, colour)
    c.line([(-0.05, 0.12), (-0.1, 0.0)], 0.06, colour)
    c.line([(-0.1, 0.0), (-0.04, -0.07), (-0.07, -0.18)], 0.04, colour)
    c.line([(-0.1, 0.0), (-0.15, -0.18)], 0.04, colour)
    c.line([(-0.04, 0.11), (0.05, 0.03)], 0.03, colour)
    c.line([(-0.03, 0.09), (0.1, -0.1)], 0.018, colour)
    c.polygon([(0.06, -0.19), (0.12, -0.09), (0.18, -0.08), (0.24, -0.19)], colour)


def deer(c: Canvas, colour: Rgb) -> None:
    """Draw a leaping deer."""
    c.line([(-0.12, 0.0), (0.08, 0.06)], 0.11, colour)
    c.line([(0.08, 0.06), (0.15, 0.18)], 0.05, colour)
    c.line([(0.15, 0.19), (0.2, 0.17)], 0.05, colour)
    for a, b in (((0.1, 0.03), (0.2, -0.06)), ((0.07, 0.01), (0.14, -0.12))):
        c.line([a, b], 0.025, colour)
    for a, b in (((-0.14, -0.02), (-0.24, -0.12)), ((-0.1, -0.03), (-0.17, -0.2))):
        c.line([a, b], 0.03, colour)
    c.line([(0.14, 0.2), (0.08, 0.3)], 0.018, colour)
    c.line([(0.11, 0.25), (0.15, 0.32)], 0.018, colour)
