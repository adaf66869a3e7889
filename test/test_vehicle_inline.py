# SPDX-License-Identifier: Apache-2.0
"""`mt inline` as a whole: processes, topics, an operator with a switch, and what may happen to the mutator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from mt_nodes import cdr
from mt_nodes.errors import ExitCode, UsageError
from mt_nodes.keeper import descendants_of, signal_all
from mt_nodes.processes import wait_until
from mt_nodes.scene.drive import generate_drive
from mt_nodes.transforms import dump_transforms
from mt_nodes.vehicle.inline import inline_config

LONG_S, EVERY_S, HOLD_S = 60.0, 0.1, 0.08
RAW, TOPIC = "/lidar/points_raw", "/lidar/points"
SIGNALS: dict[str, Any] = {
    "permits": [{"topic": "/engaged", "type": "std_msgs/msg/Bool", "equals": False, "fresh_s": 1.0}],
    "dead_man": {"topic": "/dead_man", "type": "std_msgs/msg/Bool", "equals": True, "fresh_s": 1.0},
}


def config(**more: Any) -> dict[str, Any]:
    return {"topics": [{"raw": RAW, "topic": TOPIC}], "hold_s": HOLD_S, **SIGNALS, **more}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"topics": []}, "topics: got none"),
        ({"topics": [{"raw": "/a", "topic": "/a"}]}, "got '/a'.*each once"),
        ({"topics": [{"raw": "a", "topic": "/b"}]}, "got 'a'.*begin with /"),
        ({"permits": []}, "permits: got none"),
        ({"permits": [{"topic": "/a", "type": "std_msgs/msg/Bool"}]}, r"permits\[0\].*expected one of both"),
        ({"dead_man": {}}, "dead_man: got topic ''"),
        ({"dead_man": SIGNALS["permits"][0]}, "a switch of its own"),
        ({"hold": 1.0}, "hold"),
    ],
)
def test_what_is_not_safe_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        inline_config(config(**change), "bench.yaml")


class Bench:
    """A LiDAR, a vehicle that stands, an operator, and a stack that notes what it is given."""

    def __init__(self, node: Any, place: Path) -> None:
        from rclpy.duration import Duration
        from sensor_msgs.msg import PointCloud2
        from std_msgs.msg import Bool

        from mt_nodes.nodes import qos

        promised = copy(qos.REPLAY)
        promised.deadline = promised.liveliness_lease_duration = Duration(seconds=LONG_S)
        bundle = next(iter(generate_drive(1)))
        self._data = cdr.encode_cloud(bundle.cloud())
        dump_transforms(bundle.transforms, place / "transforms.yaml")
        self.engaged, self.pressed, self._count, self._bool = False, False, 0, Bool
        #: When, stamp and checksum of what the stack was given; of what the sensor sent, the checksum by stamp.
        self.heard: list[tuple[float, int, int]] = []
        self._lock = threading.Lock()
        self.sent: dict[int, int] = {}
        self.cloud = node.create_publisher(PointCloud2, RAW, promised)
        self._says = [node.create_publisher(Bool, topic, 1) for topic in ("/engaged", "/dead_man")]
        node.create_subscription(PointCloud2, TOPIC, self._heard, promised, raw=True)
        node.create_timer(EVERY_S, self._send)
        node.create_timer(EVERY_S, self._say)

    def _send(self) -> None:
        self._count += 1
        stamp_ns = self._count * 100_000_000
        seconds, rest = divmod(stamp_ns, 1_000_000_000)
        data = self._data[:4] + seconds.to_bytes(4, "little") + rest.to_bytes(4, "little") + self._data[12:]
        self.sent[stamp_ns], self.last = zlib.crc32(data), (stamp_ns, data)
        self.cloud.publish(data)

    def _say(self) -> None:
        for publisher, value in zip(self._says, (self.engaged, self.pressed), strict=True):
            publisher.publish(self._bool(data=value))

    def _heard(self, data: bytes) -> None:
        with self._lock:
            self.heard.append((time.monotonic(), cdr.header_stamp_ns(data) or 0, zlib.crc32(data)))

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

    def all_in_order(self) -> None:
        """Every cloud once, in its order, none left out since the first."""
        stamps = [stamp_ns for _, stamp_ns, _ in self.heard]
        assert stamps == list(range(stamps[0], stamps[0] + 100_000_000 * len(stamps), 100_000_000))

    def longest_gap_s(self, first: int) -> float:
        times = [at_s for at_s, _, _ in self.heard[first:]]
        return max(later - before for before, later in pairwise(times))


@pytest.fixture
def bench(domains: tuple[int, ...], tmp_path: Path) -> Iterator[Bench]:
    from mt_nodes.nodes.spinning import SpinningContext, plain_node

    context = SpinningContext(domains[0])
    made: list[Bench] = []

    def node(*, context: Any) -> Any:
        one = plain_node("bench", context=context)
        made.append(Bench(one, tmp_path))
        return one

    context.add(node)
    yield made[0]
    context.close()


class Inline:
    """`mt inline` as a process."""

    def __init__(self, place: Path, *words: str, **more: Any) -> None:
        self.out = place / "out"
        place.mkdir(exist_ok=True)
        told = config(**{"transforms": str(place / "transforms.yaml"), **more})
        (place / "bench.yaml").write_text(yaml.safe_dump(told))
        argv = ["inline", "--config", str(place / "bench.yaml"), "--out", str(self.out), *words]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mt_nodes.cli.main", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def of(self, module: str) -> list[int]:
        return [
            pid for pid in descendants_of(self.process.pid) if module in _command(pid) and "keeper" not in _command(pid)
        ]

    def end(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=LONG_S)
        assert self.process.returncode == 0, said
        self.said = said
        return dict(json.loads((self.out / "summary.json").read_text()))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.fixture
def started(tmp_path: Path, bench: Bench) -> Iterator[Callable[..., Inline]]:
    with ExitStack() as ending:

        def start(*words: str, **more: Any) -> Inline:
            inline = Inline(tmp_path, *words, **more)
            ending.callback(inline.process.communicate)
            ending.callback(inline.process.kill)
            ending.callback(lambda: signal_all(inline.of("nodes.relay"), signal.SIGKILL))
            assert wait_until(lambda: len(bench.heard) > 3 or inline.process.poll() is not None, LONG_S)
            return inline

        yield start


def test_without_arm_everything_is_forwarded_byte_for_byte(bench: Bench, started: Callable[..., Inline]) -> None:
    bench.pressed = True
    inline = started()
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: not replaced, 10)
    summary = inline.end()
    assert summary["topics"][TOPIC]["replaced"] == 0 and "not armed" in inline.said
    assert not any(map(bench.replaced, range(len(bench.heard))))
    bench.all_in_order()


def test_input_is_changed_only_while_the_switch_is_held_and_the_vehicle_is_not_engaged(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    inline = started("--arm")
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    for name, off in (("pressed", False), ("engaged", True)):
        setattr(bench, name, off)
        # What was on its way when the signal came, and the signal's own way, are a cloud or two.
        assert bench.next(lambda replaced: not replaced, 5) <= 3
        setattr(bench, name, not off)
        if name == "engaged":
            bench.next(lambda replaced: not replaced, 5)
            bench.pressed = False
            bench.next(lambda replaced: not replaced, 3)
            bench.pressed = True
        bench.next(lambda replaced: replaced)
    summary = inline.end()
    bench.all_in_order()
    told = summary["topics"][TOPIC]
    changed = [stamp for number, (_, stamp, _) in enumerate(bench.heard) if bench.replaced(number)]
    assert 0 <= told["replaced"] - len(changed) <= 2, "the last may be on their way"
    record = [json.loads(line)["stamp_ns"] for line in (inline.out / "replaced.jsonl").read_text().splitlines()]
    assert record[: len(changed)] == changed
    assert "INPUT IS CHANGED" in inline.said and "/engaged: data is True" in inline.said


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_mutator_that_is_frozen_or_killed_costs_no_cloud_and_no_time(
    number: signal.Signals, bench: Bench, started: Callable[..., Inline]
) -> None:
    bench.pressed = True  # from the beginning, which is no press
    inline = started("--arm")
    bench.next(lambda replaced: not replaced)
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    (mutator,) = inline.of("inline_mutator")
    first = len(bench.heard)
    os.kill(mutator, number)
    bench.next(lambda replaced: not replaced, 5)
    gap_s = bench.longest_gap_s(first)
    if number == signal.SIGSTOP:
        os.kill(mutator, signal.SIGCONT)
    bench.next(lambda replaced: replaced)
    summary = inline.end()
    bench.all_in_order()
    # One frame, and what an original may be held; the rest is a busy machine's.
    assert gap_s < 2 * EVERY_S + HOLD_S + 0.2
    assert summary["restarts"] == ({} if number == signal.SIGSTOP else {"mutator": 1})


def test_what_is_no_replacement_or_comes_when_none_may_takes_no_place(
    bench: Bench, domains: tuple[int, ...], tmp_path: Path
) -> None:
    from mt_nodes.nodes.relay import Relay
    from mt_nodes.nodes.spinning import SpinningContext, quiet_node
    from mt_nodes.vehicle.offers import Offers

    context, made = SpinningContext(domains[0]), []

    def node(*, context: Any) -> Any:
        one = quiet_node("mt_relay_here", context=context)
        made.append(Relay(one, inline_config(config(hold_s=0.5), "bench"), True, tmp_path / "offers.sock"))
        return one

    context.add(node)
    (relay,) = made

    def counts() -> dict[str, Any]:
        return dict(relay.status()["topics"][TOPIC])

    offers = Offers(tmp_path / "offers.sock")
    try:
        bench.next(lambda replaced: not replaced)
        bench.pressed = True
        assert wait_until(lambda: relay.permission().granted, LONG_S), relay.permission().why
        stamp_ns, data = bench.last
        for garbage in (b"", b"\0\1", data[:4] + bytes(8) + data[12:]):
            offers.offer(0, stamp_ns, garbage)
        offers.offer(7, stamp_ns, data)
        assert wait_until(lambda: counts()["wrong"] == 3, LONG_S)
        bench.next(lambda replaced: not replaced, 8)
        relay.alone = True
        stamp_ns, data = bench.last
        offers.offer(0, stamp_ns, data[:-1] + b"!")
        assert wait_until(lambda: counts()["unasked"] == 1, LONG_S)
        bench.next(lambda replaced: not replaced, 3)
        bench.all_in_order()
        assert counts()["replaced"] == 0
    finally:
        offers.close()
        relay.close()
        context.close()


def test_a_relay_that_is_killed_is_started_anew(bench: Bench, started: Callable[..., Inline]) -> None:
    inline = started()
    (relay,) = inline.of("nodes.relay")
    os.kill(relay, signal.SIGKILL)
    before = len(bench.heard)
    bench.next(lambda replaced: not replaced, 5)
    print(f"gap {bench.longest_gap_s(before - 1):.2f} s")
    assert inline.end()["restarts"]["relay"] == 1


def test_a_relay_whose_suite_is_killed_forwards_on_changes_nothing_and_is_no_second_ones_own(
    bench: Bench, started: Callable[..., Inline], tmp_path: Path
) -> None:
    inline = started("--arm")
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    (relay,) = inline.of("nodes.relay")
    inline.process.kill()
    inline.process.wait()
    try:
        bench.next(lambda replaced: not replaced, 10)
        bench.all_in_order()
        again = Inline(place := tmp_path / "again", transforms=str(tmp_path / "transforms.yaml"))
        said, _ = again.process.communicate(timeout=LONG_S)
        assert again.process.returncode == ExitCode.ISOLATION, "the stack would get everything twice"
        assert f"{TOPIC}: is published by /mt_relay_" in said and place.exists()
        bench.all_in_order()
    finally:
        os.kill(relay, signal.SIGTERM)
    assert wait_until(lambda: not _command(relay), LONG_S), "it ends when it is told"


def test_a_second_switch_that_is_stuck_does_not_hide_that_the_first_is_let_go(
    bench: Bench, started: Callable[..., Inline], domains: tuple[int, ...]
) -> None:
    from std_msgs.msg import Bool

    from mt_nodes.nodes.spinning import SpinningContext, plain_node

    inline = started("--arm")
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    context = SpinningContext(domains[0])
    try:
        node = context.add(plain_node, "stuck")
        stuck = node.create_publisher(Bool, "/dead_man", 1)
        node.create_timer(EVERY_S / 3, lambda: stuck.publish(Bool(data=True)))
        bench.next(lambda replaced: not replaced, 5)
        bench.pressed = False
        bench.next(lambda replaced: not replaced, 10)
        bench.pressed = True
        bench.next(lambda replaced: not replaced, 10)
    finally:
        context.close()
    # It has gone, and the switch was not let go since.
    bench.next(lambda replaced: not replaced, 10)
    inline.end()
    assert "/dead_man: is published 2 times" in inline.said
    bench.all_in_order()


def test_a_topic_that_somebody_else_publishes_is_refused(
    bench: Bench, started: Callable[..., Inline], domains: tuple[int, ...]
) -> None:
    from sensor_msgs.msg import PointCloud2

    from mt_nodes.nodes.spinning import SpinningContext, plain_node

    context = SpinningContext(domains[0])
    try:
        node = context.add(plain_node, "driver")
        node.create_publisher(PointCloud2, TOPIC, 1)
        inline = started("--arm")
        said, _ = inline.process.communicate(timeout=LONG_S)
        assert inline.process.returncode == ExitCode.ISOLATION
        assert f"{TOPIC}: is published by /driver" in said
    finally:
        context.close()
