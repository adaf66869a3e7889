# SPDX-License-Identifier: Apache-2.0
"""One arm over real topics, with a hosted callable."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import PERIOD_NS, stamp
from ros_support import (
    DIE,
    HELD,
    KILLED,
    LIMIT_S,
    PUPPET,
    SILENT,
    Peer,
    puppet_bundle,
    topics_of,
    until,
)

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.params import plain
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.engine.judging import AnswerStatus as Outcome
from mt_nodes.engine.plan import ArmPlan, stack_process
from mt_nodes.nodes import qos
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.stacks.stack import Stack, load_stack

BOXES, MARKERS, CLOUD = "/perception/obstacles", "visualization_msgs/msg/MarkerArray", codec.POINT_CLOUD
NOTHING: frozenset[str] = frozenset()


def stamp_of_clock(message: Any) -> int:
    return int(message.clock.sec * 10**9 + message.clock.nanosec)


def jumps(rows: list[Any]) -> list[tuple[int, bool]]:
    """Each instant of /clock but the first, and whether it was a step back."""
    return [(b, b < a) for a, b in itertools.pairwise(map(stamp_of_clock, rows))]


def puppet_arm(
    ending: ExitStack, directory: Path, domain: int, code: str = PUPPET, leased: bool = True, **changes: Any
) -> RosArm:
    name = f"puppet_{abs(hash(str(directory)))}"
    (directory / f"{name}.py").write_text(code)
    file = directory / "puppet.yaml"
    given = {
        "callable": f"{name}:detect",
        "inputs": {"lidar": "/points"},
        "stateless": True,
        "ready_timeout_s": LIMIT_S,
    }
    file.write_text(json.dumps({**given, **changes}))
    stack = load_stack(str(file))
    (directory / "stack.yaml").write_text(json.dumps(plain(stack)))
    (directory / "transforms.yaml").write_text("[]")
    plan = ArmPlan("source", None)
    process = stack_process(stack, plan, domain, directory, os.environ)
    arm = RosArm(
        plan, ArmDomain(domain, leased), stack, process, ArmInputs(topics_of(puppet_bundle(0)), frozenset({"/points"}))
    )
    ending.callback(arm.stop)
    return arm


class Played:
    """A started arm with a puppet, and all that goes on in its domain; bundles are numbered on."""

    def __init__(self, ending: ExitStack, directory: Path, domain: int) -> None:
        self.hold = directory / "hold"
        self.arm = puppet_arm(ending, directory, domain, deadline_s=1.0, env={"HOLD": str(self.hold)})
        self.arm.start()
        self.arm.ready()
        self.count = 0
        peer = Peer(ending, domain)
        self.clouds = peer.listen(CLOUD, "/points", qos.REPLAY, raw=True)
        self.notes = peer.listen(codec.STRING, "/note", qos.REPLAY, raw=True)
        self.clock = peer.listen("rosgraph_msgs/msg/Clock", "/clock", qos.CLOCK)
        self.images = peer.listen(codec.IMAGE, "/camera/image", qos.REPLAY, raw=True)
        publishers = self.arm._publisher._publishers
        until(self.arm._clock._publisher.get_subscription_count)
        until(lambda: all(publishers[t].get_subscription_count() for t in ("/note", "/camera/image")))
        until(lambda: publishers["/points"].get_subscription_count() == 2, "stack and tester")

    def bundle(self, points: int = 3, order: int = 0) -> Bundle:
        self.count += 1
        return puppet_bundle(self.count - 1, points, order)

    def ask(self, points: int = 3, order: int = 0) -> Any:
        return self.arm.wait(self.arm.send(self.bundle(points, order), NOTHING))

    def catch_up(self) -> None:
        """Play on until time is where a bundle is, and the last two are one period apart."""
        self.count += 2
        self.ask()
        self.ask()


@pytest.fixture(scope="module")
def played(domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with ExitStack() as ending:
        yield Played(ending, tmp_path_factory.mktemp("played"), domains[1])


def test_the_answer_is_what_the_stack_said_of_this_bundle(played: Played) -> None:
    for points in (3, 0, 5):
        bundle = played.bundle(points)
        answer = played.arm.wait(played.arm.send(bundle, NOTHING))
        assert answer is not None and answer.status is Outcome.ANSWERED
        boxes = answer.output.detections
        assert boxes is not None and len(boxes) == points
        np.testing.assert_allclose(boxes.center_m, bundle.clouds[0].xyz)
        assert (boxes.stamp_ns, boxes.frame_id) == (bundle.stamp_ns, "lidar")
        assert answer.output.answer_ms is not None and 0 < answer.output.answer_ms < 1000
        [wire] = answer.wires
        assert (wire.topic, wire.type, wire.stamp_ns) == (BOXES, MARKERS, bundle.stamp_ns)


def test_what_is_not_mutated_goes_out_byte_for_byte_in_the_order_of_the_bag(played: Played) -> None:
    bundle = played.bundle()
    played.arm.wait(played.arm.send(bundle, NOTHING))
    sent = {w.topic: w.cdr for w in bundle.wires}
    played.clouds.wait(lambda rows: sent["/points"] in rows)
    played.notes.wait(lambda rows: sent["/note"] in rows)


def test_what_is_mutated_goes_out_encoded_anew_and_the_rest_as_it_was(played: Played) -> None:
    source = played.bundle()
    cloud = source.clouds[0]
    mutated = source.with_clouds([cloud.with_raw(cloud.raw[:1])])
    answer = played.arm.wait(played.arm.send(mutated, mutated.changed_topics(source)))
    assert answer is not None and answer.output.detections is not None and len(answer.output.detections) == 1
    played.notes.wait(lambda rows: source.wires[0].cdr in rows)
    heard = played.clouds.wait(lambda rows: codec.encode_cloud(mutated.clouds[0]) in rows)
    assert source.wires[1].cdr not in heard


def test_of_two_messages_of_a_topic_only_the_mutated_one_is_replaced(played: Played) -> None:
    """A camera that is twice as fast as the leading sensor."""
    source = played.bundle()
    image = source.images[0]
    between = replace(image, stamp_ns=image.stamp_ns + PERIOD_NS // 2)
    other = Wire(image.topic, codec.IMAGE, between.stamp_ns, codec.encode_image(between))
    source = replace(source, wires=(*source.wires, other))
    dark = replace(image, pixels=np.zeros_like(image.pixels))
    played.arm.wait(played.arm.send(replace(source, images=(dark,)), frozenset({image.topic})))
    heard = played.images.wait(lambda rows: other.cdr in rows)
    assert heard[heard.index(other.cdr) - 1] == codec.encode_image(dark)


def test_the_clock_goes_on_in_small_steps_and_reaches_every_bundle(played: Played) -> None:
    played.ask()
    begun = played.arm._clock.now_ns
    assert begun is not None
    first = played.bundle()
    played.arm.wait(played.arm.send(first, NOTHING))
    last = played.bundle()
    played.arm.wait(played.arm.send(last, NOTHING))
    played.clock.wait(lambda rows: rows and stamp_of_clock(rows[-1]) >= last.stamp_ns)
    now = [t for t in map(stamp_of_clock, played.clock.messages) if t >= begun]
    steps = [b - a for a, b in itertools.pairwise(now)]
    assert all(0 < step <= 10_000_000 for step in steps), "the default step is 10 ms"
    assert {first.stamp_ns, last.stamp_ns} <= set(now)


def test_a_delayed_bundle_goes_out_at_its_instant_and_time_never_goes_back(played: Played) -> None:
    first, last = played.bundle(2), played.bundle(3)
    late_ns = PERIOD_NS + PERIOD_NS // 2
    answer = played.arm.wait(played.arm.send(first, NOTHING, first.stamp_ns, late_ns))
    assert answer is not None and answer.output.detections is not None and len(answer.output.detections) == 2
    reached = played.arm._clock.now_ns
    assert reached is not None and first.stamp_ns + late_ns <= reached <= first.stamp_ns + late_ns + PERIOD_NS
    answer = played.arm.wait(played.arm.send(last, NOTHING))
    assert answer is not None and answer.output.detections is not None and len(answer.output.detections) == 3
    assert played.arm._clock.now_ns is not None and played.arm._clock.now_ns >= reached > last.stamp_ns
    heard = played.clock.wait(lambda rows: stamp_of_clock(rows[-1]) >= reached)
    assert not any(back for _, back in jumps(heard))
    played.catch_up()


def test_what_a_follow_up_leaves_out_takes_the_rest_along_all_the_same(played: Played) -> None:
    bundle = played.bundle()
    note = bundle.wires[0]
    played.arm.publish_only(replace(bundle, clouds=(), images=(), camera_infos=(), wires=(note,)))
    played.notes.wait(lambda rows: note.cdr in rows)
    played.clock.wait(lambda rows: stamp_of_clock(rows[-1]) >= bundle.stamp_ns)
    assert len(played.ask(4).output.detections) == 4, "nothing is owed for it"
    assert not any(codec.encode_cloud(bundle.clouds[0]) == row for row in played.clouds.messages)


def test_time_goes_on_behind_a_delayed_bundle_while_an_answer_is_awaited(played: Played) -> None:
    bundle = played.bundle(order=SILENT)
    answer = played.arm.wait(played.arm.send(bundle, NOTHING, bundle.stamp_ns, PERIOD_NS // 2))
    assert answer is not None and answer.status is Outcome.SILENT
    assert played.arm._clock.now_ns == bundle.stamp_ns + PERIOD_NS // 2 + PERIOD_NS
    played.catch_up()


def test_silence_is_told_at_the_deadline_and_time_goes_on_by_one_period_at_most(played: Played) -> None:
    bundle = played.bundle(order=SILENT)
    began = time.monotonic()
    answer = played.arm.wait(played.arm.send(bundle, NOTHING))
    assert answer is not None and answer.status is Outcome.SILENT
    assert answer.reason == f"no {BOXES} within 1 s" and time.monotonic() - began >= 1.0
    heard = played.clock.wait(lambda rows: stamp_of_clock(rows[-1]) == bundle.stamp_ns + PERIOD_NS)
    instants = [t for t in map(stamp_of_clock, heard) if t >= bundle.stamp_ns]
    assert len(set(instants)) == len(instants), "then time stands still"
    assert len(played.ask(2).output.detections) == 2, "the next bundle is answered as ever"


def test_a_late_answer_is_nobodys(played: Played) -> None:
    played.hold.touch()
    late = played.ask(4, order=HELD)
    assert late.status is Outcome.SILENT
    ticket = played.arm.send(played.bundle(2), NOTHING)
    played.hold.unlink()
    answer = played.arm.wait(ticket)
    assert answer is not None and answer.output.detections is not None and len(answer.output.detections) == 2
    assert played.arm.status()["strays_late"] == 1


def test_with_a_limit_nobody_waits_longer(played: Played) -> None:
    played.hold.touch()
    ticket = played.arm.send(played.bundle(1, order=HELD), NOTHING)
    assert played.arm.wait(ticket, until_s=process_time_s()) is None
    assert played.arm.wait(ticket, until_s=process_time_s() + 0.05) is None
    assert played.arm._clock.now_ns == ticket.stamp_ns, "at that pace somebody else passes the time"
    played.arm.pass_time(ticket.stamp_ns + PERIOD_NS // 2)
    played.clock.wait(lambda rows: stamp_of_clock(rows[-1]) == ticket.stamp_ns + PERIOD_NS // 2)
    played.hold.unlink()
    answer = played.arm.wait(ticket)
    assert answer is not None and answer.status is Outcome.ANSWERED


def test_an_answer_found_after_its_deadline_is_too_late(played: Played) -> None:
    played.hold.touch()
    ticket = played.arm.send(played.bundle(1, order=HELD), NOTHING)
    until(lambda: process_time_s() > ticket.sent_s + 1.0)
    played.hold.unlink()
    until(lambda: ticket.parts)
    answer = played.arm.wait(ticket)
    assert answer is not None and answer.status is Outcome.SILENT and answer.reason == "no answer within 1 s"


def test_a_restarted_stack_answers_and_time_begins_anew(played: Played) -> None:
    played.ask()
    played.ask()  # so that there is something to go back from
    child = played.arm._instance._child
    assert child is not None
    before = child.pid
    played.arm.restart()
    played.arm.ready()
    assert played.arm._instance._child is not None and played.arm._instance._child.pid != before
    assert child.code is not None
    played.arm.begin_episode()
    played.count = 0
    assert len(played.ask(2).output.detections) == 2
    played.clock.wait(lambda rows: (stamp(0), True) in jumps(rows))


@pytest.mark.parametrize(
    ("order", "said"),
    [(DIE, r"ended with exit code 1.*\| RuntimeError: the puppet was told to die"), (KILLED, "SIGKILL")],
)
def test_a_stack_that_dies_says_how(ending: ExitStack, tmp_path: Path, domains: Any, order: int, said: str) -> None:
    arm = puppet_arm(ending, tmp_path, domains[2])
    arm.start()
    arm.ready()
    ticket = arm.send(puppet_bundle(0, order=order), NOTHING)
    with pytest.raises(InfrastructureError, match=rf"(?s)stack 'puppet' \(source arm\) .*{said}"):
        arm.wait(ticket)
    with pytest.raises(InfrastructureError):
        arm.send(puppet_bundle(1), NOTHING)


def test_a_callable_that_cannot_be_made_is_a_mistake_of_the_user(
    ending: ExitStack,
    tmp_path: Path,
    domains: Any,
) -> None:
    arm = puppet_arm(ending, tmp_path, domains[2], code="import no_such_module_at_all")
    arm.start()
    with pytest.raises(
        UsageError, match=r"(?s)cannot start.*ModuleNotFoundError: No module named 'no_such_module_at_all'"
    ):
        arm.ready()


def test_a_stack_that_never_gets_ready_says_what_is_missing(ending: ExitStack, tmp_path: Path, domains: Any) -> None:
    idle = Stack(name="idle", command=("sh", "-c", "echo hello; exec sleep 600"), ready_timeout_s=3.0)
    process = stack_process(idle, ArmPlan("source", None), domains[2], tmp_path, os.environ)
    bundle = puppet_bundle(0)
    arm = RosArm(
        ArmPlan("source", None),
        ArmDomain(domains[2]),
        idle,
        process,
        ArmInputs(topics_of(bundle), frozenset({"/points"})),
    )
    ending.callback(arm.stop)
    arm.start()
    with pytest.raises(InfrastructureError, match="not ready in the source arm") as caught:
        arm.ready()
    for said in (
        f"nobody publishes {BOXES}",
        "nobody subscribes to /points",
        "after 3 s",
        "| hello",
        "stack_source.log",
    ):
        assert said in str(caught.value)


def test_what_nobody_hears_is_not_sent(played: Played) -> None:
    """Replaying a bag's other topics costs nothing unless the stack wants them."""
    publishers = played.arm._publisher._publishers
    info = publishers["/camera/camera_info"]
    sent: list[bytes] = []

    class Spy:
        def publish(self, data: bytes) -> None:
            sent.append(data)

        def get_subscription_count(self) -> int:
            return int(info.get_subscription_count())

    publishers["/camera/camera_info"] = Spy()
    try:
        bundle = played.bundle()
        assert bundle.camera_infos
        played.arm.wait(played.arm.send(bundle, NOTHING))
    finally:
        publishers["/camera/camera_info"] = info
    assert sent == []
