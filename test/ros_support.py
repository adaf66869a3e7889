# SPDX-License-Identifier: Apache-2.0
"""What the tests with real topics share: domains of their own, somebody to talk to, waits that end with the event."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import recordings
from rclpy.qos import QoSProfile

from mt_nodes.base.processes import wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.engine.plan import ReplayedTopic
from mt_nodes.nodes import qos
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

#: Longest wait for what must come; a busy machine may take its time, a wrong program takes this long to fail.
LIMIT_S = 150.0


def until(happened: Callable[[], Any], what: str = "") -> None:
    """Wait until something has happened that announces itself to nobody."""
    assert wait_until(lambda: bool(happened()), LIMIT_S), f"waited {LIMIT_S:g} s in vain {what}"


def asked(client: Any, request: Any) -> Any:
    """Ask a service what may be asked twice, until a reply comes: it is lost to one whom the node has not found yet."""
    assert client.wait_for_service(LIMIT_S)
    for _ in range(round(LIMIT_S / 2.0)):
        answer = client.call_async(request)
        if wait_until(answer.done, 2.0):
            return answer.result()
    raise AssertionError(f"waited {LIMIT_S:g} s in vain for a reply of {client.srv_name}")


class Heard:
    """What came in on a topic, in order."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.matched: Callable[[], int] = lambda: 0
        self._changed = threading.Condition()

    def take(self, message: Any) -> None:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()

    def wait(self, enough: int | Callable[[list[Any]], bool]) -> list[Any]:
        """Wait for so many messages, or until the messages are what is wanted; return all."""
        done = (lambda rows: len(rows) >= enough) if isinstance(enough, int) else enough
        with self._changed:
            ended = self._changed.wait_for(lambda: done(self.messages), LIMIT_S)
            assert ended, f"waited {LIMIT_S:g} s in vain; got {len(self.messages)} messages"
            return list(self.messages)


class Peer:
    """A node of the test in one domain."""

    def __init__(self, ending: ExitStack, domain: int, name: str = "tester") -> None:
        self._ros = SpinningContext(domain)
        ending.callback(self._ros.close)
        self.node = self._ros.add(plain_node, name)

    def listen(self, type_name: str, topic: str, profile: QoSProfile = qos.ANSWERS, raw: bool = False) -> Heard:
        heard = Heard()
        subscription = self.node.create_subscription(message_class(type_name), topic, heard.take, profile, raw=raw)
        heard.matched = subscription.get_publisher_count
        return heard

    def publisher(self, type_name: str, topic: str, profile: QoSProfile = qos.ANSWERS) -> Any:
        return self.node.create_publisher(message_class(type_name), topic, profile)


#: A stack that does what the first point of the cloud says: x of 900 and more is an order, else one box a point.
PUPPET = """
import os, time
from pathlib import Path
from mt_nodes.data.outputs import Output

def detect(points):
    order = int(points[0, 0]) if len(points) else 0
    if order == 900:
        return Output()
    if order == 901:
        raise RuntimeError("the puppet was told to die")
    if order == 902:
        os.kill(os.getpid(), 9)
    if order == 903:
        while Path(os.environ["HOLD"]).exists():
            time.sleep(0.01)
    return [[x, y, z, 4, 2, 1.5, 0.5] for x, y, z, _ in points.tolist()]
"""
SILENT, DIE, KILLED, HELD = 900, 901, 902, 903


def puppet_bundle(index: int, points: int = 3, order: int = 0) -> Bundle:
    """A bundle as from a bag, with its cloud on ``/points``."""
    bundle = recordings.bundles(index + 1, points)[index]
    cloud = bundle.clouds[0]
    if order:
        cloud.points["x"][0] = order
    note = Wire("/note", codec.STRING, bundle.stamp_ns, codec.encode_text(f"before {index}"))
    return replace(bundle, wires=(note, *wires_of_bundle(bundle)))


def topics_of(bundle: Bundle) -> dict[str, ReplayedTopic]:
    """Every topic of a bundle, replayed under its own name."""
    return {w.topic: ReplayedTopic(w.topic, w.type) for w in bundle.wires}
