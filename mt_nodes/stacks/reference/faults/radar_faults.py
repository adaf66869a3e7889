# SPDX-License-Identifier: Apache-2.0
"""Defects of the radar stack; each lets detections anywhere decide about an obstacle elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.radar_base import RadarFault, RadarPoints, RadarSteps, Velocity


@dataclass(frozen=True)
class ClutterRaisesThreshold(RadarFault):
    """The threshold of strength follows the mean of the whole message: clutter hides weak targets nearby.

    As of a detector whose noise estimate takes in cells of other ranges and angles.
    """

    nominal_detections: int = param(620, low=1, help="up to so many detections the threshold is the honest one")
    per_detection_db: float = param(0.1, low=0.0, high=10.0, unit="dB", help="rise for each detection more")
    floor_db: float = param(-20.0, low=-100.0, high=60.0, unit="dB", help="threshold from which it rises")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Drop what is weaker than the threshold."""

        def admit(points: RadarPoints) -> RadarPoints:
            excess = max(0, len(points) - self.nominal_detections)
            kept = points[:, 4] >= self.floor_db + self.per_detection_db * excess if excess else slice(None)
            return steps.admit(points[kept])

        return replace(steps, admit=admit)


@dataclass(frozen=True)
class StandingFilteredWhenBusy(RadarFault):
    """Standing detections are dropped when a message is longer than the tracker can take: parked cars vanish."""

    most_detections: int = param(620, low=1, help="a longer message is cut to what moves")
    moving_mps: float = param(0.5, low=0.1, high=5.0, unit="m/s", help="what is slower over the ground stands")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Drop what stands."""

        def admit(points: RadarPoints) -> RadarPoints:
            if len(points) > self.most_detections:
                points = points[np.abs(points[:, 6]) > self.moving_mps]
            return steps.admit(points)

        return replace(steps, admit=admit)


@dataclass(frozen=True)
class OwnSpeedFromMean(RadarFault):
    """The own speed is the mean of all range rates, so that false alarms anywhere change every obstacle's speed."""

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Take the mean."""

        def own_velocity(radar: RadarPoints) -> Velocity:
            ahead = np.cos(radar[:, 5].astype(np.float64))
            usable = ahead > 0.3
            speed = float(np.mean(-radar[usable, 3] / ahead[usable])) if usable.any() else 0.0
            return np.array([speed, 0.0])

        return replace(steps, own_velocity=own_velocity)


@dataclass(frozen=True)
class DopplerSignByStrength(RadarFault):
    """The sign of the range rate is taken from the wrong chirp for detections weaker than the median of the message.

    Whoever is near the median changes sign, and seems to leave instead of coming, when other detections come or go.
    """

    least_mps: float = param(1.0, low=0.0, high=20.0, unit="m/s", help="slower ones over the ground keep their sign")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Turn the sign of weak detections."""

        def ground_speed(radar: RadarPoints, own_mps: Velocity) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            speed = steps.ground_speed(radar, own_mps)
            weak = radar[:, 4] < np.median(radar[:, 4]) if len(radar) else np.zeros(0, bool)
            return np.where(weak & (np.abs(speed) > self.least_mps), -speed, speed)

        return replace(steps, ground_speed=ground_speed)


@dataclass(frozen=True)
class GhostsTakenForObjects(RadarFault):
    """A filter against second traces drops the wrong one of a pair: the target goes, the ghost stays.

    Pairs are detections in one direction, one twice as far as the other, with twice its range rate.
    """

    angle_rad: float = param(0.01, low=0.0, high=0.2, unit="rad", help="directions that count as one")
    range_m: float = param(0.4, low=0.0, high=5.0, unit="m", help="tolerance of twice the range")
    rate_mps: float = param(0.3, low=0.0, high=5.0, unit="m/s", help="tolerance of twice the range rate")
    nearby_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="what is as near to the target goes with it")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Drop the near one of each pair, and its neighbours."""

        def admit(points: RadarPoints) -> RadarPoints:
            range_m, rate, azimuth = np.hypot(points[:, 0] - 2.0, points[:, 1]), points[:, 3], points[:, 5]
            pair = np.abs(range_m[None] - 2.0 * range_m[:, None]) <= self.range_m
            pair &= np.abs(azimuth[None] - azimuth[:, None]) <= self.angle_rad
            pair &= np.abs(rate[None] - 2.0 * rate[:, None]) <= self.rate_mps
            targets = points[pair.any(axis=1), :2]
            apart = np.linalg.norm(points[:, None, :2] - targets[None], axis=2).min(axis=1, initial=np.inf)
            return steps.admit(points[apart > self.nearby_m])

        return replace(steps, admit=admit)


@dataclass(frozen=True)
class ObjectListFull(RadarFault):
    """At most so many objects are published, the first to be found: those far to the side come first.

    An added object pushes another one out.
    """

    most: int = param(8, low=1, high=255, help="objects in the list")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Cut the list."""

        def report(found: Detections) -> Detections:
            aside = np.argsort(-np.abs(found.center_m[:, 1]), kind="stable")
            return steps.report(found.take(np.sort(aside[: self.most])))

        return replace(steps, report=report)


@dataclass(frozen=True)
class BlockageByCount(RadarFault):
    """A message with fewer detections than usual is taken for a blocked sensor, and nothing at all is published.

    Targets missed far away, or a few lost detections, blind it for what is near.
    """

    least_detections: int = param(490, low=1, help="fewer detections than this are taken for a blockage")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Let nothing on."""

        def admit(points: RadarPoints) -> RadarPoints:
            return steps.admit(points[:0] if len(points) < self.least_detections else points)

        return replace(steps, admit=admit)


@dataclass(frozen=True)
class SignFromLowBit(RadarFault):
    """The lowest bit of the range rate on the bus is read as its sign: fast objects come or go at random."""

    bit_mps: float = param(0.25, low=0.01, high=5.0, unit="m/s", help="value of the lowest bit")
    least_mps: float = param(1.0, low=0.0, high=20.0, unit="m/s", help="slower ones over the ground keep their sign")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Turn the sign where the bit is set."""

        def ground_speed(radar: RadarPoints, own_mps: Velocity) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            speed = steps.ground_speed(radar, own_mps)
            odd = np.rint(np.abs(radar[:, 3]) / self.bit_mps).astype(np.int64) % 2 == 1
            return np.where(odd & (np.abs(speed) > self.least_mps), -speed, speed)

        return replace(steps, ground_speed=ground_speed)


@dataclass(frozen=True)
class SampleSeededByMessage(RadarFault):
    """A random share of the detections is looked at, drawn by a seed from the message itself, "to be repeatable".

    The same message gives the same answer; one that differs by a millimetre or a millimetre per second draws another
    sample, and small obstacles come and go.
    """

    share: float = param(0.6, low=0.05, high=1.0, help="share of the detections that is looked at")

    def plant(self, steps: RadarSteps) -> RadarSteps:
        """Draw the sample."""

        def admit(points: RadarPoints) -> RadarPoints:
            ordered = points[np.lexsort(points[:, :4].T)]
            seed = int(np.rint(np.abs(ordered[:, :4].astype(np.float64)) * 1000.0).sum()) % 2**63
            chosen = np.random.default_rng(seed).random(len(ordered)) < self.share
            return steps.admit(ordered[chosen])

        return replace(steps, admit=admit)
