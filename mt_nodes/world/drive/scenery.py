# SPDX-License-Identifier: Apache-2.0
"""Static scenery of a map: ground, houses, lights and signs on posts; prepared for rays once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.ground import Ground, heights_m, surface_of
from mt_nodes.world.drive.houses import Houses
from mt_nodes.world.drive.looks import BodyShape
from mt_nodes.world.drive.road_map import RoadMap, SameMap
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.drive.solids import Solids
from mt_nodes.world.scene.appearance import Paint, Surface, SurfaceColours
from mt_nodes.world.scene.roadside import light_figure, light_mesh, sign_figure, sign_mesh

GROUND, HOUSES = 0, 1


@dataclass(frozen=True, eq=False)
class Scenery:
    """The static scenery of a world.

    Attributes:
        ground, houses: bodies :data:`GROUND` and :data:`HOUSES` of ``solids``.
        lights: number of the body of each traffic light, by its name.
        shift_m: (2,) origin of rays in ``map``.
    """

    ground: Ground
    houses: Houses
    solids: Solids
    lights: dict[str, int]
    shift_m: Floats


def scenery_of(road: RoadMap) -> Scenery:
    """Return the scenery of a map; cached per object."""
    return _built(SameMap(road))


@lru_cache(maxsize=4)
def _built(key: SameMap) -> Scenery:
    road = key.road
    ground = Ground(road)
    things: list[tuple[BodyShape, Pose]] = [(BodyShape(ground.mesh, _unpainted), Pose(0.0, 0.0))]
    houses = Houses(road.buildings)
    things.append((BodyShape(houses.mesh, _unpainted), Pose(0.0, 0.0)))
    things += [
        (BodyShape(sign_mesh(sign.face), sign_figure(sign.face, sign.value).paint), sign.pose) for sign in road.signs
    ]
    lights = {signal.name: len(things) + i for i, signal in enumerate(road.signals)}
    things += [(BodyShape(light_mesh("red"), light_figure("red").paint), signal.pose) for signal in road.signals]
    poses = standing(surface_of(road), np.array([(pose.x_m, pose.y_m, pose.yaw_rad) for _, pose in things]))
    poses[[GROUND, HOUSES], 2] = 0.0
    shift_m = np.rint(np.asarray(road.ground_m).mean(axis=0))
    return Scenery(ground, houses, Solids([body for body, _ in things], poses, shift_m), lights, shift_m)


def standing(surface: Any, poses: Floats) -> Floats:
    """Return x, y, z and yaw (n, 4) of standing bodies, from x, y and yaw (n, 3)."""
    return np.insert(poses, 2, heights_m(surface, poses[:, :2]), axis=1)


def light_paint(colour: str) -> Paint:
    """Return the paint of a traffic light that shows a colour."""
    return light_figure(colour).paint


def _unpainted(surface: Surface) -> SurfaceColours:
    """Ground and houses have colours by triangle, not by a paint."""
    return SurfaceColours(np.zeros((len(surface.xyz_m), 3), np.float32))
