# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the stack with both sensors is: a defect where camera and LiDAR are brought together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.data.transforms import Matrix
from mt_nodes.stacks.reference.faults.base import Fault


@dataclass(frozen=True)
class FusionSteps:
    """The steps in which stacks with both sensors have gone wrong.

    Attributes:
        mount: takes the camera's true place, 4×4 from its optical frame to the vehicle's, to the one reckoned with.
    """

    mount: Callable[[Matrix], Matrix]


class FusionFault(Fault):
    """A defect of the stack with both sensors: ``plant`` takes and returns :class:`FusionSteps`."""

    stack: ClassVar[str] = "fusion"
