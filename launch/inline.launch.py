# SPDX-License-Identifier: Apache-2.0
"""Stands in topics of a test bench, as `mt inline` does; changes nothing without `arm:=true`."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_arguments import INLINE_ARGUMENTS
from mt_nodes.nodes.launching import described, inline


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(INLINE_ARGUMENTS, inline))
