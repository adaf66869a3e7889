# SPDX-License-Identifier: Apache-2.0
"""Faults in the nodes of the pipeline, one in each: what is far away decides about what is near."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control, Detections, Path
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.pipeline_base import PipelineFault, PipelineSteps


@dataclass(frozen=True)
class VoxelsOverwritten(PipelineFault):
    """The filter thins points by a hash table of voxels that ignores collisions: a far point evicts a near one."""

    node: ClassVar[str] = "filter"
    voxel_m: float = param(0.2, low=0.01, high=1.0, unit="m", help="side of a voxel")
    slots: int = param(1024, low=16, high=1 << 24, help="size of the table")

    def plant(self, steps: PipelineSteps) -> PipelineSteps:
        """Keep the last point of each slot."""

        def filtered(points: Points) -> Points:
            kept = steps.filtered(points)
            x, y, z = np.floor(kept[:, :3].astype(np.float64) / self.voxel_m).astype(np.int64).T
            # The usual hash of a voxel (M. Teschner et al., Optimized Spatial Hashing, VMV 2003).
            slot = ((x * 73856093) ^ (y * 19349663) ^ (z * 83492791)) % self.slots
            _, last = np.unique(slot[::-1], return_index=True)
            return np.asarray(kept[np.sort(len(kept) - 1 - last)])

        return replace(steps, filtered=filtered)


@dataclass(frozen=True)
class ClustersCapped(PipelineFault):
    """The list of clusters has a fixed length, and is filled from the right to the left: the rest is dropped."""

    node: ClassVar[str] = "cluster"
    most: int = param(10, low=1, high=1000, help="length of the list")

    def plant(self, steps: PipelineSteps) -> PipelineSteps:
        """Drop what does not fit."""

        def clustered(points: Points, stamp_ns: int | None) -> Detections:
            found = steps.clustered(points, stamp_ns)
            return found.take(np.sort(np.argsort(found.center_m[:, 1], kind="stable")[: self.most]))

        return replace(steps, clustered=clustered)


@dataclass(frozen=True)
class TrackSlotsReused(PipelineFault):
    """Tracks are kept in a ring of slots: a track whose slot is taken replaces the one that is there."""

    node: ClassVar[str] = "track"
    slots: int = param(12, low=1, high=1000, help="size of the ring")

    def plant(self, steps: PipelineSteps) -> PipelineSteps:
        """Keep the last track of each slot, by their numbers."""

        def tracked(found: Detections) -> Detections:
            tracks = steps.tracked(found)
            slot = np.array([int(number) % self.slots for number in tracks.track_id], dtype=np.int64)
            _, last = np.unique(slot[::-1], return_index=True)
            return tracks.take(np.sort(len(slot) - 1 - last))

        return replace(steps, tracked=tracked)


@dataclass(frozen=True)
class CrowdShortensPath(PipelineFault):
    """The planner keeps a distance for every track there is, wherever it is."""

    node: ClassVar[str] = "plan"
    each_m: float = param(0.05, low=0.0, high=10.0, unit="m", help="taken off the path for each track")

    def plant(self, steps: PipelineSteps) -> PipelineSteps:
        """Cut the end of the path off."""

        def planned(tracks: Detections) -> Path:
            path = steps.planned(tracks)
            end_m = float(path.pose[-1, 0]) - self.each_m * len(tracks)
            return Path.make(path.frame_id, path.stamp_ns, path.pose[path.pose[:, 0] <= max(0.0, end_m)])

        return replace(steps, planned=planned)


@dataclass(frozen=True)
class BrakesForAnybodyNear(PipelineFault):
    """The emergency brake looks at distances alone: somebody beside or behind the ego vehicle is braked for, too."""

    node: ClassVar[str] = "control"
    within_m: float = param(25.0, low=0.0, high=100.0, unit="m", help="distance below which it brakes")

    def plant(self, steps: PipelineSteps) -> PipelineSteps:
        """Slow down with each track that is near."""

        def commanded(path: Path, tracks: Detections) -> Control:
            command = steps.commanded(path, tracks)
            near = int((np.hypot(*tracks.center_m[:, :2].T) < self.within_m).sum())
            return replace(command, speed_mps=round(command.speed_mps * 0.98**near, 6))

        return replace(steps, commanded=commanded)
