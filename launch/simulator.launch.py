# SPDX-License-Identifier: Apache-2.0
"""Drives a stack through a scenario in the package's world; exits with 0 only if no episode fails."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, simulator
from mt_nodes.nodes.launch_arguments import SIMULATOR_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the launch arguments, and what starts with their values."""
    return LaunchDescription(described(SIMULATOR_ARGUMENTS, simulator))
