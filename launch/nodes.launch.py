# SPDX-License-Identifier: Apache-2.0
"""Starts replayer, mutator, monitor and two instances of a stack as nodes of their own, in realtime."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, nodes
from mt_nodes.nodes.launch_arguments import NODE_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(NODE_ARGUMENTS, nodes))
