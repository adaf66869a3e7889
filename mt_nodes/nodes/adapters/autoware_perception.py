# SPDX-License-Identifier: Apache-2.0
"""Traffic lights and predicted paths of Autoware, by ``autoware_msgs`` 1.12.0 (github.com/autowarefoundation).

None of it was run with Autoware: messages are read from objects of the definitions and from their CDR bytes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.lanes import SignalStates, joined_states
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.data.perception import PredictedObjects, PredictedPath
from mt_nodes.nodes.adapters.autoware_objects import read
from mt_nodes.nodes.orientation import planar
from mt_nodes.stacks.message_adapter import StampedAdapter

#: ``TrafficLightElement``: constants of colour, shape and status, which share one numbering.
COLOURS = {1: "red", 2: "yellow", 3: "green", 4: "white"}
SHAPES = {
    **{5: "circle", 6: "left_arrow", 7: "right_arrow", 8: "up_arrow", 9: "down_arrow"},
    **{10: "down_left_arrow", 11: "down_right_arrow", 12: "cross"},
}
SOLID_OFF = 13


class AutowareTrafficLights(StampedAdapter):
    """The lights of each group of the map; the group's number is the name. Read only.

    A state joins the lamps that shine, ``red``, ``green_left_arrow``, ``red+green_left_arrow``; amber is ``yellow``,
    flashing counts as shining. A group is ``off`` without such a lamp, and ``unknown`` where the colour of one is, or
    where nothing is said of its lamps. The score is the least confidence of its lamps. An empty list with the input's
    stamp says that no light was seen.
    """

    type: ClassVar[str] = "autoware_perception_msgs/msg/TrafficLightGroupArray"
    role: ClassVar[str] = "signals"

    def decode(self, message: Any) -> SignalStates:
        """Read a light from every group."""
        groups = message.traffic_light_groups
        return SignalStates.make(
            "map",
            stamp_of(message),
            [str(group.traffic_light_group_id) for group in groups],
            [_state(group.elements) for group in groups],
            score=[min((e.confidence for e in group.elements), default=0.0) for group in groups],
        )


def _state(elements: Any) -> str:
    if not elements:
        return "unknown"
    shining = [element for element in elements if element.status != SOLID_OFF]
    return joined_states((COLOURS.get(e.color, "unknown"), SHAPES.get(e.shape, "")) for e in shining)


class AutowarePredictedPaths(StampedAdapter):
    """Tracked objects with the paths that each may take, in the frame of the header (m, s). Read only.

    Objects are those of ``autoware_predicted_objects``. The first pose of a path is where the object is now, the next
    one ``time_step`` later; the probability of a path is its confidence. An empty list with the input's stamp says that
    nothing was seen.
    """

    type: ClassVar[str] = "autoware_perception_msgs/msg/PredictedObjects"
    role: ClassVar[str] = "predictions"

    def decode(self, message: Any) -> PredictedObjects:
        """Read objects and paths."""
        objects = read(message, "initial_")
        rows = tuple(
            tuple(_path(path) for path in row.kinematics.predicted_paths if len(path.path)) for row in message.objects
        )
        return PredictedObjects(objects.frame_id, objects.stamp_ns, objects, rows)


class AutowareAutoPredictedPaths(AutowarePredictedPaths):
    """The older package's form of ``autoware_predicted_paths``, with the same meaning."""

    type: ClassVar[str] = "autoware_auto_perception_msgs/msg/PredictedObjects"


def _path(message: Any) -> PredictedPath:
    step_s = message.time_step.sec + 1e-9 * message.time_step.nanosec
    return PredictedPath(float(message.confidence), np.arange(len(message.path)) * step_s, planar(message.path)[:, :2])
