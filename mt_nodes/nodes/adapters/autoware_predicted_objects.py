# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``autoware_perception_msgs/PredictedObjects``."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.adapters import autoware_objects
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import stamp_of


class AutowarePredictedObjects(Adapter):
    """Tracked objects as they are now, in the frame of the header (m, rad, m/s); each a box.

    Class of the highest probability; score, shapes and what is lost: :func:`.autoware_objects.read`. The track is the
    UUID in 32 hexadecimal digits, none where all are 0. Where they will be (``predicted_paths``) is not read.
    An empty list with the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "autoware_perception_msgs/msg/PredictedObjects"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Detections:
        """Read every object as a box with a track, where it is now."""
        return autoware_objects.read(message, "initial_")

    def encode(self, said: Said) -> Any:
        """Write boxes with tracks and no predictions; a velocity that is not known is 0."""
        assert isinstance(said, Detections)
        return autoware_objects.write(said, self.type, "initial_")
