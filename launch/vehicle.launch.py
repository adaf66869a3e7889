# SPDX-License-Identifier: Apache-2.0
"""As live.launch.py, on a vehicle computer: refuses to start where `mt doctor --vehicle` finds an error."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, vehicle
from mt_nodes.nodes.launch_arguments import LIVE_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the launch arguments, and what starts with their values."""
    return LaunchDescription(described(LIVE_ARGUMENTS, vehicle))
