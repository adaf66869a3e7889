# SPDX-License-Identifier: Apache-2.0
"""The mutator alone."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_bundles import TREE, made_cloud
from rclpy.qos import QoSProfile, ReliabilityPolicy
from recordings import stamp
from ros_support import Heard, Peer, until

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.errors import UsageError
from mt_nodes.base.processes import Child, Process
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.nodes import qos
from mt_nodes.nodes.introduction import Introduction
from mt_nodes.nodes.ledger_topic import LedgerTopic, OfferedInstant
from mt_nodes.nodes.mutator import Mutator
from mt_nodes.relations.mutations.lidar.noise_outside_roi import NoiseOutsideRoi
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation

LEDGER = "/mt/ledger"
Make = Callable[..., Any]
#: A mutator that offers no control.
ALL_TESTED = {"control_every": 0}


def lines(heard: Heard) -> list[dict[str, Any]]:
    return [json.loads(m.data) for m in heard.messages]


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
        assert going_on.wait(150)
        return "a lie" if source.index == 0 else None

    monkeypatch.setattr(NoiseOutsideRoi, "guarantee", slow)
    peer = Peer(ending, domains[1])
    ledger = peer.listen("std_msgs/msg/String", LEDGER, qos.JOURNAL)
    followups = peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    node = made(Mutator, relation="noise_outside_roi_10", output_topic="/out", transforms=transforms, **ALL_TESTED)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, node))
    send(0)
    assert proving.wait(150)
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
    assert line["reason"].startswith("mutation 'noise_outside_roi' failed in guarantee (test_ros_mutator.py:")


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
    assert first["outcome"] == "ERROR" and f"failed in {method} (test_ros_mutator.py:" in first["reason"]
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
NoiseOutsideRoi.guarantee = lambda *_: None if wait_until(told.is_set, 150) else "no signal came"
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
