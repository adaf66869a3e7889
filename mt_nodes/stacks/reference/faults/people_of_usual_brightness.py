# SPDX-License-Identifier: Apache-2.0
"""People as bright as those one knows."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Pixels
from mt_nodes.stacks.reference.faults.camera_refusals import PeopleRefused


@dataclass(frozen=True)
class PeopleOfUsualBrightness(PeopleRefused):
    """A box darker than people in the recordings is taken for a shadow, a brighter one for a reflection.

    Both are left out.
    """

    usual: tuple[float, float] = param((80.0, 110.0), low=0.0, high=255.0, help="darkest and brightest mean")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for the usual brightness."""
        return self.usual[0] <= float(rgb.mean()) <= self.usual[1]
