# SPDX-License-Identifier: Apache-2.0
"""Colours of the street's objects for cameras.

Colours are linear albedos, red, green, blue in 0..1, chosen to look like a town. A LiDAR's reflectivity does not affect
them, but identifies tyres, panes and skin.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.scene.meshes import GLASS, SKIN, TYRE
from mt_nodes.world.scene.street import GROUND, HOUSE, LEFT_KERB_Y_M, PERSON, POLE, RIGHT_KERB_Y_M, VEHICLE, Piece

#: Lines of the ego's lane, 2 m beside its centre line: dashes to the left, a solid line to the right.
LINE_Y_M, LINE_WIDTH_M, DASH_M, DASH_AND_GAP_M = 2.0, 0.15, 4.0, 6.0
_ASPHALT, _PAVING, _LINE = (0.13, 0.13, 0.135), (0.24, 0.23, 0.215), 0.7
_FACADES = ((0.4, 0.33, 0.24), (0.36, 0.21, 0.16), (0.44, 0.41, 0.37), (0.3, 0.32, 0.29), (0.43, 0.35, 0.26))
_PAINTS = ((0.6, 0.6, 0.6), (0.05, 0.05, 0.055), (0.3, 0.31, 0.33), (0.32, 0.03, 0.03), (0.04, 0.09, 0.26))
_JACKETS = ((0.75, 0.73, 0.7), (0.7, 0.55, 0.05), (0.6, 0.08, 0.05), (0.05, 0.05, 0.06), (0.12, 0.32, 0.62))
_TROUSERS = ((0.03, 0.035, 0.07), (0.02, 0.02, 0.02), (0.06, 0.08, 0.14))
_BY_REFLECTIVITY = {TYRE: (0.02, 0.02, 0.02), GLASS: (0.04, 0.05, 0.06), SKIN: (0.5, 0.3, 0.21)}
_HAIR, _STEEL, _PANE = (0.045, 0.03, 0.02), (0.2, 0.2, 0.2), 0.05
#: Height of a storey, and spacing of windows.
STOREY_M, BAY_M = 3.2, 2.5
_TILE = 256


def albedo(piece: Piece) -> Singles:
    """Return the colour of each triangle (T, 3), before :func:`painted_ground` and :func:`panes`."""
    reflectivity = piece.mesh.reflectivity
    colours = np.empty((len(reflectivity), 3), dtype=np.float32)
    colours[:] = _BASE[piece.kind](piece)
    if piece.kind == PERSON:
        z = piece.mesh.vertices_m[:, 2][piece.mesh.triangles].mean(axis=1)
        height_m = float(piece.mesh.vertices_m[:, 2].max())
        colours[z < 0.46 * height_m] = _choice(_TROUSERS, 7.0 * piece.tone % 1.0)
        for value, colour in _BY_REFLECTIVITY.items():
            colours[reflectivity == value] = colour
        colours[(reflectivity == SKIN) & (z > 0.945 * height_m)] = _HAIR
    elif piece.kind == VEHICLE:
        for value in (TYRE, GLASS):
            colours[reflectivity == value] = _BY_REFLECTIVITY[value]
    return colours


def painted_ground(colours: Singles, s: Singles, d: Singles, range_m: Singles, px_m: Singles) -> None:
    """Paint the grain of asphalt and paving, and the lines of the ego's lane, on ground (N, 3), in place.

    ``s``, ``d``: (N,) where, along and to the left of the lane's centre line, in metres. ``range_m``: (N,) from the
    camera. ``px_m``: (N,) width of a pixel there, across the line of sight.
    """
    grain = _grain()[(25.0 * s).astype(np.int32) % _TILE, (25.0 * d).astype(np.int32) % _TILE]
    patches = _grain()[(0.7 * s).astype(np.int32) % _TILE, (1.3 * d).astype(np.int32) % _TILE]
    colours *= (1.0 + 0.5 * grain / (1.0 + range_m / 4.0) + 0.12 * patches / (1.0 + range_m / 30.0))[:, None]
    share = _covered(np.abs(d + LINE_Y_M) - LINE_WIDTH_M / 2.0, px_m)
    along_px_m = (
        px_m * np.maximum(range_m, np.float32(1.0)) / np.float32(1.5)
    )  # a pixel is so much longer on the road, seen from 1.5 m
    middle_m = np.abs(np.mod(s, np.float32(DASH_AND_GAP_M)) - np.float32(DASH_M / 2.0))
    dash = _covered(middle_m - np.float32(DASH_M / 2.0), along_px_m)
    share += _covered(np.abs(d - LINE_Y_M) - LINE_WIDTH_M / 2.0, px_m) * dash
    share *= 0.92 + 0.16 * grain / (1.0 + range_m / 4.0)
    colours += share[:, None] * (_LINE - colours)


def panes(colours: Singles, s: Singles, d: Singles, z: Singles) -> None:
    """Paint windows on facades (N, 3), in place; ``s``, ``d``, ``z`` (N,) as for the ground, z up."""
    along = np.abs(np.mod(s + 0.37 * np.floor(z / 40.0), BAY_M) - BAY_M / 2.0) < 0.55
    up = np.mod(z, STOREY_M)
    window = along & (up > 0.95) & (up < 2.45) & (np.abs(d) < 20.0)
    colours[window] = _PANE
    colours[(z < 0.5)] *= 0.6


def _covered(beyond_m: Singles, px_m: Singles) -> Singles:
    """Return the covered share of pixels (N,) by an area whose edge is ``beyond_m`` away (negative: within)."""
    return np.asarray(np.clip(0.5 - beyond_m / px_m, 0.0, 1.0), dtype=np.float32)


def _choice(colours: tuple[tuple[float, float, float], ...], tone: float) -> tuple[float, float, float]:
    return colours[int(tone * len(colours)) % len(colours)]


def _ground(piece: Piece) -> tuple[float, float, float]:
    y = piece.mesh.vertices_m[:, 1]
    return _PAVING if y.max() <= RIGHT_KERB_Y_M or y.min() >= LEFT_KERB_Y_M else _ASPHALT


_BASE: dict[str, Any] = {
    GROUND: _ground,
    HOUSE: lambda piece: _choice(_FACADES, piece.tone),
    POLE: lambda _: _STEEL,
    VEHICLE: lambda piece: _choice(_PAINTS, piece.tone),
    PERSON: lambda piece: _choice(_JACKETS, piece.tone),
}


@lru_cache
def _grain() -> Singles:
    """A tile of noise of mean 0, the same for every street: the ground is not random."""
    tile = np.random.Generator(np.random.PCG64(0)).standard_normal((_TILE, _TILE))
    return np.clip(0.5 * tile, -1.0, 1.0).astype(np.float32)
