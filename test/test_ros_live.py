# SPDX-License-Identifier: Apache-2.0
"""The live suite over real topics: beside a live stack, with instances of its own, joining late and leaving early."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import Twist
from recordings import bundles
from ros_support import Peer, until
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from mt_nodes import cdr
from mt_nodes.bags import write_bundles
from mt_nodes.environment import ros_environment
from mt_nodes.frames import Bundle, Wire
from mt_nodes.live.commands import Commands
from mt_nodes.live.config import live_config
from mt_nodes.live.run import LiveRun, told_domains
from mt_nodes.nodes import live_suite, qos
from mt_nodes.nodes.adapters.marker_array import MarkerArrayObstacles
from mt_nodes.nodes.live_taps import HeardTransforms, LiveTaps, LiveTopics
from mt_nodes.nodes.messages import message_class, set_stamp
from mt_nodes.nodes.suite_process import Events
from mt_nodes.outputs import Detections
from mt_nodes.params import build
from mt_nodes.processes import Child, Process
from mt_nodes.scene.drive import generate_drive
from mt_nodes.stacks import Stack
from mt_nodes.transforms import Transform, TransformTree, UnknownTransform, dump_transforms, pose_matrix

MARKERS, BOXES = "visualization_msgs/msg/MarkerArray", "/perception/obstacles"
HZ = 8.0

TINY = """
from mt_nodes.outputs import Control

def detect(points):
    return [[8.0, 1.0, 0.5, 4.0, 2.0, 1.5, 0.5]] if len(points) else []

def steer(points):
    return Control(None, yaw_rate_radps=0.25, speed_mps=5.0)
