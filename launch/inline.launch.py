# SPDX-License-Identifier: Apache-2.0
"""Stands in topics of a test bench, as `mt inline` does; changes nothing without `arm:=true`."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, inline
from mt_nodes.nodes.launch_arguments import INLINE_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(INLINE_ARGUMENTS, inline))
