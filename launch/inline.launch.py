# SPDX-License-Identifier: Apache-2.0
"""Relays topics on a test bench, as `mt inline` does; changes nothing without `arm:=true`."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, inline
from mt_nodes.nodes.launch_arguments import INLINE_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the launch arguments, and what starts with their values."""
    return LaunchDescription(described(INLINE_ARGUMENTS, inline))
