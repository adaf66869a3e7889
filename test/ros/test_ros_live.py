# SPDX-License-Identifier: Apache-2.0
"""The live suite over real topics: beside a live stack, with instances of its own, joining late and leaving early."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import Twist
from live_beside import BOXES, MARKERS, STACK, KeptCommands, Live, UntilTurn, carrying
from ros_support import Peer, until
from std_msgs.msg import String

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.params import build
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.process_tree import descendants_of
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.transforms import TransformTree, dump_transforms
from mt_nodes.engine.ledger import load_draws, read_ledger
from mt_nodes.nodes import live_suite, qos
from mt_nodes.nodes.live_taps import LiveTaps, LiveTopics
from mt_nodes.nodes.message_classes import available, message_class
from mt_nodes.runs.live import live_followups
from mt_nodes.runs.live.config import live_config
from mt_nodes.runs.live.live_run import LiveRun, read_domains
from mt_nodes.stacks.stack import Stack
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e


@pytest.fixture
def carry_out(tmp_path: Path, domains: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Carries a live run out in this process; returns its lines, its summary and its directory."""
    return carrying(tmp_path, domains[1], monkeypatch)


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
    told = read_domains(out)
    assert told["live"] == domains[1] and len(set(told.values())) == len(told) == (4 if mode == "twin" else 3)
    ledger = [json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines()]
    assert ledger and {line["relation"] for line in ledger} >= {"identity", "still_there"}
    before = live.answered
    until(lambda: live.answered > before + 3, "for the live stack to go on when the suite is gone")


