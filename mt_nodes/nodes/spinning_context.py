# SPDX-License-Identifier: Apache-2.0
"""One rclpy context with its executor on a thread of its own."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions


class SpinningContext:
    """Nodes of one ROS domain, spun in the background until :meth:`close`.

    ``args``: ROS arguments (``--ros-args …``) that hold for nodes which take global ones.
    """

    def __init__(self, domain: int, args: Sequence[str] = ()) -> None:
        self.domain = domain
        self._context = Context()
        rclpy.init(
            args=list(args), context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._nodes: list[Node] = []
        self._closing = threading.Event()
        #: What ended the thread before its time; whoever waits for its nodes must look here.
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._spin, name=f"ros-domain-{domain}", daemon=True)

    def add(self, make: Callable[..., Node], *args: Any, **kwargs: Any) -> Any:
        """Make a node in this context: ``make(*args, context=…, **kwargs)``."""
        node = make(*args, context=self._context, **kwargs)
        self._nodes.append(node)
        self._executor.add_node(node)
        if not self._thread.is_alive():
            self._thread.start()
        return node

    def close(self) -> None:
        """Destroy the nodes and shut the context down."""
        self._closing.set()
        if self._thread.is_alive():
            self._executor.wake()
            self._thread.join()
        self._executor.shutdown()
        for node in self._nodes:
            node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def _spin(self) -> None:
        try:
            while not self._closing.is_set() and self._context.ok():
                with suppress(InvalidHandle):  # another thread destroyed what rclpy was about to wait for
                    self._executor.spin_once(timeout_sec=0.2)
        except ExternalShutdownException:  # Ctrl-C in a node that runs alone: rclpy shuts down every context
            self.failure = f"the ROS context of domain {self.domain} was shut down"
        except rclpy_implementation.RCLError as error:
            self.failure = f"the ROS context of domain {self.domain} was shut down"
            if self._context.ok():  # else a signal shut it down between two waits
                traceback.print_exc()
                self.failure = f"the ROS thread of domain {self.domain} ended: RCLError: {error}"
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to
            traceback.print_exc()
            self.failure = f"the ROS thread of domain {self.domain} ended: {type(error).__name__}: {error}"


@contextmanager
def lone_node(
    name: str, make: Callable[..., Node], executor: Callable[..., Any] = SingleThreadedExecutor
) -> Iterator[tuple[Node, Any]]:
    """Yield a node in a context of its own, and the executor that spins it; signals are the caller's."""
    context = Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    node, spinning = make(name, context=context), executor(context=context)
    spinning.add_node(node)
    try:
        yield node, spinning
    finally:
        spinning.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)


def quiet_node(name: str, *, context: Context) -> Node:
    """Return a node that has nothing in the graph but its name: only what is opened on it will be there.

    rclpy gives every node a publisher of ``/parameter_events``, which no option leaves out, and a service that tells
    of types. Without the publisher parameters of the node cannot be changed any more.
    """
    described = Parameter("start_type_description_service", value=False)
    options = {"enable_rosout": False, "start_parameter_services": False, "parameter_overrides": [described]}
    node = Node(name, context=context, use_global_arguments=False, **options)
    for publisher in list(node.publishers):
        node.destroy_publisher(publisher)
    return node


def plain_node(name: str, *, context: Context) -> Node:
    """Return a node without parameter services and log topic: an arm holds nothing that the stack did not bring."""
    return Node(name, context=context, use_global_arguments=False, enable_rosout=False, start_parameter_services=False)
