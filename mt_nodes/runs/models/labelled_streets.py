# SPDX-License-Identifier: Apache-2.0
"""Made-up streets: a road, what stands beside it, and who is on it, drawn anew each time.

They are what detectors are trained and tried on. Streets of different seeds have nothing in common, so that those of
one are unseen to a network that was trained on those of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.stacks.reference.cell_objects import CLASSES
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.objects import mesh_of
from mt_nodes.world.scene.street import ASPHALT, PAVING


def vehicle(rng: np.random.Generator, name: str) -> Mesh:
    """Return the mesh of a kind in a size and a paint of its own."""
    paint = float(rng.uniform(0.05, 0.6))
    if name == "car":
        return meshes.car(paint, rng.uniform(3.5, 5.0), rng.uniform(1.55, 1.95), rng.uniform(1.35, 1.9))
    if name == "van":
        return meshes.van(paint, rng.uniform(4.4, 6.5), rng.uniform(1.8, 2.1), rng.uniform(1.9, 2.7))
    if name == "adult":
        return meshes.pedestrian(paint, rng.uniform(1.5, 1.95), rng.uniform(0.0, 2.0 * np.pi))
    mesh = mesh_of(name)
    stretch = np.append(rng.uniform(0.9, 1.1, 2), rng.uniform(0.9, 1.1))
    return replace(mesh, vertices_m=mesh.vertices_m * stretch)


def backdrop(rng: np.random.Generator, length_m: float) -> Iterator[tuple[str, Mesh]]:
    """Draw what stands along so much of a road, each with its surface; the road is on its right, y towards −∞."""
    what = rng.choice(["house", "wall", "hedge", "trees", "bank", "nothing"], p=[0.3, 0.1, 0.2, 0.2, 0.15, 0.05])
    if what == "house":
        depth = rng.uniform(4.0, 10.0)
        house = meshes.building((length_m, depth, rng.uniform(3.0, 14.0)), rng.uniform(0.1, 0.6))
        yield "facade", house.placed(0.0, depth / 2.0)
    elif what == "wall":
        yield "wall", meshes.building((length_m, rng.uniform(0.1, 0.4), rng.uniform(0.5, 2.5)), rng.uniform(0.1, 0.6))
    elif what == "hedge":
        yield from (("leaves", bush) for bush in _foliage(rng, length_m, (0.2, 0.9), (0.0, rng.uniform(0.6, 2.5))))
    elif what == "trees":
        for x in np.arange(-length_m / 2, length_m / 2, rng.uniform(4.0, 8.0)):
            trunk, high = rng.uniform(0.08, 0.35), rng.uniform(1.5, 3.5)
            yield "bark", meshes.rod((x, 0.0, 0.0), (x, 0.0, high + 1.0), trunk, rng.uniform(0.1, 0.4))
            crown = meshes.merged(_foliage(rng, 3.0, (0.5, 1.3), (high, high + 2.5)))
            yield "leaves", crown.placed(x, 0.0)
    elif what == "bank":
        yield "soil", _bank(rng, length_m)
        if rng.random() < 0.5:
            yield "leaves", meshes.merged(_foliage(rng, length_m, (0.2, 0.7), (0.3, 2.0))).placed(0.0, 2.0)


def _bank(rng: np.random.Generator, length_m: float) -> Mesh:
    """Return rough ground that rises away from the road, or falls a little."""
    step, width = 0.4, 10.0
    x, y = np.meshgrid(np.arange(0.0, length_m, step) - length_m / 2, np.arange(0.0, width, step), indexing="ij")
    z = np.maximum(rng.uniform(0.0, 0.7) * y, 0.0) + rng.normal(0.0, rng.uniform(0.02, 0.25), x.shape)
    corner = np.arange(x.size).reshape(x.shape)
    a, b, c, d = (corner[i : i - 1 or None, j : j - 1 or None] for i in (0, 1) for j in (0, 1))
    triangles = np.concatenate([np.stack(t, axis=-1).reshape(-1, 3) for t in ((a, c, b), (b, c, d))])
    vertices = np.stack([x, y, np.where(y > 0.0, z, 0.0)], axis=-1).reshape(-1, 3)
    return Mesh(vertices, triangles.astype(np.uint32), np.full(len(triangles), rng.uniform(0.1, 0.5)))


def _foliage(
    rng: np.random.Generator, length_m: float, radius_m: tuple[float, float], z_m: tuple[float, float]
) -> list[Mesh]:
    return [
        meshes.ellipsoid(
            tuple(rng.uniform(*radius_m, 3)),
            (rng.uniform(-length_m / 2, length_m / 2), rng.normal(0.0, 0.4), rng.uniform(*z_m)),
            rng.uniform(0.1, 0.5),
        )
        for _ in range(max(4, round(1.2 * length_m)))
    ]


def post(rng: np.random.Generator) -> Mesh:
    """Draw what stands upright at a kerb: posts, and signs on them."""
    if rng.random() < 0.7:
        return meshes.pole(rng.uniform(0.1, 0.5), rng.uniform(0.8, 7.0), rng.uniform(0.03, 0.25))
    return mesh_of(str(rng.choice(["traffic_sign", "traffic_light", "delineator"])))


#: How far from the ego vehicle things stand.
REACH_M = 70.0
#: Kinds of objects -> (class, weight of being drawn); a car is no car of one size.
DRAWN = {
    "adult": ("pedestrian", 8.0),
    "child": ("pedestrian", 2.0),
    "elderly": ("pedestrian", 2.0),
    "wheelchair_user": ("pedestrian", 0.5),
    "construction_worker": ("pedestrian", 0.5),
    "cyclist": ("cyclist", 4.0),
    "motor_cyclist": ("cyclist", 1.5),
    "tricycle_rider": ("cyclist", 0.3),
    "car": ("car", 10.0),
    "van": ("car", 2.0),
    "truck": ("truck", 1.0),
    "bus": ("truck", 0.8),
    "load_carrier": ("truck", 0.3),
    "cone": ("unknown", 0.7),
    "barrier": ("unknown", 0.5),
    "box": ("unknown", 0.5),
    "dog": ("unknown", 0.3),
    "deer": ("unknown", 0.3),
    "cow": ("unknown", 0.3),
}


@dataclass(frozen=True, eq=False)
class StreetObject:
    """Somebody or something to be found.

    ``name``: in the catalogue of objects. ``mesh``: in a size of its own. ``kind``: place in :data:`CLASSES`. ``x_m``,
    ``y_m``, ``yaw_rad``: in the frame of the ego vehicle, on the ground.
    """

    name: str
    mesh: Mesh
    kind: int
    x_m: float
    y_m: float
    yaw_rad: float

    @property
    def placed(self) -> Mesh:
        """Return the mesh where it stands."""
        return self.mesh.placed(self.x_m, self.y_m, self.yaw_rad)


def without_collisions(things: list[StreetObject]) -> list[StreetObject]:
    """Return those that stand in nobody's way, the ego's among them; the first come first."""
    taken: list[tuple[float, float, float]] = [(0.0, 0.0, 2.8)]
    free = []
    for thing in things:
        reach = float(np.linalg.norm(thing.mesh.vertices_m[:, :2], axis=1).max())
        # Cars may stand nose to tail: what counts between two in a row is their width and a bit.
        near = any(np.hypot(thing.x_m - x, thing.y_m - y) < 0.85 * (reach + other) for x, y, other in taken)
        if not near and np.hypot(thing.x_m, thing.y_m) < REACH_M:
            taken.append((thing.x_m, thing.y_m, reach))
            free.append(thing)
    return free


@dataclass(frozen=True)
class StreetRoad:
    """A road along x, seen from a vehicle in one of its lanes.

    ``right_m``, ``left_m``: where its kerbs are. ``pavement_m``: width of both pavements. ``kerb_m``: how high they
    are. ``turn_rad``: of the vehicle's heading against the road.
    """

    right_m: float
    left_m: float
    pavement_m: float
    kerb_m: float
    turn_rad: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> StreetRoad:
        """Draw a road, mostly one that leads ahead."""
        turn = rng.normal(0.0, 0.15) if rng.random() < 0.7 else rng.uniform(-np.pi, np.pi)
        right, left = -rng.uniform(2.0, 7.0), rng.uniform(2.0, 11.0)
        return cls(right, left, rng.uniform(1.0, 5.0), rng.choice([0.0, 0.1, 0.15]), turn)

    def ground(self) -> Iterator[tuple[str, Mesh]]:
        """The road and its pavements, each with the name of its surface."""
        far = 2.0 * REACH_M
        yield "asphalt", self._laid(meshes.box((far, far, 0.3), (0.0, 0.0, -0.15), ASPHALT))
        for low, high in ((-REACH_M, self.right_m), (self.left_m, REACH_M)):
            size = (far, high - low, 0.3)
            yield "paving", self._laid(meshes.box(size, (0.0, (low + high) / 2, self.kerb_m - 0.15), PAVING))

    def parked(self, rng: np.random.Generator) -> Iterator[StreetObject]:
        """Rows of parked cars along the kerbs, here and there one is missing."""
        for y, yaw in ((self.right_m + 1.1, 0.0), (self.left_m - 1.1, np.pi)):
            share, gap = rng.choice([0.0, 0.3, 0.8]), rng.uniform(0.8, 3.0)
            for x in np.arange(-60.0, 60.0, 4.6 + gap):
                if rng.random() < share:
                    name = "van" if rng.random() < 0.1 else "car"
                    car = vehicle(rng, name)
                    yield self._thing(name, car, x + rng.normal(0.0, 0.2), y + rng.normal(0.0, 0.1), yaw)

    def anywhere(self, rng: np.random.Generator) -> Iterator[StreetObject]:
        """Those on the road and on its pavements; most of them near."""
        names = list(DRAWN)
        weight = np.array([DRAWN[name][1] for name in names])
        for name in rng.choice(names, int(rng.integers(10, 60)), p=weight / weight.sum()).tolist():
            kind = DRAWN[name][0]
            x = float(rng.normal(0.0, 25.0))
            if kind == "pedestrian" and rng.random() < 0.7:
                edge, out = ((self.right_m, -1.0), (self.left_m, 1.0))[int(rng.integers(2))]
                y, yaw = edge + out * rng.uniform(0.2, self.pavement_m + 0.5), rng.uniform(-np.pi, np.pi)
            else:
                y = rng.uniform(self.right_m - 1.0, self.left_m + 1.0)
                yaw = rng.normal(0.0, 0.1) + (np.pi if y > 1.5 else 0.0)
                yaw = rng.uniform(-np.pi, np.pi) if rng.random() < 0.25 else yaw
            yield self._thing(name, vehicle(rng, name), x, y, yaw)

    def roadside(self, rng: np.random.Generator) -> Iterator[tuple[str, Mesh]]:
        """Houses, walls, hedges, trees and posts, each with its surface: what is no obstacle to be reported."""
        for side, edge in ((-1.0, self.right_m - self.pavement_m), (1.0, self.left_m + self.pavement_m)):
            x = -REACH_M
            while x < REACH_M:
                length = rng.uniform(4.0, 25.0)
                for surface, mesh in backdrop(rng, length):
                    yield (
                        surface,
                        self._laid(
                            mesh.placed(x + length / 2, edge + side * rng.uniform(0.3, 4.0), 0.5 * (1 - side) * np.pi)
                        ),
                    )
                x += length + rng.choice([0.0, 1.0, 6.0])
            for x in np.arange(-60.0, 60.0, rng.uniform(3.0, 25.0)):
                if rng.random() < 0.7:
                    at_m = rng.uniform(-3.0, 0.9 * self.pavement_m)
                    yield "post", self._laid(post(rng).placed(x + rng.normal(0.0, 1.0), edge - side * at_m))

    def _laid(self, mesh: Mesh) -> Mesh:
        return mesh.placed(0.0, 0.0, self.turn_rad)

    def _thing(self, name: str, mesh: Mesh, x: float, y: float, yaw: float) -> StreetObject:
        c, s = np.cos(self.turn_rad), np.sin(self.turn_rad)
        return StreetObject(
            name, mesh, CLASSES.index(DRAWN[name][0]), c * x - s * y, s * x + c * y, yaw + self.turn_rad
        )
