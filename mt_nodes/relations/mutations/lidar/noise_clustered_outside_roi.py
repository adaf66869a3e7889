# SPDX-License-Identifier: Apache-2.0
"""Clusters of noise outside the region of interest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.regions import Region, RegionGiven, load_region
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.added_points import added_rows, free_rows, proof_of_addition, with_added
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.placement import Space, intensities, rounded, scattered, to_region
from mt_nodes.relations.mutations.lidar.rays import columns, refuse_whole_numbers

#: Largest displacement of a point by rounding to a cloud's coordinates.
_ROUNDING_M = 1e-3


@dataclass(frozen=True)
class NoiseClusteredOutsideRoi(RegionGiven, EachCloud):
    """Adds clusters of points outside the region of interest, as from birds, leaves, exhaust or dust.

    MR1 of Zhou and Sun (CACM 62(3), 2019) with clustered points: centres are uniform by area outside the region and its
    margin, their z uniform between the frame's lowest and highest; points are uniform in a ball around each. They are
    inserted at random places of the scan; every old point stays, in order. Fields other than coordinates, intensity and
    range are those of the previous point. An organised cloud takes the points in its empty returns.

    Guaranteed: every noise point is within ``radius_m`` of its centre, outside region and margin, and within the
    sensor's range; everything else is unchanged.
    """

    clusters: int = param(20, low=1, high=10_000, neutral=1, help="clumps in each cloud")
    points_each: int = param(50, low=1, high=10_000, neutral=1, help="points in each clump")
    radius_m: float = param(0.5, low=0.01, high=20.0, unit="m", aspect="fixed", help="of a clump")
    region: Region = param("front_40m", convert=load_region, help="what the noise stays out of")
    margin_m: float = param(
        1.0, low=0.0, high=100.0, unit="m", aspect="place", help="noise-free margin around the region"
    )
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")
    ego_radius_m: float = param(
        3.0, low=0.0, high=50.0, unit="m", aspect="fixed", help="no noise this near the sensor (over ground)"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose centres far enough from everything for a whole ball, then points, rows and intensities."""
        refuse_whole_numbers(cloud)
        region, matrix = to_region(bundle, cloud, self.region)
        room = self.radius_m + _ROUNDING_M
        reach = max(self.max_range_m - room, 0.0)
        space = Space(region, matrix, self.margin_m + room, np.inf, reach, self.ego_radius_m + room)
        centres = scattered(rng, self.clusters, cloud, space)
        count = self.clusters * self.points_each
        xyz = rounded(cloud, np.repeat(centres, self.points_each, axis=0) + in_ball(rng, count) * self.radius_m)
        shuffled = rng.permutation(count)
        drawn: Draw = {"rows": free_rows(rng, cloud, count), "xyz": xyz[shuffled], "centre_m": centres}
        drawn["of"] = (shuffled // self.points_each).astype(np.min_scalar_type(self.clusters))
        intensity = intensities(rng, count, cloud, full_scale=False)
        return drawn if intensity is None else {**drawn, "intensity": intensity}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Add the clusters."""
        return with_added(cloud, draw["rows"], draw["xyz"], draw.get("intensity"))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check the places and the number of the noise points."""
        rows: Rows = draw["rows"]
        if len(rows) != self.clusters * self.points_each:
            return f"{len(rows)} points drawn, expected {self.clusters} x {self.points_each}"
        broken = proof_of_addition(old, new, rows)
        if broken is not None:
            return broken
        xyz = np.stack(columns(new, added_rows(old, rows))).T
        distance_m = np.linalg.norm(xyz - draw["centre_m"][draw["of"]], axis=1)
        if not (distance_m <= self.radius_m + _ROUNDING_M).all():
            return f"a noise point is {distance_m.max():.3f} m from the centre of its clump"
        return self._prove_place(bundle, old, xyz)

    def _prove_place(self, bundle: Bundle, cloud: Cloud, xyz: Floats) -> str | None:
        region, matrix = to_region(bundle, cloud, self.region)
        plan = xyz @ matrix[:2, :3].T + matrix[:2, 3]
        away = region.signed_distance(plan)
        if not (away > self.margin_m).all():
            return f"a noise point is {away.min():.3f} m from region '{region.name}', the margin is {self.margin_m:g} m"
        range_m, over_ground_m = np.linalg.norm(xyz, axis=1), np.linalg.norm(plan - matrix[:2, 3], axis=1)
        if (range_m <= self.max_range_m).all() and (over_ground_m >= self.ego_radius_m).all():
            return None
        return f"noise from {over_ground_m.min():.2f} to {range_m.max():.2f} m leaves the sensor's reach"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of noise points, and keep them for pictures."""
        added = {topic: draw["xyz"] for topic, draw in draws.items()}
        return Effects(numbers={"points_added": float(sum(map(len, added.values())))}, added_points=added)


def in_ball(rng: np.random.Generator, count: int) -> Floats:
    """Draw points (count, 3) uniform in the unit ball: a direction from three normals, a radius by its cube root."""
    towards = rng.standard_normal((count, 3))
    length = np.maximum(np.linalg.norm(towards, axis=1), 1e-12)
    return np.asarray(towards * (np.cbrt(rng.random(count)) / length)[:, None])
