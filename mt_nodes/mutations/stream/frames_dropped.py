# SPDX-License-Identifier: Apache-2.0
"""Frames that never come."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.frames import Bundle
from mt_nodes.mutations.base import Followup
from mt_nodes.mutations.stream.whole_stream import NowAndThen


@dataclass(frozen=True)
class FramesDropped(NowAndThen):
    """Sends nothing of some frames, several in a row if wanted: a lost packet, a full queue, a sensor that pauses.

    Best effort, which ROS 2 offers for sensor data, may lose samples, and a full history drops its oldest (ROS 2
    documentation, quality of service settings). The pair of a frame that is not sent is SKIPPED: what its absence did
    to a stack shows in the frames after it. Guaranteed: nothing of a dropped frame goes out, every other one as it is.
    """

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Send nothing."""
        return Followup(())

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Count what goes out."""
        return f"{len(followup.bundles)} bundles of a dropped frame" if followup.bundles else None
