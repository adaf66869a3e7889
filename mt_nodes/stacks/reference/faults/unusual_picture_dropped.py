# SPDX-License-Identifier: Apache-2.0
"""Pictures as one knows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Looked
from mt_nodes.stacks.reference.faults.camera_refusals import PictureRefused, saturation


@dataclass(frozen=True)
class UnusualPictureDropped(PictureRefused):
    """A picture that is darker or more colourful on the whole than those it was made with is dropped."""

    least_mean: float = param(130.0, low=0.0, high=255.0, help="mean of the darkest of them, steps of 8 bits")
    most_saturation: float = param(38.0, low=0.0, high=255.0, help="mean saturation of the most colourful one")

    def refuses(self) -> Callable[[Looked], bool]:
        """Ask for what is usual."""
        return lambda looked: (
            float(looked.rgb.mean()) < self.least_mean or saturation(looked.rgb) > self.most_saturation
        )
