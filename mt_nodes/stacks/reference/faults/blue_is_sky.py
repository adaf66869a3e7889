# SPDX-License-Identifier: Apache-2.0
"""People before the sky."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Pixels
from mt_nodes.stacks.reference.faults.camera_refusals import PeopleRefused


@dataclass(frozen=True)
class BlueIsSky(PeopleRefused):
    """A box that is bluer than red on average shows sky between branches, and is left out: in the shade all are."""

    most: float = param(8.0, low=-255.0, high=255.0, help="steps of 8 bits by which blue may pass red")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for little blue."""
        return float(rgb[..., 2].mean()) - float(rgb[..., 0].mean()) <= self.most
