# SPDX-License-Identifier: Apache-2.0
"""Faults of the LiDAR driver in whom it follows, and how it brakes for them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from mt_nodes.base.arrays import Mask
from mt_nodes.base.params import param
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps, returns


@dataclass(frozen=True)
class BrakesForComfortOnly(DriverFault):
    """Braking is limited to what passengers find pleasant, whoever stands ahead.

    Behind other vehicles that is enough. It begins to brake for a person at once, but takes four seconds where one is
    needed.
    """

    most_mps2: float = param(2.0, low=0.1, high=10.0, unit="m/s²", help="largest deceleration")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Cut what is wanted."""

        def eased(wanted_mps2: float, before_mps2: float, most_change_mps2: float) -> float:
            return max(-self.most_mps2, steps.eased(wanted_mps2, before_mps2, most_change_mps2))

        return replace(steps, eased=eased)


@dataclass(frozen=True)
class BrakesForConstantBearing(DriverFault):
    """An obstacle at a constant bearing counts as on a collision course, however far outside the lane.

    Parked cars and oncoming traffic change their bearing as they pass, and nothing happens. A vehicle that drives
    alongside, one lane or more away, makes the ego brake.
    """

    slowest_radps: float = param(0.05, low=0.0, high=1.0, unit="rad/s", help="a bearing that changes less is constant")
    clouds: int = param(4, low=1, high=100, help="in so many clouds one must have been seen")
    farthest_m: float = param(15.0, low=1.0, high=100.0, unit="m", help="who is farther away does not count")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of base_link")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Follow the nearest of those in the lane and those at a constant bearing."""
        clouds_by_id: dict[str, int] = {}

        def lead(scene: DriverScene) -> Lead | None:
            names = scene.obstacles.track_id.tolist()
            counted = {name: clouds_by_id.get(name, 0) + 1 for name in names}
            clouds_by_id.clear()
            clouds_by_id.update(counted)
            known = np.array([clouds_by_id[name] >= self.clouds for name in names], dtype=bool)
            return self._nearer(steps.lead(scene), scene, known)

        return replace(steps, lead=lead)

    def _nearer(self, found: Lead | None, scene: DriverScene, known: Mask) -> Lead | None:
        (x, y), (vx, vy) = scene.obstacles.center_m[:, :2].T, scene.obstacles.velocity_mps[:, :2].T
        distance = np.hypot(x, y)
        constant = np.abs(x * vy - y * vx) < self.slowest_radps * distance**2
        rows = np.flatnonzero(known & constant & (x > self.front_m) & (distance < self.farthest_m))
        if not len(rows):
            return found
        row = int(rows[np.argmin(distance[rows])])
        gap_m = max(0.0, float(distance[row]) - self.front_m)
        return found if found is not None and found.gap_m <= gap_m else Lead(gap_m, 0.0, row)


@dataclass(frozen=True)
class BrakesOnOrOff(DriverFault):
    """Brakes are either fully on or off; nothing smooths the transition.

    Behind a steady driver they are hardly needed. When somebody is suddenly nearer, the vehicle jerks as they engage
    and as they release.
    """

    on_mps2: float = param(2.0, low=0.1, high=10.0, unit="m/s²", help="wanted deceleration from which they are on")
    full_mps2: float = param(8.0, low=1.0, high=12.0, unit="m/s²", help="deceleration when they are")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Ease nothing, and brake fully or by what little is wanted."""

        def eased(wanted_mps2: float, before_mps2: float, most_change_mps2: float) -> float:
            return -self.full_mps2 if wanted_mps2 < -self.on_mps2 else wanted_mps2

        return replace(steps, eased=eased)


@dataclass(frozen=True)
class ClosingSpeedByCloud(DriverFault):
    """The closing speed is computed in metres per cloud and used as metres per second.

    The time to collision seems ten times as long, so an emergency is recognised only when it is over. Behind a vehicle
    of constant speed nobody notices.
    """

    clouds_a_second: float = param(10.0, low=1.0, high=100.0, unit="Hz", help="rate of the sensor")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Mistake the unit."""

        def lead(scene: DriverScene) -> Lead | None:
            found = steps.lead(scene)
            return found and replace(found, closing_mps=found.closing_mps / self.clouds_a_second)

        return replace(steps, lead=lead)


