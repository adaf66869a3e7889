# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the radar stack is: a defect in one of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault

RadarPoints = npt.NDArray[np.float32]
"""Detections (N, 6): x, y, z, range rate, strength, azimuth, see :func:`mt_nodes.stacks.callable_host.as_radar`."""
Velocity = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RadarSteps:
    """The steps in which radar stacks have gone wrong.

    Attributes:
        admit: takes all detections to those that go on to the region filter; the honest step takes them all.
        own_velocity: takes all detections to the velocity (2,) of the sensor over the ground.
        ground_speed: takes all detections and that velocity to their speeds (N,) over the ground along the rays.
        report: takes what was found to what is published.
    """

    admit: Callable[[RadarPoints], RadarPoints]
    own_velocity: Callable[[RadarPoints], Velocity]
    ground_speed: Callable[[RadarPoints, Velocity], Floats]
    report: Callable[[Detections], Detections]


class RadarFault(Fault):
    """A defect of the radar stack: ``plant`` takes and returns :class:`RadarSteps`."""

    stack: ClassVar[str] = "radar"
