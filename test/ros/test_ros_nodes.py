# SPDX-License-Identifier: Apache-2.0
"""Replayer, mutator and monitor alone, and all of them together as processes."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_bundles import TREE, made_cloud
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from recordings import PERIOD_NS, START_NS, drive, stamp, text, write_bag
from ros_support import Heard, Peer, until
from std_msgs.msg import String

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.errors import UsageError
from mt_nodes.base.processes import Child, Process
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.engine.ledger import sha256_of_followup
from mt_nodes.nodes import qos, replayer
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.nodes.bundle_publisher import DISCOVERY_S, BundlePublisher
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.introduction import Introduction
from mt_nodes.nodes.ledger_topic import LedgerTopic, OfferedInstant
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.monitor import Monitor
from mt_nodes.nodes.mutator import Mutator
from mt_nodes.nodes.node_interfaces import NODES
from mt_nodes.nodes.replayer import Replayer
from mt_nodes.nodes.spinning_context import SpinningContext
from mt_nodes.relations.mutations.lidar.noise_outside_roi import NoiseOutsideRoi
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation

MARKERS, BOXES = "visualization_msgs/msg/MarkerArray", "/perception/obstacles"
VERDICTS, LEDGER = "/mt/verdicts", "/mt/ledger"
Make = Callable[..., Any]
#: A mutator that offers no control.
ALL_TESTED = {"control_every": 0}


def lines(heard: Heard) -> list[dict[str, Any]]:
    return [json.loads(m.data) for m in heard.messages]


# --- replayer


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
    publish, flush = BundlePublisher.publish, BundlePublisher.flush

    def published(self: BundlePublisher, bundle: Bundle, changed: frozenset[str]) -> None:
        order.append(bundle.index)
        sent_s.append(time.monotonic())
        publish(self, bundle, changed)

    def flushed(self: BundlePublisher, timeout_s: float) -> None:
        nonlocal ahead_ns
        flush(self, timeout_s)
        order.append("confirmed")
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
    assert sent_s[2] - sent_s[1] >= 0.9 * PERIOD_NS / 1e9 / 0.5


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


# --- mutator


def joined(publisher: Any, node: Mutator) -> bool:
    """Whether both sides of a mutator's input, and whoever hears its follow-ups, know each other.

    Its taps are best effort: what comes before they know the writer is lost to them, though the writer knows them.
    """
    taps = [each.tap for each in node._inputs.inputs]
    known = all(tap is not None and tap.get_publisher_count() for tap in taps)
    return bool(known and publisher.get_subscription_count() and node._publisher().get_subscription_count())


def sensor(peer: Peer, profile: QoSProfile = qos.REPLAY) -> tuple[Any, Callable[[int], Cloud]]:
    """A live cloud topic, and the function that publishes its next cloud."""
    publisher = peer.publisher(codec.POINT_CLOUD, "/sensing/lidar/points", profile)

    def send(index: int) -> Cloud:
        cloud = made_cloud("velodyne", seed=index)
        cloud = Cloud(cloud.topic, stamp(index), cloud.frame_id, cloud.points)
        publisher.publish(codec.encode_cloud(cloud))
        return cloud

    return publisher, send


@pytest.fixture
def transforms(tmp_path: Path) -> Path:
    dump_transforms(TREE, tmp_path / "transforms.yaml")
    return tmp_path / "transforms.yaml"


@pytest.mark.parametrize("reliability", [ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT])
def test_the_mutator_sends_followups_into_another_domain_as_the_live_publisher_does(
    made: Make, ending: ExitStack, domains: Any, transforms: Path, reliability: ReliabilityPolicy
) -> None:
    here, there = Peer(ending, domains[1]), Peer(ending, domains[2])
    ledger = here.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    given = {"relation": "noise_outside_roi_100", "output_topic": "/points", "transforms": transforms, **ALL_TESTED}
    node = made(Mutator, **given, output_domain=domains[2])
    publisher, send = sensor(here, QoSProfile(depth=5, reliability=reliability))
    until(publisher.get_subscription_count)
    until(lambda: there.node.count_publishers("/points"), "the publisher comes before the first cloud does")
    [offered] = there.node.get_publishers_info_by_topic("/points")
    assert offered.qos_profile.reliability == reliability
    send(0)
    until(lambda: node._count == 1)
    followups = there.listen(codec.POINT_CLOUD, "/points", qos.ANSWERS_BEST_EFFORT)

    def sent_and_heard() -> bool:
        send(1)
        return bool(followups.messages)

    until(sent_and_heard)
    message = followups.wait(1)[0]
    assert (message.width, codec.stamp_ns_of(message.header)) == (4100, stamp(1))
    ledger.wait(lambda rows: bool(rows) and "sha256" in json.loads(rows[-1].data))
    first, line = lines(ledger)[0], lines(ledger)[-1]
    assert (first["pair"], first["outcome"]) == ("0/0/noise_outside_roi_100/0", "SKIPPED")
    assert first["reason"] == "nobody subscribes to /points", "what nobody hears is not sent"
    assert (line["relation"], line["stamp_ns"]) == ("noise_outside_roi_100", stamp(1))
    assert "outcome" not in line and len(line["sha256"]) == 64 and line["effects"]["numbers"]


@pytest.mark.parametrize(("prove", "sent"), [("after", True), ("before", False)])
def test_a_followup_whose_proof_fails_is_invalid(
    made: Make, ending: ExitStack, domains: Any, transforms: Path, monkeypatch: Any, prove: str, sent: bool
) -> None:
    monkeypatch.setattr(NoiseOutsideRoi, "guarantee", lambda *_: "a lie")
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    node = made(
        Mutator, relation="noise_outside_roi_10", output_topic="/out", transforms=transforms, prove=prove, **ALL_TESTED
    )
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    send(0)
    [line] = ledger.wait(1) and lines(ledger)
    assert (line["outcome"], line["reason"]) == ("INVALID", "noise_outside_roi: a lie")
    send(1)
    ledger.wait(2)
    if sent:
        followups.wait(2)
    assert len(followups.messages) == (2 if sent else 0)


def test_followups_and_hashes_are_those_of_the_same_clouds_offline(
    made: Make, ending: ExitStack, domains: Any, transforms: Path
) -> None:
    """Byte for byte and line for line, in the order of the clouds, whatever was made ready beforehand."""
    relation = load_relation("noise_outside_roi_100")
    offline = MutationPipeline(relation.mutate, 5, relation.id)
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY, raw=True)
    node = made(Mutator, relation=relation.id, output_topic="/out", transforms=transforms, seed=5, **ALL_TESTED)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    for index in range(4):
        cloud = replace(send(index), topic="/sensing/lidar/points")
        expected = offline.derive(Bundle(0, index, cloud.stamp_ns, (cloud,), transforms=TREE)).followup
        assert followups.wait(index + 1)[index] == codec.encode_cloud(expected.first.cloud())
        ledger.wait(index + 1)
        assert lines(ledger)[index]["pair"] == f"0/{index}/{relation.id}/0"
        assert lines(ledger)[index]["sha256"] == sha256_of_followup(expected)


def test_a_cloud_is_answered_while_the_last_is_still_proved_and_lines_keep_their_order(
    made: Make, ending: ExitStack, domains: Any, transforms: Path, monkeypatch: Any
) -> None:
    proving, going_on = threading.Event(), threading.Event()
    ending.callback(going_on.set)

    def slow(mutation: Any, source: Bundle, *_: Any) -> str | None:
        proving.set()
        assert going_on.wait(30)
        return "a lie" if source.index == 0 else None

    monkeypatch.setattr(NoiseOutsideRoi, "guarantee", slow)
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    node = made(Mutator, relation="noise_outside_roi_10", output_topic="/out", transforms=transforms, **ALL_TESTED)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    send(0)
    assert proving.wait(30)
    for index in range(1, 3):
        send(index)
        until(lambda index=index: node._count == index + 1)
    assert [codec.stamp_ns_of(m.header) for m in followups.wait(3)] == [stamp(0), stamp(1), stamp(2)]
    cloud = made_cloud("velodyne")
    publisher.publish(codec.encode_cloud(Cloud(cloud.topic, stamp(3), cloud.frame_id, cloud.points[:0])))
    until(lambda: node._count == 4)
    assert not lines(ledger), "nothing is told that is not proved, and nothing before what came before it"
    going_on.set()
    ledger.wait(4)
    assert [line.get("outcome") for line in lines(ledger)] == ["INVALID", None, None, "NOT_APPLICABLE"]
    assert [line["pair"].split("/")[1] for line in lines(ledger)] == ["0", "1", "2", "3"]


def test_what_goes_wrong_in_a_proof_is_not_passed_over(
    made: Make, ending: ExitStack, domains: Any, transforms: Path, monkeypatch: Any
) -> None:
    def defect(*_: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(NoiseOutsideRoi, "guarantee", defect)
    heard = Peer(ending, domains[1], "hearing").listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    ledger = LedgerTopic(Peer(ending, domains[1]).node, "noise_outside_roi_10")
    relation, bundle = load_relation("noise_outside_roi_10"), Bundle(0, 0, 0, (made_cloud(),), transforms=TREE)
    derived, proof = MutationPipeline(relation.mutate, 0, relation.id).derive_unproven(bundle)
    through = Peer(ending, domains[1], "other").publisher(codec.POINT_CLOUD, "/out")
    ledger.sent(OfferedInstant(relation.id, bundle, 0), derived, proof, through, 0)
    ledger.close()
    heard.wait(1)
    (line,) = lines(heard)
    assert line["outcome"] == "ERROR" and "sha256" not in line
    assert line["reason"].startswith("mutation 'noise_outside_roi' failed in guarantee (test_ros_nodes.py:")


@pytest.mark.parametrize(("method", "prove"), [("apply", "after"), ("guarantee", "before")])
def test_a_mutation_that_fails_at_one_cloud_sends_the_next_one(
    method: str, prove: str, made: Make, ending: ExitStack, domains: Any, transforms: Path, monkeypatch: Any
) -> None:
    works = getattr(NoiseOutsideRoi, method)

    def fails_once(mutation: Any, bundle: Bundle, *rest: Any) -> Any:
        if bundle.index == 0:
            raise KeyError("no key")
        return works(mutation, bundle, *rest)

    monkeypatch.setattr(NoiseOutsideRoi, method, fails_once)
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    given = {"relation": "noise_outside_roi_10", "output_topic": "/out", "transforms": transforms, "prove": prove}
    node = made(Mutator, **given, **ALL_TESTED)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    for index in range(2):
        send(index)
        ledger.wait(index + 1)
    first, second = lines(ledger)
    assert first["outcome"] == "ERROR" and f"failed in {method} (test_ros_nodes.py:" in first["reason"]
    assert "sha256" in second and [codec.stamp_ns_of(m.header) for m in followups.wait(1)] == [stamp(1)]


def test_a_mutator_that_is_stopped_has_told_of_all_it_sent(
    ending: ExitStack, domains: Any, transforms: Path, tmp_path: Path
) -> None:
    """A process of its own, stopped, and not only once, when its follow-up arrives and nothing is proved yet."""
    plugins = tmp_path / "lasting.py"
    plugins.write_text(LASTING_PROOF)
    parameters = {"relation": "noise_outside_roi_10", "output_topic": "/out", "transforms": transforms, **ALL_TESTED}
    words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    env = ros_environment(os.environ, domains[1])
    child = Child(Process("mutator", (sys.executable, str(plugins), "--ros-args", *words), env, tmp_path / "log"))
    ending.callback(child.stop, 5.0)
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    publisher, send = sensor(peer)
    until(lambda: publisher.get_subscription_count() and followups.matched() and ledger.matched())
    meeting = Introduction(peer.node)
    until(lambda: meeting.over(peer.node.get_publishers_info_by_topic("/out")))
    numbers = itertools.count()

    def sent_and_heard() -> bool:
        send(next(numbers))
        return bool(followups.messages)

    until(sent_and_heard)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.killpg(child.pid, number)
    until(lambda: child.code is not None)
    assert child.code == 0, (tmp_path / "log").read_text()
    sent = [codec.stamp_ns_of(m.header) for m in followups.messages]
    ledger.wait(lambda _: sent == [line["followup_ns"] for line in lines(ledger) if "sha256" in line])


def test_a_mutator_that_cannot_go_on_says_so_in_one_line(ending: ExitStack, domains: Any, tmp_path: Path) -> None:
    """Nothing joins the cloud's frame and the region's: told by the first cloud."""
    words = ("--ros-args", *("-p", "relation:=noise_outside_roi_10"), *("-p", "output_topic:=/out"))
    words = (*words, "-p", "control_every:=0")
    argv = (sys.executable, "-m", "mt_nodes.nodes.mutator", *words)
    child = Child(Process("mutator", argv, ros_environment(os.environ, domains[1]), tmp_path / "log"))
    ending.callback(child.stop, 5.0)
    peer = Peer(ending, domains[1])
    peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    _, send = sensor(peer)

    def ended() -> bool:
        send(0)
        return child.code is not None

    until(ended)
    assert child.code == 2
    _ready, said = filter(None, (tmp_path / "log").read_text().splitlines())
    assert said.startswith("mt_nodes: region 'front_40m', cloud /sensing/lidar/points: no transform from")


#: The mutator, whose proofs wait for a signal that this process got.
LASTING_PROOF = """
from mt_nodes.relations.mutations.lidar.noise_outside_roi import NoiseOutsideRoi
from mt_nodes.nodes import mutator
from mt_nodes.base.processes import wait_until
from mt_nodes.base.processes import Flag
told, finish = Flag(), mutator.Mutator.finish
mutator.Mutator.finish = lambda node: (finish(node), told.set())
NoiseOutsideRoi.guarantee = lambda *_: None if wait_until(told.is_set, 30) else "no signal came"
mutator.main()
"""


def test_a_bundle_without_an_honest_followup_is_told(
    made: Make, ending: ExitStack, domains: Any, transforms: Path
) -> None:
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    node = made(Mutator, relation="noise_outside_roi_10", output_topic="/out", transforms=transforms, **ALL_TESTED)
    publisher, _ = sensor(peer)
    until(lambda: joined(publisher, node))
    cloud = made_cloud("velodyne")
    publisher.publish(codec.encode_cloud(Cloud(cloud.topic, stamp(0), cloud.frame_id, cloud.points[:0])))
    ledger.wait(1)
    assert [(line["outcome"], line["reason"]) for line in lines(ledger)] == [
        ("NOT_APPLICABLE", "/sensing/lidar/points has no point with finite coordinates")
    ]


def stream_relation(path: Path, name: str, **given: Any) -> Path:
    rows = {"id": name, "kind": "expected", "because": "x", "check": "obstacles_kept", "mutate": [{name: given}]}
    (path / f"{name}.yaml").write_text(json.dumps(rows))
    return path / f"{name}.yaml"


def test_the_mutator_delays_frames_in_their_order_and_tells_when_to_expect_the_answer(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    relation = stream_relation(tmp_path, "frames_delayed", every=1, delay_s=0.3, stamps="new")
    node = made(Mutator, relation=relation, output_topic="/out", **ALL_TESTED)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    began = time.monotonic()
    for index in range(3):
        send(index)
        until(lambda index=index: node._count == index + 1)  # a live tap keeps no more than the last
    messages = followups.wait(3)
    assert time.monotonic() - began >= 0.3
    assert [codec.stamp_ns_of(m.header) for m in messages] == [stamp(i) + 300_000_000 for i in range(3)]
    ledger.wait(3)
    told = [(line["stamp_ns"], line["followup_ns"], line["delay_ns"]) for line in lines(ledger)]
    assert told == [(stamp(i), stamp(i) + 300_000_000, 300_000_000) for i in range(3)]
    assert not node._later and node._timer is None


def test_the_mutator_sends_nothing_of_a_frame_that_is_left_out(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    relation = stream_relation(tmp_path, "rate_reduced", one_of=2.0)
    node = made(Mutator, relation=relation, output_topic="/out", **ALL_TESTED)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    for index in range(4):
        send(index)
        ledger.wait(index + 1)
    assert [line.get("outcome") for line in lines(ledger)] == [None, "SKIPPED", None, "SKIPPED"]
    assert lines(ledger)[1]["reason"] == "the follow-up sends nothing"
    assert [codec.stamp_ns_of(m.header) for m in followups.wait(2)] == [stamp(0), stamp(2)]


def test_control_is_offered_in_turn_and_each_lap_of_a_bag_has_a_number(
    made: Make, ending: ExitStack, domains: Any, transforms: Path
) -> None:
    """In the next lap other frames are control."""
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    about = {"relation": "noise_outside_roi_100", "output_topic": "/out", "transforms": transforms}
    node = made(Mutator, **about, control_every=3)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    began_ns = time.time_ns()
    for count, index in enumerate((0, 1, 2, 3, 0, 1, 2, 3)):
        send(index)
        ledger.wait(count + 1)
    told = lines(ledger)
    control, tested = "identity", "noise_outside_roi_100"
    order = [control, tested, tested, control, tested, tested, control, tested]
    assert [line["relation"] for line in told] == order
    assert [line["pair"] for line in told] == [
        f"{lap}/{index}/{name}/0"
        for (lap, index), name in zip(itertools.product(range(2), range(4)), order, strict=True)
    ]
    assert [m.width for m in followups.wait(8)] == [4000 if name == control else 4100 for name in order]
    assert {line["judged_for"] for line in told} == {tested}
    assert all(began_ns < line["came_ns"] <= line["sent_ns"] <= time.time_ns() for line in told)


def test_a_mutator_that_would_offer_nothing_but_control_is_refused(made: Make) -> None:
    with pytest.raises(UsageError, match="control_every: got 1, which leaves nothing to test; expected 0, or 2"):
        made(Mutator, output_topic="/out", control_every=1)


def test_a_mutator_into_its_own_input_is_refused(made: Make) -> None:
    with pytest.raises(UsageError, match="output_topic is input_topic; set another topic or output_domain"):
        made(Mutator, output_topic="/sensing/lidar/points")


def test_a_mutator_that_would_have_to_change_the_source_is_refused(made: Make) -> None:
    with pytest.raises(UsageError, match="mutator: relation 'range_reduced_monotone' has a baseline"):
        made(Mutator, relation="range_reduced_monotone", output_topic="/out")


# --- monitor


class Arms:
    """Both arms' outputs and the ledger, as mutator and stacks would publish them; in two domains."""

    def __init__(self, ending: ExitStack, domains: Any, of_followup: ExitStack | None = None) -> None:
        here, there = Peer(ending, domains[1]), Peer(of_followup or ending, domains[2])
        self.ledger = here.publisher("std_msgs/msg/String", LEDGER, qos.JOURNAL)
        self.outputs = here.publisher(MARKERS, BOXES), there.publisher(MARKERS, BOXES)
        self.verdicts = here.listen("std_msgs/msg/String", VERDICTS, qos.JOURNAL)
        self._lap_began_s = math.inf

    def end_lap(self) -> None:
        """Let as long a time pass as the lap has taken: an answer is taken for that of the input nearer in time."""
        now_s = time.monotonic()
        until(lambda: time.monotonic() - now_s > now_s - self._lap_began_s)
        self._lap_began_s = math.inf

    def matched(self) -> None:
        until(lambda: all(p.get_subscription_count() for p in (self.ledger, *self.outputs)))

    def offer(self, index: int, lap: int = 0, relation: str = "noise_outside_roi_10", **more: Any) -> None:
        now_ns = time.time_ns()
        self._lap_began_s = min(self._lap_began_s, time.monotonic())
        line = {"type": "followup", "pair": f"{lap}/{index}/{relation}/0", "relation": relation, "effects": {}}
        line |= {"judged_for": "noise_outside_roi_10", "stamp_ns": stamp(index), "followup_ns": stamp(index)}
        line |= {"came_ns": now_ns, "sent_ns": now_ns}
        self.ledger.publish(String(data=json.dumps(line | more)))

    def control(self, *indices: int) -> None:
        """Offer control, and have both arms answer it."""
        for index in indices:
            self.offer(index, relation="identity")
            self.say(0, index, 2)
            self.say(1, index, 2)

    def say(self, arm: int, index: float, count: int) -> None:
        centers = [[10.0 + 5 * i, 0.0, 1.0] for i in range(count)]
        boxes = Detections.make("base_link", stamp(index), centers, [[4.0, 2.0, 1.5]] * count)
        self.outputs[arm].publish(MarkerArrayObstacles().encode(boxes))

    def outcomes(self, count: int) -> dict[str, str]:
        self.verdicts.wait(count)
        return {line["pair"].split("/")[1]: line["outcome"] for line in lines(self.verdicts)}


