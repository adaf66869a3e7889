# SPDX-License-Identifier: Apache-2.0
"""A running stack: a LiDAR played from a bag in a loop, and an obstacle detector. Neither knows of the test."""

import sys
from pathlib import Path

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return sensor and detector; both run in the Python of ``launch``."""
    here = Path(__file__).parent
    detector = ["--stack", str(here / "detector.yaml"), "--transforms", str(here / "transforms.yaml")]
    return LaunchDescription(
        [
            DeclareLaunchArgument("bag", description="bag with the clouds of the LiDAR"),
            Node(
                executable=sys.executable,
                arguments=["-m", "mt_nodes.nodes.replayer"],
                exec_name="lidar",
                parameters=[{"bag": LaunchConfiguration("bag"), "loop": True}],
                output="both",
            ),
            Node(
                executable=sys.executable,
                arguments=["-m", "mt_nodes.nodes.callable_stack", *detector],
                exec_name="detector",
                output="both",
            ),
        ]
    )
