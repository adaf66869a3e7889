# SPDX-License-Identifier: Apache-2.0
"""A street in town: what stands in it and what moves along it, from a seed.

World frame: x along the ego's lane (its centre line is y = 0), y left, z up. The street consists of blocks of 20 m;
what a block holds depends on the seed and its number alone, so a longer street has the same beginning.
Gaps between things are wider than any sensible clustering tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from mt_nodes.scene import meshes
from mt_nodes.scene.meshes import Mesh
from mt_nodes.seeds import generator

BLOCK_M = 20.0
EGO_SPEED_MPS = 8.0
VIEW_M = 130.0

ASPHALT, PAVING = 0.18, 0.28
KERB_M = 0.12
RIGHT_KERB_Y_M, LEFT_KERB_Y_M, FACADE_Y_M = -4.4, 8.1, 12.6


@dataclass(frozen=True, eq=False)
class Mover:
    """Something that moves at constant speed along the street.

    Attributes:
        shape: mesh as a function of the distance walked in metres (legs swing).
        x_m, y_m: where it is at time zero. speed_mps: signed, along x. sway_m: amplitude of its weaving.
    """

    shape: Callable[[float], Mesh]
    x_m: float
    y_m: float
    speed_mps: float
    sway_m: float = 0.0

    def at(self, time_s: float) -> Mesh:
        """Return the mesh where it is at a time."""
        travelled = self.speed_mps * time_s
        weave = self.sway_m * float(np.sin(1.7 * time_s + self.x_m))
        yaw = np.pi if self.speed_mps < 0 else 0.0
        return self.shape(abs(travelled)).placed(self.x_m + travelled, self.y_m + weave, yaw)


class Street:
    """A street long enough for a drive of ``duration_s`` from x = 0."""

    def __init__(self, seed: int, duration_s: float) -> None:
        last = int(np.ceil((EGO_SPEED_MPS * duration_s + VIEW_M) / BLOCK_M))
        blocks = range(-int(VIEW_M // BLOCK_M) - 1, last)
        self._seed = seed
        self._blocks = {k: meshes.merged(_standing(self._rng(k, "standing"), k * BLOCK_M)) for k in blocks}
        walkers = [_walking(self._rng(k, "walking"), k * BLOCK_M) for k in blocks]
        self._movers = [*chain.from_iterable(walkers), *_oncoming(self._rng(0, "oncoming"), duration_s)]
        self._movers += _cyclists(self._rng(0, "cyclists"))

    def mesh(self, time_s: float) -> Mesh:
        """Return what is within sight of the ego at a time, in the world frame."""
        ego_x = EGO_SPEED_MPS * time_s
        near = [mesh for k, mesh in self._blocks.items() if abs((k + 0.5) * BLOCK_M - ego_x) < VIEW_M]
        moving = [m.at(time_s) for m in self._movers if abs(m.x_m + m.speed_mps * time_s - ego_x) < VIEW_M]
        return meshes.merged([*near, *moving])

    def _rng(self, block: int, what: str) -> np.random.Generator:
        return generator(self._seed, "street", 0, block, what)


def _standing(rng: np.random.Generator, x: float) -> Iterator[Mesh]:
    """One block's ground, houses, parked cars, lamp posts and people who wait."""
    yield _slab(x, -20.0, 20.0, 0.0, ASPHALT)
    yield _slab(x, -20.0, RIGHT_KERB_Y_M, KERB_M, PAVING)
    yield _slab(x, LEFT_KERB_Y_M, 20.0, KERB_M, PAVING)
    for side in (-1.0, 1.0):
        setback, height = rng.uniform(0.0, 1.0), rng.uniform(7.0, 14.0)
        house = meshes.building((BLOCK_M, 6.0, height), rng.uniform(0.25, 0.55))
        yield house.placed(x + BLOCK_M / 2, side * (FACADE_Y_M + setback + 3.0))
    for slot in (2.6, 9.3, 16.0):
        if rng.random() < 0.7:
            yield _parked(rng).placed(x + slot, -3.25)
    for slot in (2.6, 9.3):
        if rng.random() < 0.7:
            yield _parked(rng).placed(x + slot, 7.0, np.pi)
    yield meshes.pole(0.3).placed(x + 13.0, -9.6)
    yield meshes.pedestrian(_clothing(rng), rng.uniform(1.55, 1.85)).placed(x + 15.3, 8.65, rng.uniform(-3.0, 3.0))
    refuge = meshes.pedestrian(_clothing(rng), rng.uniform(1.55, 1.85))
    yield refuge.placed(x + 17.0, 1.65 + rng.uniform(-0.1, 0.1), np.pi / 2)


def _walking(rng: np.random.Generator, x: float) -> Iterator[Mover]:
    """One block's pedestrians on the right-hand pavement; those on one line keep one pace."""
    for line_y, speed in ((-5.4, 1.3), (-6.95, -1.2), (-8.5, 1.0)):
        if rng.random() < 0.85:
            cloth, height = _clothing(rng), rng.uniform(1.1, 1.25) if rng.random() < 0.25 else rng.uniform(1.55, 1.9)

            def shape(travelled_m: float, cloth: float = cloth, height: float = height) -> Mesh:
                return meshes.pedestrian(cloth, height, 4.2 * travelled_m / height)

            yield Mover(shape, x + rng.uniform(0.0, BLOCK_M - 3.0), line_y, speed)


def _oncoming(rng: np.random.Generator, duration_s: float) -> Iterator[Mover]:
    """Cars in the other lane, nose to tail 24 to 30 m apart."""
    x, end = -VIEW_M, VIEW_M + 2 * EGO_SPEED_MPS * duration_s
    while x < end:
        body = meshes.van(_paint(rng)) if rng.random() < 0.2 else meshes.car(_paint(rng), rng.uniform(4.0, 4.8))
        yield Mover(lambda _, body=body: body, x, 4.1, -EGO_SPEED_MPS)  # type: ignore[misc]
        x += rng.uniform(24.0, 30.0)


def _cyclists(rng: np.random.Generator) -> Iterator[Mover]:
    """A group that rides ahead of the ego at its own speed."""
    for x, y in ((11.0, -1.0), (24.0, 0.65), (34.0, -0.9)):
        cloth = rng.uniform(0.2, 0.5)
        yield Mover(lambda d, cloth=cloth: meshes.cyclist(cloth, d / 2.0), x, y, EGO_SPEED_MPS, 0.12)  # type: ignore[misc]


def _parked(rng: np.random.Generator) -> Mesh:
    if rng.random() < 0.15:
        return meshes.van(_paint(rng), 5.0)
    return meshes.car(_paint(rng), rng.uniform(3.9, 4.7), rng.uniform(1.7, 1.85), rng.uniform(1.42, 1.6))


def _paint(rng: np.random.Generator) -> float:
    return float(rng.choice([0.05, 0.2, 0.4, 0.55]))


def _clothing(rng: np.random.Generator) -> float:
    return float(rng.choice([0.05, 0.2, 0.35, 0.5]))


def _slab(x: float, y_low: float, y_high: float, top_m: float, reflectivity: float) -> Mesh:
    size = (BLOCK_M, y_high - y_low, 0.3)
    return meshes.box(size, (x + BLOCK_M / 2, (y_low + y_high) / 2, top_m - 0.15), reflectivity)
