# SPDX-License-Identifier: Apache-2.0
"""Packages of message types: which are missing here, and where to get them. Imports no ROS."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping

from mt_nodes.base.errors import UsageError

_AUTOWARE_AUTO = "https://github.com/tier4/autoware_auto_msgs"
#: Packages that ROS 2 has no Debian packages of (in rosdistro, August 2026), and the location of their source.
SOURCES = {
    "apollo_msgs": "https://github.com/irh-ca-team-car/apollo_msgs_ros2_public",
    "autoware_auto_control_msgs": _AUTOWARE_AUTO,
    "autoware_auto_perception_msgs": _AUTOWARE_AUTO,
    "autoware_auto_planning_msgs": _AUTOWARE_AUTO,
    "carla_msgs": "https://github.com/carla-simulator/ros-carla-msgs",
}


def package_of(type_name: str) -> str:
    """Return the package of ``package/msg/Name``."""
    return type_name.split("/")[0]


def origin(type_name: str) -> str:
    """Return what provides a message type: a Debian package of ROS 2 Jazzy, else the repository to build it from."""
    package = package_of(type_name)
    return SOURCES.get(package, f"ros-jazzy-{package.replace('_', '-')}")


def remedy(type_names: Iterable[str]) -> str:
    """Return the commands that install message types."""
    origins = sorted({origin(name) for name in type_names})
    debian = [name for name in origins if not name.startswith("https:")]
    steps = [f"apt install {' '.join(debian)}"] if debian else []
    return "; ".join([*steps, *(f"build {url} from source" for url in origins if url not in debian)])


def is_missing(type_name: str) -> bool:
    """Whether the package of a message type is not installed here."""
    try:
        return importlib.util.find_spec(package_of(type_name)) is None
    except ValueError:  # a package without a specification: it was put there by hand
        return False


def refuse_missing(types: Mapping[str, str], owner: str) -> None:
    """Refuse topics whose message types are not installed.

    ``types``: topic -> message type. ``owner``: for the error, such as ``stack 'autoware'``.
    Raises UsageError: naming every such topic, and the commands that install all of them.
    """
    lacking = {topic: types[topic] for topic in types if is_missing(types[topic])}
    if lacking:
        listed = ", ".join(f"{topic} ({name})" for topic, name in lacking.items())
        raise UsageError(f"{owner}: message types are not installed here: {listed}; {remedy(lacking.values())}")
