# SPDX-License-Identifier: Apache-2.0
"""Crosstalk: pulses of another LiDAR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.placement import finite_range, intensities, write_intensity
from mt_nodes.relations.mutations.lidar.rays import (
    proof_on_beam,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    rows_of_share,
    with_ranges,
)

#: A foreign pulse counts only if it is clearly nearer than the beam's own echo.
_NEARER = 0.95


@dataclass(frozen=True)
class Crosstalk(EachCloud):
    """Replaces a few returns by nearer ones on the same beams, as pulses of another LiDAR cause them.

    A foreign pulse that falls into the receiver while it waits for its own echo is taken for it: a ghost target
    (G. Kim, J. Eom, Y. Park, "Alien Pulse Rejection in Concurrent Firing LIDAR", Remote Sensing 14(5), 2022). It comes
    at any time, so the false range R = c t / 2 is uniform between the sensor's least range and the beam's own return
    (a physical argument: the two sensors' clocks know nothing of each other). Intensities are uniform over the frame's
    own. Guaranteed: only the drawn returns change; each is nearer than before, but not nearer than ``min_range_m``, and
    still on its beam.
    """

    share: float = param(0.001, low=1e-6, high=0.2, neutral=1e-06, help="share of the returns that are replaced")
    min_range_m: float = param(
        1.0, low=0.1, high=50.0, unit="m", aspect="fixed", help="the sensor reports nothing nearer"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose returns, their new ranges and intensities."""
        refuse_whole_numbers(cloud)
        known = returns(cloud)
        far = known[ranges_m(cloud, known) * _NEARER > self.min_range_m]
        if not len(far):
            raise NotApplicable(f"all {len(known)} returns of {cloud.topic} lie within {self.min_range_m:g} m")
        rows = rows_of_share(rng, far, self.share)
        range_m = rng.uniform(self.min_range_m, _NEARER * ranges_m(cloud, rows)).astype(np.float32)
        intensity = intensities(rng, len(rows), cloud, full_scale=False)
        drawn = {"rows": rows, "range_m": np.maximum(range_m, np.float32(self.min_range_m))}
        return drawn if intensity is None else {**drawn, "intensity": intensity}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move the drawn returns along their beams."""
        rows = draw["rows"]
        new = with_ranges(cloud, rows, ranges_m(cloud, rows), draw["range_m"].astype(np.float64))
        if "intensity" in draw:
            # The cloud is a fresh copy: it may be written to.
            write_intensity(new.points, rows, draw["intensity"], draw["range_m"], cloud)
        return new

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check the new ranges, the beams and the intensities."""
        rows, name = draw["rows"], old.intensity_field
        if len(np.unique(rows)) != len(rows):
            return "a return was drawn twice"
        if (broken := proof_on_beam(old, new, rows, also=old.echo_names)) is not None:
            return broken
        low, high = (name and finite_range(old.points[name])) or (0.0, 0.0)
        if name is not None and not ((new.points[name][rows] >= low) & (new.points[name][rows] <= high)).all():
            return f"a new intensity is outside the frame's own {low:g} to {high:g}"
        before, after = ranges_m(old, rows), ranges_m(new, rows)
        slack = rounding_m(old, before)
        wrong = (after > _NEARER * before + slack) | (after < self.min_range_m - slack)
        wrong |= np.abs(after - draw["range_m"]) > slack + 1e-5
        return f"{int(wrong.sum())} of {len(rows)} new ranges are not the drawn, nearer ones" if wrong.any() else None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the places of the false returns."""
        added = {topic: cloud.xyz[draws[topic]["rows"]].astype(np.float64) for topic, cloud in clouds.items()}
        return Effects(numbers={"returns_replaced": float(sum(map(len, added.values())))}, added_points=added)
