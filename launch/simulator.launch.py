# SPDX-License-Identifier: Apache-2.0
"""Drives a stack through a scenario in the world of the package; ends with 0 only if every episode ended well."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, simulator
from mt_nodes.nodes.launch_arguments import SIMULATOR_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(SIMULATOR_ARGUMENTS, simulator))
