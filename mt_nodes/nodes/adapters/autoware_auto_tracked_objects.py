# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``autoware_auto_perception_msgs/TrackedObjects``, of Autoware before June 2024."""

from __future__ import annotations

from typing import ClassVar

from mt_nodes.nodes.adapters.autoware_tracked_objects import AutowareTrackedObjects


class AutowareAutoTrackedObjects(AutowareTrackedObjects):
    """The older package's form of ``autoware_perception_msgs/TrackedObjects``, with the same meaning.

    It has no classes beyond the pedestrian: what is published as another is unknown. An empty list with
    the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "autoware_auto_perception_msgs/msg/TrackedObjects"
