# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes replayer``: plays a bag's sensor topics and /clock at the pace of the recording."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.bags.bundles import BagSource, sensors_of
from mt_nodes.data.messages import Bundle
from mt_nodes.nodes.bundle_publisher import DISCOVERY_S, BundlePublisher, ClockPublisher
from mt_nodes.nodes.managed_node import ManagedNode, ManagedParameters
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.node_main import run_node
from mt_nodes.runs.replay.replay_run import NEVER_REPLAYED, as_recorded

#: Time for those who listen to get what was sent first, and at the end of the bag what was sent last.
FLUSH_S = 5.0
#: How often a bag of a single bundle is played in a loop.
ONE_BUNDLE_NS = 100_000_000


@dataclass(frozen=True)
class ReplayerParameters(ManagedParameters):
    """What the node is told."""

    LIVE: ClassVar[frozenset[str]] = frozenset({"rate"})

    bag: str = param("", help="bag directory, .mcap, .db3 or .bag file")
    lidar_topic: str = param(
        "", help="which cloud topic leads, where the bag has several; others behind it, with commas"
    )
    camera_topic: str = param("", help="the same of images; they lead where no clouds do")
    radar_topic: str = param("", help="the same of radars; they lead where there are neither clouds nor images")
    rate: float = param(1.0, low=0.01, high=100.0, help="speed relative to the recording")
    limit: int = param(0, low=0, high=1_000_000_000, help="bundles to play at most; 0: all")
    loop: bool = param(False, help="begin again at the end")
    await_subscribers: int = param(
        1,
        low=0,
        high=1000,
        help="hold the first bundle until so many read the leading topic, and 1.2 s more where any reads best effort",
    )
    clock_step_s: float = param(0.01, low=0.0001, high=1.0, unit="s", help="largest step of /clock")


class Replayer(ManagedNode):
    """Publishes one bundle after the other; ends when the bag does. While it is not active, time stands still."""

    def __init__(self) -> None:
        super().__init__("replayer")
        self._given = self.parameters(ReplayerParameters)
        self.begin()

    def open(self) -> None:
        """Open the bag, and publishers of its topics."""
        if not self._given.bag:
            raise UsageError("replayer: no bag given; add --ros-args -p bag:=PATH")
        given = self._given
        topics_given = {"lidar": given.lidar_topic, "camera": given.camera_topic, "radar": given.radar_topic}
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
        self._due_ns, self._gap_ns = 0, ONE_BUNDLE_NS
        self._stopped_ns: int | None = None
        self._met_ns: int | None = None
        self.finished = self._next is None
        self.sent = 0
        # Its own clock, not the /clock that this node makes: with use_sim_time it would wait for itself.
        self._timer = self.create_timer(0.001, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go on where it stopped."""
        if self._stopped_ns is not None:
            self._due_ns += time.monotonic_ns() - self._stopped_ns
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop."""
        self._stopped_ns = time.monotonic_ns()
        return super().on_deactivate(state)

    def _endless(self) -> Iterator[Bundle]:
        return itertools.chain.from_iterable(iter(self._source) for _ in itertools.count())

    def _tick(self) -> None:
        if not self.active or self._next is None or not (self.sent or self._awaited()):
            return
        now_ns = time.monotonic_ns()
        if self.sent == 0:
            self._due_ns = now_ns
        if now_ns < self._due_ns:
            self._sim_clock.follow(self._next.stamp_ns - int((self._due_ns - now_ns) * self._given.rate))
            return
        self._sim_clock.advance(self._next.stamp_ns)
        self._publisher.publish(self._next, frozenset())
        if self.sent == 0:
            # Who has not found us yet could ask for it again only as long as nothing newer pushes it out of the queue.
            self._publisher.flush(FLUSH_S)
            self._due_ns = time.monotonic_ns()
        self.sent += 1
        self._schedule_next(self._next.stamp_ns)

    def _awaited(self) -> bool:
        """Tell whether those who are waited for are there; who cannot say that he knows of us gets time to find us."""
        if not self._given.await_subscribers:
            return True
        if self._publisher.subscriber_count(self._source.lead) < self._given.await_subscribers:
            self._met_ns = None
            return False
        now_ns = time.monotonic_ns()
        self._met_ns = now_ns if self._met_ns is None else self._met_ns
        return now_ns - self._met_ns >= DISCOVERY_S * 1e9 or not self._publisher.unconfirmed

    def _schedule_next(self, from_ns: int) -> None:
        """Say what comes next, and when: the first of a loop as long after the last as that after the one before."""
        self._next = next(self._bundles, None)
        if self._next is None:
            self._publisher.flush(FLUSH_S)
            self.finished = True
            return
        if self._next.stamp_ns > from_ns:
            self._gap_ns = self._next.stamp_ns - from_ns
        else:
            self._sim_clock.reset()
        self._due_ns += int(self._gap_ns / self._given.rate)


def main(args: list[str] | None = None) -> None:
    """Play to the end of the bag."""
    run_node(Replayer, args, name="replayer")


if __name__ == "__main__":
    main()
