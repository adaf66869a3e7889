# SPDX-License-Identifier: Apache-2.0
"""What a world tells over real topics: to the hosted planner in its own process, in lockstep, and to others' types."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_support import LIMIT_S, Peer, until
from started_arms import started_arm
from told_worlds import people, told_bundle, without

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import plain
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Bundle, Odometry, WorldMessage
from mt_nodes.data.outputs import Control
from mt_nodes.data.stack_topics import WORLD_TYPES
from mt_nodes.engine.arm import UnansweredInput
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.plan import ArmPlan, ReplayedTopic, stack_process
from mt_nodes.nodes import qos
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.bundle_publisher import BundlePublisher
from mt_nodes.nodes.convert import reader_of, topics_of_world, world_to_message
from mt_nodes.nodes.message_classes import decode
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.stacks.stack import Stack, load_stack

NOTHING: frozenset[str] = frozenset()


def hosted(ending: ExitStack, stack: Stack, directory: Path, domain: int) -> RosArm:
    """An arm with the stack in a process of its own; started."""
    (directory / "stack.yaml").write_text(json.dumps(plain(stack)))
    (directory / "transforms.yaml").write_text("[]")
    plan, topics = ArmPlan("source", None), topics_of_world(stack)
    process = stack_process(stack, plan, domain, directory, os.environ)
    arm = RosArm(plan, ArmDomain(domain), stack, process, ArmInputs(topics, frozenset(topics)))
    ending.callback(arm.stop)
    arm.start()
    arm.ready()
    return arm


@pytest.fixture(scope="module")
def planner(domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RosArm]:
    stack = replace(load_stack("reference_planner"), ready_timeout_s=LIMIT_S)
    with ExitStack() as ending:
        yield hosted(ending, stack, tmp_path_factory.mktemp("planner"), domains[1])


def approach(count: int) -> list[Bundle]:
    """Somebody stands in the lane while the vehicle drives up."""
    return [
        told_bundle(i, people((30.0 - 0.8 * i, 0.5, 0.0, 0.0)), Odometry("map", None, 0.8 * i, 0.0, 0.0, 8.0))
        for i in range(count)
    ]


def commands(arm: Any, bundles: list[Bundle]) -> list[Control]:
    """What an arm says to bundles, one after the other."""
    arm.begin_episode()
    answers: list[Answer] = [arm.wait(arm.send(b, frozenset(m.topic for m in b.messages))) for b in bundles]
    assert [answer.status for answer in answers] == [AnswerStatus.ANSWERED] * len(bundles)
    assert all(a.output.control is not None and a.output.path is not None for a in answers)
    return [answer.output.control for answer in answers if answer.output.control is not None]


def test_the_planner_in_its_own_process_answers_each_instant_as_it_does_in_ours(planner: RosArm) -> None:
    bundles = approach(12)
    over_topics = commands(planner, bundles)
    names = list(topics_of_world(load_stack("reference_planner")))
    here = started_arm("source", load_stack("reference_planner"), dict(zip(names, names, strict=True)))
    assert [c.stamp_ns for c in over_topics] == [b.stamp_ns for b in bundles]
    for ours, theirs in zip(commands(here, bundles), over_topics, strict=True):
        assert ours.speed_mps == pytest.approx(theirs.speed_mps, abs=1e-5)
        assert ours.yaw_rate_radps == pytest.approx(theirs.yaw_rate_radps, abs=1e-5)
    assert over_topics[-1].speed_mps < over_topics[0].speed_mps - 1.0, "it brakes for the person"


def test_an_instant_that_lacks_a_part_is_not_waited_for(planner: RosArm) -> None:
    ticket = planner.send(without(told_bundle(40), "route"), NOTHING)
    assert isinstance(ticket, UnansweredInput) and "no message of /planning/route" in ticket.reason
    assert len(commands(planner, [told_bundle(41)])) == 1


def test_a_stack_gets_the_type_that_its_file_names(domains: tuple[int, ...], ending: ExitStack) -> None:
    bundle = told_bundle(objects=people((30.0, 4.0, 1.0, 0.0), (9.0, -1.0, 0.0, 0.0)))
    topic = bundle.world_messages[0].topic
    peer = Peer(ending, domains[2])
    heard = peer.listen("geometry_msgs/msg/PoseArray", topic, qos.REPLAY)
    publisher = BundlePublisher(
        peer.node, {topic: ReplayedTopic(topic, "geometry_msgs/msg/PoseArray")}, frozenset((topic,))
    )
    until(lambda: publisher.subscriber_count(topic) and heard.matched(), "both have found each other")
    publisher.publish(bundle, NOTHING)
    [message] = heard.wait(1)
    assert [(p.position.x, p.position.y) for p in message.poses] == [(30.0, 4.0), (9.0, -1.0)]
    assert codec.stamp_ns_of(message.header) == bundle.stamp_ns and message.header.frame_id == "base_link"


def test_what_is_written_without_ros_reads_like_what_adapters_write() -> None:
    bundle = told_bundle(objects=people((30.0, 4.0, 1.5, -0.5)))
    for message, wire in zip(bundle.world_messages, wires_of_bundle(bundle), strict=True):
        read = reader_of(message.role, message.topic, wire.type)
        theirs, ours = read(world_to_message(message, wire.type)), read(decode(wire.type, wire.cdr))
        assert (ours.role, ours.stamp_ns, ours.frame_id) == (message.role, bundle.stamp_ns, message.frame_id)
        assert contents(ours) == contents(theirs)
        assert contents(ours, rounded=True) == contents(message, rounded=True)


def contents(told: WorldMessage, rounded: bool = False) -> list[Any]:
    """Every number and text of what was told; yaws go through quaternions, so rounding is theirs."""
    values = vars(told.stamped).values()
    rows = [v.tolist() if isinstance(v, np.ndarray) else v for v in values]
    if not rounded:
        return [repr(row) for row in rows]
    return [repr(np.round(np.asarray(row, dtype=np.float64), 9).tolist()) if is_numbers(row) else row for row in rows]


def is_numbers(row: Any) -> bool:
    return isinstance(row, float) or (isinstance(row, list) and np.asarray(row).dtype.kind == "f")


def test_a_type_that_nobody_writes_is_refused_by_name() -> None:
    message = told_bundle().world_messages[1]
    with pytest.raises(UsageError, match="no adapter reads odometry from nav_msgs/msg/Path"):
        world_to_message(message, WORLD_TYPES["route"])
