# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes replayer``: plays a bag's sensor topics and /clock at the pace of the recording."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rclpy.node import Node

from mt_nodes.bags import BagSource, sensors_of
from mt_nodes.errors import UsageError
from mt_nodes.frames import Bundle
from mt_nodes.nodes.messages import available
from mt_nodes.nodes.parameters import read_parameters
from mt_nodes.nodes.publishing import BundlePublisher, ClockPublisher
from mt_nodes.nodes.running import run_node
from mt_nodes.params import param
from mt_nodes.runs import NEVER_REPLAYED, as_recorded

#: At the end of the bag, time for those who listen to get what was sent last.
FLUSH_S = 5.0


@dataclass(frozen=True)
class ReplayerParameters:
    """What the node is told."""

    bag: str = param("", help="bag directory, .mcap, .db3 or .bag file")
    lidar_topic: str = param(
        "", help="which cloud topic leads, where the bag has several; others behind it, with commas"
    )
    camera_topic: str = param("", help="the same of images; they lead where no clouds do")
    rate: float = param(1.0, low=0.01, high=100.0, help="speed relative to the recording")
    limit: int = param(0, low=0, high=1_000_000_000, help="bundles to play at most; 0: all")
    loop: bool = param(False, help="begin again at the end")
    await_subscribers: int = param(
        1, low=0, high=1000, help="hold the first bundle until so many subscribe to the leading topic"
    )
    clock_step_s: float = param(0.01, low=0.0001, high=1.0, unit="s", help="largest step of /clock")


class Replayer(Node):
    """Publishes one bundle after the other; ends when the bag does."""

    def __init__(self) -> None:
        super().__init__("replayer")
        self._given = read_parameters(self, ReplayerParameters)
        if not self._given.bag:
            raise UsageError("replayer: no bag given; add --ros-args -p bag:=PATH")
        topics_given = {"lidar": self._given.lidar_topic, "camera": self._given.camera_topic}
        roles = {role: topic for role, topic in topics_given.items() if topic}
        bag = Path(self._given.bag)
        lead = list(roles)[:1] or sensors_of(bag, topics_given, roles)[:1]
        self._source = BagSource(bag, roles, limit=self._given.limit or None, require=lead)
        usable = {name: t for name, t in self._source.info.items() if available(t.type)}
        topics = {name: as_recorded(name, t) for name, t in usable.items() if name not in NEVER_REPLAYED}
        self._publisher = BundlePublisher(self, topics, frozenset({self._source.lead}))
        self._sim_clock = ClockPublisher(self, "/clock", self._given.clock_step_s)
        self._bundles = self._endless() if self._given.loop else iter(self._source)
        self._next: Bundle | None = next(self._bundles, None)
        self._began_ns = self._first_ns = 0
        self.finished = self._next is None
        self.sent = 0
        self._timer = self.create_timer(0.001, self._tick)

    def _endless(self) -> Iterator[Bundle]:
        return itertools.chain.from_iterable(iter(self._source) for _ in itertools.count())

    def _tick(self) -> None:
        if self._next is None or (
            self.sent == 0 and self._publisher.heard(self._source.lead) < self._given.await_subscribers
        ):
            return
        now_ns = time.monotonic_ns()
        if self.sent == 0 or self._next.stamp_ns < self._first_ns:
            self._began_ns, self._first_ns = now_ns, self._next.stamp_ns
            self._sim_clock.reset()
        reached_ns = self._first_ns + int((now_ns - self._began_ns) * self._given.rate)
        if reached_ns < self._next.stamp_ns:
            self._sim_clock.follow(reached_ns)
            return
        self._sim_clock.advance(self._next.stamp_ns)
        self._publisher.publish(self._next, frozenset())
        self.sent += 1
        self._next = next(self._bundles, None)
        if self._next is None:
            self._publisher.flush(FLUSH_S)
            self.finished = True


def main(args: list[str] | None = None) -> None:
    """Play to the end of the bag."""
    run_node(Replayer, args)


if __name__ == "__main__":
    main()
