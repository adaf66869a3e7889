# SPDX-License-Identifier: Apache-2.0
"""Topics and services of another system by their names and types' names, for somebody who waits for its answers."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any, Protocol

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.message_packages import remedy
from mt_nodes.base.processes import wait_until
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

#: As most of ROS 2 has it.
USUAL = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE)


class SimulatorChannel(Protocol):
    """What an adapter of a simulator needs of ROS."""

    def make(self, type_name: str) -> Any:
        """Return an empty message of ``package/msg/Name``, or request of ``package/srv/Name``."""

    def send(self, topic: str, message: Any) -> None:
        """Publish a message, once somebody listens."""

    def hear(self, topic: str, type_name: str, take: Callable[[Any], None]) -> None:
        """Have every message of a topic taken, from another thread."""

    def call(self, service: str, request: Any) -> Any:
        """Return a service's response."""

    def wait(self, happened: Callable[[], bool], limit_s: float) -> bool:
        """Wait until something has happened that a message told of; False where it does not in time."""

    def forget(self, topics: Callable[[str], bool]) -> None:
        """Let go of some topics."""

    def close(self) -> None:
        """Leave."""


def service_class(type_name: str) -> Any:
    """Return the class of ``package/srv/Name``. Raises UsageError."""
    package, _, name = type_name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.srv"), name)
    except ImportError as error:
        raise UsageError(f"service type {type_name}: package {package} is missing; {remedy([type_name])}") from error


class RosChannel:
    """A :class:`SimulatorChannel` over rclpy.

    ``domain``: where the other system is. ``timeout_s``: the longest wait for anything it should do.
    """

    def __init__(self, domain: int, timeout_s: float = 30.0) -> None:
        self._ros = SpinningContext(domain)
        self._node = self._ros.add(plain_node, "mt_simulator_client")
        self._timeout_s = timeout_s
        self._publishers: dict[str, Any] = {}
        self._subscriptions: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        self._requests: dict[Any, str] = {}
        self._changed = threading.Condition()

    def make(self, type_name: str) -> Any:
        """Return an empty message, or request of a service. Raises UsageError: its package is not installed."""
        if "/srv/" not in type_name:
            return message_class(type_name)()
        kind = service_class(type_name)
        self._requests[kind.Request] = type_name
        return kind.Request()

    def send(self, topic: str, message: Any) -> None:
        """Publish a message, once somebody listens. Raises InfrastructureError: nobody does in time."""
        publisher = self._publishers.get(topic)
        if publisher is None:
            publisher = self._publishers[topic] = self._node.create_publisher(type(message), topic, USUAL)
        if not wait_until(lambda: publisher.get_subscription_count() > 0, self._timeout_s):
            raise self._missing(f"nobody subscribes to {topic}")
        publisher.publish(message)

    def hear(self, topic: str, type_name: str, take: Callable[[Any], None]) -> None:
        """Have every message of a topic taken, from now on."""

        def received(message: Any) -> None:
            with self._changed:
                take(message)
                self._changed.notify_all()

        self._subscriptions[topic] = self._node.create_subscription(message_class(type_name), topic, received, USUAL)

    def call(self, service: str, request: Any) -> Any:
        """Return a service's response. Raises InfrastructureError: nobody offers it, or answers in time."""
        if service not in self._clients:
            kind = service_class(self._requests[type(request)])
            self._clients[service] = self._node.create_client(kind, service)
        client = self._clients[service]
        if not client.wait_for_service(self._timeout_s):
            raise self._missing(f"nobody offers {service}")
        answers: list[Any] = []

        def answered(done: Any) -> None:
            with self._changed:
                answers.append(done.result())
                self._changed.notify_all()

        client.call_async(request).add_done_callback(answered)
        if not self.wait(lambda: bool(answers), self._timeout_s):
            raise self._missing(f"no response of {service}")
        return answers[0]

    def wait(self, happened: Callable[[], bool], limit_s: float) -> bool:
        """Wait until something has happened that a message told of; False where it does not in time."""
        with self._changed:
            return self._changed.wait_for(happened, limit_s)

    def forget(self, topics: Callable[[str], bool]) -> None:
        """Let go of some topics."""
        for topic in [name for name in self._publishers if topics(name)]:
            self._node.destroy_publisher(self._publishers.pop(topic))
        for topic in [name for name in self._subscriptions if topics(name)]:
            self._node.destroy_subscription(self._subscriptions.pop(topic))

    def close(self) -> None:
        """Leave the domain."""
        self._ros.close()

    def _missing(self, what: str) -> InfrastructureError:
        within = f"within {self._timeout_s:g} s"
        return InfrastructureError(f"simulator in ROS domain {self._ros.domain}: {what} {within}; is it running there?")
