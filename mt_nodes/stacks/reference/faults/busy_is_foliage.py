# SPDX-License-Identifier: Apache-2.0
"""People before trees."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Pixels
from mt_nodes.stacks.reference.faults.camera_refusals import PeopleRefused, sharpness


@dataclass(frozen=True)
class BusyIsFoliage(PeopleRefused):
    """A box whose pixels differ much from their neighbours shows leaves, and is left out: so does one that is noisy."""

    most: float = param(16.0, low=0.0, high=1000.0, help="mean size of the Laplacian, steps of 8 bits")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for calm surfaces."""
        return sharpness(rgb) <= self.most
