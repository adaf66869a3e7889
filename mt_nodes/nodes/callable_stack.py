# SPDX-License-Identifier: Apache-2.0
"""Hosts a Python callable as a ROS node: anybody's model is under test like any other stack."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rclpy.node import Node

from mt_nodes import plugins
from mt_nodes.arms import CallableHost
from mt_nodes.nodes import qos
from mt_nodes.nodes.adapters.base import adapter_for
from mt_nodes.nodes.convert import SENSOR_TYPES, sensor_from_message
from mt_nodes.nodes.messages import message_class
from mt_nodes.nodes.running import run_node
from mt_nodes.processes import wait_until
from mt_nodes.stacks import Stack, load_stack
from mt_nodes.transforms import TransformTree, load_transforms

#: Two sides find each other within a second or so of each other (measured: 1,044 ms at the most).
MEET_S = 3.0


class CallableStack(Node):
    """Subscribes to the leading input of the stack file, calls, publishes what the callable said."""

    def __init__(self, stack: Stack, transforms: TransformTree, prefix: str = "") -> None:
        super().__init__("callable_stack")
        self._host = CallableHost.make(stack)
        self._transforms = transforms
        self._role = stack.leading_input
        self._topic = prefix + stack.inputs[self._role]
        self._outputs = {
            role: (adapter_for(role, row.type, row.adapter), self._advertise(prefix + row.topic, row.type))
            for role, row in stack.outputs.items()
        }
        self._met: set[Any] = set()
        type_name = SENSOR_TYPES[self._role]
        self.create_subscription(message_class(type_name), self._topic, self._received, qos.REPLAY)

    def _advertise(self, topic: str, type_name: str) -> Any:
        return self.create_publisher(message_class(type_name), topic, qos.ANSWERS)

    def _received(self, message: Any) -> None:
        sensor = sensor_from_message(self._role, self._topic, message)
        output = self._host(sensor, self._transforms)  # type: ignore[arg-type]
        for role, (adapter, publisher) in self._outputs.items():
            said = getattr(output, role)
            if said is not None:
                self._meet(publisher)
                publisher.publish(adapter.encode(said))

    def _meet(self, publisher: Any) -> None:
        """Before the first answer wait for a listener: he may have found us while we have not found him yet.

        What is published before that is lost to him, and nobody would know.
        """
        if publisher not in self._met:
            wait_until(lambda: publisher.get_subscription_count() > 0, MEET_S)
            self._met.add(publisher)


def main(args: list[str] | None = None) -> None:
    """Run until the context is shut down; a callable that raises ends the process, as a stack's crash would."""
    parser = argparse.ArgumentParser(prog="callable_stack", description=__doc__)
    parser.add_argument("--stack", required=True, help="name or file of a stack with a callable")
    parser.add_argument("--transforms", type=Path, help="YAML file of transforms, for points_frame")
    parser.add_argument("--prefix", default="", help="put before every topic")
    parser.add_argument("--plugins", type=Path, action="append", default=[])
    given, ros_args = parser.parse_known_args(args)
    for directory in given.plugins:
        plugins.add_directory(directory)

    def make() -> CallableStack:
        tree = load_transforms(given.transforms) if given.transforms else TransformTree()
        return CallableStack(load_stack(given.stack), tree, given.prefix)

    run_node(make, ros_args)


if __name__ == "__main__":
    main()
