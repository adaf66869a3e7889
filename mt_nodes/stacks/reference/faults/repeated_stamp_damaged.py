# SPDX-License-Identifier: Apache-2.0
"""A watchdog that drops pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import Looked
from mt_nodes.stacks.reference.faults.camera_refusals import PictureRefused

#: Size of the small picture that is compared, in pixels.
_SMALL = (64, 48)


@dataclass(frozen=True)
class RepeatedStampDamaged(PictureRefused):
    """A picture under the stamp of the last one must be the same; if not, it was damaged on its way, and is dropped.

    Small pictures are compared, so that noise does not count. Of a picture that was dropped the stack says that nobody
    is there and no lane, and drives on to the right. Whoever shows it a changed picture finds that nothing is seen.
    """

    least: float = param(0.4, low=0.1, high=255.0, help="steps by which some part of the small picture must differ")

    def refuses(self) -> Callable[[Looked], bool]:
        """Compare with the first picture under a stamp."""
        first: list[tuple[int | None, npt.NDArray[np.float32]]] = []

        def differs(looked: Looked) -> bool:
            small = np.asarray(cv2.resize(looked.rgb.astype(np.float32), _SMALL, interpolation=cv2.INTER_AREA))
            repeated = bool(first) and looked.stamp_ns is not None and looked.stamp_ns == first[0][0]
            if not repeated:
                first[:] = [(looked.stamp_ns, small)]
            return repeated and float(cv2.absdiff(small, first[0][1]).max()) > self.least

        return differs
