# SPDX-License-Identifier: Apache-2.0
"""Appearance of a world's bodies for rays and cameras: catalogue meshes with size, stride and colour.

Skin tones, and colours that tell objects of one kind apart, are assumed to look typical.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.scenario import Actor, Obstacle
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.appearance import Paint, Surface, SurfaceColours, main_colour, paint_of
from mt_nodes.world.scene.figures import smooth_normals
from mt_nodes.world.scene.lamps import LAMPS, OFF
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.objects import KINDS, mesh_of
from mt_nodes.world.scene.palette import FACE, Rgb

Size = tuple[float, float, float]

#: Linear albedo of skin from Fitzpatrick's tone 1 to 6.
_SKIN: tuple[Rgb, ...] = (
    (0.62, 0.43, 0.35),
    (0.55, 0.35, 0.26),
    (0.44, 0.26, 0.17),
    (0.31, 0.17, 0.1),
    (0.17, 0.09, 0.05),
    (0.07, 0.038, 0.024),
)
#: Colours by tone, from 0 to 1; None, in the middle, for the catalogue's own.
_PAINTS = ((0.6, 0.6, 0.6), (0.05, 0.05, 0.055), None, (0.32, 0.03, 0.03), (0.3, 0.31, 0.33))
_CLOTHES = ((0.7, 0.55, 0.05), (0.6, 0.08, 0.05), None, (0.05, 0.05, 0.06), (0.75, 0.73, 0.7))
_COLOURED = {"car": _PAINTS, "van": _PAINTS, "adult": _CLOTHES, "child": _CLOTHES, "elderly": _CLOTHES}
#: Steps of a stride: at most so many meshes per walker.
_STEPS = 24
#: Kinds with moving legs: mesh by reflectivity and phase, and phase per metre (as in ``street.py``).
_STRIDES: dict[str, tuple[Callable[[float, float], Mesh], float]] = {
    "adult": (lambda cloth, phase: meshes.pedestrian(cloth, 1.75, phase), 4.2 / 1.75),
    "child": (lambda cloth, phase: meshes.pedestrian(cloth, 1.21, phase), 4.2 / 1.21),
    "cyclist": (meshes.cyclist, 0.5),
}
_ORANGE: Rgb = (0.75, 0.2, 0.02)
_GREY: Rgb = (0.4, 0.39, 0.37)
_OBSTACLE = 0.4


@dataclass(frozen=True, eq=False)
class BodyShape:
    """A body's mesh in its own frame: on the ground, x forward, z up, metres."""

    mesh: Mesh
    paint: Paint

    @cached_property
    def normals(self) -> Singles:
        """(T, 3, 3) a smooth normal for each corner of each triangle."""
        return smooth_normals(self.mesh)

    @cached_property
    def corners_m(self) -> Floats:
        """(8, 3) corners of the box around it; all at its origin if it is empty."""
        vertices = self.mesh.vertices_m if len(self.mesh.vertices_m) else np.zeros((1, 3))
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        return np.stack(np.meshgrid(*zip(low, high, strict=True), indexing="ij"), axis=-1).reshape(-1, 3)


def body_of(actor: Actor, travelled_m: float, *, lit: bool = False) -> BodyShape:
    """Return an actor after a distance, cached per step of its stride; ``lit`` with headlamps on."""
    skin = None if actor.person is None else actor.person.skin_tone
    step = 0
    if actor.kind in _STRIDES:
        step = round(_STRIDES[actor.kind][1] * travelled_m * _STEPS / (2.0 * np.pi)) % _STEPS
    return _body_of(actor.kind, actor.size_m, actor.tone, skin, step, lit)


@lru_cache(maxsize=256)
def obstacle_body(obstacle: Obstacle) -> BodyShape:
    """Return the body of an obstacle; orange for a cone, else grey."""
    colour = _ORANGE if obstacle.shape == "cone" else _GREY
    return BodyShape(_scaled(_unit(obstacle.shape), np.array(obstacle.size_m)), plain(colour))


def plain(colour: Rgb) -> Paint:
    """Return a paint of one colour."""
    return lambda surface: SurfaceColours(np.tile(np.array(colour, np.float32), (len(surface.xyz_m), 1)))


@lru_cache
def _unit(shape: str) -> Mesh:
    """Return an obstacle of one metre each way that stands on the ground."""
    if shape == "box":
        return meshes.box((1.0, 1.0, 1.0), (0.0, 0.0, 0.5), _OBSTACLE)
    if shape == "sphere":
        return meshes.ellipsoid((0.5, 0.5, 0.5), (0.0, 0.0, 0.5), _OBSTACLE)
    if shape == "cone":
        return meshes.cone((0.0, 0.0, 0.0), 0.5, 1.0, _OBSTACLE)
    return meshes.rod((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.5, _OBSTACLE)


@lru_cache(maxsize=512)
def _body_of(kind: str, size_m: Size | None, tone: float, skin: int | None, step: int, lit: bool) -> BodyShape:
    mesh, facts = mesh_of(kind), facts_of(kind)
    if kind in _STRIDES:
        mesh = _STRIDES[kind][0](KINDS[kind].reflectivity, 2.0 * np.pi * step / _STEPS)
    lamps = "headlamps" if lit and "headlamps" in LAMPS.get(kind, {}) else OFF
    paint = _repainted(paint_of(kind, lamps), _swaps(kind, tone, skin))
    middle = np.array([*facts.middle_m, 0.0])
    scale = np.divide(size_m or facts.size_m, facts.size_m)
    centred = _scaled(replace(mesh, vertices_m=mesh.vertices_m - middle), scale)
    if size_m is None and not middle.any():
        return BodyShape(centred, paint)
    factor, shift = scale.astype(np.float32), middle.astype(np.float32)
    return BodyShape(centred, lambda surface: paint(replace(surface, xyz_m=surface.xyz_m / factor + shift)))


def _repainted(paint: Paint, colours: Mapping[Rgb, Rgb]) -> Paint:
    """Return a paint with some of its colours replaced."""
    pairs = [(np.array(old, np.float32), np.array(new, np.float32)) for old, new in colours.items()]

    def other(surface: Surface) -> SurfaceColours:
        painted = paint(surface)
        places = [(np.flatnonzero((painted.albedo == old).all(axis=1)), new) for old, new in pairs]
        for rows, new in places:
            painted.albedo[rows] = new
        return painted

    return other


def _swaps(kind: str, tone: float, skin: int | None) -> dict[Rgb, Rgb]:
    """Return the replaced colours of a kind."""
    palette = _COLOURED.get(kind)
    own = palette[min(int(tone * len(palette)), len(palette) - 1)] if palette else None
    swaps: dict[Rgb, Rgb] = {} if own is None else {main_colour(kind): own}
    return swaps if skin is None else {**swaps, FACE: _SKIN[skin - 1]}


def _scaled(mesh: Mesh, scale: Floats) -> Mesh:
    return replace(mesh, vertices_m=mesh.vertices_m * scale)
