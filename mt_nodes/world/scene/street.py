# SPDX-License-Identifier: Apache-2.0
"""A town street with static and moving objects, from a seed.

World frame: x along the ego's lane (its centre line is y = 0), y left, z up. The street consists of blocks of 20 m; the
contents of a block depend on the seed and its number alone, so a longer street has the same beginning. A street with
bends is made straight, and then bent along its road. Gaps between objects are wider than any sensible clustering
tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.seeds import generator
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.road import Road

BLOCK_M = 20.0
EGO_SPEED_MPS = 8.0
VIEW_M = 130.0

ASPHALT, PAVING = 0.18, 0.28
KERB_M = 0.12
RIGHT_KERB_Y_M, LEFT_KERB_Y_M, FACADE_Y_M = -4.4, 8.1, 12.6
GROUND, HOUSE, POLE, VEHICLE, PERSON = "ground", "house", "pole", "vehicle", "person"
#: In a bend the ground of a block is split into so many pieces, so that its edges follow the road to a centimetre.
_BENT_PIECES = 10
#: Places that far apart in time give a velocity.
_INSTANT_S = 0.01


@dataclass(frozen=True, eq=False)
class Piece:
    """An object of the straight street, and what a camera needs for its colours.

    ``kind``: one of ``ground``, ``house``, ``pole``, ``vehicle``, ``person``. ``tone``: 0..1, distinguishes objects of
    one kind. ``speed_mps``: along the street, signed.
    """

    kind: str
    mesh: Mesh
    tone: float = 0.0
    speed_mps: float = 0.0


@dataclass(frozen=True, eq=False)
class Mover:
    """An object that moves at constant speed along the street.

    Attributes:
        kind: as in :class:`Piece`.
        shape: mesh as a function of the distance walked in metres (legs swing).
        x_m, y_m: position at time zero. speed_mps: signed, along x. sway_m: amplitude of its weaving.
        tone: as in :class:`Piece`.
    """

    kind: str
    shape: Callable[[float], Mesh]
    x_m: float
    y_m: float
    speed_mps: float
    sway_m: float = 0.0
    tone: float = 0.0

    def at(self, time_s: float) -> Mesh:
        """Return the mesh at its position at a time."""
        travelled = self.speed_mps * time_s
        weave = self.sway_m * float(np.sin(1.7 * time_s + self.x_m))
        yaw = np.pi if self.speed_mps < 0 else 0.0
        return self.shape(abs(travelled)).placed(self.x_m + travelled, self.y_m + weave, yaw)


class Street:
    """A street long enough for a drive of ``duration_s`` from x = 0, straight unless ``bend_1pm`` is given."""

    def __init__(self, seed: int, duration_s: float, bend_1pm: float = 0.0) -> None:
        last = int(np.ceil((EGO_SPEED_MPS * duration_s + VIEW_M) / BLOCK_M))
        blocks = range(-int(VIEW_M // BLOCK_M) - 1, last)
        self._seed = seed
        self.road = Road(bend_1pm, (last + 1) * BLOCK_M + VIEW_M)
        parts = _BENT_PIECES if bend_1pm else 1
        self._blocks = {k: _pieces(k, _standing(self._rng(k, "standing"), k * BLOCK_M, parts)) for k in blocks}
        walkers = [_walking(self._rng(k, "walking"), k * BLOCK_M) for k in blocks]
        self._movers = [*chain.from_iterable(walkers), *_oncoming(self._rng(0, "oncoming"), duration_s)]
        self._movers += _cyclists(self._rng(0, "cyclists"))

    def pieces(self, time_s: float) -> list[Piece]:
        """Return the objects in the ego's sight at a time, along a straight street."""
        ego_x = EGO_SPEED_MPS * time_s
        near = [block for k, block in self._blocks.items() if abs((k + 0.5) * BLOCK_M - ego_x) < VIEW_M]
        visible = (m for m in self._movers if abs(m.x_m + m.speed_mps * time_s - ego_x) < VIEW_M)
        moving = [Piece(mover.kind, mover.at(time_s), mover.tone, mover.speed_mps) for mover in visible]
        return [*chain.from_iterable(near), *moving]

    def velocity(self, piece: Piece, ego_m: float) -> Floats:
        """Return the velocity (3,) of a piece over the ground, in the frame of an ego that stands at ``ego_m``."""
        middle = piece.mesh.vertices_m.mean(axis=0)
        ahead = np.array([middle, middle + np.array([piece.speed_mps * _INSTANT_S, 0.0, 0.0])])
        line = Mesh(ahead, np.empty((0, 3), np.uint32), np.empty(0))
        return np.asarray(np.diff(self.road.on_road(line, ego_m).vertices_m, axis=0)[0] / _INSTANT_S)

    def _rng(self, block: int, what: str) -> np.random.Generator:
        return generator(self._seed, "street", 0, block, what)


def _pieces(block: int, things: Iterable[tuple[str, Mesh]]) -> list[Piece]:
    return [Piece(kind, mesh, _tone(31 * block + i)) for i, (kind, mesh) in enumerate(things)]


