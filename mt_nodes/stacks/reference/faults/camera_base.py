# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the camera stack is: a defect in one of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.base import Fault
from mt_nodes.world.camera.model import CameraModel

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Looked:
    """What the stack looks at: ``rgb`` (H, W, 3), the camera that it was taken by, and its stamp in ns."""

    rgb: Pixels
    camera: CameraModel
    stamp_ns: int | None


@dataclass(frozen=True)
class CameraSteps:
    """The steps in which camera stacks have gone wrong.

    Attributes:
        look: takes the picture as it came to the one that is looked at; the honest step looks at all of it.
        paint: takes colours (H, W, 3) to how much each place shines like paint (H, W), float32.
        grey: takes colours to brightness (H, W), uint8.
        sight: takes brightness and the camera to how well one sees ahead, 1 in clear sight by day, 0 not at all.
        report: takes what was found to what is published.
    """

    look: Callable[[Looked], Looked]
    paint: Callable[[Pixels], npt.NDArray[np.float32]]
    grey: Callable[[Pixels], Pixels]
    sight: Callable[[Pixels, CameraModel], float]
    report: Callable[[Output], Output]


class CameraFault(Fault):
    """A defect of the camera stack: ``plant`` takes and returns :class:`CameraSteps`."""

    stack: ClassVar[str] = "camera"
