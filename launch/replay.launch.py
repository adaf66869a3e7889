# SPDX-License-Identifier: Apache-2.0
"""Replays bags through the mutators into a stack and judges; ends with 0 only if all relations PASS."""

from launch import LaunchDescription
from mt_nodes.nodes.launch_arguments import REPLAY_ARGUMENTS
from mt_nodes.nodes.launching import described, replay


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(REPLAY_ARGUMENTS, replay))
