# SPDX-License-Identifier: Apache-2.0
"""Replays bags with mutations into a stack and judges its outputs; exits with 0 only if all relations PASS."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_actions import described, replay
from mt_nodes.nodes.launch_arguments import REPLAY_ARGUMENTS


def generate_launch_description() -> LaunchDescription:
    """Return the launch arguments, and what starts with their values."""
    return LaunchDescription(described(REPLAY_ARGUMENTS, replay))
