# SPDX-License-Identifier: Apache-2.0
"""Who has to be there, and to know of us, before an arm sends something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rclpy.node import Node

from mt_nodes.nodes.bundle_publisher import BundlePublisher
from mt_nodes.nodes.introduction import Introduction
from mt_nodes.nodes.output_listener import OutputListener


class Meeting:
    """An arm and its stack find each other.

    ``node``: of the arm; all its endpoints have been made. ``publisher``: what the stack is given. ``listener``: what
    it says. ``required``: topics of the bag that the stack must subscribe to.
    """

    def __init__(
        self, node: Node, publisher: BundlePublisher, listener: OutputListener, required: Iterable[str]
    ) -> None:
        self._node, self._publisher, self._listener = node, publisher, listener
        self._required = sorted(required)
        self._others: dict[str, int] = {}
        self._introduction = Introduction(node)

    def begin(self) -> None:
        """Take note of who looks on (a recorder, RViz): he is there already, and is not the stack."""
        self._others = self.endpoints()

    def endpoints(self) -> dict[str, int]:
        """What a stack must have, in words for when it has it not, and how many there are of it."""
        says = {f"nobody publishes {topic}": count for topic, count in self._listener.publisher_counts().items()}
        return says | {f"nobody subscribes to {t}": self._publisher.subscriber_count(t) for t in self._required}

    def lacking(self) -> list[str]:
        """What the stack has not got yet."""
        return [what for what, count in self.endpoints().items() if count <= self._others.get(what, 0)]

    def disappeared(self, before: Mapping[str, int]) -> bool:
        """Whether of each of the endpoints that there were before there are fewer, or none."""
        return all(count == 0 or count < before[what] for what, count in self.endpoints().items())

    def known(self) -> bool:
        """Whether those who are there know of us by now, or had time to; to be asked again and again."""
        says = (info for t in self._listener.publisher_counts() for info in self._node.get_publishers_info_by_topic(t))
        return self._introduction.over([*self._publisher.readers(self._required), *says])

    def forget(self) -> None:
        """Those who are there may have lost us, and have to show anew that they know of us."""
        self._introduction.forget()
