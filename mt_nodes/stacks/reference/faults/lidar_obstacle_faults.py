# SPDX-License-Identifier: Apache-2.0
"""Faults of the detector and its tracker that decide which clusters are obstacles: thresholds, gates and borders."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, OutputFault, Points, Steps


@dataclass(frozen=True)
class AzimuthSeam(OutputFault):
    """Neighbours are searched in a range image that does not wrap around, and clusters at its border are dropped.

    The border lies directly behind the ego, where hardly anybody looks. If the scene is rotated, another obstacle
    vanishes there: clustering depends on yaw.
    """

    margin_m: float = param(0.3, low=0.0, high=5.0, unit="m", help="a box this near to the seam touches it")

    def published(self, found: Detections) -> Detections:
        """Drop what touches the half-line behind the ego."""
        x, y = found.center_m[:, 0], found.center_m[:, 1]
        reach_m = np.hypot(found.size_m[:, 0], found.size_m[:, 1]) / 2.0 + self.margin_m
        return found.take(~((x < 0.0) & (np.abs(y) < reach_m)))


@dataclass(frozen=True)
class FixedRangeGate(OutputFault):
    """Obstacles beyond a fixed range are dropped, whatever region and range the detector is configured for.

    An obstacle just inside the gate vanishes when the scene moves away a little.
    """

    range_m: float = param(28.0, low=1.0, high=200.0, unit="m", help="farther obstacles are dropped")

    def published(self, found: Detections) -> Detections:
        """Drop what is beyond the gate."""
        return found.take(np.hypot(found.center_m[:, 0], found.center_m[:, 1]) <= self.range_m)


@dataclass(frozen=True)
class RightSideThreshold(OutputFault):
    """Obstacles on the right need a higher score than those on the left, against clutter at the kerb.

    In a mirror image of the same street, obstacles on that side vanish.
    """

    least_score: float = param(0.8, low=0.0, high=1.0, help="score from which an obstacle to the right is published")

    def published(self, found: Detections) -> Detections:
        """Drop unsure obstacles to the right."""
        to_the_right = found.center_m[:, 1] < 0.0
        return found.take(~(to_the_right & (found.score < self.least_score)))


@dataclass(frozen=True)
class SampleSeededByCloud(Fault):
    """The minimum cluster size is estimated from a random sample that is seeded by the cloud itself.

    The same cloud gives the same answer, which looks repeatable. A cloud that differs by a tenth of a millimetre draws
    another sample, and small obstacles come and go.
    """

    most: float = param(20.0, low=1.0, high=100.0, help="largest estimate, in honest thresholds")
    digit: float = param(1e-4, low=1e-6, high=1.0, help="last digit of coordinates and intensities that the seed has")

    def plant(self, steps: Steps) -> Steps:
        """Draw the threshold."""

        def min_points(cloud: Points) -> int:
            # A sum of whole numbers does not depend on the order of arrival.
            digits = np.rint(np.clip(cloud[:, :4].astype(np.float64), -1e6, 1e6) / self.digit).astype(np.int64)
            seed = int(digits.sum()) % 2**63
            return round(steps.min_points(cloud) * np.random.default_rng(seed).uniform(1.0, self.most))

        return replace(steps, min_points=min_points)


@dataclass(frozen=True)
class TallIsBuilding(OutputFault):
    """Anything taller than the cars it was developed for is dropped as a building.

    A van or a lorry in the place of a car is not seen.
    """

    tallest_m: float = param(2.0, low=0.5, high=10.0, unit="m", help="height from which an obstacle is dropped")

    def published(self, found: Detections) -> Detections:
        """Drop tall obstacles."""
        return found.take(found.size_m[:, 2] <= self.tallest_m)


@dataclass(frozen=True)
class ThresholdScaledByCloud(Fault):
    """A cloud larger than usual is taken for a noisy one, so clusters must be larger to count.

    Points anywhere raise the threshold; a far or small obstacle, whose few points have not changed, falls below it.
    """

    nominal_points: int = param(107_800, low=1, help="up to here the threshold is the honest one")
    doubling_points: int = param(100, low=1, help="every so many points above it add the honest threshold once more")

    def plant(self, steps: Steps) -> Steps:
        """Scale the threshold with the excess of points."""

        def min_points(cloud: Points) -> int:
            excess = max(0, len(cloud) - self.nominal_points)
            return round(steps.min_points(cloud) * (1.0 + excess / self.doubling_points))

        return replace(steps, min_points=min_points)


@dataclass(frozen=True)
class ZRangeFromCloud(Fault):
    """The z-range of the whole cloud is cut into layers, and clusters within the lowest count as ground.

    The range is taken between quantiles "to be robust". Few returns are really high, so a few hundred high points
    anywhere move the upper quantile and thicken the layers: children and low cars no longer reach the second one.
    """

    quantile: float = param(0.001, low=0.0, high=0.49, help="share of points ignored at each end")
    layers: int = param(4, low=1, high=256, help="layers that the span is cut into")

    def plant(self, steps: Steps) -> Steps:
        """Derive the lowest height of an obstacle from the cloud."""

        def min_height_m(cloud: Points) -> float:
            if not len(cloud):
                return steps.min_height_m(cloud)
            bottom, top = np.quantile(cloud[:, 2], (self.quantile, 1.0 - self.quantile))
            return float(top - bottom) / self.layers

        return replace(steps, min_height_m=min_height_m)


@dataclass(frozen=True)
class ZeroTimeFloored(Fault):
    """The time between two clouds is at least a millisecond, to avoid a division by zero.

    When a cloud comes twice, centimetres between prediction and obstacle become tens of metres per second: the track
    flies off, and a new one begins where it was.
    """

    least_s: float = param(0.001, low=1e-6, high=0.01, unit="s", help="shortest time that is reckoned with")

    def plant(self, steps: Steps) -> Steps:
        """Take no time for a little."""
        return replace(steps, elapsed_s=lambda elapsed_s: max(steps.elapsed_s(elapsed_s), self.least_s))
