# SPDX-License-Identifier: Apache-2.0
"""A traffic sign stands beside the ego's way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.free_places import ANY_ROAD, ROADS, OwnWay
from mt_nodes.world.drive.road_map import Limit, Sign
from mt_nodes.world.scene.faces import SIGNS

#: Faces that bear a speed, and one of its units in km/h; those of them that cap it.
SPEEDS_KMH = {"speed_limit": 1.0, "minimum_speed": 1.0, "speed_limit_us": 1.609344}
_CAPS, _ZONE, _ZONE_KMH = ("speed_limit", "speed_limit_us"), "zone_30", 30.0
_KMH_PER_MPS = 3.6
#: From the edge of the carriageway to the post; what a post keeps from other signs.
_BESIDE_M, _APART_M = 0.5, 3.0


@dataclass(frozen=True)
class SignPutUp(ScenarioChange):
    """A sign stands beside the carriageway, on the side that traffic keeps to, and faces who drives the ego's way.

    One that caps the speed does so from there on: the route is told with that limit. All others are told nobody and
    seen by cameras. It refuses where nothing but carriageway is beside the way.
    """

    face: str = param("zone_30", choices=tuple(SIGNS), help="what is on it")
    value: int = param(0, low=0, high=150, help="the number on it, if it bears one; 0: the usual one")
    at: str = param(ANY_ROAD, choices=ROADS, help="kind of road that the place is on")
    ahead_m: tuple[float, float] = param((35.0, 90.0), low=5.0, high=500.0, unit="m", help="from the ego's front")

    @property
    def limit_kmh(self) -> float | None:
        """The speed that it caps, None where it caps none."""
        if self.face == _ZONE:
            return _ZONE_KMH
        return (self.value or SIGNS[self.face].value) * SPEEDS_KMH[self.face] if self.face in _CAPS else None

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose a place."""
        way, road = OwnWay.of(setting), setting.road
        rows = way.tried(rng, self.at, self.ahead_m)
        for row in rows:
            if (edge := way.edge_m(row, way.near_side, road.carriageway)) is not None:
                post = way.at(row, way.near_side * (edge + _BESIDE_M))
                posts = [one.pose for one in road.signs] + [one.pose for one in road.signals]
                if min((np.hypot(p.x_m - post.x_m, p.y_m - post.y_m) for p in posts), default=np.inf) >= _APART_M:
                    return {"row": row, "beside_m": edge + _BESIDE_M}
        low, high = self.ahead_m
        raise NotApplicable(
            f"none of {len(rows)} places of the way ({self.at}, {low:g} to {high:g} m ahead) has room for a post"
        )

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Put it up."""
        way, row, road = OwnWay.of(setting), int(draw["row"]), setting.road
        here, post = way.at(row), way.at(row, way.near_side * float(draw["beside_m"]))
        caps = () if self.limit_kmh is None else (Limit(here, self.limit_kmh / _KMH_PER_MPS),)
        numbers = {"ahead_m": row - way.front_m} | ({"limit_mps": caps[0].limit_mps} if caps else {})
        effects = WorldEffects(at=here, numbers=numbers)
        signs = (*road.signs, Sign(self.face, post, self.value))
        return replace(setting, road=replace(road, signs=signs, limits=(*road.limits, *caps))), effects