@dataclass(frozen=True)
class DistanceByReturns(DriverFault):
    """Distance, and with it the onset of braking, is estimated from the number of returns.

    The number of returns falls with the square of the distance, so a cyclist is followed correctly. Whatever removes
    points (rain, fog, a lesser sensor) makes everybody seem farther away.
    """

    at_10m: float = param(170.0, low=1.0, high=1e6, help="points of one who is 10 m from the LiDAR")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of it")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Put the lead at the distance that its points tell."""

        def lead(scene: DriverScene) -> Lead | None:
            found = steps.lead(scene)
            if found is None:
                return None
            distance_m = 10.0 * sqrt(self.at_10m / max(1.0, float(returns(scene.obstacles)[found.row])))
            return replace(found, gap_m=max(0.0, distance_m - self.front_m))

        return replace(steps, lead=lead)


@dataclass(frozen=True)
class EvidenceByReturns(DriverFault):
    """It reacts to an obstacle only after a fixed total number of returns, however many clouds that takes.

    A car is accepted at once. A small obstacle is detected but ignored for a second or more, and in rain, with half the
    points, for twice as long.
    """

    points: float = param(900.0, low=0.0, high=1e6, help="points, of all clouds together, from which one is believed")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Leave out who gave too few points by now."""
        given: dict[str, float] = {}

        def look(scene: DriverScene) -> DriverScene:
            perceived = steps.look(scene)
            names, counts = perceived.obstacles.track_id.tolist(), returns(perceived.obstacles).tolist()
            totals = {name: given.get(name, 0.0) + count for name, count in zip(names, counts, strict=True)}
            given.clear()
            given.update(totals)
            believed = np.array([totals[name] >= self.points for name in names], dtype=bool)
            return replace(
                perceived, obstacles=perceived.obstacles.take(believed), extents_m=perceived.extents_m[believed]
            )

        return replace(steps, look=look)


@dataclass(frozen=True)
class NearestReturnAhead(DriverFault):
    """The distance to the lead vehicle is that of the nearest point in the lane, even if it is an insect or a drop.

    Without a lead vehicle nothing happens. Behind one, a single stray return makes it brake.
    """

    half_width_m: float = param(
        1.0, low=0.1, high=5.0, unit="m", help="so near to straight ahead a point is in the lane"
    )
    height_m: tuple[float, float] = param((0.4, 2.0), low=-5.0, high=10.0, unit="m", help="heights that count")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of base_link")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Take the lead for as near as the nearest point."""

        def lead(scene: DriverScene) -> Lead | None:
            found = steps.lead(scene)
            if found is None:
                return None
            x, y, z = scene.cloud[:, 0], scene.cloud[:, 1], scene.cloud[:, 2]
            low, high = self.height_m
            ahead = x[(x > self.front_m) & (np.abs(y) < self.half_width_m) & (z > low) & (z < high)]
            return replace(found, gap_m=min(found.gap_m, float(ahead.min(initial=np.inf)) - self.front_m))

        return replace(steps, lead=lead)


@dataclass(frozen=True)
class SceneInQueue(DriverFault):
    """It follows whom it saw some clouds ago: scenes wait in a queue that never empties.

    Until the queue is full nobody is there. At the sensor's rate that is a small delay; where fewer clouds come, the
    same number of clouds is many more seconds.
    """

    clouds: int = param(2, low=1, high=100, help="how many clouds old it is")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Decide by the oldest in the queue."""
        queue: deque[DriverScene] = deque(maxlen=self.clouds + 1)

        def look(scene: DriverScene) -> DriverScene:
            queue.append(steps.look(scene))
            oldest = queue[0]
            delayed = np.full(len(oldest.extents_m), len(queue) > self.clouds)
            return replace(oldest, obstacles=oldest.obstacles.take(delayed), extents_m=oldest.extents_m[delayed])

        return replace(steps, look=look)
