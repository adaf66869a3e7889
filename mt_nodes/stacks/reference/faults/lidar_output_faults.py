# SPDX-License-Identifier: Apache-2.0
"""Faults of the detector in what it publishes of the obstacles that it found."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, OutputFault, Steps


@dataclass(frozen=True)
class ClassBySide(OutputFault):
    """Anything of a person's height on the left is classified as a cyclist, as in the training drives.

    What was learnt where traffic keeps to one side is wrong in the mirror image of the road.
    """

    def published(self, found: Detections) -> Detections:
        """Call pedestrians to the left cyclists."""
        left = (found.center_m[:, 1] > 0.0) & (found.label == "pedestrian")
        return replace(found, label=np.where(left, "cyclist", found.label))


@dataclass(frozen=True)
class EmptyResultSilent(Fault):
    """An empty list is not published.

    Subscribers cannot tell a free road from a detector that died.
    """

    def plant(self, steps: Steps) -> Steps:
        """Publish nothing when there is nothing."""

        def report(found: Detections) -> Detections | None:
            return steps.report(found) if len(found) else None

        return replace(steps, report=report)


@dataclass(frozen=True)
class MountOffsetTwice(OutputFault):
    """Points in base_link are treated as points of the sensor's frame, so the mount is applied twice.

    Every obstacle is published with the same offset, so two runs agree. If the scene is rotated, the offset does not
    rotate with it, which shows the mix-up of frames.
    """

    mount_m: tuple[float, float] = param((1.6, 0.0), unit="m", help="the sensor's place (x, y) in base_link")

    def published(self, found: Detections) -> Detections:
        """Shift what is published by the mount."""
        return replace(found, center_m=found.center_m + np.array([*self.mount_m, 0.0]))


_COLUMNS = tuple(f.name for f in fields(Detections))[2:]


@dataclass(frozen=True)
class ObstacleHeld(Fault):
    """An obstacle of the last cloud without a match in this one is published once more, against flicker.

    An obstacle that has gone is published for one cloud longer, which a stack that claims to remember nothing must not
    do.
    """

    near_m: float = param(1.0, low=0.0, high=10.0, unit="m", help="an obstacle so near is the same one")

    def plant(self, steps: Steps) -> Steps:
        """Add what is missed of the last result."""

        last: list[Detections] = []

        def report(found: Detections) -> Detections | None:
            before, last[:] = last[:], [found]
            return steps.report(self._with_missed(found, before[0]) if before else found)

        return replace(steps, report=report)

    def _with_missed(self, found: Detections, before: Detections) -> Detections:
        apart = np.linalg.norm(before.center_m[:, None, :2] - found.center_m[None, :, :2], axis=2)
        missed = before.take(apart.min(axis=1, initial=np.inf) > self.near_m)
        columns: list[Any] = [np.concatenate([getattr(found, name), getattr(missed, name)]) for name in _COLUMNS]
        return Detections(found.frame_id, found.stamp_ns, *columns)


@dataclass(frozen=True)
class ObstacleListFull(OutputFault):
    """The message has room for a fixed number of obstacles; of more, the least certain are silently dropped.

    Another obstacle, wherever it appears, displaces one of those before.
    """

    places: int = param(10, low=1, high=10_000, help="obstacles that the list holds")

    def published(self, found: Detections) -> Detections:
        """Keep the surest, in the order in which they were found."""
        surest = np.argsort(-found.score, kind="stable")[: self.places]
        return found.take(np.sort(surest))


@dataclass(frozen=True)
class PauseIsRestart(Fault):
    """A pause between two stamps that is longer than usual is taken for a restart of the sensor, which must settle.

    Nothing is published for a fixed number of clouds. One lost or late frame is such a pause.
    """

    longest_s: float = param(0.15, low=0.001, high=10.0, unit="s", help="a longer pause is a restart")
    settling: int = param(2, low=1, high=100, help="clouds after a pause of which nothing is published")

    def plant(self, steps: Steps) -> Steps:
        """Publish an empty list while the sensor is thought to settle."""
        longest_ns = round(self.longest_s * 1e9)
        last_ns: int | None = None
        left = 0

        def report(found: Detections) -> Detections | None:
            nonlocal last_ns, left
            if found.stamp_ns is None:
                return steps.report(found)
            paused = last_ns is not None and found.stamp_ns - last_ns > longest_ns
            last_ns, left = found.stamp_ns, self.settling if paused else max(left - 1, 0)
            return steps.report(Detections.none(found.frame_id, found.stamp_ns) if left else found)

        return replace(steps, report=report)


@dataclass(frozen=True)
class StaleResult(Fault):
    """The list of obstacles is replaced only by a list that is not empty.

    When nothing is found, the last obstacles are published again, with a new stamp.
    """

    def plant(self, steps: Steps) -> Steps:
        """Publish the last result when there is none."""

        last: list[Detections] = []

        def report(found: Detections) -> Detections | None:
            if len(found):
                last[:] = [found]
            return steps.report(replace(last[0], stamp_ns=found.stamp_ns) if last else found)

        return replace(steps, report=report)


@dataclass(frozen=True)
class StampSlot(OutputFault):
    """If a cloud is stamped late in a clock cycle, its result is discarded as one that missed the cycle.

    A sensor in step with the clock never shows it; one that starts half a cycle later always does.
    """

    cycle_s: float = param(0.1, low=0.001, high=10.0, unit="s", help="period of the cycle, which begins at stamp 0")
    open_share: float = param(0.15, low=0.0, high=1.0, help="share of a cycle in which a cloud is in time")

    def published(self, found: Detections) -> Detections:
        """Publish an empty list for a cloud that is late."""
        cycle_ns = round(self.cycle_s * 1e9)
        late = found.stamp_ns is not None and found.stamp_ns % cycle_ns > self.open_share * cycle_ns
        return Detections.none(found.frame_id, found.stamp_ns) if late else found


@dataclass(frozen=True)
class SurerWithLess(OutputFault):
    """The score is how well a box fits its points, and fewer points fit better.

    No obstacle is lost by that, but when returns are lost the stack becomes more certain of what it hardly sees.
    """

    half_sure: float = param(10.0, low=0.1, high=1000.0, help="honest thresholds of points that halve the confidence")

    def published(self, found: Detections) -> Detections:
        """Let the score fall with the number of points, which is read from the honest score."""
        thresholds = 2.0 * found.score / (1.0 - found.score)
        return replace(found, score=1.0 / (1.0 + thresholds / self.half_sure))


@dataclass(frozen=True)
class YawUnsigned(OutputFault):
    """The angle between a box and the road is published without its sign.

    Boxes turned to one side are right, those turned to the other are mirrored. No obstacle is lost, and in a mirror
    image every turned box is wrong.
    """

    def published(self, found: Detections) -> Detections:
        """Publish the absolute yaw."""
        return replace(found, yaw_rad=np.abs(found.yaw_rad))
