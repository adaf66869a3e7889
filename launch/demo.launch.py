# SPDX-License-Identifier: Apache-2.0
"""Runs ``mt demo``: the main job on a drive that the package generates."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import demo, described
from mt_nodes.nodes.launch_arguments import DEMO_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(DEMO_ARGUMENTS, demo))
