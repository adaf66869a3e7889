# SPDX-License-Identifier: Apache-2.0
"""What a run beside a live stack adds to the way of each topic, and what it leaves out when it is overloaded."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from busy_machine import spent
from live_beside import Live, UntilTurn, carrying
from made_bundles import made_bundle, made_cloud
from ros_support import Heard, Peer

from mt_nodes.cli.outcome import added
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.engine.summary.summary import summarise
from mt_nodes.nodes import qos
from mt_nodes.nodes.run_diagnostics import _rows
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.lidar.noise_outside_roi import NoiseOutsideRoi
from mt_nodes.runs.vehicle.budget import AddedByTopic

DELAY_S = 0.15
#: Of the test of a mutation that is too slow, alone on the machine: input a second, and what one follow-up takes.
FAST_HZ, TAKES_S = 12.5, 0.32
PERIOD_NS = round(1e9 / FAST_HZ)


def test_what_is_added_is_counted_by_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt_nodes.runs.vehicle.budget.time.monotonic", lambda: 10.25)
    counted = AddedByTopic(["/a", "/b", "/silent"])
    for came_s in (10.0, 10.15, 10.24):
        counted.sent("/a", came_s)
    counted.sent("/b", 10.2)
    told = counted.as_plain()
    assert set(told) == {"/a", "/b"}, "of what was never sent there is nothing to tell"
    assert told["/a"]["added_ms"] == pytest.approx(
        {"p50": 100.0, "p95": 250.0, "p99": 250.0, "max": 250.0, "count": 3}, rel=0.01
    )
    assert told["/b"]["added_ms"]["max"] == 50.0
    json.dumps(told)


def test_what_takes_a_messages_place_came_when_that_did() -> None:
    made = replace(made_bundle(made_cloud(count=50)), images=(), camera_infos=())
    cloud = made.cloud()
    wires = (
        Wire(cloud.topic, codec.POINT_CLOUD, 1, codec.encode_cloud(cloud), came_s=5.0),
        Wire("/b", "x", 1, b"", came_s=6.0),
    )
    heard = replace(made, wires=wires)
    for changed in (frozenset[str](), frozenset({cloud.topic})):
        out = wires_of_bundle(heard, changed)
        assert {wire.topic: wire.came_s for wire in out} == {cloud.topic: 5.0, "/b": 6.0}
    assert wires_of_bundle(replace(made, wires=()))[0].came_s is None, "what was never heard came at no time"


def test_diagnostics_have_a_row_for_each_value() -> None:
    values = {"state": "running", "topics": {"/a": {"added_ms": {"p50": 1.5}}}}
    assert dict(_rows(values)) == {"state": "running", "topics /a added_ms p50": 1.5}


def test_the_summary_tells_of_topics_and_the_terminal_a_line_each() -> None:
    told = {"/a": {"added_ms": {"p50": 100.0, "p95": 101.0, "p99": 102.5, "max": 110.0, "count": 3}}}
    summary = summarise([], [], topics=told)
    assert summary["topics"] == told and "topics" not in summarise([], [])
    assert added(summary) == ["/a: reaches our instance 100.0 ms later (p50), p99 102.5 ms, at most 110.0 ms"]
    assert added(summarise([], [])) == []


@pytest.fixture
def carry_out(tmp_path: Path, domains: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    return carrying(tmp_path, domains[1], monkeypatch)


class Told(UntilTurn):
    """Keeps the last that was told of the topics while the run goes on."""

    def __init__(self) -> None:
        super().__init__(2)
        self.topics: dict[str, Any] = {}

    def send(self, event: Mapping[str, Any]) -> None:
        self.topics = event.get("topics") or self.topics
        super().send(event)


@pytest.mark.parametrize("mode", ["shadow", "twin"])
def test_added_latency_is_told_of_every_topic_that_our_instance_gets(
    mode: str, carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    Live(ending, domains[1])
    events = Told()
    lines, summary, _ = carry_out(mode, None, events, delay_s=DELAY_S)
    assert set(summary["topics"]) == {"/points"}, "nobody subscribes to anything else"
    for topic, told in summary["topics"].items():
        times = told["added_ms"]
        # What is told in ms to three places, and in bins of a hundredth, is as late as asked for, and no earlier.
        assert 0.99e3 * DELAY_S <= times["p50"] <= times["p95"] <= times["p99"] <= times["max"], topic
        assert times["count"] >= len(lines)
    assert 0 < events.topics["/points"]["added_ms"]["count"] <= summary["topics"]["/points"]["added_ms"]["count"]


class Listening(UntilTurn):
    """Listens in the domain of the instance with the follow-ups; control and relation are tested once."""

    def __init__(self, ending: ExitStack) -> None:
        super().__init__(2)
        self._ending = ending
        self.points, self.clock = Heard(), Heard()

    def send(self, event: Mapping[str, Any]) -> None:
        if "followup" in event.get("domains", ()):
            peer = Peer(self._ending, event["domains"]["followup"], "listener")
            self.points = peer.listen(codec.POINT_CLOUD, "/points", qos.ANSWERS, raw=True)
            self.clock = peer.listen("rosgraph_msgs/msg/Clock", "/clock", qos.CLOCK, raw=True)
        super().send(event)


@pytest.mark.alone  # what is late by how much is asked
def test_a_mutation_that_is_too_slow_is_left_out_and_never_the_source(
    carry_out: Callable[..., Any],
    ending: ExitStack,
    domains: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes four periods of the input of one core: its pairs are skipped, everybody gets everything in time."""
    at_once = NoiseOutsideRoi.apply

    def slow(self: NoiseOutsideRoi, bundle: Bundle, draw: Draw) -> Followup:
        until_s = time.monotonic() + TAKES_S
        while time.monotonic() < until_s:
            pass
        return at_once(self, bundle, draw)

    monkeypatch.setattr(NoiseOutsideRoi, "apply", slow)
    live = Live(ending, domains[1], clock=True, hz=FAST_HZ)
    events = Listening(ending)
    turns = {"test_bundles": 20, "settle_bundles": 1, "restart_after_bundles": 10_000}
    given = {"delay_s": DELAY_S, "segments": turns, "use_sim_time": "true"}
    before_s = spent().waiting_s
    lines, summary, _ = carry_out("shadow", None, events, **given)
    machine_s = spent().waiting_s - before_s
    late = [line["reason"] for line in lines if line["relation"] == "still_there" and line["outcome"] == "SKIPPED"]
    assert len(late) >= 15 and all(reason.startswith("over budget: ") for reason in late), set(late)
    assert any("so the source went out; delay_s is 0.15" in reason for reason in late)
    # Of one whose turn has not come yet when the next is there none is begun: no queue grows.
    behind_ms = [float(ms) for reason in late for ms in re.findall(r"(\d+) ms (?:behind|late)", reason)]
    left = [(int(a), int(b)) for reason in late for a, b in re.findall(r"(\d+) ms left, (\d+) ms needed", reason)]
    assert len(behind_ms) + len(left) == len(late) and max(behind_ms) < 1e3 * (2.0 * TAKES_S + machine_s), late
    assert all(left_ms <= needed_ms for left_ms, needed_ms in left), "what would be in time is begun"
    assert not any(line["outcome"] in ("VIOLATED", "ERROR") for line in lines)
    assert not any(line["outcome"] == "HOLDS" for line in lines if line["relation"] == "still_there")
    for heard in (events.points, events.clock):
        stamps = [codec.header_stamp_ns(data) or 0 for data in heard.messages]
        assert len(stamps) > 30 and {b - a for a, b in pairwise(stamps)} == {PERIOD_NS}, "a message is missing"
    added_ms = summary["topics"]["/points"]["added_ms"]
    assert added_ms["p50"] < 1e3 * (DELAY_S + 0.1), added_ms
    assert added_ms["max"] < 1e3 * (DELAY_S + TAKES_S + machine_s), (added_ms, machine_s)
    assert live.answered >= live.sent - 1, "the live stack has missed an input"
