# SPDX-License-Identifier: Apache-2.0
"""Planned trajectories as ``autoware_auto_planning_msgs/Trajectory``, of Autoware before ``autoware_planning_msgs``."""

from __future__ import annotations

from typing import ClassVar

from mt_nodes.nodes.adapters.autoware_trajectory import AutowareTrajectory


class AutowareAutoTrajectory(AutowareTrajectory):
    """The same fields as ``autoware_trajectory``, under the older name of the package."""

    type: ClassVar[str] = "autoware_auto_planning_msgs/msg/Trajectory"
