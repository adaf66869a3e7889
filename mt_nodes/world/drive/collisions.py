# SPDX-License-Identifier: Apache-2.0
"""Collisions of the ego: with whom, where, on which side and how hard.

Footprints on the ground decide: an oriented rectangle for moving bodies, a disc for posts and round obstacles. Driving
under something is not modelled. The effect of a contact on the motion is not simulated; the world ends there or, if
configured, goes on as if there had been no contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, inf, sin

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import facts_of, mass_of, size_of
from mt_nodes.world.drive.risk import risks
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Obstacle, Person, Pose, Scenario
from mt_nodes.world.drive.trace import Collision, EgoState

_POST_M = 0.12


@dataclass(frozen=True, eq=False)
class Body:
    """A body that the ego may hit.

    ``corners_m``: (K, 2) footprint in its own frame. ``mass_kg``: None if it does not give way.
    """

    name: str
    kind: str
    label: str
    corners_m: Floats
    mass_kg: float | None = None
    person: Person | None = None


class Contacts:
    """Finds first contacts of the ego with the actors, obstacles and posts of a scenario.

    ``bodies``: actors first, in order, then standing bodies. standing: (S, 4) their places, columns as for actors.
    """

    def __init__(self, scenario: Scenario, road: RoadMap) -> None:
        standing = [*_obstacles(scenario.obstacles), *_posts(road)]
        self.bodies = [*_actors(scenario), *(body for body, _ in standing)]
        self.standing = np.array([(p.x_m, p.y_m, p.yaw_rad, 0.0) for _, p in standing]).reshape(-1, 4)
        self._vehicle, self._outline = scenario.ego.vehicle, shapes.of_vehicle(scenario.ego.vehicle)
        self._middle_m = float(self._outline[:, 0].mean())
        radius = float(np.hypot(*(self._outline[0] - (self._middle_m, 0.0))))
        reach = [radius + float(np.hypot(*body.corners_m.T).max()) for body in self.bodies]
        self._reach2 = np.array(reach) ** 2
        self._touched: set[int] = set()
        self._placed_bodies: dict[int, tuple[tuple[float, ...], shapely.Polygon]] = {}

    def found(self, time_s: float, ego: EgoState, actors: Floats) -> list[Collision]:
        """Return the contacts that begin at an instant.

        ``actors``: (N, 4), columns :data:`mt_nodes.world.drive.trace.ACTOR_COLUMNS`.
        """
        x = ego.x_m + self._middle_m * cos(ego.yaw_rad)
        y = ego.y_m + self._middle_m * sin(ego.yaw_rad)
        rows = np.concatenate([actors, self.standing]) if len(self.standing) else actors
        near = np.flatnonzero((rows[:, 0] - x) ** 2 + (rows[:, 1] - y) ** 2 < self._reach2)
        new = [i for i in near.tolist() if i not in self._touched]
        if not new:
            return []
        covered = shapes.placed(self._outline, ego.x_m, ego.y_m, ego.yaw_rad)
        hits = []
        for i in new:
            other = self._placed(i, tuple(rows[i, :3].tolist()))
            if covered.intersects(other):
                self._touched.add(i)
                hits.append(self._collision(time_s, ego, self.bodies[i], rows[i], covered.intersection(other)))
        return hits

    def _placed(self, i: int, pose: tuple[float, ...]) -> shapely.Polygon:
        """Return the polygon of a body; standing ones are cached."""
        before, polygon = self._placed_bodies.get(i, ((), None))
        if polygon is None or before != pose:
            polygon = shapes.placed(self.bodies[i].corners_m, *pose)
            self._placed_bodies[i] = pose, polygon
        return polygon

    def _collision(self, time_s: float, ego: EgoState, body: Body, row: Floats, shared: shapely.Geometry) -> Collision:
        contact = shared.centroid
        side, closing = entered(self._outline, ego, row, shared)
        fatal, injured = risks(body.label, side, closing, self._vehicle.mass_kg, body.mass_kg, body.person)
        return Collision(
            time_s, body.name, body.kind, contact.x, contact.y, side, ego.speed_mps, closing, fatal, injured
        )


def entered(outline_m: Floats, ego: EgoState, row: Floats, shared: shapely.Geometry) -> tuple[str, float]:
    """Return the side of the ego at which a body came in, and the closing speed along that side's normal.

    It is the side that the body passed last: at the present velocities, the one that it crossed the shortest time ago.

    Args:
        outline_m: (4, 2) corners of the ego in ``base_link``. row: (4,) pose and speed of the other.
        shared: overlap of both.
    """
    c, s = cos(ego.yaw_rad), sin(ego.yaw_rad)
    into = np.array([[c, -s], [s, c]])
    x, y = ((shapely.get_coordinates(shared) - (ego.x_m, ego.y_m)) @ into).T
    vx, vy = row[3] * np.array([cos(row[2]), sin(row[2])]) @ into - (ego.speed_mps, 0.0)
    (low_x, low_y), (high_x, high_y) = outline_m.min(axis=0), outline_m.max(axis=0)
    # For each side the depth and the speed of the intrusion.
    sides = {
        "front": (high_x - x.min(), -vx),
        "left": (high_y - y.min(), -vy),
        "right": (y.max() - low_y, vy),
        "rear": (x.max() - low_x, vx),
    }
    since = {name: depth / speed if speed > 1e-9 else inf for name, (depth, speed) in sides.items()}
    side = min(since, key=lambda name: since[name])
    return side, max(0.0, float(sides[side][1]))


def _actors(scenario: Scenario) -> list[Body]:
    bodies = []
    for actor in scenario.actors:
        length, width, _ = size_of(actor)
        label = facts_of(actor.kind).label
        corners = shapes.box(length, width)
        bodies.append(Body(actor.name, actor.kind, label, corners, mass_of(actor), actor.person))
    return bodies


def _obstacles(obstacles: Sequence[Obstacle]) -> list[tuple[Body, Pose]]:
    return [(Body(o.name, o.shape, "unknown", shapes.of_obstacle(o)), o.pose) for o in obstacles]


def _posts(road: RoadMap) -> list[tuple[Body, Pose]]:
    """Return the posts of lights and signs."""
    post = shapes.disc(_POST_M)
    lights = [(Body(light.name, "traffic_light", "unknown", post), light.pose) for light in road.signals]
    signs = [(Body(f"sign_{i}", "traffic_sign", "unknown", post), sign.pose) for i, sign in enumerate(road.signs)]
    return [*lights, *signs]