"""
STACK = {
    "callable": "tiny:detect",
    "inputs": {"lidar": "/points"},
    "stateless": True,
    # A machine that is too busy loses messages: that is no violation here.
    "publishes_when_empty": False,
    "deadline_s": 5.0,
    "ready_timeout_s": 60.0,
}
CHECKED = """
id: still_there
kind: necessary
because: for tests
mutate: [{noise_outside_roi: {points: 5}}]
check: {obstacles_kept: {}}
min_decided: 1
"""
STEERS = CHECKED.replace("still_there", "still_steers").replace("{obstacles_kept: {}}", "{steering_within: {}}")


class Live:
    """A live system in one domain: a sensor at its own pace, and a stack of the test's that answers each cloud."""

    def __init__(self, ending: ExitStack, domain: int, *, answers: bool = True, clock: bool = False) -> None:
        self.peer = Peer(ending, domain, "live_stack")
        self.answered = self.sent = 0
        self.torn = False
        self._cloud = replace(bundles(1, 20)[0].clouds[0], frame_id="base_link")
        self._adapter = MarkerArrayObstacles()
        self._boxes = self.peer.publisher(MARKERS, BOXES)
        self._points = self.peer.publisher(cdr.POINT_CLOUD, "/points", qos.REPLAY)
        self._note = self.peer.publisher(cdr.STRING, "/note", qos.REPLAY)
        self._clock = self.peer.publisher("rosgraph_msgs/msg/Clock", "/clock", qos.CLOCK) if clock else None
        if answers:
            self.peer.node.create_subscription(message_class(cdr.POINT_CLOUD), "/points", self._answer, qos.REPLAY)
        self.peer.node.create_timer(1.0 / HZ, self._tick)

    def _tick(self) -> None:
        stamp_ns = 10**18 + self.sent * round(1e9 / HZ)
        self.sent += 1
        if self._clock is not None:
            now = Clock()
            set_stamp(now.clock, stamp_ns)
            self._clock.publish(now)
        self._note.publish(String(data=f"before {stamp_ns}"))
        message = cdr.encode_message(replace(self._cloud, stamp_ns=stamp_ns))
        self._points.publish(message[: len(message) // 2] if self.torn else message)

    def _answer(self, message: Any) -> None:
        self.answered += 1
        said = Detections.make(
            "base_link", cdr.stamp_ns_of(message.header), [(8.0, 1.0, 0.5)], [(4.0, 2.0, 1.5)], [0.5]
        )
        self._boxes.publish(self._adapter.encode(said))


class KeptCommands(Commands):
    """Commands that the test can give, too."""

    last: KeptCommands

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        KeptCommands.last = self


class UntilTurn(Events):
    """Stops the run when so many turns are over: control and relation then were tested, however slow the machine."""

    def __init__(self, turns: int) -> None:
        super().__init__(None)
        self._turns = turns

    def send(self, event: Mapping[str, Any]) -> None:
        if event.get("segment", 0) >= self._turns:
            KeptCommands.last.stop()


@pytest.fixture
def carry_out(tmp_path: Path, domains: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Carries a live run out in this process; returns its lines, its summary and its directory."""
    (tmp_path / "tiny.py").write_text(TINY)
    (tmp_path / "still_there.yaml").write_text(CHECKED)
    (tmp_path / "still_steers.yaml").write_text(STEERS)

    monkeypatch.setattr(live_suite, "Commands", KeptCommands)

    def carried(mode: str, stack: dict[str, Any] | None = None, **config: Any) -> Any:
        (tmp_path / "stack.yaml").write_text(json.dumps({**STACK, **(stack or {})}))
        given = {
            "mode": mode,
            "stack": str(tmp_path / "stack.yaml"),
            "relations": [str(tmp_path / "still_there.yaml")],
            "live_domain": domains[1],
            "segments": {"test_bundles": 4, "restart_after_bundles": 10_000},
            "use_sim_time": "false",
            **config,
        }
        run = LiveRun.create(live_config(given, "test"), str(tmp_path / f"out_{mode}"))
        summary = live_suite._carry_out(LiveRun.load(run.out), UntilTurn(2))
        lines = [json.loads(line) for line in (run.out / "result.jsonl").read_text().splitlines()[1:]]
        return lines, summary, run.out

    return carried


def outcomes(lines: list[dict[str, Any]]) -> Counter[str]:
    return Counter(line["outcome"] for line in lines)


@pytest.mark.parametrize("mode", ["shadow", "twin", "alternate"])
def test_every_mode_tests_beside_a_live_system(
    mode: str, carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    live = Live(ending, domains[1])
    lines, summary, out = carry_out(mode)
    count = outcomes(lines)
    said = Counter(line["reason"] for line in lines)
    assert count["HOLDS"] >= 4 and not count["VIOLATED"] and not count["ERROR"], said
    numbers = [int(line["pair"].split("/")[1]) for line in lines]
    assert sorted(numbers) == list(range(len(lines))), "one relation judges, so that every instant has one line"
    relations = Counter(line["relation"] for line in lines)
    assert {"identity", "still_there"} <= set(relations)
    assert summary["exit_code"] == 0 or summary["exit_code"] == 3, summary["exit_why"]
    told = told_domains(out)
    assert told["live"] == domains[1] and len(set(told.values())) == len(told) == (4 if mode == "twin" else 3)
    ledger = [json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines()]
    assert ledger and {line["relation"] for line in ledger} >= {"identity", "still_there"}
    before = live.answered
    until(lambda: live.answered > before + 3, "for the live stack to go on when the suite is gone")


def test_a_shadow_only_listens_to_the_live_domain(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    live = Live(ending, domains[1])
    other, said = Peer(ending, domains[1], "watcher"), dict[str, Any]()

    def look() -> None:
        names = dict(other.node.get_node_names_and_namespaces())
        if live_suite.TAP_NODE in names and not said:
            published = other.node.get_publisher_names_and_types_by_node(live_suite.TAP_NODE, "/")
            rows = [r for t in ("/points", BOXES) for r in other.node.get_subscriptions_info_by_topic(t)]
            taps = [r.qos_profile.reliability.name for r in rows if r.node_name == live_suite.TAP_NODE]
            if len(taps) == 2:
                said.update(published=published, taps=taps, nodes=set(names))

    other.node.create_timer(0.05, look)
    lines, _, _ = carry_out("shadow")
    # Which rclpy advertises for every node.
    assert said["published"] == [("/parameter_events", ["rcl_interfaces/msg/ParameterEvent"])]
    assert said["taps"] == ["BEST_EFFORT"] * 2
    assert {name for name in said["nodes"] if name.startswith("mt_")} == {live_suite.TAP_NODE}
    assert live.answered >= len(lines)


def test_a_command_without_a_stamp_is_paired_by_its_arrival_and_counted_apart(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    live = Live(ending, domains[1], answers=False)
    commands = live.peer.publisher("geometry_msgs/msg/Twist", "/cmd")
    live.peer.node.create_subscription(
        message_class(cdr.POINT_CLOUD), "/points", lambda message: commands.publish(Twist()), qos.REPLAY
    )
    stack = {"callable": "tiny:steer", "outputs": {"control": {"topic": "/cmd", "type": "geometry_msgs/msg/Twist"}}}
    relation = tmp_path / "still_steers.yaml"
    lines, summary, out = carry_out("twin", stack, relations=[str(relation)], window_s=0.5)
    decided = [line for line in lines if line["outcome"] in ("HOLDS", "VIOLATED")]
    assert decided and all(line["paired_by"] == "arrival" for line in decided)
    assert summary["by_arrival"] == len(decided)
    assert summary["relations"]["still_steers"]["by_arrival"]["decided"] > 0
    assert "paired by their arrival" in (out / "report.html").read_text()


class Taken:
    """What taps hand on."""

    def __init__(self) -> None:
        self.instants: list[tuple[Bundle, str]] = []
        self.wires: list[Wire] = []

    def received(self, bundle: Bundle, wrong: str = "") -> None:
        self.instants.append((bundle, wrong))

    def passes(self, wire: Wire) -> None:
        self.wires.append(wire)


def test_taps_hand_on_what_is_no_sensors_byte_for_byte_the_clock_and_what_was_said_once_before(
    ending: ExitStack, domains: Any
) -> None:
    live, taken = Live(ending, domains[1], clock=True), Taken()
    once = live.peer.publisher(cdr.STRING, "/map_name", qos.LATCHED)
    once.publish(String(data="the town"))
    listener = Peer(ending, domains[1], live_suite.TAP_NODE).node
    stack = build(Stack, {**STACK, "name": "tiny", "needs": ["/note", "/map_name"]}, "test")
    topics = LiveTopics(listener, stack, "true")
    until(lambda: not topics.missing())
    beside = topics.beside()
    assert beside["/map_name"].latched and not beside["/note"].latched
    assert set(beside) == {"/note", "/map_name", "/clock"}
    LiveTaps(listener, stack, beside, TransformTree(), taken)
    until(lambda: len(taken.instants) >= 3 and {w.topic for w in taken.wires} == set(beside))
    [said] = [w.cdr for w in taken.wires if w.topic == "/map_name"]
    assert said == cdr.encode_text("the town"), "said before the taps were there"
    [note, *_] = [w for w in taken.wires if w.topic == "/note"]
    assert note.type == cdr.STRING and b"before 1000000000" in note.cdr
    bundle, wrong = taken.instants[0]
    assert not wrong and bundle.clouds[0].topic == "/points" and bundle.wires[0].cdr
    live.torn = True
    until(lambda: taken.instants[-1][1])
    assert taken.instants[-1][0].clouds == () and taken.instants[-1][0].wires[0].topic == "/points"
    live.torn = False
    until(lambda: not taken.instants[-1][1])


def at(child: str, x_m: float) -> Transform:
    return Transform("base_link", child, pose_matrix((x_m, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))


def test_frames_are_known_when_they_were_told_and_the_users_file_stands_above_them() -> None:
    heard = HeardTransforms(TransformTree([at("lidar", 7.0)]))
    with pytest.raises(UnknownTransform):
        heard.at(5).lookup("base_link", "camera")
    heard.take(cdr.encode_transforms(TransformTree([at("lidar", 1.0), at("camera", 2.0)]), 5), static=True)
    assert heard.at(5).lookup("base_link", "camera")[0, 3] == 2.0
    assert heard.at(5).lookup("base_link", "lidar")[0, 3] == 7.0


@pytest.mark.parametrize(("clock", "found"), [("auto", {"/clock"}), ("false", set()), ("true", {"/clock"})])
def test_the_clock_is_handed_on_where_there_is_one(
    clock: str, found: set[str], ending: ExitStack, domains: Any
) -> None:
    node = Peer(ending, domains[1], live_suite.TAP_NODE).node
    topics = LiveTopics(node, build(Stack, {**STACK, "name": "tiny"}, "test"), clock)
    assert topics.missing() == (["/clock"] if clock == "true" else []) and not topics.beside()
    Live(ending, domains[1], clock=True)
    until(lambda: node.count_publishers("/clock") and not topics.missing())
    assert set(topics.beside()) == found


def test_the_suite_joins_a_running_stack_and_leaves_it_when_it_is_told_to(
    ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """Processes: a drive that is replayed, the reference stack as the live one, and the suite beside them."""
    bag, transforms = tmp_path / "bag", tmp_path / "transforms.yaml"
    made = list(generate_drive(8))
    write_bundles(bag, made)
    dump_transforms(made[0].transforms, transforms)
    given = {"live_domain": domains[1], "transforms": str(transforms), "segments": {"test_bundles": 2}}
    run = LiveRun.create(live_config({**given, "relations": ["noise_outside_roi_10"]}, "test"), str(tmp_path / "out"))
    env = ros_environment(os.environ, domains[1])

    def child(name: str, *argv: str) -> Child:
        started = Child(Process(name, (sys.executable, "-m", f"mt_nodes.nodes.{name}", *argv), env, tmp_path / name))
        ending.callback(started.stop, 5.0)
        return started

    child("callable_stack", "--stack", str(run.out / "stack.yaml"), "--transforms", str(transforms))
    child("replayer", "--ros-args", "-p", f"bag:={bag}", "-p", "loop:=true", "-p", "rate:=0.2")
    said = Peer(ending, domains[1], "watcher").listen(MARKERS, BOXES)
    said.wait(3)
    suite = child("live_suite", "--run", str(run.out))
    journal = run.out / "result.jsonl"
    until(lambda: journal.exists() and b'"HOLDS"' in journal.read_bytes(), "for a pair that holds")
    suite.ask_to_end()
    until(lambda: suite.code is not None, "for the suite to end")
    assert suite.code == 130
    summary = json.loads((run.out / "summary.json").read_text())
    lines = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert summary["interrupted"] and summary["offered"] == len(lines) and (run.out / "report.html").exists()
    assert not outcomes(lines)["VIOLATED"], [line for line in lines if line["outcome"] == "VIOLATED"]
    before = len(said.messages)
    said.wait(before + 3)
