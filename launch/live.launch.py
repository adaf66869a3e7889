# SPDX-License-Identifier: Apache-2.0
"""Tests beside a running stack as a configuration file says; ends with 0 only if all relations PASS."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, live
from mt_nodes.nodes.launch_arguments import LIVE_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(LIVE_ARGUMENTS, live))
