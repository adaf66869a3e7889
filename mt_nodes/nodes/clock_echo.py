# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes clock_echo`` on another computer: answers the suite, which then knows how far the clocks differ.

It is started in the control domain of a run (``ROS_DOMAIN_ID=… ros2 run mt_nodes clock_echo``), beside the stack there.

How far apart the clocks of two computers are, from messages that go there and back.

The way there and the way back take unknown times, and both are at least 0: so of one exchange the offset is known to
half of what it took on its ways (RFC 5905, section 8). Of the last eight the one that took least is believed
(section 10); as it ages, its bound grows by what two clocks may drift apart (PHI, section 7.2).
"""

from __future__ import annotations

import json
import platform
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from mt_nodes.nodes import qos
from mt_nodes.nodes.node_main import run_node

#: Exchanges that are kept, as NTP's clock filter does.
EXCHANGES = 8
#: How far two clocks may drift apart, s/s.
PHI = 15e-6
#: Offsets surely above this are warned of: what a stack may take for a message of another instant (its usual sync_s).
TOLERATED_S = 0.02


@dataclass(frozen=True)
class Exchange:
    """One message there and back: our clock when it left and when it came back, theirs in between; ns."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    back_ns: int

    @property
    def offset_s(self) -> float:
        """How far their clock is ahead of ours, were both ways equally long."""
        return ((self.received_ns - self.sent_ns) + (self.answered_ns - self.back_ns)) / 2e9

    @property
    def ways_s(self) -> float:
        """What both ways took together; below 0 if a clock was set meanwhile."""
        return ((self.back_ns - self.sent_ns) - (self.answered_ns - self.received_ns)) / 1e9


@dataclass(frozen=True)
class Offset:
    """Their clock is ahead of ours by ``offset_s``, give or take ``bound_s``; from so many exchanges."""

    offset_s: float
    bound_s: float
    exchanges: int

    @property
    def surely_s(self) -> float:
        """By how much the clocks surely differ, whichever is ahead."""
        return max(0.0, abs(self.offset_s) - self.bound_s)

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "offset_ms": round(1e3 * self.offset_s, 3),
            "bound_ms": round(1e3 * self.bound_s, 3),
            "exchanges": self.exchanges,
        }

    def warning(self, computer: str) -> str | None:
        """Say what is wrong and what to do, None while the clocks agree as far as is known."""
        if self.surely_s <= TOLERATED_S:
            return None
        side = "ahead of" if self.offset_s > 0 else "behind"
        return (
            f"the clock of {computer} is {1e3 * abs(self.offset_s):.1f} ms {side} ours (give or take "
            f"{1e3 * self.bound_s:.1f} ms), expected at most {1e3 * TOLERATED_S:g} ms: what compares stamps with its "
            "own clock drops or misplaces messages; synchronise both computers with chrony "
            "(`chronyc tracking`) or PTP (`ptp4l` and `phc2sys` of linuxptp)"
        )


class ClockOffset:
    """The offset of one other clock, from the last exchanges with it."""

    def __init__(self) -> None:
        self._exchanges: deque[Exchange] = deque(maxlen=EXCHANGES)

    def add(self, exchange: Exchange) -> bool:
        """Take an exchange; say whether it was one: where a clock was set meanwhile, nothing before counts either."""
        if exchange.ways_s < 0 or exchange.back_ns < exchange.sent_ns:
            self._exchanges.clear()
            return False
        self._exchanges.append(exchange)
        return True

    def estimate(self, now_ns: int) -> Offset | None:
        """Return the offset as it is known at a time of our clock, None before the first exchange."""
        if not self._exchanges:
            return None
        bounds = [(each.ways_s / 2 + PHI * abs(now_ns - each.back_ns) / 1e9, each.offset_s) for each in self._exchanges]
        bound_s, offset_s = min(bounds)
        return Offset(offset_s, bound_s, len(self._exchanges))


PING, PONG = "/mt/clock_ping", "/mt/clock_pong"
EVERY_S = 1.0
WallClock = Callable[[], int]


class ClockEcho(Node):
    """Answers each ping with when it came and when the answer left, by the clock of this computer.

    ``name``: by which the suite tells of this computer; its host name when not given. ``now_ns``: the clock.
    """

    def __init__(self, name: str = "", now_ns: WallClock = time.time_ns, **where: Any) -> None:
        super().__init__("clock_echo", enable_rosout=False, start_parameter_services=False, **where)
        self._name, self._now_ns = name or platform.node(), now_ns
        self._pong = self.create_publisher(String, PONG, qos.LIVE_TAP)
        self.create_subscription(String, PING, self._pinged, qos.LIVE_TAP)

    def _pinged(self, message: String) -> None:
        received_ns = self._now_ns()
        ping = json.loads(message.data)
        about = {"computer": self._name, "received_ns": received_ns, "answered_ns": self._now_ns()}
        self._pong.publish(String(data=json.dumps({**ping, **about})))


class ClockPings:
    """Asks every computer that echoes, once a second, and keeps what its clock is off.

    ``node``: whose topics they are. ``now_ns``: the clock of this computer.
    """

    def __init__(self, node: Node, now_ns: WallClock = time.time_ns) -> None:
        self._node, self._now_ns = node, now_ns
        self._us = uuid.uuid4().hex  # another suite in the domain pings, too
        self._clocks: dict[str, ClockOffset] = {}
        self._warned: set[str] = set()
        self._ping = node.create_publisher(String, PING, qos.LIVE_TAP)
        node.create_subscription(String, PONG, self._answered, qos.ANSWERS_BEST_EFFORT)
        node.create_timer(EVERY_S, self.ping)

    def ping(self) -> None:
        """Ask all of them."""
        if self._ping.get_subscription_count():
            self._ping.publish(String(data=json.dumps({"from": self._us, "sent_ns": self._now_ns()})))

    def offsets(self) -> dict[str, dict[str, Any]]:
        """Return by computer how far its clock is ahead, and the warning where that is too far."""
        now_ns = self._now_ns()
        found = {name: clock.estimate(now_ns) for name, clock in list(self._clocks.items())}
        rows = {}
        for name, offset in found.items():
            if offset is not None:
                warning = offset.warning(name)
                rows[name] = {**offset.as_plain(), **({"warning": warning} if warning else {})}
        return rows

    def _answered(self, message: String) -> None:
        back_ns = self._now_ns()
        pong = json.loads(message.data)
        if pong["from"] != self._us:
            return
        computer = pong["computer"]
        exchange = Exchange(pong["sent_ns"], pong["received_ns"], pong["answered_ns"], back_ns)
        self._clocks.setdefault(computer, ClockOffset()).add(exchange)
        self._warn(computer)

    def _warn(self, computer: str) -> None:
        warning = self.offsets().get(computer, {}).get("warning")
        if warning and computer not in self._warned:
            self._warned.add(computer)
            self._node.get_logger().warning(warning)


def main(args: list[str] | None = None) -> None:
    """Answer until stopped."""
    run_node(ClockEcho, args, name="clock_echo")


if __name__ == "__main__":
    main()