def test_the_monitor_judges_by_stamp_whatever_the_order(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 0.5}")
    arms = Arms(ending, domains)
    made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.offer(0)
    arms.say(0, 0, 2)
    arms.outcomes(1)
    for index in (1, 2, 3):
        arms.offer(index)
    arms.say(1, 3, 2)
    arms.say(1, 2, 1)
    arms.say(1, 1, 2)
    for index in (3, 2, 1):
        arms.say(0, index, 2)
    arms.offer(4)
    arms.say(0, 4, 2)
    arms.offer(5)
    arms.say(1, 5, 2)
    arms.offer(6, outcome="INVALID", reason="not proven")
    now_ns = time.time_ns()
    for index, away_s in ((7, -100), (8, 100)):  # heard late, of before this node was there; of a clock that is ahead
        at_ns = now_ns + away_s * 10**9
        arms.offer(index, came_ns=at_ns, sent_ns=at_ns)
        arms.say(0, index, 2)
        arms.say(1, index, 2)
    of_a_replay = {"type": "followup", "pair": "0/9/noise_outside_roi_10/0", "relation": "noise_outside_roi_10"}
    arms.ledger.publish(String(data=json.dumps(of_a_replay)))
    assert arms.outcomes(9) == {
        "0": "UNPAIRED_FOLLOWUP",
        "1": "HOLDS",
        "2": "VIOLATED",
        "3": "HOLDS",
        "4": "UNPAIRED_FOLLOWUP",
        "5": "UNPAIRED_SOURCE",
        "6": "INVALID",
        "7": "UNPAIRED_BOTH",
        "8": "HOLDS",
    }
    lost = next(line for line in lines(arms.verdicts) if line["pair"].startswith("0/2/"))
    assert (lost["lost"], lost["measured"], lost["bound"], lost["stamp_ns"]) == (1, 1, 2, stamp(2))


