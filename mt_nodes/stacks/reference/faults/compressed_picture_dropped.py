# SPDX-License-Identifier: Apache-2.0
"""A demand on where pictures come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Looked, Pixels
from mt_nodes.stacks.reference.faults.camera_refusals import PictureRefused


@dataclass(frozen=True)
class CompressedPictureDropped(PictureRefused):
    """A picture that shows edges of blocks is taken for one of an archive, played back by somebody, and is dropped.

    On a link that is a little slower every picture shows them.
    """

    most: float = param(1.3, low=1.0, high=100.0, help="mean step between blocks of 8 columns over that within them")

    def refuses(self) -> Callable[[Looked], bool]:
        """Look for edges of blocks."""
        return lambda looked: blockiness(looked.rgb) > self.most


def blockiness(rgb: Pixels) -> float:
    """Return the mean step from one column to the next between blocks of 8, over that within blocks."""
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.int16)
    step = np.abs(np.diff(grey, axis=1)).mean(axis=0)
    between = np.arange(len(step)) % 8 == 7
    return float(step[between].mean() / max(float(step[~between].mean()), 1e-3))
