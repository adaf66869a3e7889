# SPDX-License-Identifier: Apache-2.0
"""Tests beside a running stack, by a configuration file; exits with 0 only if all relations PASS."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, live
from mt_nodes.nodes.launch_arguments import LIVE_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the launch arguments, and what starts with their values."""
    return LaunchDescription(described(LIVE_ARGUMENTS, live))
