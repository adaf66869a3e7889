# SPDX-License-Identifier: Apache-2.0
"""The bridge inside a box: starts the stack, gives it what comes in, sends out what it answers; looks who is there."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo

from mt_nodes.base.errors import InfrastructureError, IsolationError, MtError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import Child, Flag, flag_of_signals
from mt_nodes.nodes import qos
from mt_nodes.nodes.graph_guard import Ours, endpoints, participant
from mt_nodes.nodes.introduction import Introduction
from mt_nodes.nodes.leak_watch import GraphSnapshot, Suspicion, pause_s
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.node_main import quick_executor
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.nodes.spinning_context import lone_node, plain_node
from mt_nodes.runs.vehicle.boxed_stack import NODE, BoxedStack, Passing
from mt_nodes.runs.vehicle.leaks import LeakQuery, leaks_in_arm
from mt_nodes.runs.vehicle.pipe import Pipe

#: How often the graph is looked at until the stack is there.
_SOON_S = 0.05
_CLOCK = "/clock"


def profile_of(row: Passing) -> QoSProfile:
    """Return how a topic is given to the stack."""
    return qos.LATCHED if row.latched else qos.CLOCK if row.topic == _CLOCK else qos.REPLAY


class Inside:
    """The endpoints in the box, and what of the stack's is there."""

    def __init__(self, node: Node, boxed: BoxedStack, pipe: Pipe) -> None:
        self._node, self._boxed, self._pipe = node, boxed, pipe
        self._inputs = [node.create_publisher(message_class(r.type), r.topic, profile_of(r)) for r in boxed.inputs]
        self._outputs: list[Subscription] = [self._listen(number, qos.ANSWERS) for number in range(len(boxed.outputs))]
        self._weaker: set[int] = set()
        self._watched = LeakQuery(boxed.actuators, boxed.observers)
        self._ours = Ours(frozenset({f"/{NODE}"}), frozenset({participant(node)}))
        self._suspicion = Suspicion()
        self._introduction = Introduction(node)

    def give(self, number: int, data: bytes) -> None:
        """Publish what came in, unless somebody was found here who may not be."""
        if not self._suspicion.why:
            self._inputs[number].publish(data)

    def lacking(self) -> list[str]:
        """Name what the stack has not got yet."""
        while self._weaker:
            number = self._weaker.pop()
            self._node.destroy_subscription(self._outputs[number])
            self._outputs[number] = self._listen(number, qos.ANSWERS_BEST_EFFORT)
        taps = zip(self._boxed.outputs, self._outputs, strict=True)
        says = [f"nobody publishes {row.topic}" for row, tap in taps if not tap.get_publisher_count()]
        given = zip(self._boxed.inputs, self._inputs, strict=True)
        return says + [
            f"nobody subscribes to {row.topic}"
            for row, out in given
            if row.required and not out.get_subscription_count()
        ]

    def known(self) -> bool:
        """Whether the stack has discovered these endpoints, too, or had time to."""
        return self._introduction.over(self._theirs())

    def _theirs(self) -> Iterable[TopicEndpointInfo]:
        for row in self._boxed.outputs:
            yield from self._node.get_publishers_info_by_topic(row.topic)
        for row in (row for row in self._boxed.inputs if row.required):
            yield from self._node.get_subscriptions_info_by_topic(row.topic)

    def refuse_leaks(self) -> None:
        """Raise when somebody is here who may not be, or would act on commands; while that is not sure, give nothing.

        Raises IsolationError: naming him.
        """
        found = endpoints(self._node, self._ours, self._watched.concerns)
        self._suspicion.take(
            process_time_s(), GraphSnapshot(leaks_in_arm(found, self._watched, self._ours.names), found)
        )
        if self._suspicion.sure:
            raise IsolationError(f"in the box: {self._suspicion.why}")
        self._refuse_unexpected_nodes()

    def _refuse_unexpected_nodes(self) -> None:
        names = Counter(f"{space.rstrip('/')}/{name}" for name, space in self._node.get_node_names_and_namespaces())
        others = names - Counter(self._ours.names)  # once: a second one is not ours
        known = set(self._boxed.nodes)
        unexpected = sorted(n for n in others if n not in known and not self._watched.is_observer(n))
        if unexpected and known:
            may = ", ".join(self._boxed.nodes)
            raise IsolationError(
                f"in the box: got {unexpected[0]}, expected {may}; see nodes, allow_nodes of the stack"
            )

    def _listen(self, number: int, profile: QoSProfile) -> Subscription:
        row = self._boxed.outputs[number]

        def refused(event: Any) -> None:
            self._weaker.add(number)

        def received(data: bytes) -> None:
            self._pipe.message(number, data)

        events = SubscriptionEventCallbacks(incompatible_qos=refused, use_default_callbacks=False)
        return subscribe_raw(self._node, row.type, row.topic, received, profile, event_callbacks=events)


def main(args: list[str] | None = None) -> None:
    """Bridge until the other side is gone, the stack ends, or a signal comes."""
    parser = argparse.ArgumentParser(prog="box_inside", description="Started by the bridge outside of a box.")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--pipe", type=int, required=True)
    given = parser.parse_args(args)
    ended = flag_of_signals()
    pipe = Pipe(socket.socket(fileno=given.pipe))
    try:
        _carry_out(BoxedStack.load(given.spec), pipe, ended)
    except MtError as error:
        print(f"box_inside: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
    finally:
        pipe.close()


def _carry_out(boxed: BoxedStack, pipe: Pipe, ended: Flag) -> None:
    with lone_node(NODE, plain_node, quick_executor) as (node, executor):
        inside = Inside(node, boxed, pipe)
        threading.Thread(target=_take, args=(pipe, inside, len(boxed.inputs), ended), name="pipe", daemon=True).start()
        child = Child(boxed.process)
        look_s, ready = 0.0, False
        try:
            while not ended.is_set():
                executor.spin_once(timeout_sec=_SOON_S)
                child.check()
                if process_time_s() < look_s:
                    continue
                began_s = time.thread_time()
                inside.refuse_leaks()
                if not ready and not inside.lacking() and inside.known():
                    ready = True
                    pipe.report({"ready": True})
                look_s = process_time_s() + (pause_s(time.thread_time() - began_s) if ready else 0.0)
        except InfrastructureError:
            if not ended.is_set():  # whoever ended this ended the stack, or the other side, too
                raise
        finally:
            child.stop(boxed.stop_timeout_s)


def _take(pipe: Pipe, inside: Inside, topics: int, ended: Flag) -> None:
    try:
        for got in pipe.received(topics):
            if isinstance(got, tuple):
                inside.give(*got)
    except InfrastructureError as error:
        print(f"box_inside: {error}", file=sys.stderr, flush=True)
    finally:
        ended.set()


if __name__ == "__main__":
    main()
