# SPDX-License-Identifier: Apache-2.0
"""Replays bags through the mutators into a stack and judges; ``ros2 launch`` ends with 0 only if the run's exit code is 0."""

from launch import LaunchDescription

from mt_nodes.nodes.launching import REPLAY_ARGUMENTS, described, replay


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and what starts when they are known."""
    return LaunchDescription(described(REPLAY_ARGUMENTS, replay))
