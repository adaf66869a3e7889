# SPDX-License-Identifier: Apache-2.0
"""A test bench for `mt inline`: a LiDAR, a vehicle that stands, an operator with a switch, and a stack that listens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.process_tree import children_of, descendants_of, signal_all
from mt_nodes.base.processes import wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.world.scene.drive import generate_drive

LONG_S, EVERY_S, HOLD_S = 60.0, 0.1, 0.08
#: What a machine that stands still for a while may not lose: so many clouds wait for whoever is held up.
DEPTH = 100
#: Nor may it take a relay for frozen, or a signal for lost: those tests that are about it say less.
PATIENT_S = 10.0
#: From the stamp of one cloud to that of the next; the first bears this one.
STAMP_NS = 100_000_000
RAW, TOPIC = "/lidar/points_raw", "/lidar/points"
#: What is said while the switch is let go.
LET_GO = "/dead_man: data is False"


def signals(fresh_s: float = PATIENT_S) -> dict[str, Any]:
    """What must hold: that the vehicle is not engaged, and that the switch is held."""
    engaged = {"topic": "/engaged", "type": "std_msgs/msg/Bool", "equals": False, "fresh_s": fresh_s}
    dead_man = {"topic": "/dead_man", "type": "std_msgs/msg/Bool", "equals": True, "fresh_s": fresh_s}
    return {"permits": [engaged], "dead_man": dead_man}


def config(**more: Any) -> dict[str, Any]:
    waits = {"hold_s": HOLD_S, "frozen_s": PATIENT_S, "depth": DEPTH}
    return {"topics": [{"raw": RAW, "topic": TOPIC}], **waits, **signals(), **more}


def disorder(numbers: Sequence[int], may_miss: int = 0) -> str:
    """Say which of numbers in a row, beginning with the first, are missing, double or out of order; empty if none.

    ``may_miss``: so many may be missing.
    """
    counts = Counter(numbers)
    found = {
        "missing": [n for n in range(min(numbers), max(numbers) + 1) if n not in counts],
        "double": [n for n, count in counts.items() if count > 1],
        "after a later one": [later for before, later in pairwise(numbers) if later < before],
    }
    if len(found["missing"]) <= may_miss:
        del found["missing"]
    return "; ".join(f"{what}: {which}" for what, which in found.items() if which)


class Bench:
    """A LiDAR, a vehicle that stands, an operator, and a stack that notes what it is given.

    ``every_s``: from one cloud to the next, and from one signal.
    """

    def __init__(self, node: Any, place: Path, every_s: float = EVERY_S) -> None:
        from rclpy.duration import Duration
        from sensor_msgs.msg import PointCloud2
        from std_msgs.msg import Bool

        from mt_nodes.nodes import qos

        promised = copy(qos.REPLAY)
        promised.depth = DEPTH
        promised.deadline = promised.liveliness_lease_duration = Duration(seconds=LONG_S)
        bundle = next(iter(generate_drive(1)))
        self._data = codec.encode_cloud(bundle.cloud())
        dump_transforms(bundle.transforms, place / "transforms.yaml")
        self.engaged, self.pressed, self._count, self._bool = False, False, 0, Bool
        #: The vehicle and the operator say nothing; the operator alone.
        self.silent = self.operator_silent = False
        #: When, stamp and checksum of what the stack was given; of what the sensor sent, the checksum by stamp.
        self.heard: list[tuple[float, int, int]] = []
        self._lock = threading.Lock()
        self.sent: dict[int, int] = {}
        self.cloud = node.create_publisher(PointCloud2, RAW, promised)
        self._node, self.every_s = node, every_s
        self._says = [node.create_publisher(Bool, topic, 1) for topic in ("/engaged", "/dead_man")]
        node.create_subscription(PointCloud2, TOPIC, self._heard, promised, raw=True)
        node.create_timer(every_s, self._send)
        node.create_timer(every_s, self._say)

    def _send(self) -> None:
        self._count += 1
        stamp_ns = self._count * STAMP_NS
        seconds, rest = divmod(stamp_ns, 1_000_000_000)
        data = self._data[:4] + seconds.to_bytes(4, "little") + rest.to_bytes(4, "little") + self._data[12:]
        self.sent[stamp_ns], self.last = zlib.crc32(data), (stamp_ns, data)
        self.cloud.publish(data)

    def _say(self) -> None:
        if self.silent:
            return
        for publisher, value in zip(self._says, (self.engaged, self.pressed), strict=True):
            if publisher is self._says[0] or not self.operator_silent:
                publisher.publish(self._bool(data=value))

    def _heard(self, data: bytes) -> None:
        with self._lock:
            self.heard.append((time.monotonic(), codec.header_stamp_ns(data) or 0, zlib.crc32(data)))

    def next(self, like: Callable[[bool], bool], count: int = 3) -> int:
        """Wait until so many clouds in a row are (or are not) replaced; return how many came before them."""
        begun, run = len(self.heard), 0
        at = begun

        def found() -> bool:
            nonlocal at, run
            while at < len(self.heard) and run < count:
                run = run + 1 if like(self.replaced(at)) else 0
                at += 1
            return run >= count

        assert wait_until(found, LONG_S), f"{len(self.heard) - begun} clouds came"
        return at - count - begun

    def replaced(self, number: int) -> bool:
        _, stamp_ns, checksum = self.heard[number]
        return checksum != self.sent[stamp_ns]

    def relays(self) -> set[int]:
        """Numbers of the relays that subscribe to the raw topic, and publish the other, as the graph shows them."""
        sides = (self._node.get_subscriptions_info_by_topic(RAW), self._node.get_publishers_info_by_topic(TOPIC))
        names = [{row.node_name for row in rows if row.node_name.startswith("mt_relay_")} for rows in sides]
        return {int(name.rpartition("_")[2]) for name in names[0] & names[1]}

    def changed(self) -> list[int]:
        """Stamps of what the stack was given in the place of another."""
        return [stamp for number, (_, stamp, _) in enumerate(self.heard) if self.replaced(number)]

    def all_in_order(self, in_doubt: int = 0) -> None:
        """Every cloud once, in its order, none left out since the first but for so many."""
        numbers = [stamp_ns // STAMP_NS for _, stamp_ns, _ in self.heard]
        assert not (wrong := disorder(numbers, in_doubt)), f"of the clouds {numbers[0]} to {numbers[-1]}: {wrong}"

    def longest_gap_s(self, first: int) -> float:
        times = [at_s for at_s, _, _ in self.heard[first:]]
        return max(later - before for before, later in pairwise(times))


@contextmanager
def bench_in(domain: int, place: Path, every_s: float = EVERY_S) -> Iterator[Bench]:
    """A bench in a domain; where its LiDAR is goes to a file in the directory."""
    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    context = SpinningContext(domain)
    made: list[Bench] = []

    def node(*, context: Any) -> Any:
        one = plain_node("bench", context=context)
        made.append(Bench(one, place, every_s))
        return one

    context.add(node)
    yield made[0]
    context.close()


@pytest.fixture(name="bench")
def made_bench(request: pytest.FixtureRequest, domains: tuple[int, ...], tmp_path: Path) -> Iterator[Bench]:
    """A bench of a test's own; its parameter, if it has one, says how often its LiDAR sends."""
    with bench_in(domains[0], tmp_path, getattr(request, "param", EVERY_S)) as bench:
        yield bench


