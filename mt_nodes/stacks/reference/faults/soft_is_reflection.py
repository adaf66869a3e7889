# SPDX-License-Identifier: Apache-2.0
"""People behind glass."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Pixels
from mt_nodes.stacks.reference.faults.camera_refusals import PeopleRefused, sharpness


@dataclass(frozen=True)
class SoftIsReflection(PeopleRefused):
    """A box without sharp edges shows a reflection in a window, and is left out: so does one out of focus or in fog."""

    least: float = param(14.0, low=0.0, high=1000.0, help="mean size of the Laplacian, steps of 8 bits")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for sharp edges."""
        return sharpness(rgb) >= self.least
