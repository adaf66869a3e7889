# SPDX-License-Identifier: Apache-2.0
"""Clouds of made-up streets of which it is known what each return is of: what a LiDAR network is trained and tried on.

Each street is another one: its road, what stands beside it and who is on it are drawn anew, and so is where the sensor
is mounted. Streets of different seeds have nothing in common, so that those of one are unseen maps to a network that
was trained on those of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Cloud
from mt_nodes.runs.models.labelled_scenery import backdrop, post, vehicle
from mt_nodes.stacks.reference.cell_objects import CLASSES
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.lidar import LidarModel, hdl_64e
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.raycast import cast, returns_of
from mt_nodes.world.scene.street import ASPHALT, PAVING

Floats = npt.NDArray[np.float64]

#: Ground, houses and plants.
BACKGROUND = -1
_REACH_M = 70.0
_FIELDS = ("x", "y", "z", "intensity")
_LAYOUT = np.dtype([*((name, "<f4") for name in _FIELDS), ("owner", "<u2")])
#: Kinds of objects -> (class, weight of being drawn); a car is no car of one size.
_DRAWN = {
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
class LabelledCloud:
    """A cloud in the frame of its sensor, and what is in it.

    Attributes:
        points: (N, 4) float32 x, y, z, intensity of 0..255.
        owner: (N,) row of the object that a return is of, :data:`BACKGROUND` for the rest.
        centre_m: (M, 2) of each object. top_m: (M,) of each, from the sensor. yaw_rad: (M,).
        kind: (M,) place in :data:`CLASSES`.
        sensor_height_m: above the road.
    """

    points: npt.NDArray[np.float32]
    owner: npt.NDArray[np.int64]
    centre_m: Floats
    top_m: Floats
    yaw_rad: Floats
    kind: npt.NDArray[np.int64]
    sensor_height_m: float

    def message(self, frame_id: str = "velodyne", raised_m: float = 0.0) -> Cloud:
        """Return it as a message that bears the owners, too: row + 1, and 0 for the background.

        Args:
            raised_m: what is added to z, for a frame on the road.
        """
        rows = np.zeros(len(self.points), dtype=_LAYOUT)
        for i, field in enumerate(_FIELDS):
            rows[field] = self.points[:, i]
        rows["z"] += np.float32(raised_m)
        rows["owner"] = self.owner + 1
        return Cloud("/sensing/lidar/points", 0, frame_id, rows)

    def changed(self, message: Cloud) -> LabelledCloud:
        """Return it with the returns of a message that was made of :meth:`message`."""
        points = np.column_stack([message.points[field] for field in _FIELDS]).astype(np.float32)
        return replace(self, points=points, owner=message.points["owner"].astype(np.int64) - 1)


@dataclass(frozen=True, eq=False)
class _Thing:
    mesh: Mesh
    kind: int
    x_m: float
    y_m: float
    yaw_rad: float

    @property
    def placed(self) -> Mesh:
        return self.mesh.placed(self.x_m, self.y_m, self.yaw_rad)


def labelled_cloud(seed: int, index: int) -> LabelledCloud:
    """Return one cloud; the same numbers give the same one."""
    rng = generator(seed, "labelled_cloud", 0, index, "street")
    road = _Road.drawn(rng)
    things = _without_collisions(rng, [*road.parked(rng), *road.anywhere(rng)])
    slope = rng.normal(0.0, np.radians(0.6), 2)
    parts, background = (
        [_tilted(mesh, slope) for mesh in group]
        for group in ([thing.placed for thing in things], [*road.ground(), *road.beside(rng)])
    )
    scene = meshes.merged([*parts, *background])
    owner_of = np.repeat(
        [*range(len(parts)), *[BACKGROUND] * len(background)], [len(mesh.triangles) for mesh in [*parts, *background]]
    )
    height_m, lidar = float(rng.uniform(1.55, 2.0)), _drawn_lidar(rng)
    points, owner = _scanned(scene, owner_of, height_m, lidar, rng)
    top = np.array([mesh.vertices_m[:, 2].max() for mesh in parts]) - height_m
    low, high = (np.array([extreme(m.vertices_m[:, :2]) for m in parts]).reshape(-1, 2) for extreme in _EXTREMES)
    kinds = np.array([thing.kind for thing in things], dtype=np.int64)
    yaw = np.array([thing.yaw_rad for thing in things])
    return LabelledCloud(points, owner, (low + high) / 2.0, top, yaw, kinds, height_m)


_EXTREMES = (partial(np.min, axis=0), partial(np.max, axis=0))


def _drawn_lidar(rng: np.random.Generator) -> LidarModel:
    """A 64-beam sensor whose beams are a little off, now and then one of 32 beams."""
    model = hdl_64e()
    off = np.radians(rng.normal(0.0, 0.05, len(model.elevations_rad)))
    step = 2 if rng.random() < 0.1 else 1
    return replace(
        model,
        elevations_rad=tuple((np.array(model.elevations_rad) + off)[::step].tolist()),
        range_sigma_m=float(rng.uniform(0.01, 0.03)),
        dropout=float(rng.uniform(0.0, 0.15)),
    )


def _tilted(mesh: Mesh, slope: Floats) -> Mesh:
    """No road is level, and no vehicle either."""
    vertices = mesh.vertices_m.copy()
    vertices[:, 2] += vertices[:, :2] @ slope
    return replace(mesh, vertices_m=vertices)


def _scanned(
    scene: Mesh, owner_of: npt.NDArray[np.int64], height_m: float, lidar: LidarModel, rng: np.random.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    range_m, triangle, cosine = cast(scene, (0.0, 0.0, height_m), lidar.directions)
    met = np.isfinite(range_m)
    brightness = np.where(met, scene.reflectivity[triangle] * cosine, 0.0)
    seen = returns_of(range_m, brightness, lidar, rng)
    # Which ray a return came by is told by its ring and its time.
    column = np.rint(seen["time"] / lidar.period_s * lidar.azimuths).astype(np.int64)
    ray = column * len(lidar.elevations_rad) + seen["ring"]
    points = np.column_stack([seen[name] for name in ("x", "y", "z", "intensity")]).astype(np.float32)
    return points, owner_of[triangle[ray]]


def _without_collisions(rng: np.random.Generator, things: list[_Thing]) -> list[_Thing]:
    """Return those that stand in nobody's way, the ego's among them; the first come first."""
    taken: list[tuple[float, float, float]] = [(0.0, 0.0, 2.8)]
    free = []
    for thing in things:
        reach = float(np.linalg.norm(thing.mesh.vertices_m[:, :2], axis=1).max())
        # Cars may stand nose to tail: what counts between two in a row is their width and a bit.
        near = any(np.hypot(thing.x_m - x, thing.y_m - y) < 0.85 * (reach + other) for x, y, other in taken)
        if not near and np.hypot(thing.x_m, thing.y_m) < _REACH_M:
            taken.append((thing.x_m, thing.y_m, reach))
            free.append(thing)
    return free


@dataclass(frozen=True)
class _Road:
    """A road along x, seen from a vehicle in one of its lanes.

    Attributes:
        right_m, left_m: where its kerbs are. pavement_m: width of both pavements. kerb_m: how high they are.
        turn_rad: of the vehicle's heading against the road.
    """

    right_m: float
    left_m: float
    pavement_m: float
    kerb_m: float
    turn_rad: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> _Road:
        turn = rng.normal(0.0, 0.15) if rng.random() < 0.7 else rng.uniform(-np.pi, np.pi)
        right, left = -rng.uniform(2.0, 7.0), rng.uniform(2.0, 11.0)
        return cls(right, left, rng.uniform(1.0, 5.0), rng.choice([0.0, 0.1, 0.15]), turn)

    def ground(self) -> Iterator[Mesh]:
        """Road and pavements."""
        far = 2.0 * _REACH_M
        yield self._laid(meshes.box((far, far, 0.3), (0.0, 0.0, -0.15), ASPHALT))
        for low, high in ((-_REACH_M, self.right_m), (self.left_m, _REACH_M)):
            size = (far, high - low, 0.3)
            yield self._laid(meshes.box(size, (0.0, (low + high) / 2, self.kerb_m - 0.15), PAVING))

    def parked(self, rng: np.random.Generator) -> Iterator[_Thing]:
        """Rows of parked cars along the kerbs, here and there one is missing."""
        for y, yaw in ((self.right_m + 1.1, 0.0), (self.left_m - 1.1, np.pi)):
            share, gap = rng.choice([0.0, 0.3, 0.8]), rng.uniform(0.8, 3.0)
            for x in np.arange(-60.0, 60.0, 4.6 + gap):
                if rng.random() < share:
                    car = vehicle(rng, "van" if rng.random() < 0.1 else "car")
                    yield self._thing(car, "car", x + rng.normal(0.0, 0.2), y + rng.normal(0.0, 0.1), yaw, rng)

    def anywhere(self, rng: np.random.Generator) -> Iterator[_Thing]:
        """Those on the road and on its pavements; most of them near."""
        names = list(_DRAWN)
        weight = np.array([_DRAWN[name][1] for name in names])
        for name in rng.choice(names, int(rng.integers(10, 60)), p=weight / weight.sum()).tolist():
            kind = _DRAWN[name][0]
            x = float(rng.normal(0.0, 25.0))
            if kind == "pedestrian" and rng.random() < 0.7:
                edge, out = ((self.right_m, -1.0), (self.left_m, 1.0))[int(rng.integers(2))]
                y, yaw = edge + out * rng.uniform(0.2, self.pavement_m + 0.5), rng.uniform(-np.pi, np.pi)
            else:
                y = rng.uniform(self.right_m - 1.0, self.left_m + 1.0)
                yaw = rng.normal(0.0, 0.1) + (np.pi if y > 1.5 else 0.0)
                yaw = rng.uniform(-np.pi, np.pi) if rng.random() < 0.25 else yaw
            yield self._thing(vehicle(rng, name), kind, x, y, yaw, rng)

    def beside(self, rng: np.random.Generator) -> Iterator[Mesh]:
        """Houses, walls, hedges, trees and posts: everything that is no obstacle to be reported."""
        for side, edge in ((-1.0, self.right_m - self.pavement_m), (1.0, self.left_m + self.pavement_m)):
            x = -_REACH_M
            while x < _REACH_M:
                length = rng.uniform(4.0, 25.0)
                for mesh in backdrop(rng, length):
                    yield self._laid(
                        mesh.placed(x + length / 2, edge + side * rng.uniform(0.3, 4.0), 0.5 * (1 - side) * np.pi)
                    )
                x += length + rng.choice([0.0, 1.0, 6.0])
            for x in np.arange(-60.0, 60.0, rng.uniform(3.0, 25.0)):
                if rng.random() < 0.7:
                    at_m = rng.uniform(-3.0, 0.9 * self.pavement_m)
                    yield self._laid(post(rng).placed(x + rng.normal(0.0, 1.0), edge - side * at_m))

    def _laid(self, mesh: Mesh) -> Mesh:
        return mesh.placed(0.0, 0.0, self.turn_rad)

    def _thing(self, mesh: Mesh, kind: str, x: float, y: float, yaw: float, rng: np.random.Generator) -> _Thing:
        c, s = np.cos(self.turn_rad), np.sin(self.turn_rad)
        return _Thing(mesh, CLASSES.index(kind), c * x - s * y, s * x + c * y, yaw + self.turn_rad)
