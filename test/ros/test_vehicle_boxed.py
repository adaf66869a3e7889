# SPDX-License-Identifier: Apache-2.0
"""An instance of the stack in a box answers as ever, and whatever it tries reaches nobody outside."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ros_support import LIMIT_S, puppet_bundle, topics_of

from mt_nodes.base.errors import InfrastructureError, IsolationError
from mt_nodes.base.params import plain
from mt_nodes.base.safety_settings import Actuators, BoxSettings
from mt_nodes.engine.arm import restart, start
from mt_nodes.engine.judging import AnswerStatus
from mt_nodes.engine.plan import ArmPlan, stack_process
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node
from mt_nodes.runs.vehicle.box_report import what_can_be_boxed
from mt_nodes.runs.vehicle.boxed_stack import boxed_stack, bridge_process
from mt_nodes.stacks.stack import load_stack

pytestmark = pytest.mark.skipif(
    not what_can_be_boxed().whole, reason=f"no whole box here: {'; '.join(what_can_be_boxed().shortfalls)}"
)
HONEST = """
def detect(points):
    return []
"""
NOTHING_MOVES = Actuators()
Made = Callable[..., RosArm]


@pytest.fixture
def arm(ending: ExitStack, tmp_path: Path, domains: tuple[int, ...]) -> Made:
    """Makes an arm whose stack runs this code in a box."""

    def made(
        code: str = HONEST, actuators: Actuators = NOTHING_MOVES, observers: tuple[str, ...] = (), **more: Any
    ) -> RosArm:
        name = f"boxed_{abs(hash(str(tmp_path)))}"
        (tmp_path / f"{name}.py").write_text(code)
        given = {"callable": f"{name}:detect", "inputs": {"lidar": "/points"}, "ready_timeout_s": LIMIT_S, **more}
        (tmp_path / "given.yaml").write_text(json.dumps(given))
        stack = load_stack(str(tmp_path / "given.yaml"))
        (tmp_path / "stack.yaml").write_text(json.dumps(plain(stack)))
        (tmp_path / "transforms.yaml").write_text("[]")
        plan, topics = ArmPlan("followup", None), topics_of(puppet_bundle(0))
        process = stack_process(stack, plan, domains[1], tmp_path, os.environ)
        assert process is not None
        inside = boxed_stack(
            process, stack, domains[1], topics, ["/points"], BoxSettings(use="required"), actuators, observers
        )
        bridge = bridge_process(inside, tmp_path / "box.json", os.environ)
        one = RosArm(plan, ArmDomain(domains[1]), stack, bridge, ArmInputs(topics, frozenset({"/points"})))
        ending.callback(one.stop)
        return one

    return made


def ask(one: RosArm, number: int) -> Any:
    return one.wait(one.send(puppet_bundle(number), frozenset()))


def test_a_boxed_stack_answers_and_can_be_started_anew(arm: Made) -> None:
    one = arm()
    start(one)
    assert [ask(one, n).status for n in range(3)] == [AnswerStatus.ANSWERED] * 3
    restart(one)
    one.begin_episode()
    assert ask(one, 0).status is AnswerStatus.ANSWERED


@pytest.fixture
def server() -> Iterator[list[bytes]]:
    """What datagrams come to a port on this computer's loopback; its number is the first."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        heard.append(str(one.getsockname()[1]).encode())
        threading.Thread(target=lambda: heard.extend(iter(lambda: one.recv(100), b"end")), daemon=True).start()
        yield heard
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", ("127.0.0.1", int(heard[0])))


TRIES = """
import socket
from rclpy.context import Context
import rclpy
from std_msgs.msg import Float32
KEPT = []
def reach():
    for family, kind in ((socket.AF_CAN, socket.SOCK_RAW), (socket.AF_PACKET, socket.SOCK_RAW)):
        try:
            socket.socket(family, kind)
            return "a bus"
        except OSError:
            pass
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        one.sendto(b"steer", ("127.0.0.1", PORT))
    except OSError:
        pass
    context = Context()
    rclpy.init(context=context, domain_id=LIVE)
    node = rclpy.create_node("leak", context=context)
    out = node.create_publisher(Float32, "/vehicle/steer", 1)
    KEPT.extend((context, node, out))
    for _ in range(10):
        out.publish(Float32(data=1.0))
    return ""
WHY = None
def detect(points):
    global WHY
    if WHY is None:
        WHY = reach()
    if WHY:
        raise SystemExit(WHY)
    return []
"""


def test_a_stack_that_joins_the_live_domain_and_opens_sockets_reaches_nobody(
    arm: Made, domains: tuple[int, ...], server: list[bytes], ending: ExitStack
) -> None:
    from std_msgs.msg import Float32

    live = SpinningContext(domains[0])
    ending.callback(live.close)
    commands: list[Any] = []
    node = live.add(plain_node, "actuator")
    node.create_subscription(Float32, "/vehicle/steer", commands.append, 10)
    head = f"PORT, LIVE = {int(server[0])}, {domains[0]}\n"
    one = arm(head + TRIES)
    start(one)
    for number in range(5):
        assert ask(one, number).status is AnswerStatus.ANSWERED
    assert not commands and len(server) == 1
    assert "/leak" not in {f"/{name}" for name, _ in node.get_node_names_and_namespaces()}


DRIVER = """
import threading, rclpy
from std_msgs.msg import Float32
from rclpy.context import Context
KEPT = []
def join():
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node("driver", context=context)
    node.create_subscription(Float32, "/vehicle/steer", print, 1)
    KEPT.extend((context, node))
COUNT = 0
def detect(points):
    global COUNT
    COUNT += 1
    if COUNT == 3:
        join()
    return []
"""


@pytest.mark.parametrize("how", ["actuator", pytest.param("stranger", marks=pytest.mark.long)])
def test_a_node_that_joins_late_inside_ends_the_arm(how: str, arm: Made) -> None:
    moves = Actuators(topics=("/vehicle/*",))
    one = arm(DRIVER, moves) if how == "actuator" else arm(DRIVER, nodes=["/callable_stack"])
    start(one)
    with pytest.raises(IsolationError, match="/driver"):
        for number in range(1000):
            ask(one, number)


def test_a_stack_that_ends_in_its_box_is_told_with_its_reason(arm: Made) -> None:
    one = arm("def detect(points):\n    raise SystemExit('no more')\n")
    start(one)
    with pytest.raises(InfrastructureError, match="no more"):
        ask(one, 0)
