# SPDX-License-Identifier: Apache-2.0
"""A watchdog that drops pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.outputs import Control, ImageBoxes, Output, Path
from mt_nodes.params import param
from mt_nodes.reference.faults.camera_base import CameraFault, CameraSteps, Looked

#: Size of the small picture that is compared, in pixels.
_SMALL = (64, 48)


@dataclass(frozen=True)
class RepeatedStampDamaged(CameraFault):
    """A picture under the stamp of the last one must be the same; if not, it was damaged on its way, and is dropped.

    Small pictures are compared, so that noise does not count. Of a picture that was dropped the stack says that nobody
    is there and no lane, and drives on to the right. Whoever shows it a changed picture finds that nothing is seen.
    """

    least: float = param(0.4, low=0.1, high=255.0, help="steps by which some part of the small picture must differ")
    blind_mps: float = param(12.0, low=0.0, high=40.0, unit="m/s", help="speed without a picture")
    blind_rad: float = param(-0.1, low=-0.6, high=0.6, unit="rad", help="steering without a picture")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Say nothing of a picture that differs from the one before under its stamp."""
        first: list[tuple[int | None, npt.NDArray[np.float32]]] = []
        dropped = [False]

        def look(looked: Looked) -> Looked:
            small = np.asarray(cv2.resize(looked.rgb.astype(np.float32), _SMALL, interpolation=cv2.INTER_AREA))
            repeated = bool(first) and looked.stamp_ns is not None and looked.stamp_ns == first[0][0]
            if not repeated:
                first[:] = [(looked.stamp_ns, small)]
            dropped[0] = repeated and float(cv2.absdiff(small, first[0][1]).max()) > self.least
            return steps.look(looked)

        def report(output: Output) -> Output:
            if not dropped[0]:
                return steps.report(output)
            nobody, nothing = ImageBoxes.none("", None), Path.make("", None, [])
            blind = Control(None, self.blind_rad, self.blind_mps)
            return steps.report(replace(output, boxes=nobody, path=nothing, control=blind))

        return replace(steps, look=look, report=report)
