# SPDX-License-Identifier: Apache-2.0
"""Runs ``mt demo``: replays a drive that the package generates, and judges."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import demo, described
from mt_nodes.nodes.launch_arguments import DEMO_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the launch arguments, and what starts with their values."""
    return LaunchDescription(described(DEMO_ARGUMENTS, demo))
