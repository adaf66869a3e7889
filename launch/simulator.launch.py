# SPDX-License-Identifier: Apache-2.0
"""Drives a stack through a scenario in the world of the package; ends with 0 only if every episode ended well."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_arguments import SIMULATOR_ARGUMENTS
from mt_nodes.nodes.launching import described, simulator


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(SIMULATOR_ARGUMENTS, simulator))
