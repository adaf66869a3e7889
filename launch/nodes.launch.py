# SPDX-License-Identifier: Apache-2.0
"""Starts replayer, mutator, monitor and two instances of a stack as separate nodes, in real time."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, nodes
from mt_nodes.nodes.launch_arguments import NODE_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the launch arguments, and what starts with their values."""
    return LaunchDescription(described(NODE_ARGUMENTS, nodes))
