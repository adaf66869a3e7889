# SPDX-License-Identifier: Apache-2.0
"""Given: the stack sees obstacles at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.regions import Region, RegionUnavailable, load_optional_region
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.relations.conditions.base import Condition


@dataclass(frozen=True)
class ObstaclesWithin(Condition):
    """The source output has at least so many obstacles near enough, and inside the region if one is named."""

    range_m: float = param(float("inf"), low=0.0, unit="m", help="distance over ground from the origin of frame_id")
    at_least: int = param(1, low=1, high=10_000, help="obstacles that must be there")
    region: Region | None = param(None, convert=load_optional_region, help="count only obstacles inside")
    score: float = param(0.5, low=0.0, high=1.0, help="least score of an obstacle that counts")
    frame_id: str = param("base_link", help="frame whose origin the range is measured from")

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_optional_region(self.region))

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Count the source's obstacles."""
        if source.detections is None:
            return "the source output has no detections to count"
        try:
            seen = int(self._counts(bundle, source.detections).sum())
        except (UnknownTransform, RegionUnavailable) as error:
            return str(error)
        return None if seen >= self.at_least else f"{seen} obstacles {self._place()}, expected at least {self.at_least}"

    def _counts(self, bundle: Bundle, seen: Detections) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        counts = seen.finite & (seen.score >= self.score)
        if np.isfinite(self.range_m):
            xyz = move(bundle.transforms.lookup(self.frame_id, seen.frame_id), seen.center_m)
            counts &= np.hypot(xyz[:, 0], xyz[:, 1]) <= self.range_m
        if self.region is not None:
            region = self.region.resolve(bundle)
            counts &= region.contains(move(bundle.transforms.lookup(region.frame_id, seen.frame_id), seen.center_m))
        return counts

    def _place(self) -> str:
        near = f"within {self.range_m:g} m" if np.isfinite(self.range_m) else "seen"
        return near if self.region is None else f"{near} in region '{self.region.name}'"
