# SPDX-License-Identifier: Apache-2.0
"""A few noise points inside the region of interest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.regions import Region, RegionGiven, load_region
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.placement import intensities, rounded, to_region, write_intensity
from mt_nodes.relations.mutations.lidar.rays import (
    columns,
    proof_on_beam,
    ranges_m,
    refuse_whole_numbers,
    returns,
    smallest,
    write_range_fields,
)

_TRIES_PER_BEAM = 8
_EDGE_M = 1e-6


@dataclass(frozen=True)
class NoiseInsideRoi(RegionGiven, EachCloud):
    """Shortens a few beams inside the region of interest, as insects, drops or flakes do.

    Each noise point replaces a return on its own beam, at a range uniform below the old one, so that every beam keeps
    one return. Its intensity is uniform over the frame's own. Beams start at the origin of the cloud's frame. After MR1
    of Zhou and Sun (CACM 62(3), 2019), who kept noise out of the region: inside it noise may legitimately matter, so
    that a stack can be required to ignore only little of it.

    Guaranteed: the requested number of returns get nearer, on their beams, inside the region (and its height limits, if
    any) and beyond ``ego_radius_m``; everything else is unchanged.
    """

    points: int = param(20, low=1, high=100_000, neutral=1, help="noise points in each cloud")
    region: Region = param("front_40m", convert=load_region, help="where the noise is")
    ego_radius_m: float = param(3.0, low=0.1, high=50.0, unit="m", aspect="fixed", help="no noise this near the sensor")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose beams whose return can be shortened into the region, and their ranges."""
        refuse_whole_numbers(cloud)
        region, matrix = to_region(bundle, cloud, self.region)
        order = rng.permutation(returns(cloud))
        found, places, count = [np.empty(0, np.int64)], [np.empty((0, 3))], 0
        for batch in np.array_split(order, max(1, len(order) // max(1024, 4 * self.points))):
            rows, xyz = self._early(rng, cloud, batch, region, matrix)
            found.append(rows[: self.points - count])
            places.append(xyz[: self.points - count])
            count += len(found[-1])
            if count == self.points:
                break
        if count < self.points:
            raise NotApplicable(
                f"{count} beams of {cloud.topic} can end early in region '{region.name}', {self.points} are needed"
            )
        rows, xyz = np.concatenate(found), np.concatenate(places)
        rising = np.argsort(rows)
        intensity = intensities(rng, self.points, cloud, full_scale=False)
        drawn: Draw = {"rows": smallest(rows[rising]), "xyz": xyz[rising]}
        return drawn if intensity is None else {**drawn, "intensity": intensity}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Replace returns by noise."""
        raw, rows = cloud.raw.copy(), draw["rows"].astype(np.int64)
        points = raw.view(cloud.points.dtype)
        for i, name in enumerate("xyz"):
            points[name][rows] = draw["xyz"][:, i]
        if "intensity" in draw:
            write_intensity(points, rows, draw["intensity"], np.linalg.norm(draw["xyz"], axis=1), cloud)
        write_range_fields(points, cloud, rows, np.linalg.norm(draw["xyz"], axis=1) / ranges_m(cloud, rows))
        return cloud.with_raw(raw, height=cloud.height)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check beam, range and region of the noise."""
        rows = draw["rows"].astype(np.int64)
        if len(np.unique(rows)) != self.points:
            return f"{len(np.unique(rows))} returns replaced, expected {self.points}"
        broken = proof_on_beam(old, new, rows, old.echo_names)
        if broken is not None:
            return broken
        range_m = ranges_m(new, rows)
        if not (range_m < ranges_m(old, rows)).all():
            return "a noise point is not nearer than the return it replaces"
        if not (range_m >= self.ego_radius_m - _EDGE_M).all():
            return f"a noise point is {range_m.min():.2f} m from the sensor"
        region, matrix = to_region(bundle, old, self.region)
        plan = move(matrix, np.stack(columns(new, rows)).T)
        low, high = region.z_m or (-np.inf, np.inf)
        outside = region.signed_distance(plan[:, :2]) > _EDGE_M
        outside |= (plan[:, 2] < low - _EDGE_M) | (plan[:, 2] > high + _EDGE_M)
        return f"{int(outside.sum())} noise points are outside region '{region.name}'" if outside.any() else None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of noise points, and keep them for pictures."""
        added = {topic: draw["xyz"] for topic, draw in draws.items()}
        return Effects(numbers={"points_added": float(sum(map(len, added.values())))}, added_points=added)

    def _early(
        self, rng: np.random.Generator, cloud: Cloud, rows: Rows, region: Region, matrix: Matrix
    ) -> tuple[Rows, npt.NDArray[Any]]:
        """Return the rows with a possible place in the region, and those places (n, 3)."""
        old: Floats = np.stack(columns(cloud, rows)).T
        ratio = rng.uniform(0.0, 0.99, (_TRIES_PER_BEAM, len(rows)))
        xyz = rounded(cloud, (ratio[:, :, None] * old).reshape(-1, 3))
        allowed = region.contains(move(matrix, xyz)) & (np.linalg.norm(xyz, axis=1) >= self.ego_radius_m)
        allowed = allowed.reshape(ratio.shape)
        hit = np.flatnonzero(allowed.any(axis=0))
        return rows[hit], xyz.reshape(*ratio.shape, 3)[allowed.argmax(axis=0)[hit], hit]
