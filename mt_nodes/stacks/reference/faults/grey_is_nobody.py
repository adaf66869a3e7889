# SPDX-License-Identifier: Apache-2.0
"""Colour that is asked for where shape is enough."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Pixels
from mt_nodes.stacks.reference.faults.camera_refusals import PeopleRefused, saturation


@dataclass(frozen=True)
class GreyIsNobody(PeopleRefused):
    """People wear colours, so that a box without any shows a post, and is left out.

    At night, and to a camera that has lost its colours, everybody is grey.
    """

    least: float = param(8.0, low=0.0, high=255.0, help="mean saturation of a person, steps of 8 bits")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for colour."""
        return saturation(rgb) >= self.least
