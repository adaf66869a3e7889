# SPDX-License-Identifier: Apache-2.0
"""Lamps of the catalogue's objects that cameras may see lit."""

from __future__ import annotations

from dataclasses import dataclass

Rgb = tuple[float, float, float]
OFF = "off"


@dataclass(frozen=True)
class Lamps:
    """Lamps of a kind: their colour, and centres (x, y, z) and radius in metres.

    With ``both_sides`` there is one at -y for each at y.
    """

    colour: Rgb
    centers_m: tuple[Rgb, ...]
    radius_m: float
    both_sides: bool = True


_AMBER_GLOW, _RED_GLOW, _BLUE_GLOW = (1.0, 0.62, 0.08), (1.0, 0.14, 0.1), (0.3, 0.5, 1.0)
_WHITE_GLOW = (1.0, 0.98, 0.9)


def _corners(length_m: float, y_m: float, z_m: float) -> tuple[Rgb, ...]:
    return ((length_m / 2, y_m, z_m), (-length_m / 2, y_m, z_m))


#: Lamps by kind: hazard flashers at the corners, the yellow or red pair of a school bus, a beacon.
LAMPS: dict[str, dict[str, Lamps]] = {
    "car": {
        "hazard": Lamps(_AMBER_GLOW, _corners(4.4, 0.74, 0.72), 0.16),
        "headlamps": Lamps(_WHITE_GLOW, ((2.2, 0.6, 0.62),), 0.16),
        "one_headlamp": Lamps(_WHITE_GLOW, ((2.2, -0.6, 0.62),), 0.16, both_sides=False),
    },
    "van": {"hazard": Lamps(_AMBER_GLOW, _corners(5.6, 0.85, 0.85), 0.18)},
    "truck": {"hazard": Lamps(_AMBER_GLOW, ((4.25, 1.05, 0.9), (-4.25, 1.1, 1.25)), 0.22)},
    "bus": {"hazard": Lamps(_AMBER_GLOW, _corners(12.0, 1.05, 0.72), 0.2)},
    "school_bus": {
        "yellow": Lamps(_AMBER_GLOW, ((-5.5, 0.95, 2.85), (3.9, 0.95, 2.85)), 0.2),
        "red": Lamps(_RED_GLOW, ((-5.5, 0.7, 2.85), (3.9, 0.7, 2.85)), 0.2),
    },
    "emergency_vehicle": {
        "beacon": Lamps(_BLUE_GLOW, ((1.2, 0.45, 2.7),), 0.45),
        "hazard": Lamps(_AMBER_GLOW, _corners(6.0, 0.85, 0.9), 0.2),
        "red": Lamps(_RED_GLOW, ((-3.0, 0.8, 2.45), (1.2, 0.45, 2.7)), 0.3),
    },
    "tram": {"headlamps": Lamps(_WHITE_GLOW, ((6.98, 0.62, 0.86),), 0.13)},
    "construction_vehicle": {"beacon": Lamps(_AMBER_GLOW, ((-0.9, 0.65, 3.3), (-3.2, 0.75, 1.85)), 0.25)},
}
