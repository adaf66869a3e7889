# SPDX-License-Identifier: Apache-2.0
"""What a LiDAR sees of vehicles besides their painted bodies: seats behind glass, pillars, plates, reflectors, chrome.

Pictures show plates and lamps as colours of the body (``appearance.py``), and glass as opaque. Sizes are typical of
their class (assumed); number plates measure 0.52 m x 0.11 m, as in most states of the European Union.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from mt_nodes.world.scene.meshes import CHROME, RETRO, Mesh, box, merged, rod

#: Trim, textiles and plastics of interiors, in the shade: as dark as carbon black makes them (assumed).
_TRIM = 0.05
_PLATE_M, _REFLECTOR_M, _THIN_M = (0.52, 0.11), (0.2, 0.12), 0.01


def with_fittings(kind: str, mesh: Mesh, reflectivity: float) -> Mesh:
    """Return the mesh of a kind of the catalogue with its fittings; ``reflectivity`` is that of its paint."""
    fit = _FITTINGS.get(kind)
    return mesh if fit is None else merged([mesh, *fit(reflectivity)])


def _ends(half_length_m: float, half_width_m: float, plate_z_m: float, lamp_z_m: float) -> Iterator[Mesh]:
    """Yield plates at both ends, and the reflectors of the four lamps."""
    for end in (1.0, -1.0):
        x = end * (half_length_m + _THIN_M / 2)
        yield box((_THIN_M, *_PLATE_M), (x, 0.0, plate_z_m), RETRO)
        for side in (1.0, -1.0):
            yield box((_THIN_M, *_REFLECTOR_M), (x, side * (half_width_m - 0.15), lamp_z_m), RETRO)


def _car(paint: float) -> Iterator[Mesh]:
    """Yield the fittings of :func:`.meshes.car`, 4.4 m long: three pillars a side, two rows of seats, dashboard."""
    for side in (1.0, -1.0):
        yield rod((1.3, 0.79 * side, 0.95), (0.36, 0.77 * side, 1.43), 0.04, paint)
        yield rod((-0.4, 0.81 * side, 0.95), (-0.44, 0.78 * side, 1.43), 0.045, paint)
        yield rod((-1.98, 0.79 * side, 0.95), (-1.4, 0.77 * side, 1.43), 0.05, paint)
        yield box((0.12, 0.5, 0.3), (-0.15, 0.38 * side, 1.12), _TRIM)
        yield box((0.08, 0.26, 0.16), (-0.22, 0.38 * side, 1.34), _TRIM)
    yield box((0.14, 1.3, 0.2), (-1.15, 0.0, 1.07), _TRIM)
    yield box((3.1, 1.5, 0.02), (-0.35, 0.0, 0.99), _TRIM)
    yield box((0.4, 1.4, 0.1), (0.75, 0.0, 1.03), _TRIM)
    yield box((_THIN_M, 0.7, 0.04), (2.205, 0.0, 0.6), CHROME)
    yield from _ends(2.2, 0.9, 0.5, 0.62)


def _van(paint: float) -> Iterator[Mesh]:
    yield from _ends(2.8, 1.0, 0.6, 0.85)


def _ambulance(paint: float) -> Iterator[Mesh]:
    yield from _ends(3.0, 1.02, 0.6, 0.9)


def _truck(paint: float) -> Iterator[Mesh]:
    """Yield the interior right behind the windscreen of :func:`.vehicles.truck`, in place of the painted cab."""
    yield box((0.002, 2.25, 0.8), (4.26, 0.0, 2.2), _TRIM)
    yield from _ends(4.25, 1.25, 0.75, 0.9)


def _rows(first_m: float, last_m: float, half_width_m: float, low_m: float, high_m: float) -> Iterator[Mesh]:
    """Yield rows of seats 0.8 m apart, and dark posts between windows every 1.5 m."""
    count = int((last_m - first_m) / 0.8) + 1
    for row, side in product(range(count), (1.0, -1.0)):
        at = (first_m + 0.8 * row, 0.55 * half_width_m * side, low_m + 0.3)
        yield box((0.12, 0.7 * half_width_m, 0.6), at, _TRIM)
    for post, side in product(range(int((last_m - first_m) / 1.5) + 2), (1.0, -1.0)):
        at = (first_m - 0.3 + 1.5 * post, side * (half_width_m + 0.005), (low_m + high_m) / 2)
        yield box((0.12, 0.02, high_m - low_m), at, _TRIM)


def _bus(paint: float) -> Iterator[Mesh]:
    yield from _rows(-5.4, 5.0, 1.256, 1.2, 2.6)
    yield from _ends(6.0, 1.27, 0.45, 0.72)


def _school_bus(paint: float) -> Iterator[Mesh]:
    yield from _rows(-5.1, 3.2, 1.2, 1.2, 2.6)
    yield box((_THIN_M, *_PLATE_M), (-5.505, 0.0, 0.5), RETRO)


def _loader(paint: float) -> Iterator[Mesh]:
    yield box((0.14, 0.6, 0.8), (-0.55, 0.0, 2.1), _TRIM)
    for x, y in product((-0.98, 0.38), (0.73, -0.73)):
        yield rod((x, y, 1.7), (x, y, 3.2), 0.05, paint)


def _tow_truck(paint: float) -> Iterator[Mesh]:
    yield box((0.002, 2.0, 0.7), (3.51, 0.0, 2.0), _TRIM)


def _tram(paint: float) -> Iterator[Mesh]:
    yield from _rows(-6.0, 6.0, 1.23, 1.4, 2.5)


_FITTINGS: dict[str, Callable[[float], Iterator[Mesh]]] = {
    "car": _car,
    "van": _van,
    "emergency_vehicle": _ambulance,
    "truck": _truck,
    "bus": _bus,
    "school_bus": _school_bus,
    "construction_vehicle": _loader,
    "tow_truck": _tow_truck,
    "tram": _tram,
}
