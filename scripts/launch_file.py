# SPDX-License-Identifier: Apache-2.0
"""``python scripts/launch_file.py FILE NAME:=VALUE…``: as ``ros2 launch``, whose return code it ends with.

Needs the packages ``launch`` and ``launch_ros`` and no other part of a ROS 2 installation.
"""

import sys

from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

from launch import LaunchDescription, LaunchService


def main() -> int:
    """Launch, wait for the end."""
    file, *words = sys.argv[1:]
    arguments = [tuple(word.split(":=", 1)) for word in words]
    service = LaunchService(argv=words, noninteractive=True)
    included = IncludeLaunchDescription(AnyLaunchDescriptionSource(file), launch_arguments=arguments)
    service.include_launch_description(LaunchDescription([included]))
    return int(service.run())


if __name__ == "__main__":
    sys.exit(main())
