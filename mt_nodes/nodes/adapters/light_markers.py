# SPDX-License-Identifier: Apache-2.0
"""Traffic lights as ``visualization_msgs/MarkerArray``: told to stacks."""

from __future__ import annotations

from typing import Any, ClassVar

from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.data.cdr.world_messages import light_markers
from mt_nodes.data.messages import SignalStates
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.adapters.marker_array import message_of
from mt_nodes.nodes.message_classes import stamp_of
from mt_nodes.nodes.orientation import planar


class LightMarkers(Adapter):
    """One marker a light: ``ns`` is its name, ``text`` its colour, the pose where one stops for it, and in which
    direction one drives there.

    Every array begins with a DELETEALL marker that carries stamp and frame, so that "no lights here" is said.
    """

    type: ClassVar[str] = "visualization_msgs/msg/MarkerArray"
    role: ClassVar[str] = "signals"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the first marker; an empty array has none."""
        return stamp_of(message.markers[0]) if message.markers else None

    def decode(self, message: Any) -> SignalStates:
        """Read every added marker."""
        rows = [m for m in message.markers if m.action == Marker.ADD]
        frame = message.markers[0].header.frame_id if message.markers else ""
        names, colours = [m.ns for m in rows], [m.text for m in rows]
        return SignalStates.make(frame, self.stamp_ns(message), names, colours, planar([m.pose for m in rows]))

    def encode(self, said: Said) -> MarkerArray:
        """Write DELETEALL and one bar across the lane a light."""
        assert isinstance(said, SignalStates)
        return message_of(said.frame_id, said.stamp_ns, (light.cube for light in light_markers(said)))
