# SPDX-License-Identifier: Apache-2.0
"""One arm over real topics, with a stack that the test itself plays; which other nodes may share its domain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from recordings import stamp
from ros_support import (
    LIMIT_S,
    Peer,
    puppet_bundle,
    topics_of,
    until,
)
from std_srvs.srv import Trigger
from test_ros_arm import BOXES, CLOUD, MARKERS, NOTHING, puppet_arm

from mt_nodes.base.errors import InfrastructureError, IsolationError, UsageError
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.data.outputs import Detections, Diagnostics
from mt_nodes.data.stack_topics import OutputTopic, read_outputs
from mt_nodes.engine.arm import restart, start
from mt_nodes.engine.judging import AnswerStatus as Outcome
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.nodes import qos
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.stacks.stack import Stack


class OwnStack(Peer):
    """Answers each cloud as it is told, best effort or reliable."""

    def __init__(
        self,
        ending: ExitStack,
        domain: int,
        answer: Callable[[Any, Any], None],
        outputs: tuple[str, str] = (MARKERS, BOXES),
        hears: QoSProfile = qos.REPLAY,
        says: QoSProfile = qos.ANSWERS,
    ) -> None:
        super().__init__(ending, domain, "own_stack")
        publisher = self.publisher(*outputs, says)
        self.node.create_subscription(message_class(CLOUD), "/points", lambda m: answer(m, publisher), hears)


def boxes_of(message: Any, publisher: Any) -> None:
    centers = np.arange(3 * message.width).reshape(-1, 3)
    publisher.publish(MarkerArrayObstacles().encode(Detections.make("lidar", stamp_of(message), centers)))


def external_arm(ending: ExitStack, domain: int, prefix: str = "", **changes: Any) -> RosArm:
    given = {"start": "external", "nodes": ("/own_stack",), "ready_timeout_s": LIMIT_S, "deadline_s": 1.0}
    stack = Stack(**{"name": "own", "stateless": True, "inputs": {"lidar": "/points"}, **given, **changes})
    plan = ArmPlan("source", domain, prefix)
    arm = RosArm(
        plan, ArmDomain(domain, False), stack, None, ArmInputs(topics_of(puppet_bundle(0)), frozenset({"/points"}))
    )
    ending.callback(arm.stop)
    return arm


def test_what_is_told_after_the_last_answer_is_taken_in_and_never_counts_for_the_next_episode(
    ending: ExitStack, domains: Any
) -> None:
    own = OwnStack(ending, domains[2], boxes_of)
    health = own.publisher("diagnostic_msgs/msg/DiagnosticArray", "/diagnostics", qos.ANSWERS)
    arm = external_arm(ending, domains[2], outputs=read_outputs({"detections": BOXES, "diagnostics": None}, "outputs"))
    arm.start()
    arm.ready()
    answers = [arm.wait(arm.send(puppet_bundle(0), NOTHING))]

    def tell(name: str) -> None:
        status = DiagnosticStatus(level=DiagnosticStatus.ERROR, name=name, message="no data")
        health.publish(DiagnosticArray(status=[status]))
        until(lambda: name in (arm._listener._errors or {}))

    tell("lidar")
    assert arm.final_diagnostics() == Diagnostics({"lidar": "no data"})
    tell("gps")
    arm.begin_episode()
    answers.append(arm.wait(arm.send(puppet_bundle(1), NOTHING)))
    assert [a and a.output.diagnostics for a in answers] == [None, Diagnostics({})]


BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
LATE_READER = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def test_a_best_effort_publisher_and_subscriber_are_understood(ending: ExitStack, domains: Any) -> None:
    OwnStack(ending, domains[2], boxes_of, hears=BEST_EFFORT, says=BEST_EFFORT)
    arm = external_arm(ending, domains[2])
    arm.start()
    arm.ready()
    answer = arm.wait(arm.send(puppet_bundle(0), NOTHING))
    assert answer is not None and answer.output.detections is not None and len(answer.output.detections) == 3


def test_a_subscriber_that_cannot_be_served_is_named_with_the_policy(ending: ExitStack, domains: Any) -> None:
    OwnStack(ending, domains[2], boxes_of, hears=LATE_READER)
    arm = external_arm(ending, domains[2])
    arm.start()
    said = "a subscriber of /points asks for another durability than reliable, volatile, depth 10"
    with pytest.raises(UsageError, match=said):
        arm.ready()


def test_a_stack_that_was_not_started_is_asked_for(ending: ExitStack, domains: Any) -> None:
    arm = external_arm(ending, domains[2], ready_timeout_s=0.2)
    arm.start()
    with pytest.raises(InfrastructureError, match="start it, or mend its topics and domain in the stack file"):
        arm.ready()
    with pytest.raises(InfrastructureError, match="is external and cannot be restarted"):
        arm.restart()


def test_an_external_stack_is_made_to_forget_by_the_service_that_its_file_names(
    ending: ExitStack, domains: Any
) -> None:
    """A stack that says one box more each time, as often as it was asked since it forgot."""
    asked: list[int] = []

    def forget(request: Any, response: Any) -> Any:
        asked.clear()
        response.success = True
        return response

    def counts(message: Any, publisher: Any) -> None:
        asked.append(stamp_of(message))
        centers = np.zeros((len(asked), 3))
        publisher.publish(MarkerArrayObstacles().encode(Detections.make("lidar", asked[-1], centers)))

    OwnStack(ending, domains[2], counts).node.create_service(Trigger, "/own/reset", forget)
    arm = external_arm(ending, domains[2], stateless=False, reset="/own/reset")
    start(arm)
    said = []
    for turn in range(2):
        if turn:
            restart(arm)
        arm.begin_episode()
        answers = [arm.wait(arm.send(puppet_bundle(number), NOTHING)) for number in range(3)]
        said.append([len(one.output.detections) for one in answers if one and one.output.detections is not None])
    assert said == [[1, 2, 3]] * 2


def test_a_message_that_cannot_be_read_ends_the_run_and_not_the_thread(ending: ExitStack, domains: Any) -> None:
    def nonsense(message: Any, publisher: Any) -> None:
        array = MarkerArrayObstacles().encode(Detections.make("lidar", stamp_of(message), [[1, 2, 3]]))
        array.markers[1].text = "score=high"
        publisher.publish(array)

    OwnStack(ending, domains[2], nonsense)
    arm = external_arm(ending, domains[2])
    arm.start()
    arm.ready()
    ticket = arm.send(puppet_bundle(0), NOTHING)
    with pytest.raises(
        InfrastructureError, match=f"source arm: cannot read {MARKERS} on {BOXES}: ValueError: .*'high'"
    ):
        arm.wait(ticket)


def test_answers_with_a_stamp_of_their_own_are_told_of(ending: ExitStack, domains: Any) -> None:
    def now(message: Any, publisher: Any) -> None:
        publisher.publish(MarkerArrayObstacles().encode(Detections.none("lidar", 123)))

    OwnStack(ending, domains[2], now)
    arm = external_arm(ending, domains[2])
    arm.start()
    arm.ready()
    answer = arm.wait(arm.send(puppet_bundle(0), NOTHING))
    assert answer is not None and answer.status is Outcome.SILENT
    assert "an output that bears stamp 123 ns of no input: copy the input's, or say match: order" in answer.reason
    ordered = external_arm(ending, domains[2], match="order", allow_nodes=("/mt_replayer", "/mt_monitor_source"))
    ordered.start()
    ordered.ready()
    answer = ordered.wait(ordered.send(puppet_bundle(1), NOTHING))
    assert answer is not None and answer.status is Outcome.ANSWERED


def test_commands_without_a_header_answer_by_their_turn_even_after_a_late_one(
    ending: ExitStack,
    domains: Any,
) -> None:
    held: list[Any] = []
    twist = message_class("geometry_msgs/msg/Twist")

    def steer(message: Any, publisher: Any) -> None:
        said = twist()
        said.linear.x = float(message.width)
        held.append(said)
        if message.width != 1:
            while held:
                publisher.publish(held.pop(0))

    OwnStack(ending, domains[2], steer, ("geometry_msgs/msg/Twist", "/cmd_vel"))
    outputs = {"control": OutputTopic("/cmd_vel", "geometry_msgs/msg/Twist")}
    arm = external_arm(ending, domains[2], outputs=outputs)
    arm.start()
    arm.ready()
    speeds = []
    for index, points in enumerate((5, 1, 2, 4)):
        answer = arm.wait(arm.send(puppet_bundle(index, points), NOTHING))
        assert answer is not None
        speeds.append(answer.output.control and answer.output.control.speed_mps)
        assert all(wire.stamp_ns == stamp(index) for wire in answer.wires), "evidence is of the instant it answers"
    assert speeds == [5.0, None, 2.0, 4.0], "the late answer to the second is not taken for the third's"


def test_topics_of_a_remapped_arm_bear_its_prefix_and_its_evidence_does_not(ending: ExitStack, domains: Any) -> None:
    stack = Peer(ending, domains[2], "own_stack")
    publisher = stack.publisher(MARKERS, f"/mt/source{BOXES}")
    stack.node.create_subscription(
        message_class(CLOUD), "/mt/source/points", lambda m: boxes_of(m, publisher), qos.REPLAY
    )
    clock = stack.listen("rosgraph_msgs/msg/Clock", "/mt/source/clock", qos.CLOCK)
    arm = external_arm(ending, domains[2], prefix="/mt/source")
    arm.start()
    arm.ready()
    until(arm._clock._publisher.get_subscription_count)
    answer = arm.wait(arm.send(puppet_bundle(0), NOTHING))
    assert answer is not None and [w.topic for w in answer.wires] == [BOXES]
    clock.wait(1)


def test_a_domain_with_strangers_is_refused_before_anything_starts(
    ending: ExitStack, tmp_path: Path, domains: Any
) -> None:
    Peer(ending, domains[2], "planner")
    arm = puppet_arm(ending, tmp_path, domains[2], leased=False)
    with pytest.raises(IsolationError, match=r"domain \d+ holds nodes that are not the stack's: /planner; stop them"):
        arm.start()
    assert arm._instance._child is None


def test_nodes_that_are_allowed_and_the_suites_own_are_no_strangers(ending: ExitStack, domains: Any) -> None:
    for name in ("planner", "mt_suite", "_ros2cli_daemon_0_af"):
        Peer(ending, domains[2], name)
    OwnStack(ending, domains[2], boxes_of)
    arm = external_arm(ending, domains[2], allow_nodes=("/planner",))
    arm.start()
    arm.ready()
    answer = arm.wait(arm.send(puppet_bundle(0), NOTHING))
    assert answer is not None and answer.status is Outcome.ANSWERED
    intruder = Peer(ending, domains[2], "intruder")
    until(lambda: "/intruder" in arm._isolation.unexpected_nodes())
    with pytest.raises(IsolationError, match="/intruder"):
        arm.refuse_unexpected_nodes()
    assert intruder.node.get_name() == "intruder"


def test_two_runs_do_not_share_an_external_stack(ending: ExitStack, domains: Any) -> None:
    OwnStack(ending, domains[2], boxes_of)
    first = external_arm(ending, domains[2])
    first.start()
    first.ready()
    second = external_arm(ending, domains[2])
    with pytest.raises(IsolationError, match="/mt_monitor_source, /mt_replayer"):
        second.start()


def test_an_arm_whose_adapter_is_missing_leaves_the_domain_again(ending: ExitStack, domains: Any) -> None:
    wrong = {"detections": OutputTopic("/x", "std_msgs/msg/String")}
    with pytest.raises(UsageError, match="no adapter reads detections from std_msgs/msg/String"):
        external_arm(ending, domains[2], outputs=wrong)
    peer = Peer(ending, domains[2])
    until(lambda: peer.node.get_node_names() == ["tester"])
