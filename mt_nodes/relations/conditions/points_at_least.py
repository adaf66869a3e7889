# SPDX-License-Identifier: Apache-2.0
"""Given: the cloud holds enough points to say anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Output
from mt_nodes.data.regions import Region, RegionUnavailable, load_optional_region
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.relations.conditions.base import Condition


@dataclass(frozen=True)
class PointsAtLeast(Condition):
    """The source cloud has at least so many points with finite coordinates, inside the region if one is named."""

    points: int = param(1000, low=1, help="points that must be there")
    topic: str = param("", help="topic of the cloud; empty for the first one")
    region: Region | None = param(None, convert=load_optional_region, help="count only points inside")

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_optional_region(self.region))

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Count the source's points."""
        try:
            cloud = bundle.cloud(self.topic or None)
            count = self._count(bundle, cloud)
        except KeyError as error:
            return str(error.args[0])
        except (UnknownTransform, RegionUnavailable) as error:
            return str(error)
        where = "" if self.region is None else f" in region '{self.region.name}'"
        return None if count >= self.points else f"{count} points{where}, expected at least {self.points}"

    def _count(self, bundle: Bundle, cloud: Cloud) -> int:
        if self.region is None:
            return int(np.isfinite(cloud.xyz).all(axis=1).sum())
        region = self.region.resolve(bundle)
        # What is not finite is in no region.
        return int(region.contains(move(bundle.transforms.lookup(region.frame_id, cloud.frame_id), cloud.xyz)).sum())
