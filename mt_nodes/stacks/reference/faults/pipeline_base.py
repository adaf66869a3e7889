# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the pipeline of five nodes is: a defect in one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.data.outputs import Control, Detections, Path
from mt_nodes.stacks.reference.faults.base import Fault, Points


@dataclass(frozen=True)
class PipelineSteps:
    """What the five nodes do with their inputs; no node knows more than these.

    Attributes:
        filtered: takes a cloud (N, 4) x, y, z, intensity to its points above ground (M, 4) x, y, z, height, in metres.
        clustered: takes points above ground and their stamp to obstacles.
        tracked: takes obstacles to tracks.
        planned: takes tracks to the path up to where the ego may have to stop.
        commanded: takes path and tracks to the command.
    """

    filtered: Callable[[Points], Points]
    clustered: Callable[[Points, int | None], Detections]
    tracked: Callable[[Detections], Detections]
    planned: Callable[[Detections], Path]
    commanded: Callable[[Path, Detections], Control]


class PipelineFault(Fault):
    """A defect of one node: ``plant`` takes and returns :class:`PipelineSteps`."""

    stack: ClassVar[str] = "pipeline"
    #: The node that it is in, which `mt blame` is to name.
    node: ClassVar[str]
