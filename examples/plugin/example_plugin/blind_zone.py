# SPDX-License-Identifier: Apache-2.0
"""A mutation: the blind zone around a LiDAR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.plugin import (
    Bundle,
    Cloud,
    Draw,
    EachCloud,
    Effects,
    NotApplicable,
    Volume,
    param,
    proof_of_removal,
    returns,
    without,
)


@dataclass(frozen=True)
class BlindZone(EachCloud):
    """Loses every return nearer to the sensor than a radius.

    A LiDAR has a minimum range, below which it reports nothing; another type of sensor has a larger one.

    Guaranteed: no return is left inside the zone, and every other one stays as it is.
    """

    random = False

    radius_m: float = param(4.0, low=0.5, high=50.0, unit="m", neutral=0.5, help="minimum range of the LiDAR")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the returns in the zone; nothing is random."""
        rows = returns(cloud)
        near = rows[self._ranges_m(cloud, rows) < self.radius_m]
        if not len(near):
            raise NotApplicable(f"{cloud.topic} has no return within {self.radius_m:g} m")
        return {"rows": near}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Return the cloud without them."""
        return without(cloud, draw["rows"])

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check that exactly the drawn returns are gone, then measure the new cloud itself."""
        broken = proof_of_removal(old, new, draw["rows"])
        if broken is not None:
            return broken
        nearest_m = self._ranges_m(new, returns(new)).min(initial=np.inf)
        return None if nearest_m >= self.radius_m else f"a return {nearest_m:.2f} m away is left"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Say that the zone is out of sight: no check demands an obstacle in it."""
        size_m = (2.0 * self.radius_m,) * 3
        zones = tuple(Volume(cloud.frame_id, (0.0, 0.0, 0.0), size_m) for cloud in clouds.values())
        return Effects(occluded=zones)

    def _ranges_m(self, cloud: Cloud, rows: Any) -> Any:
        return np.linalg.norm(cloud.xyz[rows].astype(np.float64), axis=1)
