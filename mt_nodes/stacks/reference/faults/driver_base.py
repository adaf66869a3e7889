# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the driver is: a defect in one of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.faults.base import Fault, Points
from mt_nodes.stacks.reference.lane_room import Extents, Room

#: The score of the reference detector says how many points an obstacle has: n / (n + this).
_POINTS_OF_HALF_SCORE = 12.0


@dataclass(frozen=True, eq=False)
class DriverScene:
    """What the driver decides by.

    Attributes:
        cloud: (N, 4) x, y, z in metres, intensity, on the road; nothing but faults looks at it.
        obstacles: what the tracker follows.
        extents_m: (M, 4) where they are along the lane; see :class:`~mt_nodes.stacks.reference.lane_room.Corridor`.
    """

    cloud: Points
    obstacles: Detections
    extents_m: Extents


@dataclass(frozen=True)
class DriverSteps:
    """The steps in which drivers have gone wrong.

    Attributes:
        look: takes a scene to the one that is decided by; the honest step believes the tracker.
        lead: finds who is followed, None on a free road.
        room: tells how far the lane is free to the right and to the left.
        cruise_mps: the speed on a free road.
        elapsed_s: takes the seconds between two stamps to what is reckoned with; the honest step believes them.
        after_pause: takes the steering integral, the last error in metres and the seconds of a pause in which nothing
            was seen to the integral from which it goes on; the honest step begins anew.
        eased: takes the wanted acceleration, the one before and the most that it may change, m/s², to the new one.
        say: takes a cloud, its stamp and what is to be said of it to what is said; the honest step says it.
    """

    look: Callable[[DriverScene], DriverScene]
    lead: Callable[[DriverScene], Lead | None]
    room: Callable[[DriverScene], Room]
    cruise_mps: Callable[[DriverScene], float]
    elapsed_s: Callable[[float], float]
    after_pause: Callable[[float, float, float], float]
    eased: Callable[[float, float, float], float]
    say: Callable[[Points, int | None, Output], Output]


class DriverFault(Fault):
    """A defect of the driver: ``plant`` takes and returns :class:`DriverSteps`."""

    stack: ClassVar[str] = "driver"


def returns(obstacles: Detections) -> Floats:
    """Return how many points (M,) each obstacle gave, as the detector's usual score tells it."""
    score = np.clip(obstacles.score, 0.0, 0.9999)
    return np.asarray(_POINTS_OF_HALF_SCORE * score / (1.0 - score))
