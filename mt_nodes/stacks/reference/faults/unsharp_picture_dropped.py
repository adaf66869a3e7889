# SPDX-License-Identifier: Apache-2.0
"""A demand on sharpness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Looked
from mt_nodes.stacks.reference.faults.camera_refusals import PictureRefused, sharpness


@dataclass(frozen=True)
class UnsharpPictureDropped(PictureRefused):
    """A picture that is less sharp than a number written down is dropped: a little out of focus, or moved."""

    least: float = param(8.0, low=0.0, high=1000.0, help="mean size of the Laplacian, steps of 8 bits")

    def refuses(self) -> Callable[[Looked], bool]:
        """Ask for sharpness."""
        return lambda looked: sharpness(looked.rgb) < self.least
