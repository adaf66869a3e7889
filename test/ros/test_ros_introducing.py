# SPDX-License-Identifier: Apache-2.0
"""An arm sends nothing before those whom it is for know of it."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from halting import discovering, halted
from rcl_interfaces.srv import GetParameters
from rclpy.node import NodeNameNonExistentError
from ros_support import LIMIT_S, Peer, puppet_bundle, topics_of, until

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.process_tree import children_of
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.engine.judging import AnswerStatus
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.nodes import introduction, qos
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.bundle_publisher import DISCOVERY_S
from mt_nodes.nodes.introduction import Introduction
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.spinning_context import SpinningContext, quiet_node
from mt_nodes.stacks.stack import Stack

#: A stack that reads and says best effort, and tells when it has been made.
PROGRAM = """
import rclpy
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import Marker, MarkerArray

profile = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
rclpy.init()
node = rclpy.create_node("own_stack")
boxes = node.create_publisher(MarkerArray, "/perception/obstacles", profile)

def received(cloud):
    boxes.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL, header=cloud.header)]))

node.create_subscription(PointCloud2, "/points", received, profile)
print("made", flush=True)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
    pass
"""


def arm_of(ending: ExitStack, domain: int) -> RosArm:
    stack = Stack(name="own", start="external", stateless=True, inputs={"lidar": "/points"}, ready_timeout_s=LIMIT_S)
    topics, plan = topics_of(puppet_bundle(0)), ArmPlan("source", domain)
    arm = RosArm(plan, ArmDomain(domain), stack, None, ArmInputs(topics, frozenset({"/points"})))
    ending.callback(arm.stop)
    arm.start()
    return arm


def test_a_stack_that_finds_us_later_than_we_find_it_loses_nothing(
    ending: ExitStack, tmp_path: Path, domains: Any
) -> None:
    """It offers best effort, so that we subscribe anew: of which it hears nothing as long as its discovery stands."""
    log = tmp_path / "stack.log"
    env = {**os.environ, "ROS_DOMAIN_ID": str(domains[1])}
    child = Child(Process("own", (sys.executable, "-c", PROGRAM), env, log))
    ending.callback(child.stop, LIMIT_S)
    until(lambda: "made" in log.read_text())
    [pid] = children_of(child.pid)
    arm = arm_of(ending, domains[1])
    until(lambda: arm._listener._downgrade and arm._publisher.subscriber_count("/points"))
    with halted(discovering(pid, domains[1]), lambda: wait_until(lambda: any(arm._monitor.clients), 3.0)):
        arm.ready()
        ticket = arm.send(puppet_bundle(0), frozenset())
    answer = arm.wait(ticket)
    assert answer is not None and answer.status is AnswerStatus.ANSWERED
    assert not list(arm._monitor.clients), "nothing is left of the questions"


class Asked:
    """Somebody who publishes, and counts how often he is asked; and one of us who asks."""

    def __init__(self, ending: ExitStack, domain: int, name: str) -> None:
        self.times = 0
        them, us = Peer(ending, domain, name), Peer(ending, domain, "monitor")
        self.them, self.us = them.node, us.node
        them.publisher(codec.STRING, f"/{name}/says")
        them.node.create_service(GetParameters, f"/{name}/get_parameters", self._asked)
        self.introduction = Introduction(us.node)
        until(lambda: self.endpoints() and self._can_be_asked())

    def _can_be_asked(self) -> bool:
        """Whether this service is known to be this node's: its older ones are known earlier, and would do as well."""
        try:
            services = self.us.get_service_names_and_types_by_node(self.them.get_name(), "/")
        except NodeNameNonExistentError:  # not known yet
            return False
        return f"/{self.them.get_name()}/get_parameters" in dict(services)

    def _asked(self, request: Any, response: Any) -> Any:
        assert not request.names
        self.times += 1
        return response

    def endpoints(self) -> list[Any]:
        return self.us.get_publishers_info_by_topic(f"/{self.them.get_name()}/says")

    def over(self) -> bool:
        return self.introduction.over(self.endpoints())


def test_who_has_replied_is_not_asked_again_before_he_may_have_forgotten(ending: ExitStack, domains: Any) -> None:
    asked = Asked(ending, domains[2], "them")
    until(asked.over)
    assert asked.times and asked.over() and not list(asked.us.clients)
    asked.introduction.forget()
    assert not asked.over()
    until(asked.over)


def test_who_is_busy_is_not_waited_for_without_end(
    ending: ExitStack, domains: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(introduction, "REPLY_S", 0.5)
    asked, busy, go_on = Asked(ending, domains[2], "busy"), Event(), Event()
    asked.them.create_timer(0.0, lambda: busy.set() or go_on.wait())
    ending.callback(go_on.set)
    assert busy.wait(LIMIT_S)  # else it still replies
    began_s = process_time_s()
    until(asked.over)
    assert process_time_s() - began_s >= 0.5 and not list(asked.us.clients)


def test_who_cannot_be_asked_is_given_time_to_find_us(ending: ExitStack, domains: Any) -> None:
    """A node without services; and two of one name, of which the other one might reply."""
    ros = SpinningContext(domains[2])
    ending.callback(ros.close)
    ros.add(quiet_node, "quiet").create_publisher(message_class(codec.STRING), "/quiet/says", qos.ANSWERS)
    twin, other = Asked(ending, domains[2], "twin"), Peer(ending, domains[2], "twin")
    us = twin.us
    until(lambda: us.get_publishers_info_by_topic("/quiet/says") and us.get_node_names().count("twin") == 2)
    began_s = process_time_s()
    until(lambda: twin.introduction.over([*us.get_publishers_info_by_topic("/quiet/says"), *twin.endpoints()]))
    assert process_time_s() - began_s >= DISCOVERY_S and not twin.times and other.node.get_name() == "twin"


def test_one_that_goes_while_it_is_looked_at_is_no_error() -> None:
    class Graph:
        def get_node_names_and_namespaces(self) -> list[tuple[str, str]]:
            return [("gone", "/")]

        def get_service_names_and_types_by_node(self, name: str, namespace: str) -> Any:
            raise NodeNameNonExistentError(name)

    info = SimpleNamespace(node_name="gone", node_namespace="/", endpoint_gid=[0] * 16)
    assert not Introduction(Graph()).over([info])