def test_a_stop_does_not_wait_for_an_instance_to_get_ready(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    Live(ending, domains[1])
    never = {"command": [sys.executable, "-c", "import threading; threading.Event().wait()"], "ready_timeout_s": 600.0}
    never |= {"outputs": {"detections": {"topic": BOXES, "type": MARKERS}}}

    def stop_when_it_runs() -> None:
        wait_until(lambda: any("Event" in command_of(pid) for pid in descendants_of(os.getpid())), 60.0)
        KeptCommands.last.stop()

    stopping = threading.Thread(target=stop_when_it_runs)
    stopping.start()
    began_s = process_time_s()
    lines, _, _ = carry_out("shadow", stack={"callable": "", **never}, workers=0)
    stopping.join()
    assert set(outcomes(lines)) <= {"SETTLING", "SKIPPED"} and process_time_s() - began_s < 300.0


def command_of(pid: int) -> str:
    with suppress(OSError):  # it has just ended
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


class WorkersSeen(UntilTurn):
    """Looks for processes that make follow-ups while the run goes on."""

    def __init__(self) -> None:
        super().__init__(3, tested=8)  # what a worker makes may be counted when the turn is another's
        self.pids: set[int] = set()

    def send(self, event: Mapping[str, Any]) -> None:
        self.pids |= workers_of(os.getpid())
        super().send(event)


def workers_of(pid: int) -> set[int]:
    return {each for each in descendants_of(pid) if "followup_process" in command_of(each)}


def test_follow_ups_of_other_processes_are_tested_and_recorded(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_followups, "LEAST_S", 0.0)
    here, make = list[str](), live_followups.Maker.make
    monkeypatch.setattr(live_followups.Maker, "make", lambda *args, **more: here.append("made") or make(*args, **more))
    Live(ending, domains[1])
    watching = WorkersSeen()
    lines, _, out = carry_out("shadow", events=watching, workers=1, delay_s=1.0)
    own = [line for line in lines if line["relation"] == "still_there"]
    assert outcomes(own)["HOLDS"] >= 3 and not outcomes(lines)["ERROR"]
    assert len(here) < len([line for line in lines if line["outcome"] == "HOLDS"]), "here only until one is ready"
    assert len(watching.pids) == 2 and not workers_of(os.getpid()), "a process and its supervisor, gone with the run"
    pair = next(line["pair"] for line in own if line["outcome"] == "HOLDS")
    ledger = {line["pair"]: line for line in read_ledger(out)}
    draws = load_draws(out, ledger[pair])
    assert draws and ledger[pair]["sha256"]


def test_a_shadow_only_listens_to_the_live_domain(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    """Every endpoint of ours in the live domain, services and what ROS adds to a node included, is a tap."""
    live = Live(ending, domains[1])
    other, said = Peer(ending, domains[1], "watcher"), dict[str, Any]()
    topics = ("rt/points", f"rt{BOXES}")

    def look() -> None:
        names = dict(other.node.get_node_names_and_namespaces())
        if live_suite.TAP_NODE in names and not said:
            of = (live_suite.TAP_NODE, "/")
            subscribed = dict(other.node.get_subscriber_names_and_types_by_node(*of, no_demangle=True))
            if set(topics) <= set(subscribed):
                rows = [r for t in ("/points", BOXES) for r in other.node.get_subscriptions_info_by_topic(t)]
                said.update(
                    taps=[r.qos_profile.reliability.name for r in rows if r.node_name == live_suite.TAP_NODE],
                    subscribed=subscribed,
                    published=other.node.get_publisher_names_and_types_by_node(*of, no_demangle=True),
                    nodes=set(names),
                )

    other.node.create_timer(0.05, look)
    lines, _, _ = carry_out("shadow")
    assert said["published"] == []
    frames = {"rt/tf", "rt/tf_static"} if available(codec.TF) else set()
    assert set(said["subscribed"]) == {*topics, *frames}
    assert said["taps"] == ["BEST_EFFORT"] * 2
    assert {name for name in said["nodes"] if name.startswith("mt_")} == {live_suite.TAP_NODE}
    assert live.answered >= len(lines)


def test_a_command_without_a_stamp_is_paired_by_its_arrival_and_counted_apart(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    live = Live(ending, domains[1], answers=False)
    commands = live.peer.publisher("geometry_msgs/msg/Twist", "/cmd")
    live.peer.node.create_subscription(
        message_class(codec.POINT_CLOUD), "/points", lambda message: commands.publish(Twist()), qos.REPLAY
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
    once = live.peer.publisher(codec.STRING, "/map_name", qos.LATCHED)
    once.publish(String(data="the town"))
    listener = Peer(ending, domains[1], live_suite.TAP_NODE).node
    stack = build(Stack, {**STACK, "name": "tiny", "needs": ["/note", "/map_name"]}, "test")
    topics = LiveTopics(listener, stack, "true")
    until(lambda: not topics.missing())
    beside = topics.other_topics()
    assert beside["/map_name"].latched and not beside["/note"].latched
    assert set(beside) == {"/note", "/map_name", "/clock"}
    LiveTaps(listener, stack, beside, TransformTree(), taken)
    until(lambda: len(taken.instants) >= 3 and {w.topic for w in taken.wires} == set(beside))
    [said] = [w.cdr for w in taken.wires if w.topic == "/map_name"]
    assert said == codec.encode_text("the town"), "said before the taps were there"
    [note, *_] = [w for w in taken.wires if w.topic == "/note"]
    assert note.type == codec.STRING and b"before 1000000000" in note.cdr
    bundle, wrong = taken.instants[0]
    assert not wrong and bundle.clouds[0].topic == "/points" and bundle.wires[0].cdr
    live.torn = True
    until(lambda: taken.instants[-1][1])
    assert taken.instants[-1][0].clouds == () and taken.instants[-1][0].wires[0].topic == "/points"
    live.torn = False
    until(lambda: not taken.instants[-1][1])


@pytest.mark.parametrize(("clock", "found"), [("auto", {"/clock"}), ("false", set()), ("true", {"/clock"})])
def test_the_clock_is_handed_on_where_there_is_one(
    clock: str, found: set[str], ending: ExitStack, domains: Any
) -> None:
    node = Peer(ending, domains[1], live_suite.TAP_NODE).node
    topics = LiveTopics(node, build(Stack, {**STACK, "name": "tiny"}, "test"), clock)
    assert topics.missing() == (["/clock"] if clock == "true" else []) and not topics.other_topics()
    Live(ending, domains[1], clock=True)
    until(lambda: node.count_publishers("/clock") and not topics.missing())
    assert set(topics.other_topics()) == found


def argv_of(pid: int) -> list[str]:
    return command_of(pid).replace(".", "\0").split("\0")


# What is idle gets no core beside other tests, which take all; where there are none, the drive may go on faster.
@pytest.mark.parametrize(("policy", "rate"), [("normal", 0.2), pytest.param("idle", 1.0, marks=pytest.mark.alone)])
def test_the_suite_joins_a_running_stack_and_leaves_it_when_it_is_told_to(
    policy: str, rate: float, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """Processes: a drive that is replayed, the reference stack as the live one, and the suite beside them."""
    bag, transforms = tmp_path / "bag", tmp_path / "transforms.yaml"
    made = list(generate_drive(8, lidar=replace(hdl_64e(), azimuths=900)))  # half as many points as usual
    write_bundles(bag, made)
    dump_transforms(made[0].transforms, transforms)
    given = {"live_domain": domains[1], "transforms": str(transforms), "segments": {"test_bundles": 2}}
    given |= {"relations": ["noise_outside_roi_10"], "caps": {"policy": policy}}
    run = LiveRun.create(live_config(given, "test"), str(tmp_path / "out"))
    env = ros_environment(os.environ, domains[1])

    def child(name: str, *argv: str) -> Child:
        started = Child(Process(name, (sys.executable, "-m", f"mt_nodes.nodes.{name}", *argv), env, tmp_path / name))
        ending.callback(started.stop, 5.0)
        return started

    child("callable_stack", "--stack", str(run.out / "stack.yaml"), "--transforms", str(transforms))
    child("replayer", "--ros-args", "-p", f"bag:={bag}", "-p", "loop:=true", "-p", f"rate:={rate}")
    said = Peer(ending, domains[1], "watcher").listen(MARKERS, BOXES)
    said.wait(3)
    suite = child("live_suite", "--run", str(run.out))
    journal = run.out / "result.jsonl"
    until(lambda: journal.exists() and b'"HOLDS"' in journal.read_bytes(), "for a pair that holds")
    tested = [int(pid) for pid in descendants_of(suite.pid) if "callable_stack" in argv_of(int(pid))]
    policies = {os.sched_getscheduler(pid) for pid in tested}
    assert (os.SCHED_IDLE in policies) == (policy == "idle") and tested
    suite.ask_to_end()
    until(lambda: suite.code is not None, "for the suite to end")
    assert suite.code == 130
    summary = read_result(run.out / "summary.json")
    lines = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert summary["interrupted"] and summary["offered"] == len(lines) and (run.out / "report.html").exists()
    assert not outcomes(lines)["VIOLATED"], [line for line in lines if line["outcome"] == "VIOLATED"]
    before = len(said.messages)
    said.wait(before + 3)
