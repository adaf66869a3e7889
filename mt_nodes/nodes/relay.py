# SPDX-License-Identifier: Apache-2.0
"""Stands in a topic: every original goes on as it came, or replaced by what a mutator offered in time.

A process of its own that does nothing else: ``python -m mt_nodes.nodes.relay --config FILE --offers SOCKET``. It lives
on when whoever started it dies, and then forwards only. Its events are JSON lines: how it goes, twice a second. With
``--after PIDFD`` it stands by: it holds what the relay of that process has not sent, and takes its place when it dies.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.topic_endpoint_info import TopicEndpointInfo

from mt_nodes.base.errors import IsolationError, MtError
from mt_nodes.base.processes import Flag, flag_of_signals
from mt_nodes.data.cdr import codec
from mt_nodes.nodes.relay_signals import UNNAMED, Permits, gid_of, other_publishers
from mt_nodes.nodes.relay_topic import RelayTopic, published_ns
from mt_nodes.nodes.spinning_context import lone_node, quiet_node
from mt_nodes.runs.vehicle.baton import Baton, Phase
from mt_nodes.runs.vehicle.events import EventWriter
from mt_nodes.runs.vehicle.inline import InlineConfig, load_inline_config
from mt_nodes.runs.vehicle.interlock import Interlock, Permission
from mt_nodes.runs.vehicle.offers import OfferServer
from mt_nodes.runs.vehicle.sentry import RelayFate, Sentry

#: Its node is called after this, its run's socket and its number in the run.
NODE = "mt_relay"
#: How often it looks for publishers, and tells how it goes; and looks until all raw topics have one.
LOOK_EVERY_S, SEARCH_EVERY_S = 0.5, 0.1
#: A sign of life, so often; a standby looks less often.
BEAT_EVERY_S = 0.03
#: A relay that has not sent for so many times ``frozen_s`` what its standby has heard, and for another is found so at
#: each look, does not hear it.
DEAF_TIMES = 2.0
#: A run's first relay publishes nothing until it would have found who does so already (measured: within 1,055 ms).
SEEN_S = 1.2
#: Whoever is found so soon was there before: others are discovered within about a second; so are their names.
NEW_S, NAMED_S = 3.0, 1.5
#: A thread that waits for nothing in particular looks up so often.
_IDLE_S = 1.0


class Relay:
    """All topics, the interlock, and who offers replacements.

    Args:
        node: in the vehicle's domain; its executor has to tell when messages were published, which rclpy's
            ``EventsExecutor`` does not. armed: whether the user said so. offers: socket that a mutator connects to.
        baton: shared with the relay before and the one after. number: among the relays of the run.
        standing_by: another relay serves, until :meth:`take_over`.
    """

    def __init__(
        self,
        node: Node,
        config: InlineConfig,
        armed: bool,
        offers: Path,
        baton: Baton | None = None,
        number: int = 0,
        standing_by: bool = False,
    ) -> None:
        self._node, self._config, self._offers_at, self._number = node, config, offers, number
        self._baton = baton or Baton.create(len(config.topics), config.depth)
        self._topics: dict[int, RelayTopic] = {}
        self._held = threading.Event()
        self._closing = False
        #: Nobody looks on any more who could stop it; set by whoever tells events.
        self.alone = False
        self._standing_by = self._came_to_stand_by = standing_by
        #: Others who publish what only this node may, and who publishes a raw topic otherwise than in the beginning.
        self._others = self._changed = ""
        self._strange_since_s: float | None = None
        #: Whether earlier relays of the run lived for long enough to see who else there is.
        self._looked_before = self._baton.beats * BEAT_EVERY_S > SEEN_S
        #: What became of the relay before, and in how many topics it died while it sent.
        self._took_over: dict[str, Any] | None = None
        self._began_s = time.monotonic()
        self.failure: MtError | None = None
        self._offers: OfferServer | None = None
        self._permits = Permits(node, Interlock(armed, config.permits, config.dead_man), self._against)
        self._baton.announce(number, gid_of(node, config.dead_man.topic))
        if not standing_by:
            self._baton.forget()
            self._baton.begin(os.getpid())
            self._offers = OfferServer(offers, self._offered)
        self._releasing = threading.Thread(target=self._release, name="release", daemon=True)
        self._releasing.start()
        self._searching = node.create_timer(SEARCH_EVERY_S, self.look)
        self.look()
        node.create_timer(LOOK_EVERY_S, self.look)
        node.create_timer(BEAT_EVERY_S, self._beat)

    def take_over(self, fate: RelayFate) -> None:
        """Send in place of a relay that is dead; may be called by any thread."""
        self._baton.begin(os.getpid())  # first: who knows that the other is dead starts no third one now
        self._standing_by = False
        in_doubt = sum([topic.relieve() for topic in list(self._topics.values())])
        self._took_over = {"why": fate.value, "in_doubt": in_doubt}
        self._offers = OfferServer(self._offers_at, self._offered)

    def is_behind(self) -> bool:
        """Whether the relay that serves leaves out what has been here for long."""
        longest_s = self._config.hold_s + DEAF_TIMES * self._config.frozen_s
        return any(topic.behind_s() > longest_s for topic in list(self._topics.values()))

    def close(self) -> None:
        """Send what is held, and end."""
        self._closing = True
        self._held.set()
        self._releasing.join()
        if self._offers is not None:
            self._offers.close()
        for topic in self._topics.values():
            topic.line.release_due(float("inf"))

    def look(self) -> None:
        """Look who publishes; begin with a topic as soon as its raw one is there."""
        try:
            self._others = other_publishers(self._node, [row.topic for row in self._config.topics], self._baton)
            self._refuse_unexpected_nodes()
            self._changed = "; ".join(filter(None, map(self._look_at, range(len(self._config.topics)))))
            if len(self._topics) == len(self._config.topics):
                self._searching.cancel()
        except MtError as error:
            self.failure = error
        self.permission()  # what was lost for a moment is noticed, too

    def _refuse_unexpected_nodes(self) -> None:
        """Refuse those who were there before; one whose name has not come yet is given time to be told by it."""
        now_s = time.monotonic()
        self._strange_since_s = (self._strange_since_s or now_s) if self._others else None
        if self._strange_since_s is None or self._standing_by or self._strange_since_s - self._began_s > NEW_S:
            return
        if UNNAMED not in self._others or now_s - self._strange_since_s > NAMED_S:
            raise IsolationError(f"{self._others}; a relay must be the only one, or the stack gets both")

    def _look_at(self, number: int) -> str:
        """Begin with a topic where that is due; return what has changed about its raw one since."""
        rows = self._node.get_publishers_info_by_topic(self._config.topics[number].raw)
        if number in self._topics:
            return self._topics[number].changed(rows)
        if rows and (self._standing_by or self._is_alone()):
            self._begin(number, rows[0])
        return ""

    def _is_alone(self) -> bool:
        """Whether nobody else publishes, as far as that is known by now: the stack must not get anything twice."""
        return not self._others and (self._looked_before or time.monotonic() - self._began_s > SEEN_S)

    def _begin(self, number: int, offered: TopicEndpointInfo) -> None:
        if not self._standing_by:
            self._baton.phase = Phase.BUSY  # until the next sign of life: types have to be imported
        topic = RelayTopic(self._node, self._config, number, offered, self._baton, lambda: self.permission().granted)
        self._topics[number] = topic
        if not self._standing_by:  # asked again: that changes in another thread, which relieves the topics it sees
            topic.relieve()
        topic.listen(self._node, self._received)

    def _beat(self) -> None:
        if not self._standing_by:
            self._baton.beat()

    def permission(self) -> Permission:
        """Return whether input may be changed just now."""
        return self._permits.permission()

    def _against(self) -> str:
        """Return what stands against a change of input beside the signals; a let-go that is heard meanwhile is none."""
        alone, standing_by = "nobody looks on" * self.alone, "standing by" * self._standing_by
        return standing_by or self._others or self._changed or alone

    def _received(self, topic: RelayTopic, data: bytes, info: Mapping[str, Any]) -> None:
        now_s = time.monotonic()
        replaceable = self.permission().granted and self._connected()
        topic.take(published_ns(info), data, now_s, replaceable)
        if replaceable:
            self._held.set()

    def _connected(self) -> bool:
        return self._offers is not None and self._offers.connected

    def _offered(self, number: int, stamp_ns: int, data: memoryview) -> None:
        if number not in self._topics:
            return
        line = self._topics[number].line
        if codec.header_stamp_ns(data) != stamp_ns:
            line.counts.wrong += 1
        else:
            line.replacement(stamp_ns, data, time.monotonic())

    def _release(self) -> None:
        """Send originals whose time is up, whoever else stands still."""
        while not self._closing:
            due = [topic.line.release_due(time.monotonic()) for topic in list(self._topics.values())]
            next_s = min((at_s for at_s in due if at_s is not None), default=None)
            if next_s is None:
                self._held.wait(_IDLE_S)
                self._held.clear()
            else:
                time.sleep(max(0.0, next_s - time.monotonic()))

    def status(self) -> dict[str, Any]:
        """Return how it goes, and the stamps that were replaced since it was last asked."""
        if self._came_to_stand_by and self._took_over is None:  # also while it takes over
            return {"relay": self._number, "standing_by": True}
        permission = self.permission()
        missing = [row.raw for number, row in enumerate(self._config.topics) if number not in self._topics]
        return {
            "relay": self._number,
            "took_over": self._took_over,
            "granted": permission.granted,
            "why": permission.why,
            "mutator": self._connected(),
            "waiting_for": missing,
            "changed": self._changed,
            "topics": {topic.between.topic: topic.status() for topic in list(self._topics.values())},
        }


def main(args: list[str] | None = None) -> None:
    """Relay, or stand by and relay, until a signal comes."""
    parser = argparse.ArgumentParser(prog="relay", description="Stand in topics of a vehicle; started by `mt inline`.")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--offers", type=Path, required=True, help="socket that the mutator connects to")
    parser.add_argument("--armed", action="store_true")
    parser.add_argument("--events", type=int)
    parser.add_argument("--baton", type=int, help="descriptor of the memory shared with other relays of the run")
    parser.add_argument("--number", type=int, default=0, help="among the relays of the run")
    parser.add_argument("--after", type=int, metavar="PIDFD", help="take the place of this process when it dies")
    given = parser.parse_args(args)
    ended = flag_of_signals()
    events = EventWriter(given.events)
    try:
        _carry_out(given, ended, events)
    except MtError as error:
        error_event = {"error": str(error)}
        events.tell(lambda: error_event)
        print(f"relay: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _carry_out(given: argparse.Namespace, ended: Flag, events: EventWriter) -> None:
    config = load_inline_config(given.config)
    sizes = (len(config.topics), config.depth)
    baton = Baton.create(*sizes) if given.baton is None else Baton(given.baton, *sizes)
    run = zlib.crc32(os.fsencode(given.offers.resolve()))
    with lone_node(f"{NODE}_{run:08x}_{given.number}", quiet_node) as (node, executor):
        relay = Relay(node, config, given.armed, given.offers, baton, given.number, standing_by=given.after is not None)
        if given.after is not None:
            sentry = Sentry(given.after, baton, config.frozen_s, relay.is_behind)
            threading.Thread(target=_stand_by, args=(sentry, relay, ended), name="sentry", daemon=True).start()
        gc.freeze()
        try:
            _spin(executor, relay, ended, events)
            _say_that_it_ends(baton)
        except MtError:
            _say_that_it_ends(baton)
            raise
        finally:
            relay.close()
            events.tell(relay.status)


def _spin(executor: SingleThreadedExecutor, relay: Relay, ended: Flag, events: EventWriter) -> None:
    status_s = 0.0
    while not ended.is_set():
        executor.spin_once(timeout_sec=LOOK_EVERY_S / 2)
        if relay.failure is not None:
            raise relay.failure
        if time.monotonic() - status_s > LOOK_EVERY_S:
            status_s = time.monotonic()
            relay.alone = not events.tell(relay.status)
            relay.permission()  # that nobody looks on is noticed, however soon somebody does again


def _stand_by(sentry: Sentry, relay: Relay, ended: Flag) -> None:
    """Wait for what becomes of the relay before; a thread of its own, which nothing else holds up."""
    fate = sentry.wait(ended.is_set)
    sentry.close()
    if fate is RelayFate.ENDED:
        ended.set()
    elif fate is not None:
        try:
            relay.take_over(fate)
        except MtError as error:
            relay.failure = error


def _say_that_it_ends(baton: Baton) -> None:
    """Have nobody take the place of this process, where it is the one that serves."""
    if baton.owner == os.getpid():
        baton.phase = Phase.ENDED


if __name__ == "__main__":
    main()
