# SPDX-License-Identifier: Apache-2.0
"""Lanes around the vehicle as ``visualization_msgs/MarkerArray``: told to stacks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.data.cdr.world_messages import lane_markers
from mt_nodes.data.lanes import Lanes, Strip
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.adapters.marker_array import message_of
from mt_nodes.nodes.message_classes import stamp_of
from mt_nodes.nodes.orientation import points, quaternions, turned


class LaneMarkers(Adapter):
    """One LINE_STRIP a lane along its middle, in the order of driving: ``ns`` is its name, ``text`` its direction
    (``own``, ``along``, ``oncoming``), x of the scale its width.

    Every array begins with a DELETEALL marker that carries stamp and frame, so that "no lanes here" is said.
    """

    type: ClassVar[str] = "visualization_msgs/msg/MarkerArray"
    role: ClassVar[str] = "lanes"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the first marker; an empty array has none."""
        return stamp_of(message.markers[0]) if message.markers else None

    def decode(self, message: Any) -> Lanes:
        """Read every added line; other markers are no lanes."""
        rows = [m for m in message.markers if m.action == Marker.ADD and m.type == Marker.LINE_STRIP]
        frame = message.markers[0].header.frame_id if message.markers else ""
        return Lanes.make(frame, self.stamp_ns(message), [Strip(m.ns, m.text, m.scale.x, _middle(m)) for m in rows])

    def encode(self, said: Said) -> MarkerArray:
        """Write DELETEALL and one line a lane."""
        assert isinstance(said, Lanes)
        return message_of(said.frame_id, said.stamp_ns, lane_markers(said))


def _middle(marker: Any) -> Any:
    """Return (K, 2) the points of a line in the frame of its header."""
    own = turned(quaternions([marker.pose.orientation]), points(marker.points))
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is nobody's to judge
        return (points([marker.pose.position]) + own)[:, :2]
