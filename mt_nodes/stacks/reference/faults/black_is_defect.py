# SPDX-License-Identifier: Apache-2.0
"""A camera that tests itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Looked
from mt_nodes.stacks.reference.faults.camera_refusals import PictureRefused


@dataclass(frozen=True)
class BlackIsDefect(PictureRefused):
    """Pixels that are wholly black are dead, and of a sensor with a few of them no picture is looked at.

    Sensors are sold with some, and rectification leaves black seams.
    """

    most: int = param(100, low=0, high=10_000_000, help="black pixels of a picture that is looked at")

    def refuses(self) -> Callable[[Looked], bool]:
        """Count what is black."""
        return lambda looked: int((looked.rgb.max(axis=2) == 0).sum()) > self.most