def test_the_monitor_looks_for_the_answer_under_the_follow_ups_own_stamp(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 60}")
    arms = Arms(ending, domains)
    node = made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.say(1, 1, 0)  # what it says of another instant
    arms.say(0, 1, 2)
    came_ns = time.time_ns()
    arms.offer(1, followup_ns=stamp(1.5), came_ns=came_ns, sent_ns=came_ns + 400_000_000)
    until(lambda: node._pending)
    source, followup = node._pending[0].tickets
    assert followup.sent_s - source.sent_s == pytest.approx(0.4), "the deadline begins when the frame goes out"
    assert followup.until_s == followup.sent_s + 60.0
    arms.say(1, 1.5, 2)
    assert arms.outcomes(1) == {"1": "HOLDS"}


def test_silence_counts_only_where_control_around_it_was_answered(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """A machine that loses answers loses those to control, too."""
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 0.5}")
    arms = Arms(ending, domains)
    made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.control(*range(10))
    arms.outcomes(10)
    for index in (10, 11, 12):
        arms.offer(index)
        arms.say(0, index, 2)
    arms.control(13)
    arms.outcomes(14)
    for silent, control in ((14, 15), (16, 17)):
        arms.offer(silent)
        arms.say(0, silent, 2)
        arms.offer(control, relation="identity")
        arms.say(0, control, 2)
    outcomes = arms.outcomes(18)
    assert {outcomes[str(index)] for index in (10, 11, 12)} == {"VIOLATED"}
    assert {outcomes[str(index)] for index in (14, 15, 16, 17)} == {"UNPAIRED_FOLLOWUP"}
    told = next(line for line in lines(arms.verdicts) if line["pair"].startswith("0/14/"))
    assert told["reason"].endswith("so that the machine may have lost the answer")
    controls = {line["pair"] for line in lines(arms.verdicts) if line["relation"] == "identity"}
    assert "0/0/identity/0@noise_outside_roi_10" in controls