def _tone(number: int) -> float:
    """Successive numbers differ strongly: multiples of the golden ratio."""
    return (0.6180339887 * number) % 1.0


def _standing(rng: np.random.Generator, x: float, parts: int) -> Iterator[tuple[str, Mesh]]:
    """Return one block's ground, houses, parked cars, lamp posts and waiting people, each with its kind."""
    for y_low, y_high, top_m, reflectivity in (
        (-20.0, 20.0, 0.0, ASPHALT),
        (-20.0, RIGHT_KERB_Y_M, KERB_M, PAVING),
        (LEFT_KERB_Y_M, 20.0, KERB_M, PAVING),
    ):
        for part in range(parts):
            yield GROUND, _slab(x + part * BLOCK_M / parts, BLOCK_M / parts, y_low, y_high, top_m, reflectivity)
    for side in (-1.0, 1.0):
        setback, height = rng.uniform(0.0, 1.0), rng.uniform(7.0, 14.0)
        house = meshes.building((BLOCK_M, 6.0, height), rng.uniform(0.25, 0.55))
        yield HOUSE, house.placed(x + BLOCK_M / 2, side * (FACADE_Y_M + setback + 3.0))
    for slot in (2.6, 9.3, 16.0):
        if rng.random() < 0.7:
            yield VEHICLE, _parked(rng).placed(x + slot, -3.25)
    for slot in (2.6, 9.3):
        if rng.random() < 0.7:
            yield VEHICLE, _parked(rng).placed(x + slot, 7.0, np.pi)
    yield POLE, meshes.pole(0.3).placed(x + 13.0, -9.6)
    waiting = meshes.pedestrian(_clothing(rng), rng.uniform(1.55, 1.85))
    yield PERSON, waiting.placed(x + 15.3, 8.65, rng.uniform(-3.0, 3.0))
    refuge = meshes.pedestrian(_clothing(rng), rng.uniform(1.55, 1.85))
    yield PERSON, refuge.placed(x + 17.0, 1.65 + rng.uniform(-0.1, 0.1), np.pi / 2)


def _walking(rng: np.random.Generator, x: float) -> Iterator[Mover]:
    """Return one block's pedestrians on the right-hand pavement; those on one line have the same pace."""
    for line_y, speed in ((-5.4, 1.3), (-6.95, -1.2), (-8.5, 1.0)):
        if rng.random() < 0.85:
            cloth, height = _clothing(rng), rng.uniform(1.1, 1.25) if rng.random() < 0.25 else rng.uniform(1.55, 1.9)

            def shape(travelled_m: float, cloth: float = cloth, height: float = height) -> Mesh:
                return meshes.pedestrian(cloth, height, 4.2 * travelled_m / height)

            yield Mover(
                PERSON, shape, x + rng.uniform(0.0, BLOCK_M - 3.0), line_y, speed, tone=_tone(round(x - line_y))
            )


def _oncoming(rng: np.random.Generator, duration_s: float) -> Iterator[Mover]:
    """Return cars in the other lane, 24 to 30 m apart."""
    x, end = -VIEW_M, VIEW_M + 2 * EGO_SPEED_MPS * duration_s
    while x < end:
        body = meshes.van(_paint(rng)) if rng.random() < 0.2 else meshes.car(_paint(rng), rng.uniform(4.0, 4.8))
        yield Mover(VEHICLE, lambda _, body=body: body, x, 4.1, -EGO_SPEED_MPS, tone=_tone(round(x)))  # type: ignore[misc]
        x += rng.uniform(24.0, 30.0)


def _cyclists(rng: np.random.Generator) -> Iterator[Mover]:
    """Return a group that rides ahead of the ego at its own speed."""
    for x, y in ((11.0, -1.0), (24.0, 0.65), (34.0, -0.9)):
        yield Mover(PERSON, partial(_rider, rng.uniform(0.2, 0.5)), x, y, EGO_SPEED_MPS, 0.12, _tone(round(x)))


def _rider(cloth: float, travelled_m: float) -> Mesh:
    return meshes.cyclist(cloth, travelled_m / 2.0)


def _parked(rng: np.random.Generator) -> Mesh:
    if rng.random() < 0.15:
        return meshes.van(_paint(rng), 5.0)
    return meshes.car(_paint(rng), rng.uniform(3.9, 4.7), rng.uniform(1.7, 1.85), rng.uniform(1.42, 1.6))


def _paint(rng: np.random.Generator) -> float:
    return float(rng.choice([0.05, 0.2, 0.4, 0.55]))


def _clothing(rng: np.random.Generator) -> float:
    return float(rng.choice([0.05, 0.2, 0.35, 0.5]))


def _slab(x: float, length_m: float, y_low: float, y_high: float, top_m: float, reflectivity: float) -> Mesh:
    size = (length_m, y_high - y_low, 0.3)
    return meshes.box(size, (x + length_m / 2, (y_low + y_high) / 2, top_m - 0.15), reflectivity)
