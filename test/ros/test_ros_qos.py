# SPDX-License-Identifier: Apache-2.0
"""QoS profiles that users override, in rosbag2's format; and pairs of profiles that do not go together."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from rclpy.duration import Duration
from rclpy.event_handler import EventHandler
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from ros_support import LIMIT_S, Peer, puppet_bundle, topics_of, until
from test_ros_external_arm import NOTHING, OwnStack, boxes_of

from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.engine.judging import AnswerStatus
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.qos import ANSWERS, REPLAY, describe, load_overrides
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.stacks.stack import Stack


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "qos.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_profiles_are_read(tmp_path: Path) -> None:
    text = "/a: {history: keep_all, reliability: best_effort, durability: transient_local}\n/b: {depth: 3}\n"
    profiles = load_overrides(written(tmp_path, text))
    assert profiles["/a"].history is HistoryPolicy.KEEP_ALL
    assert profiles["/a"].reliability is ReliabilityPolicy.BEST_EFFORT
    assert profiles["/a"].durability is DurabilityPolicy.TRANSIENT_LOCAL
    assert describe(profiles["/b"]) == "reliable, volatile, depth 3"
    assert profiles["/b"].history is REPLAY.history


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/a: 3", "expected a mapping"),
        ("/a: {dept: 3}", "did you mean 'depth'"),
        ("/a: {depth: 0}", "at least 1"),
        ("/a: {reliability: besteffort}", "did you mean 'best_effort'"),
        ("[]", "expected a mapping of keys"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_overrides(written(tmp_path, text))


# --- pairs of profiles over real topics; they do not go together where less is offered than is asked (DDS 2.2.3)


def asks(**policies: Any) -> QoSProfile:
    return QoSProfile(**{"depth": 10, **policies})


BEST_EFFORT = asks(reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = asks(durability=DurabilityPolicy.TRANSIENT_LOCAL)
SECOND = Duration(seconds=1)
BY_TOPIC = LivelinessPolicy.MANUAL_BY_TOPIC
#: What a subscriber asks, what we offer, and the policy that keeps them apart.
INCOMPATIBLE: dict[str, tuple[QoSProfile, QoSProfile, str]] = {
    "reliable of best effort": (asks(), BEST_EFFORT, "reliability"),
    "latched of volatile": (LATCHED, REPLAY, "durability"),
    "deadline of none": (asks(deadline=SECOND), REPLAY, "deadline"),
    "liveliness by topic of automatic": (asks(liveliness=BY_TOPIC), REPLAY, "liveliness"),
    "lease of none": (asks(liveliness_lease_duration=SECOND), REPLAY, "liveliness"),
}
#: What a stack may offer its answers with; we ask for nothing but reliability, and do without.
OFFERED = {
    "best effort": BEST_EFFORT,
    "latched": LATCHED,
    "deadline": asks(deadline=SECOND),
    "liveliness by topic": asks(liveliness=BY_TOPIC, liveliness_lease_duration=SECOND),
    "best effort, deadline": asks(reliability=ReliabilityPolicy.BEST_EFFORT, deadline=SECOND),
}


def arm_of(ending: ExitStack, domain: int, profile: QoSProfile = REPLAY) -> RosArm:
    stack = Stack(
        name="own",
        start="external",
        stateless=True,
        nodes=("/own_stack",),
        inputs={"lidar": "/points"},
        ready_timeout_s=LIMIT_S,
    )
    topics, plan = topics_of(puppet_bundle(0)), ArmPlan("source", domain)
    arm = RosArm(plan, ArmDomain(domain), stack, None, ArmInputs(topics, frozenset({"/points"}), {"/points": profile}))
    ending.callback(arm.stop)
    arm.start()
    return arm


@pytest.mark.parametrize("name", INCOMPATIBLE)
def test_what_cannot_be_served_is_named_before_anything_is_waited_for(
    ending: ExitStack, domains: Any, name: str
) -> None:
    hears, offered, policy = INCOMPATIBLE[name]
    OwnStack(ending, domains[1], boxes_of, hears=hears)
    said = f"source arm: a subscriber of /points asks for another {policy} than {describe(offered)}"
    with pytest.raises(UsageError, match=said):
        arm_of(ending, domains[1], offered).ready()


@pytest.mark.parametrize("name", OFFERED)
def test_whatever_a_stack_offers_its_answers_with_is_heard(ending: ExitStack, domains: Any, name: str) -> None:
    OwnStack(ending, domains[2], boxes_of, says=OFFERED[name])
    arm = arm_of(ending, domains[2])
    arm.ready()
    answer = arm.wait(arm.send(puppet_bundle(0), NOTHING))
    assert answer is not None and answer.status is AnswerStatus.ANSWERED


def test_a_clock_that_cannot_be_served_is_named(ending: ExitStack, domains: Any) -> None:
    OwnStack(ending, domains[1], boxes_of)
    Peer(ending, domains[1], "own_stack").listen("rosgraph_msgs/msg/Clock", "/clock", LATCHED)
    arm = arm_of(ending, domains[1])
    with pytest.raises(UsageError, match=r"a subscriber of /clock asks for another durability than reliable, volatile"):
        while True:
            arm.ready()


def test_the_usual_profile_is_served(ending: ExitStack, domains: Any) -> None:
    OwnStack(ending, domains[1], boxes_of, hears=asks(), says=ANSWERS)
    arm_of(ending, domains[1]).ready()


def test_what_is_destroyed_while_it_is_about_to_be_waited_for_ends_nobody(
    ending: ExitStack, domains: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = Peer(ending, domains[1])
    heard, said = peer.listen(codec.STRING, "/kept"), peer.publisher(codec.STRING, "/kept")
    gone, destroyed = peer.node.create_subscription(message_class(codec.STRING), "/gone", print, ANSWERS), Event()
    enter = EventHandler.__enter__

    def too_late(event: EventHandler) -> None:
        if event in gone.event_handlers and not destroyed.is_set():
            destroyed.set()
            peer.node.destroy_subscription(gone)
        enter(event)

    monkeypatch.setattr(EventHandler, "__enter__", too_late)
    assert destroyed.wait(LIMIT_S)
    until(heard.matched)
    said.publish(message_class(codec.STRING)(data="still there"))
    assert heard.wait(1)
    assert peer._ros.failure is None