class Inline:
    """`mt inline` as a process."""

    def __init__(self, place: Path, *words: str, **more: Any) -> None:
        self.out = place / "out"
        #: What the test has killed, and the run has to start anew.
        self.killed = Counter[str]()
        place.mkdir(exist_ok=True)
        self._armed = "--arm" in words
        told = config(**{"transforms": str(place / "transforms.yaml"), **more})
        (place / "bench.yaml").write_text(yaml.safe_dump(told))
        argv = ["inline", "--config", str(place / "bench.yaml"), "--out", str(self.out), *words]
        self._said = place / "said.txt"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mt_nodes.cli.main", *argv], stdout=said, stderr=subprocess.STDOUT
            )

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self._said.read_text()

    def changed(self) -> list[int]:
        """Stamps of what it has written down as replaced."""
        return [json.loads(line)["stamp_ns"] for line in (self.out / "replaced.jsonl").read_text().splitlines()]

    @property
    def worker(self) -> int:
        """The process that does the work of the command, which the one started only waits for."""
        [worker] = children_of(self.process.pid)
        return worker

    def of(self, module: str) -> list[int]:
        return [
            pid
            for pid in descendants_of(self.process.pid)
            if module in command_of(pid) and "subreaper" not in command_of(pid)
        ]

    def hold(self, bench: Bench) -> None:
        """Let the switch go until that is told, and press it; wait until input is changed."""
        bench.pressed = False
        assert wait_until(lambda: LET_GO in "".join(self.said.splitlines()[-1:]), LONG_S), self.said
        bench.pressed = True
        bench.next(lambda replaced: replaced)

    def kill(self) -> None:
        """End it with its relays, which outlive it; stopped first, so that it starts no other one meanwhile."""
        if self.process.poll() is None:
            os.kill(self.worker, signal.SIGSTOP)
            left = [*self.of("nodes.standby_relay"), *self.of("nodes.relay")]
            self.process.kill()
            signal_all(left, signal.SIGKILL)
        self.process.wait()

    def end(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(LONG_S)
        summary = dict(read_result(self.out / "summary.json"))
        idle = self._armed and not any(counts["replaced"] for counts in summary["topics"].values())
        assert code == (ExitCode.UNDECIDED if idle else ExitCode.PASS), self.said
        return summary


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.fixture(name="started")
def started_inline(tmp_path: Path, bench: Bench) -> Iterator[Callable[..., Inline]]:
    with ExitStack() as ending:

        def start(*words: str, **more: Any) -> Inline:
            inline = Inline(tmp_path, *words, **more)
            ending.callback(lambda: print(inline.said))  # for whoever wonders why it failed
            ending.callback(inline.kill)
            assert wait_until(lambda: len(bench.heard) > 3 or inline.process.poll() is not None, LONG_S)
            return inline

        yield start
