# SPDX-License-Identifier: Apache-2.0
"""Obstacles as the tracks of a radar."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.cdr.further_messages import RADAR_TRACKS
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.orientation import points
from mt_nodes.stacks.message_adapter import StampedAdapter

#: From this number on a classification is a vendor's own.
VENDORS = 32000


class RadarTrackObstacles(StampedAdapter):
    """One track an obstacle, in the frame of the header (m, m/s): size along its axes, no yaw, no score.

    The track is the UUID in 32 hexadecimal digits, none where all are 0. A vendor's own classification, from 32,000 on,
    is the class by number (``classes`` of the stack file names it), others are unknown. An empty list with the input's
    stamp says that nothing was seen. Read only: a track holds neither yaw nor score.
    """

    type: ClassVar[str] = RADAR_TRACKS
    role: ClassVar[str] = "detections"

    def decode(self, message: Any) -> Detections:
        """Read every track as a box."""
        tracks = list(message.tracks)
        numbers = [int(track.classification) for track in tracks]
        ids = [bytes(np.asarray(track.uuid.uuid, np.uint8)).hex() for track in tracks]
        return Detections.make(
            message.header.frame_id,
            stamp_of(message),
            points(track.position for track in tracks),
            points(track.size for track in tracks),
            label=[str(number) if number >= VENDORS else "unknown" for number in numbers],
            track_id=["" if not text.strip("0") else text for text in ids],
            velocity_mps=points(track.velocity for track in tracks),
        )
