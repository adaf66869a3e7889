# SPDX-License-Identifier: Apache-2.0
"""The replayer alone, and parameters and help of every node."""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rclpy.parameter import Parameter
from recordings import PERIOD_NS, drive, stamp, text, write_bag
from ros_support import Peer, until

from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle
from mt_nodes.nodes import qos, replayer
from mt_nodes.nodes.bundle_publisher import DISCOVERY_S, BundlePublisher
from mt_nodes.nodes.mutator import Mutator
from mt_nodes.nodes.node_interfaces import NODES
from mt_nodes.nodes.replayer import Replayer

Make = Callable[..., Any]


def clock_ns(message: Any) -> int:
    return int(message.clock.sec * 10**9 + message.clock.nanosec)


def test_the_replayer_plays_every_topic_at_its_pace_and_ends(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    rows = drive(4)
    bag = write_bag(tmp_path / "bag", sorted([*rows, text(0, "no", "/clock")], key=lambda r: r.received_ns))
    peer = Peer(ending, domains[1])
    node = made(Replayer, bag=bag, rate=2)
    topics = {"/points": codec.POINT_CLOUD, "/note": codec.STRING, "/camera/image": codec.IMAGE}
    clock = peer.listen("rosgraph_msgs/msg/Clock", "/clock", qos.CLOCK)
    until(lambda: node.count_subscribers("/clock"))
    others = {t: peer.listen(name, t, qos.REPLAY, raw=True) for t, name in topics.items() if t != "/points"}
    until(
        lambda: (
            all(node._publisher.subscriber_count(t) for t in others)
            and node._sim_clock._publisher.get_subscription_count()
        )
    )
    assert node.sent == 0, "held until somebody subscribes to the leading topic"
    heard = {**others, "/points": peer.listen(topics["/points"], "/points", qos.REPLAY, raw=True)}
    began = time.monotonic()
    for topic, came in heard.items():
        assert came.wait(4) == [r.cdr for r in rows if r.topic == topic]
    until(lambda: node.finished)
    assert time.monotonic() - began >= 3 * PERIOD_NS / 1e9 / 2 - 0.1
    clock.wait(lambda rows: clock_ns(rows[-1]) == stamp(3))
    steps = [b - a for a, b in itertools.pairwise(map(clock_ns, clock.messages))]
    assert max(steps) <= 10_000_000 and min(steps) > 0
    assert sum(step == 10_000_000 for step in steps) >= 20, "whole steps, however often the timer comes round"


def test_the_replayer_begins_again_and_so_does_time(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    bag = write_bag(tmp_path / "bag", drive(3))
    peer = Peer(ending, domains[1])
    clouds = peer.listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    made(Replayer, bag=bag, rate=50.0, loop=True, limit=2)
    stamps = [codec.stamp_ns_of(m.header) for m in clouds.wait(5)[:5]]
    assert stamps == [stamp(0), stamp(1), stamp(0), stamp(1), stamp(0)]


def test_the_replayer_gives_who_reads_best_effort_time_to_find_it(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = time.monotonic_ns()
    monkeypatch.setattr(replayer, "time", SimpleNamespace(monotonic_ns=lambda: now_ns))
    node = made(Replayer, bag=write_bag(tmp_path / "bag", drive(1)))
    peer = Peer(ending, domains[1])
    note = peer.listen(codec.STRING, "/note", qos.ANSWERS_BEST_EFFORT)
    until(lambda: node._publisher.unconfirmed)
    clouds = peer.listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    until(lambda: node._met_ns is not None and clouds.matched() and note.matched())
    now_ns += round(1e9 * DISCOVERY_S) - 1
    rounds: list[int] = []
    node.create_timer(0.001, lambda: rounds.append(node.sent))
    until(lambda: len(rounds) > 20, "for the replayer's own timer to come round, too")
    assert node.sent == 0
    now_ns += 1
    assert clouds.wait(1) and note.wait(1)


def test_the_replayer_goes_on_when_the_first_bundle_is_confirmed_and_does_not_hurry_then(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ns = 0
    order: list[Any] = []
    sent_s: list[float] = []
    confirmed_s: list[float] = []
    publish, flush = BundlePublisher.publish, BundlePublisher.flush

    def published(self: BundlePublisher, bundle: Bundle, changed: frozenset[str]) -> None:
        order.append(bundle.index)
        sent_s.append(time.monotonic())
        publish(self, bundle, changed)

    def flushed(self: BundlePublisher, timeout_s: float) -> None:
        nonlocal ahead_ns
        flush(self, timeout_s)
        order.append("confirmed")
        confirmed_s.append(time.monotonic())
        ahead_ns += 60 * 10**9

    monkeypatch.setattr(replayer, "time", SimpleNamespace(monotonic_ns=lambda: time.monotonic_ns() + ahead_ns))
    monkeypatch.setattr(BundlePublisher, "publish", published)
    monkeypatch.setattr(BundlePublisher, "flush", flushed)
    clouds = Peer(ending, domains[1]).listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    node = made(Replayer, bag=write_bag(tmp_path / "bag", drive(3)), rate=0.5)
    clouds.wait(3)
    until(lambda: node.finished)
    assert order == [0, "confirmed", 1, 2, "confirmed"]
    assert not node._publisher.unconfirmed, "who confirms is given no further time"
    assert sent_s[2] - confirmed_s[0] >= 2 * PERIOD_NS / 1e9 / 0.5, "each is sent when it is due or later"


@pytest.mark.parametrize("limit", [1, 2])
def test_a_loop_goes_on_at_the_pace_of_the_recording(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path, limit: int
) -> None:
    bag = write_bag(tmp_path / "bag", drive(3))
    peer = Peer(ending, domains[1])
    clouds = peer.listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    began_s = time.monotonic()
    made(Replayer, bag=bag, rate=2.0, loop=True, limit=limit)
    clouds.wait(7)
    assert time.monotonic() - began_s >= 6 * PERIOD_NS / 1e9 / 2


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "replayer: no bag given; add --ros-args -p bag:=PATH"),
        ({"bag": "/no/such/bag"}, "/no/such/bag"),
        ({"bag": "x", "rate": 1000.0}, "parameter rate"),
        ({"bag": "x", "rate": "fast"}, "rate: got str 'fast', expected float"),
        ({"bag": 7}, "bag: got int 7, expected str"),
        ({"bgo": "x"}, "unknown parameter 'bgo'; did you mean 'bag'"),
    ],
)
def test_wrong_parameters_of_a_node_are_told(made: Make, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(Replayer, **parameters)


def test_live_parameters_are_checked_and_others_are_read_only(made: Make, tmp_path: Path) -> None:
    node = made(Replayer, bag=write_bag(tmp_path / "bag", drive(1)), autostart=False)
    told = {
        name: node.set_parameters([Parameter(name, value=value)])[0]
        for name, value in (("rate", 2.5), ("limit", 3), ("loop", True))
    }
    assert told["rate"].successful and node._given.rate == 2.5 and node.get_parameter("rate").value == 2.5
    assert not told["limit"].successful and not told["loop"].successful and node._given.limit == 0
    refused = node.set_parameters([Parameter("rate", value="fast")])[0]
    assert not refused.successful and "rate: got str 'fast'" in refused.reason and node._given.rate == 2.5
    about = node.describe_parameter("rate")
    assert about.description and about.floating_point_range[0].to_value == 100.0 and not about.read_only
    assert node.describe_parameter("bag").read_only


def test_a_live_parameter_that_leaves_nothing_to_test_is_refused(made: Make) -> None:
    node = made(Mutator, autostart=False)
    refused = node.set_parameters([Parameter("control_every", value=1)])[0]
    assert not refused.successful and "leaves nothing to test" in refused.reason
    assert node.set_parameters([Parameter("control_every", value=7)])[0].successful and node._given.control_every == 7


@pytest.mark.parametrize("name", NODES)
def test_every_node_answers_help_with_all_that_it_has(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main = importlib.import_module(f"mt_nodes.nodes.{name}").main
    for words in (["--help"], ["-h", "--ros-args", "-p", "x:=1"]):
        with suppress(SystemExit):
            main(words)
        said = capsys.readouterr().out
        node = NODES[name]
        told = [*(e.topic for e in node.endpoints), node.example]
        told += [f.name for f in fields(node.parameters)] if node.parameters else []
        assert not [each for each in told if each not in said], said
