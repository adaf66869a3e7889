# SPDX-License-Identifier: Apache-2.0
"""An object removal attack: false pulses that report some returns of an object behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.drawn_returns import rows_of
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.rays import (
    proof_on_beam,
    ranges_m,
    refuse_whole_numbers,
    rounding_m,
    smallest,
    with_ranges,
)
from mt_nodes.relations.mutations.objects.object_removed import ObjectRemoved, standing_within

_EDGE_M = 1e-3


@dataclass(frozen=True)
class ObjectDisplaced(EachCloud):
    """Reports some returns of the nearest object ahead behind it, as an object removal attack does.

    Z. Hau et al., "Object Removal Attacks on LiDAR-based 3D Object Detectors" (AutoSec 2021): the attacker replaces
    echoes of the target by later, stronger ones, each at a random distance behind, with the budget of spoofing: 200
    points (J. Sun et al., USENIX Security 2020), which is the upper limit here. Returns of the object are chosen at
    random; each moves along its beam by a distance uniform between ``behind_m``. The object is still there, so that no
    effect excuses a stack that loses it: whether it must find what is left is not known, and no shipped relation asks.

    Guaranteed: the requested number of returns, or all that the object has, come to lie behind it on their beams, by
    distances within the limits and within the sensor's range; everything else is unchanged.
    """

    points: int = param(200, low=1, high=200, neutral=1, help="returns that are displaced, at most those of the attack")
    behind_m: tuple[float, float] = param(
        (2.0, 15.0), low=0.1, high=100.0, unit="m", aspect="place", help="least and largest displacement"
    )
    ahead_m: tuple[float, float] = param(
        (4.0, 30.0), low=0.0, high=200.0, unit="m", aspect="place", help="nearest and farthest x of the object"
    )
    aside_m: float = param(
        6.0, low=0.5, high=100.0, unit="m", aspect="place", help="farthest from the path, to either side"
    )
    least_points: int = param(30, low=3, high=100_000, aspect="fixed", help="returns that make an object")
    largest_m: float = param(6.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="what is longer is no object")
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the object, and choose returns and displacements."""
        if cloud is not bundle.clouds[0]:
            return {"rows": np.empty(0, np.uint8)}
        refuse_whole_numbers(cloud)
        finder = self._finder
        outline, plane = next(finder.things(bundle))
        rows = standing_within(cloud, finder.to_ego(bundle, cloud), outline, plane)
        rows = rows[ranges_m(cloud, rows) + max(self.behind_m) <= self.max_range_m]
        if not len(rows):
            raise NotApplicable(f"no return of the object can move by {max(self.behind_m):g} m within the range")
        chosen = np.sort(rng.choice(rows, min(self.points, len(rows)), replace=False, shuffle=False))
        behind = rng.uniform(min(self.behind_m), max(self.behind_m), len(chosen)).astype(np.float32)
        return {"outline_m": outline, "rows": smallest(chosen), "behind_m": behind}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move the returns."""
        rows = rows_of(draw)
        if not len(rows):
            return cloud
        own = ranges_m(cloud, rows)
        return with_ranges(cloud, rows, own, own + draw["behind_m"].astype(np.float64))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check that they were the object's, by its outline's box, and how far each moved along its beam."""
        rows = rows_of(draw)
        if old is not bundle.clouds[0]:
            return None if new is old else "a second sensor was attacked, too"
        if not 0 < len(np.unique(rows)) == len(rows) <= self.points:
            return f"{len(np.unique(rows))} returns were displaced, allowed {self.points}"
        if (broken := proof_on_beam(old, new, rows)) is not None:
            return broken
        before = move(self._finder.to_ego(bundle, old), old.xyz[rows].astype(np.float64))[:, :2]
        low, high = draw["outline_m"].min(axis=0) - _EDGE_M, draw["outline_m"].max(axis=0) + _EDGE_M
        if ((before < low) | (before > high)).any():
            return "a return of something else was displaced"
        far = ranges_m(new, rows)
        by, slack = far - ranges_m(old, rows), _EDGE_M + rounding_m(old, far)
        wrong = (by < min(self.behind_m) - slack) | (by > max(self.behind_m) + slack)
        wrong |= (far > self.max_range_m + slack) | (np.abs(by - draw["behind_m"]) > slack)
        return f"{int(wrong.sum())} of {len(rows)} returns moved by another distance" if wrong.any() else None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the false returns; nothing is removed, and what they hide are the object's own."""
        cloud = clouds[bundle.clouds[0].topic]
        rows = rows_of(draws[cloud.topic])
        numbers = {"returns_replaced": float(len(rows))}
        return Effects(numbers=numbers, added_points={cloud.topic: cloud.xyz[rows].astype(np.float64)})

    @property
    def _finder(self) -> ObjectRemoved:
        return ObjectRemoved(
            ahead_m=self.ahead_m,
            aside_m=self.aside_m,
            least_points=self.least_points,
            largest_m=self.largest_m,
            ego_frame_id=self.ego_frame_id,
            pictures="stay",
        )
