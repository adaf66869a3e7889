# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``autoware_perception_msgs/DetectedObjects``."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.adapters import autoware_objects
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import stamp_of


class AutowareDetectedObjects(Adapter):
    """Objects seen in one instant, in the frame of the header (m, rad, m/s); each a box.

    Class of the highest probability; score, shapes and what is lost: :func:`.autoware_objects.read`. Velocities and
    covariances where they are flagged as given; detections have no track. An empty list with the input's stamp says
    that nothing was seen.
    """

    type: ClassVar[str] = "autoware_perception_msgs/msg/DetectedObjects"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Detections:
        """Read every object as a box."""
        return autoware_objects.read(message)

    def encode(self, said: Said) -> Any:
        """Write boxes, with velocities and covariances where they are known."""
        assert isinstance(said, Detections)
        return autoware_objects.write(said, self.type)
