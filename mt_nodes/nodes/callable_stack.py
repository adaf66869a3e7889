# SPDX-License-Identifier: Apache-2.0
"""Hosts a Python callable as a ROS node: anybody's model is under test like any other stack."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.timer import Timer

from mt_nodes.base import plugins
from mt_nodes.base.environment import use_enclave
from mt_nodes.base.errors import MtError
from mt_nodes.base.processes import wait_until
from mt_nodes.data.bags.topic_roles import ROLES
from mt_nodes.data.messages import Message
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.nodes import failed_calls, qos
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.adapters.command_adapters import refuse_lost
from mt_nodes.nodes.convert import message_type, reader_of
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.node_help import node_parser
from mt_nodes.nodes.node_main import run_node
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import describe_raise
from mt_nodes.stacks.stack import PIPELINE, Stack, load_stack
from mt_nodes.stacks.topic_sync import Joiner

#: Two sides find each other within a second or so of each other (measured: 1,044 ms at the most).
MEET_S = 3.0


#: How often the graph is asked which type a camera or radar sends, until one does.
LOOK_EVERY_S = 0.1


class CallableStack(Node):
    """Subscribes to the inputs of the stack file, calls, publishes what the callable said.

    Of several inputs the messages of one instant are put together. Images are taken raw or compressed, as they come.
    """

    def __init__(self, stack: Stack, transforms: TransformTree, prefix: str = "", report_errors: bool = False) -> None:
        super().__init__("callable_stack")
        self._failed = failed_calls.advertise(self, prefix) if report_errors else None
        self._host = CallableHost.make(stack)
        self._transforms = transforms
        within_ns = round(stack.sync_s * 1e9)
        self._joiner = Joiner[Message](stack.sensor_topics, within_ns) if stack.joins else None
        self._prefix = prefix
        self._outputs = {
            role: (adapter_of(role, row), self._advertise(prefix + row.topic, row.type))
            for role, row in stack.outputs.items()
        }
        self._met: set[Any] = set()
        self._looking: Timer | None = None
        # Of these one type of several is published; which one is known from the publisher alone.
        self._unknown = {topic: role for role in ("camera", "radar") for topic in stack.topics.get(role, ())}
        for role in (r for r in stack.topics if r not in ("camera", "radar")):
            for topic in stack.topics[role]:
                self._subscribe(role, topic, message_type(stack, role))
        self._look()
        self._looking = self.create_timer(LOOK_EVERY_S, self._look) if self._unknown else None

    def _look(self) -> None:
        """Subscribe to the cameras and radars of which it is known by now what they send."""
        for topic, role in list(self._unknown.items()):
            sent = {row.topic_type for row in self.get_publishers_info_by_topic(self._prefix + topic)}
            if known := sorted(sent & set(ROLES[role])):
                self._subscribe(role, topic, known[0])
                del self._unknown[topic]
        if not self._unknown and self._looking is not None:
            self._looking.cancel()

    def _subscribe(self, role: str, topic: str, type_name: str) -> None:
        read = reader_of(role, topic, type_name)

        def received(message: Any) -> None:
            self._received(topic, read(message))

        self.create_subscription(message_class(type_name), self._prefix + topic, received, qos.REPLAY)

    def _advertise(self, topic: str, type_name: str) -> Any:
        return self.create_publisher(message_class(type_name), topic, qos.ANSWERS)

    def _received(self, topic: str, sensor: Message) -> None:
        given = sensor if self._joiner is None else self._joiner.take(topic, sensor)
        if given is None:
            return
        output = self._call(given)
        if output is None:
            return
        for role, (adapter, publisher) in self._outputs.items():
            part = getattr(output, role)
            if part is not None:
                message = adapter.encode(part)
                if isinstance(part, Control):
                    refuse_lost(adapter, part, message)
                self._meet(publisher)
                publisher.publish(message)

    def _call(self, given: Message | Mapping[str, Message]) -> Output | None:
        """Return the callable's output; None if it raised an exception, and that is reported.

        The exception is printed whole, and then in one line with the user's file and line.
        """
        try:
            return self._host(given, self._transforms)
        except MtError:  # of which the stack file or the set-up is the cause
            raise
        except Exception as error:  # noqa: BLE001 - a callable may raise anything
            traceback.print_exc()
            failure = describe_raise(self._host.stack.name, error)
            if self._failed is None:
                print(f"mt_nodes: {failure}", file=sys.stderr)
                sys.exit(1)  # as Python ends a program that raised
            lead = given[self._host.stack.leading_topic] if isinstance(given, Mapping) else given
            self._meet(self._failed)
            self._failed.publish(failed_calls.report(lead.stamp_ns, failure))
            return None

    def _meet(self, publisher: Any) -> None:
        """Before the first answer wait for a listener: he may have found us while we have not found him yet.

        What is published before that is lost to him, and nobody would know.
        """
        if publisher not in self._met:
            wait_until(lambda: publisher.get_subscription_count() > 0, MEET_S)
            self._met.add(publisher)


def main(args: list[str] | None = None) -> None:
    """Run until the context is shut down; a callable that raises ends the process, as a crash would.

    With ``--report-errors`` it goes on.
    """
    parser = node_parser("callable_stack", args)
    parser.add_argument("--stack", required=True, help="name or file of a stack with a callable")
    parser.add_argument("--transforms", type=Path, help="YAML file of transforms, for points_frame")
    parser.add_argument("--prefix", default="", help="put before every topic")
    about = "report an exception of the callable over a topic and go on, as `mt replay` needs it"
    parser.add_argument("--report-errors", action="store_true", help=about)
    parser.add_argument("--plugins", type=Path, action="append", default=[], help="directory with your own plugins")
    given, ros_args = parser.parse_known_args(args)
    for directory in given.plugins:
        plugins.add_directory(directory)

    def make() -> CallableStack:
        tree = load_transforms(given.transforms) if given.transforms else TransformTree()
        return CallableStack(load_stack(given.stack), tree, given.prefix, given.report_errors)

    use_enclave("callable_stack")
    if load_stack(given.stack).callable == PIPELINE:
        from mt_nodes.nodes.reference_pipeline import run_pipeline

        run_pipeline(given.stack, given.transforms, given.prefix, ros_args)
    else:
        run_node(make, ros_args)


if __name__ == "__main__":
    main()