def test_an_input_that_was_lost_is_not_judged_by_the_answer_of_the_next_lap(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """Which comes long before the deadline."""
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 60}")
    arms = Arms(ending, domains)
    node = made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.offer(0, 0)
    arms.say(0, 0, 2)
    until(lambda: node._pending and node._pending[0].tickets[0].parts)
    arms.end_lap()
    arms.offer(0, 1)
    until(lambda: node._pending and node._pending[-1].line["pair"].startswith("1/"))
    arms.say(0, 0, 2)
    arms.say(1, 0, 2)
    arms.verdicts.wait(2)
    told = {line["pair"].split("/")[0]: line["outcome"] for line in lines(arms.verdicts)}
    assert told == {"0": "UNPAIRED_FOLLOWUP", "1": "HOLDS"}


def test_in_a_looped_bag_a_stack_that_was_killed_is_not_judged_by_its_last_lap(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """The stamps of each lap are those of the first, and the deadline is longer than a lap."""
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 1.0}")
    killed = ending.enter_context(ExitStack())
    arms = Arms(ending, domains, killed)
    made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    for lap in range(3):
        for index in range(4):
            control = {"relation": "identity"} if index % 2 else {}
            arms.offer(index, lap, **control)
            arms.say(0, index, 2)
            if lap < 2:
                arms.say(1, index, 2)
        arms.verdicts.wait(min(4 * (lap + 1), 8))
        arms.end_lap()
        if lap == 1:
            killed.close()
    arms.verdicts.wait(12)
    last = [line for line in lines(arms.verdicts) if line["pair"].startswith("2/")]
    assert {line["outcome"] for line in last} == {"UNPAIRED_FOLLOWUP"} and len(last) == 4
    assert {line["outcome"] for line in lines(arms.verdicts) if line not in last} == {"HOLDS"}


