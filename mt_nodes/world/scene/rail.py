# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of a tram, and of a level crossing's gate.

The tram has the size of the most widely built one, Tatra's T3: 14.0 m long, 2.5 m wide and 3.05 m high, bogies 6.4 m
apart with axles of 1.9 m. The gate's arm is assumed to be 5 m long, 0.12 m high and 1 m above the road.
"""

from __future__ import annotations

import numpy as np

from mt_nodes.world.scene.meshes import DARK, GLASS, STEEL, TYRE, Mesh, box, merged, prism, rod

_LENGTH_M, _WIDTH_M, _PIVOT_M, _AXLES_M = 14.0, 2.5, 6.4, 1.9


def tram(reflectivity: float) -> Mesh:
    """Return a tram with its pantograph up: rounded ends, a band of windows around, two bogies."""
    half = _LENGTH_M / 2.0
    skirt = [
        (-half, 0.6),
        (-half + 0.25, 0.34),
        (half - 0.25, 0.34),
        (half, 0.6),
        (half - 0.05, 1.3),
        (-half + 0.05, 1.3),
    ]
    panes = [(-half + 0.05, 1.29), (half - 0.05, 1.29), (half - 0.5, 2.36), (-half + 0.3, 2.36)]
    crown = [(half - 0.62, 2.8), (half - 1.2, 3.05), (-half + 1.0, 3.05), (-half + 0.4, 2.8)]
    roof = [(-half + 0.3, 2.35), (half - 0.5, 2.35), *crown]
    wheels = [
        rod((x, side * 0.62, 0.34), (x, side * 0.78, 0.34), 0.34, TYRE)
        for x in (
            np.array([1.0, 1.0, -1.0, -1.0]) * _PIVOT_M / 2.0 + np.array([0.5, -0.5, 0.5, -0.5]) * _AXLES_M
        ).tolist()
        for side in (1.0, -1.0)
    ]
    return merged(
        [
            prism(skirt, _WIDTH_M, reflectivity),
            prism(panes, 0.985 * _WIDTH_M, GLASS),
            prism(roof, _WIDTH_M, reflectivity),
            *(box((2.9, 1.7, 0.3), (x, 0.0, 0.42), DARK) for x in (_PIVOT_M / 2.0, -_PIVOT_M / 2.0)),
            *wheels,
            *_pantograph(),
        ]
    )


def _pantograph() -> list[Mesh]:
    """Return the bars that take current from a wire 4.7 m above the rails."""
    bars = [rod((1.4, y, 3.05), (0.5, y, 3.9), 0.03, STEEL) for y in (0.5, -0.5)]
    bars += [rod((0.5, y, 3.9), (1.3, y, 4.65), 0.03, STEEL) for y in (0.5, -0.5)]
    return [
        *bars,
        rod((1.3, -0.85, 4.66), (1.3, 0.85, 4.66), 0.04, STEEL),
        box((1.6, 1.0, 0.14), (1.3, 0.0, 3.12), DARK),
    ]


def crossing_gate(reflectivity: float) -> Mesh:
    """Return a closed half barrier: its machine to the right, its arm across the lane, to the left along y."""
    machine = box((0.4, 0.45, 1.15), (0.0, -2.5, 0.575), STEEL)
    weight = box((0.16, 0.35, 0.35), (0.0, -2.95, 1.05), DARK)
    arm = box((0.07, 5.1, 0.12), (-0.24, -0.15, 1.05), reflectivity)
    return merged([machine, weight, arm, rod((0.1, -2.5, 1.05), (-0.28, -2.5, 1.05), 0.09, DARK)])
