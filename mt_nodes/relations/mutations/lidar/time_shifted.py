# SPDX-License-Identifier: Apache-2.0
"""Clouds with the stamp of another time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation, stamps_apart


@dataclass(frozen=True)
class TimeShifted(Mutation):
    """Stamps every cloud earlier or later by a constant: a time offset between the LiDAR and everything else.

    t' = t + offset, as from clocks that are not synchronised (no PTP or PPS), or a driver that stamps at the end of the
    sweep instead of its beginning. Points and other messages stay, with their own stamps; if a cloud leads the bundle,
    answers are expected with the new stamp. Guaranteed: only the stamps of the clouds change, by exactly the offset.
    """

    sensors = ("lidar",)
    random = False
    about_stamps = True

    offset_s: float = param(
        0.05, low=-10.0, high=10.0, unit="s", neutral=0.0, help="added to the stamp; negative: earlier"
    )

    def __post_init__(self) -> None:
        if self._offset_ns == 0:
            raise UsageError(f"got offset_s {self.offset_s:g}, expected a nanosecond at least")

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say that a stack does not join clouds with the stamps of another time."""
        others = [role for role in ("camera", "radar") if role in inputs]
        if not others or abs(self.offset_s) <= sync_s:
            return ""
        return stamps_apart(self.offset_s, "lidar", others, sync_s)

    @property
    def _offset_ns(self) -> int:
        return round(self.offset_s * 1e9)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Nothing is random."""
        earliest = min((c.stamp_ns for c in bundle.clouds), default=None)
        if earliest is None:
            raise NotApplicable(f"bundle {bundle.index} has no cloud")
        if earliest + self._offset_ns < 0:
            raise NotApplicable(f"a stamp of {earliest} ns cannot be {-self._offset_ns} ns earlier: time begins at 0")
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Move the stamp of every cloud."""
        clouds = [replace(c, stamp_ns=c.stamp_ns + self._offset_ns).read_as(c.reading) for c in bundle.clouds]
        shifted = bundle.with_clouds(clouds)
        if _leads(bundle):
            shifted = replace(shifted, stamp_ns=bundle.stamp_ns + self._offset_ns)
        return Followup(((0, shifted),), Effects(numbers={"offset_s": self.offset_s}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Subtract the offset again and compare every message."""
        if len(followup.bundles) != 1:
            return f"{len(followup.bundles)} bundles, expected one"
        changed = followup.first
        if others := changed.changed_topics(source) - {c.topic for c in source.clouds}:
            return f"{', '.join(sorted(others))} changed, too"
        if changed.stamp_ns - source.stamp_ns != (self._offset_ns if _leads(source) else 0):
            return f"the bundle's stamp moved by {changed.stamp_ns - source.stamp_ns} ns"
        for old, new in zip(source.clouds, changed.clouds, strict=True):
            if new.stamp_ns - old.stamp_ns != self._offset_ns:
                return f"{old.topic}: the stamp moved by {new.stamp_ns - old.stamp_ns} ns, not {self._offset_ns} ns"
            same = (new.frame_id, new.height, new.is_dense) == (old.frame_id, old.height, old.is_dense)
            if not same or new.points.dtype != old.points.dtype or new.raw.tobytes() != old.raw.tobytes():
                return f"{old.topic}: more changed than the stamp"
        return None


def _leads(bundle: Bundle) -> bool:
    return any(cloud.stamp_ns == bundle.stamp_ns for cloud in bundle.clouds)
