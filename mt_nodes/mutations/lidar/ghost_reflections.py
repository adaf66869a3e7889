# SPDX-License-Identifier: Apache-2.0
"""Echoes that went twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.effects import Effects
from mt_nodes.errors import NotApplicable
from mt_nodes.frames import Bundle, Cloud
from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.lidar.each_cloud import EachCloud
from mt_nodes.mutations.lidar.placement import RANGE_FIELDS
from mt_nodes.mutations.lidar.rays import (
    RAY_TOLERANCE_RAD,
    columns,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    smallest,
    write_range_fields,
)
from mt_nodes.params import param

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GhostReflections(EachCloud):
    """Adds second echoes of strong returns at twice their range, on their own beams.

    The light of a strong echo (a retro-reflector, a number plate, bare metal) is in part thrown back by the sensor's
    own window or housing, goes to the target once more and comes again: R_ghost = c (2 t) / 2 = 2 R, in the same
    direction, weaker by the reflections it took. A dual-return sensor reports it as a second return of the beam. Every
    other field is the strong return's, after which the ghost is put. An organised cloud has one place a beam: it has no
    honest ghost. Guaranteed: every old return stays, and each ghost is behind its own strong return at twice the
    range, on its beam and weaker.
    """

    ghosts: int = param(100, low=1, high=100_000, help="ghosts in each cloud")
    strong_share: float = param(0.05, low=0.0001, high=1.0, help="share of the returns that are strong enough")
    strength: float = param(0.2, low=0.0, high=1.0, help="a ghost's intensity over that of its strong return")
    max_range_m: float = param(120.0, low=1.0, high=500.0, unit="m", help="the sensor's range: no ghost beyond it")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the returns that echo twice, under ``rows``."""
        if cloud.organised:
            raise NotApplicable(f"organised {cloud.topic} of {cloud.height} x {cloud.width} holds one return a beam")
        if cloud.intensity_field is None:
            raise NotApplicable(f"{cloud.topic} has no intensity to tell strong returns by")
        refuse_whole_numbers(cloud)
        known = returns(cloud)
        intensity = np.nan_to_num(cloud.points[cloud.intensity_field][known].astype(np.float64))
        weakest = np.partition(intensity, int((1.0 - self.strong_share) * (len(known) - 1)))
        strong = known[intensity >= weakest[int((1.0 - self.strong_share) * (len(known) - 1))]]
        strong = strong[2.0 * ranges_m(cloud, strong) <= self.max_range_m]
        if len(strong) < self.ghosts:
            raise NotApplicable(
                f"{len(strong)} strong returns of {cloud.topic} lie within {self.max_range_m / 2:g} m, "
                f"{self.ghosts} are needed"
            )
        return {"rows": smallest(np.sort(rng.choice(strong, self.ghosts, replace=False, shuffle=False)))}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Put a ghost behind each, next in the scan."""
        rows = draw["rows"].astype(np.int64)
        added = cloud.raw.take(rows)
        points = added.view(cloud.points.dtype)
        for name in "xyz":
            points[name] *= 2
        write_range_fields(points, cloud, slice(None), np.full(len(rows), 2.0))
        points[cloud.intensity_field] = points[cloud.intensity_field] * self.strength
        return cloud.with_raw(np.insert(cloud.raw, rows + 1, added))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Take the ghosts out again, and look at each beside its strong return."""
        rows = draw["rows"].astype(np.int64)
        at = rows + 1 + np.arange(len(rows))
        if len(new) != len(old) + self.ghosts or len(rows) != self.ghosts or (np.diff(rows) <= 0).any():
            return f"{len(new)} points, expected {len(old)} and {self.ghosts} ghosts, each of a return of its own"
        if np.delete(new.raw, at).tobytes() != old.raw.tobytes():
            return "an old point was changed, moved or lost"
        return self._twice_as_far(old, new, rows, at) or self._otherwise_the_same(old, new, rows, at)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Say where the ghosts are."""
        rows = {topic: draws[topic]["rows"].astype(np.int64) for topic in clouds}
        added = {t: cloud.xyz[rows[t] + 1 + np.arange(len(rows[t]))].astype(np.float64) for t, cloud in clouds.items()}
        return Effects(numbers={"points_added": float(sum(map(len, added.values())))}, added_points=added)

    def _twice_as_far(self, old: Cloud, new: Cloud, rows: Rows, at: Rows) -> str | None:
        near, far = ranges_m(old, rows), ranges_m(new, at)
        (a, b, c), (x, y, z) = columns(old, rows), columns(new, at)
        ahead = a * x + b * y + c * z
        aside = np.sqrt((b * z - c * y) ** 2 + (c * x - a * z) ** 2 + (a * y - b * x) ** 2)
        wrong = ~(aside <= RAY_TOLERANCE_RAD * ahead) | (np.abs(far - 2.0 * near) > rounding_m(old, far))
        wrong |= far > self.max_range_m + rounding_m(old, far)
        return f"{int(wrong.sum())} ghosts are not at twice the range on their beams" if wrong.any() else None

    def _otherwise_the_same(self, old: Cloud, new: Cloud, rows: Rows, at: Rows) -> str | None:
        name = old.intensity_field
        if (new.points[name][at] > old.points[name][rows] * self.strength * (1.0 + 1e-6)).any():
            return f"a ghost is stronger than {self.strength:g} of its return"
        for other in set(old.fields) - {*"xyz", name, *filter(old.single, RANGE_FIELDS)}:
            if new.points[other][at].tobytes() != old.points[other][rows].tobytes():
                return f"field '{other}' of a ghost is not its return's"
        return None