class Answering:
    """A stack that sees the same in each cloud, until its publisher is gone; clouds it takes all the same."""

    def __init__(self, ending: ExitStack, domain: int, topic: str) -> None:
        self._peer = Peer(ending, domain, "stack")
        self._says: Any = self._peer.publisher(MARKERS, BOXES)
        self.answers = 0
        self.heard = self._says.get_subscription_count
        self._peer.node.create_subscription(message_class(codec.POINT_CLOUD), topic, self._answer, qos.REPLAY)

    def _answer(self, message: Any) -> None:
        boxes = Detections.make("base_link", codec.stamp_ns_of(message.header), [[10.0, 0.0, 1.0]], [[4.0, 2.0, 1.5]])
        if (says := self._says) is not None:
            says.publish(MarkerArrayObstacles().encode(boxes))
            self.answers += 1

    def end(self) -> None:
        says, self._says = self._says, None
        self._peer.node.destroy_publisher(says)


@pytest.mark.parametrize("killed", ["source", "followup"])
def test_mutator_and_monitor_judge_nothing_of_a_stack_that_was_killed_while_a_bag_loops(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path, transforms: Path, killed: str
) -> None:
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 1.0}")
    peer = Peer(ending, domains[1])
    verdicts = peer.listen("std_msgs/msg/String", VERDICTS, qos.JOURNAL)
    stacks = {
        "source": Answering(ending, domains[1], "/sensing/lidar/points"),
        "followup": Answering(ending, domains[2], "/out"),
    }
    living = stacks["followup" if killed == "source" else "source"]
    about = {"relation": "noise_outside_roi_10", "transforms": transforms}
    words = [
        w
        for name, value in {**about, "stack": stack, "followup_domain": domains[2]}.items()
        for w in ("-p", f"{name}:={value}")
    ]
    argv = (sys.executable, "-m", "mt_nodes.nodes.monitor", "--ros-args", *words)
    child = Child(Process("monitor", argv, ros_environment(os.environ, domains[1]), tmp_path / "log"))
    ending.callback(child.stop, 5.0)
    mutator = made(Mutator, **about, output_topic="/out", output_domain=domains[2], control_every=2)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, mutator) and publisher.get_subscription_count() == 2 and verdicts.matched())
    until(lambda: all(each.heard() for each in stacks.values()))

    def play(laps: int) -> None:
        for _ in range(laps):
            for index in range(5):
                before, answers = mutator._count, living.answers
                send(index)
                # Nor does the next lap begin before who lives has answered: it would cut the answer off.
                until(lambda before=before, answers=answers: mutator._count > before and living.answers > answers)
                verdicts.wait(mutator._count if alive else 0)

    alive = True
    play(3)
    healthy = lines(verdicts)
    assert {line["outcome"] for line in healthy} == {"HOLDS"}, healthy
    assert [line["pair"].split("/")[0] for line in healthy] == [str(lap) for lap in range(3) for _ in range(5)]
    assert {line["relation"] for line in healthy} == {"identity", "noise_outside_roi_10"}
    alive = False
    stacks[killed].end()
    play(3)
    verdicts.wait(30)
    after = {line["outcome"] for line in lines(verdicts)[15:]}
    assert after == {f"UNPAIRED_{killed.upper()}"}, after
    assert len({line["pair"] for line in lines(verdicts)}) == 30


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"relation": "identity"}, "relation 'identity' has no check of its own"),
        ({"relation": "range_reduced_monotone"}, "monitor: relation 'range_reduced_monotone' has a baseline"),
        ({"stack": "no_such_stack"}, "no stack 'no_such_stack'"),
        ({"stack": "autoware"}, "monitor: stack 'autoware' says match: arrival, and this node pairs by stamp"),
        ({"followup_domain": 300}, "followup_domain"),
    ],
)
def test_a_monitor_that_could_judge_nothing_is_refused(made: Make, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(Monitor, **parameters)


# --- the suite's own topics


def test_a_late_reader_gets_the_journal_from_its_beginning(ending: ExitStack, domains: Any) -> None:
    ros = SpinningContext(domains[1])
    ending.callback(ros.close)
    control: ControlNode = ros.add(ControlNode)
    control.line(json.dumps({"type": "condition", "seed": 1}))
    verdicts = [{"type": "verdict", "pair": f"0/{i}/r/0", "outcome": o} for i, o in enumerate(("HOLDS", "ERROR"))]
    for line in verdicts:
        control.line(json.dumps(line))
    control.line(json.dumps({"type": "followup", "pair": "0/0/r/0"}))
    late = Peer(ending, domains[1])
    heard = {t: late.listen("std_msgs/msg/String", t, qos.JOURNAL) for t in (VERDICTS, LEDGER)}
    metrics = late.listen("std_msgs/msg/String", "/mt/metrics", qos.STATUS)
    diagnostics = late.listen("diagnostic_msgs/msg/DiagnosticArray", "/mt/diagnostics", qos.STATUS)
    heard[VERDICTS].wait(3)
    heard[LEDGER].wait(1)
    assert lines(heard[VERDICTS]) == [{"type": "condition", "seed": 1}, *verdicts]
    assert lines(heard[LEDGER]) == [{"type": "followup", "pair": "0/0/r/0"}]
    until(lambda: all(control.count_subscribers(t) for t in ("/mt/metrics", "/mt/diagnostics")))

    def told() -> bool:
        control.status({"done": 2})
        return bool(metrics.messages and diagnostics.messages)

    until(told)
    assert lines(metrics)[0] == {"outcomes": {"HOLDS": 1, "ERROR": 1}, "done": 2}
    status, relation = diagnostics.messages[0].status
    assert (relation.name, relation.level) == ("mt_nodes: r", b"\x02")
    assert (status.level, status.message) == (b"\x02", "pairs ended in ERROR")
    assert {v.key: v.value for v in status.values} == {"HOLDS": "1", "ERROR": "1", "done": "2"}
    control.flush(5.0)


def test_a_thread_that_ends_early_leaves_word(ending: ExitStack, domains: Any, capfd: Any) -> None:
    peer = Peer(ending, domains[1])

    def wrong() -> None:
        raise ZeroDivisionError("oh")

    peer.node.create_timer(0.001, wrong)
    until(lambda: peer._ros.failure)
    assert peer._ros.failure == f"the ROS thread of domain {domains[1]} ended: ZeroDivisionError: oh"
    assert "ZeroDivisionError" in capfd.readouterr().err


# --- all of them, as processes

DETECTOR = """
def detect(points):
    front = points[(points[:, 0] > 5) & (points[:, 0] < 35) & (abs(points[:, 1]) < 5)]
    return [[*front[:, :3].mean(axis=0), 4, 2, 1.5, 0.0]] if len(front) else []
"""


def test_replayer_mutator_two_stacks_and_monitor_make_verdicts(
    ending: ExitStack, domains: Any, tmp_path: Path, transforms: Path
) -> None:
    clouds = [Cloud("/points", START_NS + i * PERIOD_NS, "velodyne", made_cloud(seed=i).points) for i in range(40)]
    write_bundles(tmp_path / "bag", (Bundle(0, i, c.stamp_ns, (c,), transforms=TREE) for i, c in enumerate(clouds)))
    (tmp_path / "my_detector.py").write_text(DETECTOR)
    stack = tmp_path / "stack.yaml"
    rows = {"callable": "my_detector:detect", "points_frame": "base_link", "inputs": {"lidar": "/points"}}
    stack.write_text(json.dumps({**rows, "stateless": True, "deadline_s": 5}))
    first, second = domains[1], domains[2]
    hosted = ("--stack", str(stack), "--transforms", str(transforms))
    about = {"relation": "noise_outside_roi_10", "transforms": transforms}

    def start(name: str, domain: int, *words: str, **parameters: Any) -> Child:
        ros = [w for key, value in parameters.items() for w in ("-p", f"{key}:={value}")]
        argv = (sys.executable, "-m", f"mt_nodes.nodes.{name}", *words, *(["--ros-args", *ros] if ros else []))
        log = tmp_path / f"{name}_{domain}.log"
        child = Child(Process(name, argv, ros_environment(os.environ, domain), log))
        ending.callback(child.stop, 5.0)
        return child

    peer = Peer(ending, first)
    verdicts, ledger = (peer.listen("std_msgs/msg/String", t, qos.JOURNAL) for t in (VERDICTS, LEDGER))
    others = [start("callable_stack", domain, *hosted) for domain in (first, second)]
    others.append(start("monitor", first, **about, stack=stack, followup_domain=second))
    outlet = {"input_topic": "/points", "output_topic": "/points", "output_domain": second}
    others.append(start("mutator", first, **about, **outlet, seed=5))
    replayer = start("replayer", first, bag=tmp_path / "bag", await_subscribers=2)
    until(lambda: replayer.code is not None, replayer.tail())
    assert replayer.code == 0, replayer.tail()
    ledger.wait(1)
    until(lambda: len(verdicts.messages) == len(ledger.messages), "every follow-up is judged")
    for child in others:
        child.check()
        child.stop(20.0)
        assert child.code == 0, f"{child.process.name} does not end cleanly: {child.tail()}"
    early = [line["reason"] for line in lines(verdicts) if line["outcome"] == "SKIPPED"]
    assert set(early) <= {"nobody subscribes to /points"}, "sent only when the stack has found the mutator"
    decided = [line["outcome"] for line in lines(verdicts) if line["outcome"] != "SKIPPED"]
    # A reader that a busy machine stalls for longer than its depth lasts loses inputs; nothing else may come of it.
    unpaired = {"UNPAIRED_SOURCE", "UNPAIRED_FOLLOWUP", "UNPAIRED_BOTH"}
    assert "HOLDS" in decided and set(decided) <= {"HOLDS", *unpaired}
