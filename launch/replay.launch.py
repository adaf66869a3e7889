# SPDX-License-Identifier: Apache-2.0
"""Replays bags through the mutators into a stack and judges; ends with 0 only if all relations PASS."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, replay
from mt_nodes.nodes.launch_arguments import REPLAY_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(REPLAY_ARGUMENTS, replay))
