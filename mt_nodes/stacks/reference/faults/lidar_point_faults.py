# SPDX-License-Identifier: Apache-2.0
"""Faults of the detector that lose, move or refuse points before any are clustered."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps
from mt_nodes.world.scene.lidar import hdl_64e


class PointFault(Fault):
    """Base of faults that lose or move points of what goes on to the region filter, each cloud for itself."""

    @abstractmethod
    def admitted(self, cloud: Points) -> Points:
        """Return what is left of the points that the step before admits; they stay as they are."""

    def plant(self, steps: Steps) -> Steps:
        """Put it behind the step that admits points."""
        return replace(steps, admit=lambda cloud: self.admitted(steps.admit(cloud)))


@dataclass(frozen=True)
class GridIndexWrap(PointFault):
    """Cell indices are masked to the grid's power-of-two size instead of being checked against it.

    Points beyond the grid re-enter at the opposite edge, before the region filter. A far point that falls above an
    obstacle's column makes it taller than any road user, so that it is rejected as a structure. Inside the grid nothing
    changes.
    """

    cell_m: float = param(0.25, low=0.01, high=10.0, unit="m", help="side of a cell")
    cells: tuple[int, int] = param((512, 128), low=2, help="cells along x and y, powers of two")
    origin_m: tuple[float, float] = param((-24.0, -16.0), unit="m", help="corner of the grid with the lowest x, y")

    def admitted(self, cloud: Points) -> Points:
        """Fold far points into the grid."""
        period, folded = np.array(self.cells) * self.cell_m, cloud.copy()
        folded[:, :2] -= np.floor((folded[:, :2] - self.origin_m) / period) * period
        return folded


@dataclass(frozen=True)
class HardCodedRingCount(Fault):
    """Beams are numbered from the top in the order found, and their elevations come from a table for 64 beams.

    With all 64 beams that is right. If one beam is missing, everything below it is lifted by one beam; if every other
    beam is missing, the road rises to the horizon.
    """

    lidar_height_m: float = param(1.73, low=0.0, high=10.0, unit="m", help="the sensor's height above base_link")

    def plant(self, steps: Steps) -> Steps:
        """Lift points to where the table has the beam that they are taken for."""
        table = np.array(hdl_64e().elevations_rad)
        between = -(table[1:] + table[:-1]) / 2.0

        def admit(cloud: Points) -> Points:
            admitted = steps.admit(cloud).copy()
            ground_m = np.hypot(admitted[:, 0], admitted[:, 1])
            beam = np.searchsorted(between, -np.arctan2(admitted[:, 2] - self.lidar_height_m, ground_m))
            occupied = np.bincount(beam, minlength=len(table)) > 0
            taken_for = np.cumsum(occupied) - 1
            # Exactly nothing is added to a point whose beam is taken for what it is.
            admitted[:, 2] += ground_m * (np.tan(table[taken_for]) - np.tan(table))[beam]
            return admitted

        return replace(steps, admit=admit)


@dataclass(frozen=True)
class IntensityByCloudMax(PointFault):
    """Intensity is divided by the maximum of the whole cloud, and dim points are then dropped as noise.

    One retro-reflector anywhere doubles the maximum, and dark obstacles (black paint, dark clothing) drop below the
    limit. Noise whose intensity stays within the frame's own range cannot show this.
    """

    dimmest: float = param(0.06, low=0.0, high=1.0, help="share of the maximum below which a point is noise")

    def admitted(self, cloud: Points) -> Points:
        """Drop what is dim beside the brightest point."""
        intensity = cloud[:, 3]
        brightest = np.fmax.reduce(intensity, initial=0.0)
        return np.asarray(cloud[~(intensity < self.dimmest * brightest)])


@dataclass(frozen=True)
class IntensityThreshold(PointFault):
    """Returns weaker than a fixed value on one sensor's intensity scale are dropped as noise.

    Whatever weakens returns (fog, rain, a wet road, a dirty or an older sensor) moves dark obstacles below it. On a
    scale that ends at 1 nothing is left.
    """

    weakest: float = param(8.0, low=0.0, high=255.0, help="intensity, from 0 to 255, below which a return is noise")
    brightest: float = param(145.0, low=0.0, high=255.0, help="intensity, from 0 to 255, above which it is glare")

    def admitted(self, cloud: Points) -> Points:
        """Drop weak returns."""
        return np.asarray(cloud[~((cloud[:, 3] < self.weakest) | (cloud[:, 3] > self.brightest))])


@dataclass(frozen=True)
class NanLeak(Fault):
    """Heights are centred per sector before returns with NaN are dropped, instead of after.

    Such a return has no azimuth and falls into the sector that begins straight ahead. The mean of that sector becomes
    NaN: every obstacle in it vanishes without a message, while the others stay.
    """

    sectors: int = param(8, low=1, high=360, help="sectors of a revolution, counted to the left from straight ahead")

    def plant(self, steps: Steps) -> Steps:
        """Centre the cloud as it came; the mean is added again, so that a clean cloud stays as it is."""

        def clean(cloud: Points) -> Points:
            with np.errstate(invalid="ignore"):
                share = np.nan_to_num(np.arctan2(cloud[:, 1], cloud[:, 0])) / (2.0 * np.pi) % 1.0
                sector = np.minimum((share * self.sectors).astype(np.intp), self.sectors - 1)
                total = np.bincount(sector, weights=cloud[:, 2], minlength=self.sectors)
                mean_m = (total / np.maximum(np.bincount(sector, minlength=self.sectors), 1))[sector]
                levelled = cloud.copy()
                levelled[:, 2] = (cloud[:, 2] - mean_m) + mean_m
            return steps.clean(levelled)

        return replace(steps, clean=clean)


@dataclass(frozen=True)
class OldCloudRefused(Fault):
    """A cloud that arrives later than a fixed time after its stamp is ignored, and an empty list is published.

    The limit was measured on a desk. Where driver and network take longer the road always seems free. In process only:
    a callable hosted as a node is not told the time.
    """

    oldest_s: float = param(0.03, low=0.0, high=10.0, unit="s", help="age of the oldest cloud that is looked at")

    def plant(self, steps: Steps) -> Steps:
        """Look at the clock; where there is none nobody is late."""
        oldest_ns = round(self.oldest_s * 1e9)

        def in_time(stamp_ns: int | None, now_ns: int | None) -> bool:
            late = stamp_ns is not None and now_ns is not None and now_ns - stamp_ns > oldest_ns
            return not late and steps.in_time(stamp_ns, now_ns)

        return replace(steps, in_time=in_time)


@dataclass(frozen=True)
class OrderDependenceOverBudget(PointFault):
    """Above a budget of points only every k-th point is kept, in arrival order.

    Points anywhere push the cloud over its budget; an obstacle of few points keeps too few, and which ones depends on
    the order of arrival.
    """

    budget: int = param(107_800, low=1, help="points up to which all are kept; the generated drive stays below")
    keep_every: int = param(4, low=2, high=1000, help="over the budget, one point in so many is kept")

    def admitted(self, cloud: Points) -> Points:
        """Thin a cloud that is over its budget."""
        return cloud if len(cloud) <= self.budget else cloud[:: self.keep_every]


@dataclass(frozen=True)
class PointBufferCap(PointFault):
    """Points beyond the capacity of an input buffer are dropped without a message.

    The buffer is filled in arrival order before the region filter, so points anywhere push the end of the revolution
    out of it: an obstacle in the last columns of the scan vanishes.
    """

    capacity: int = param(107_800, low=1, help="points that fit; the generated drive's largest frame has fewer")

    def admitted(self, cloud: Points) -> Points:
        """Cut the cloud off at the capacity."""
        return cloud[: self.capacity]


@dataclass(frozen=True)
class RoadFitStarved(Fault):
    """The road's slope is fitted to far returns of the road; if there are too few, the cloud is dropped.

    A wet road returns nothing from there, and obstacles a few metres ahead are lost with the cloud.
    """

    beyond_m: float = param(20.0, low=0.0, high=100.0, unit="m", help="where far away begins")
    least_returns: int = param(500, low=1, high=1_000_000, help="fewer returns from the road there are too few")
    thickness_m: float = param(0.2, low=0.01, high=1.0, unit="m", help="returns so near to z = 0 are the road's")

    def plant(self, steps: Steps) -> Steps:
        """Let nothing pass of a cloud in which there is too little road."""

        def admit(cloud: Points) -> Points:
            road = (np.abs(cloud[:, 2]) < self.thickness_m) & (np.hypot(cloud[:, 0], cloud[:, 1]) > self.beyond_m)
            return steps.admit(cloud if np.count_nonzero(road) >= self.least_returns else cloud[:0])

        return replace(steps, admit=admit)


@dataclass(frozen=True)
class SameCloudIsStuck(Fault):
    """A cloud equal to the one before is dropped, as if the sensor were stuck.

    So are the next ones, until the sensor is trusted again; but an obstacle is not gone because its cloud came twice.
    """

    distrusted: int = param(1, low=0, high=100, help="clouds after it that are thrown away, too")

    def plant(self, steps: Steps) -> Steps:
        """Let nothing of a cloud pass that was there before."""

        last: Points | None = None
        left = 0

        def admit(cloud: Points) -> Points:
            nonlocal last, left
            stuck = last is not None and len(cloud) > 0 and np.array_equal(cloud, last)
            last, left, distrust = cloud.copy(), self.distrusted if stuck else max(left - 1, 0), stuck or left > 0
            return steps.admit(cloud[:0] if distrust else cloud)

        return replace(steps, admit=admit)
