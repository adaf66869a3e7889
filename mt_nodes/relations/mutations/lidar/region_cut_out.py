# SPDX-License-Identifier: Apache-2.0
"""A region without returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.regions import Polygon, Region, RegionGiven, load_region
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.drawn_returns import RowsLost, as_mask, rows_of
from mt_nodes.relations.mutations.lidar.placement import empty_returns, to_region
from mt_nodes.relations.mutations.lidar.rays import At, columns, pieces, smallest

#: Height limits of a region without its own: more than any vehicle's LiDAR covers.
_ANY_Z_M = (-100.0, 100.0)
_EDGE_M = 1e-6
#: Far above the rounding of single-precision coordinates within a kilometre.
_COARSE_M = 0.01


@dataclass(frozen=True)
class RegionCutOut(RegionGiven, RowsLost):
    """Loses every return in a region, as with a faulty filter, mask or cropped map tile.

    Nothing replaces them and nothing behind changes, so an object in the region vanishes without its shadow. Obstacles
    that touch the region are not demanded (``effects.removed``).

    Guaranteed: no return in the region remains, and none outside it is lost; the rest is unchanged byte for byte.
    """

    random = False

    region: Region = param(
        {"name": "cut_out", "frame_id": "base_link", "box_m": {"x": [8.0, 16.0], "y": [-4.0, 4.0]}},
        convert=load_region,
        help="what is cut out, of its heights if it has limits",
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the returns in the region; nothing is random."""
        region, matrix = to_region(bundle, cloud, self.region)
        rows = _near(region, matrix, cloud)
        return {"rows": smallest(rows[region.contains(_in_region_frame(matrix, cloud, rows))])}

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report that what stood in the region is removed."""
        effects = super().describe_change(bundle, clouds, draws)
        return replace(effects, removed=volumes_of(self.region.resolve(bundle)))

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Check the places of lost and remaining returns by their distance to the outline."""
        region, matrix = to_region(bundle, old, self.region)
        lost, known = as_mask(old, rows_of(draw)), ~empty_returns(old)
        place = region, matrix
        found = [self._misplaced(old, at, lost[at], known[at], place) for at in pieces(slice(None), len(old))]
        outside, wrong = (sum(numbers) for numbers in zip((0, 0), *found, strict=True))
        if outside:
            return f"a return outside region '{region.name}' was lost"
        return f"{wrong} returns are on the wrong side of region '{region.name}'" if wrong else None

    def _misplaced(self, old: Cloud, at: At, lost: Mask, known: Mask, place: tuple[Region, Matrix]) -> tuple[int, int]:
        """Count points (n,) that are lost far outside of the region, and returns on the wrong side of its edge."""
        region, matrix = place
        x, y, z = _in_region_frame(matrix, old, at).T
        low_z, high_z = region.z_m or (-np.inf, np.inf)
        reach, (x_0, y_0, x_1, y_1) = 2.0 * _EDGE_M, region.bounds
        near = (x >= x_0 - reach) & (x <= x_1 + reach) & (y >= y_0 - reach) & (y <= y_1 + reach)
        rows = np.flatnonzero(near & known)
        # Depth inside, horizontally and between the heights: negative is outside.
        depth = -region.signed_distance(np.stack([x[rows], y[rows]]).T)
        depth = np.minimum(depth, np.minimum(z[rows] - low_z, high_z - z[rows]))
        wrong = ((depth > 0.0) != lost[rows]) & (np.abs(depth) > _EDGE_M)
        return int(np.count_nonzero(lost & ~near)), int(np.count_nonzero(wrong))


def volumes_of(region: Region) -> tuple[Volume, ...]:
    """Return a resolved region as volumes, one per outline."""
    low_z, high_z = region.z_m or _ANY_Z_M
    return tuple(_volume(region.frame_id, outline, low_z, high_z) for outline in region.polygon_m)


def _volume(frame_id: str, outline: Polygon, low_z: float, high_z: float) -> Volume:
    (x_0, y_0), (x_1, y_1) = np.min(outline, axis=0).tolist(), np.max(outline, axis=0).tolist()
    centre, size = ((x_0 + x_1) / 2, (y_0 + y_1) / 2, (low_z + high_z) / 2), (x_1 - x_0, y_1 - y_0, high_z - low_z)
    return Volume(frame_id, centre, size, label="cut out", outline_m=outline)


def _near(region: Region, matrix: Matrix, cloud: Cloud) -> Rows:
    """Return the rows (n,) that may lie in the region, by single precision and its bounds: fast, with some extra."""
    x, y, z = (cloud.points[name].astype(np.float32) for name in "xyz")
    near = ~empty_returns(cloud)
    for (a, b, c, d), low, high in zip(matrix[:2].tolist(), region.bounds[:2], region.bounds[2:], strict=True):
        place = a * x + b * y + c * z
        near &= (place > low - d - _COARSE_M) & (place < high - d + _COARSE_M)
    return np.flatnonzero(near)


def _in_region_frame(matrix: Matrix, cloud: Cloud, at: At) -> Floats:
    """Return points (n, 3) in the region's frame."""
    x, y, z = columns(cloud, at)
    return np.stack([a * x + b * y + c * z + d for a, b, c, d in matrix[:3].tolist()]).T
