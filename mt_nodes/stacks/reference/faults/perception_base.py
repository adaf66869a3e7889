# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the perception stacks is: a defect in a step behind detection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Points

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PerceptionSteps:
    """The steps behind detection in which perception stacks have gone wrong.

    Those that a stack does not have keep their defaults.

    Attributes:
        stamp_ns: takes a cloud and its stamp to the stamp that the tracker reckons with; the honest step believes it.
        named: takes a cloud and the tracks in it to the tracks with the ids that are published.
        motion: takes tracks to the velocity (M, 2) in m/s along which each is predicted; the honest one is its own.
        occupied: takes the hits in each cell of a grid and the returns from behind it, in its direction and outside of
            the region, (H, W) each, to the occupied cells; the honest step counts hits alone.
        lit: takes a picture (H, W, 3) to the least brightness of a lamp that shines, in steps of 8 bits.
    """

    stamp_ns: Callable[[Points, int | None], int | None] = lambda points, stamp_ns: stamp_ns
    named: Callable[[Points, Detections], Detections] = lambda points, tracks: tracks
    motion: Callable[[Detections], Floats] = lambda tracks: tracks.velocity_mps[:, :2]
    occupied: Callable[[Counts, Counts], Mask] = lambda hits, behind: hits > 0
    lit: Callable[[npt.NDArray[np.uint8]], float] = lambda rgb: 0.0


class PerceptionFault(Fault):
    """A defect of a perception stack: ``plant`` takes and returns :class:`PerceptionSteps`."""

    stack: ClassVar[str] = "perception"


def sorted_faults(faults: tuple[Any, ...]) -> tuple[tuple[Fault, ...], tuple[PerceptionFault, ...]]:
    """Return the faults of the detector, and those of the steps behind it."""
    behind = tuple(fault for fault in faults if isinstance(fault, PerceptionFault))
    return tuple(fault for fault in faults if not isinstance(fault, PerceptionFault)), behind
