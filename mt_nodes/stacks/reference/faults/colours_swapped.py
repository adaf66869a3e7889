# SPDX-License-Identifier: Apache-2.0
"""Red for blue."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Looked


@dataclass(frozen=True)
class ColoursSwapped(CameraFault):
    """The channels are taken in the wrong order, so that red is taken for blue.

    White stays white, and by day nobody notices. In warm light paint shines in red and green as before, and the lines
    are looked for in blue and green.
    """

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Turn the order of the channels around."""

        def look(looked: Looked) -> Looked:
            seen = steps.look(looked)
            return replace(seen, rgb=np.ascontiguousarray(seen.rgb[..., ::-1]))

        return replace(steps, look=look)
