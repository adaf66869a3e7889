# SPDX-License-Identifier: Apache-2.0
"""A speed for clear sight, whatever the sight."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps


@dataclass(frozen=True)
class SightNotAsked(CameraFault):
    """How well one sees ahead is not asked: whom the detector does not see is not there.

    In bad weather it loses those for whom it would brake, and drives faster.
    """

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Take every sight for clear."""
        return replace(steps, sight=lambda grey, camera: 1.0)
