# SPDX-License-Identifier: Apache-2.0
"""A picture that is not the newest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Looked


@dataclass(frozen=True)
class StaleFrameBuffer(CameraFault):
    """A picture whose stamp is not newer than the last one's is taken for the same one, and the buffer is looked at.

    Sensors do not send two pictures under one stamp. Whoever shows the stack a changed one sees that nothing changes.
    """

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Keep the last picture."""
        buffer: list[Looked] = []

        def look(looked: Looked) -> Looked:
            if not buffer or looked.stamp_ns is None or looked.stamp_ns != buffer[0].stamp_ns:
                buffer[:] = [looked]
            return steps.look(buffer[0])

        return replace(steps, look=look)
