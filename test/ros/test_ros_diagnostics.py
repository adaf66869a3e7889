# SPDX-License-Identifier: Apache-2.0
"""What a stack's nodes tell of their health goes with its next answer, whoever told it and however often."""

from __future__ import annotations

from contextlib import ExitStack

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile
from ros_support import Peer, until

from mt_nodes.data.messages import Wire
from mt_nodes.data.outputs import Control, Diagnostics
from mt_nodes.data.stack_topics import DEFAULT_OUTPUTS, OutputTopic
from mt_nodes.engine.pairing import Inbox, Ticket
from mt_nodes.nodes.output_listener import OutputListener, ReceivedOutput, answer_of

ROW = OutputTopic(**DEFAULT_OUTPUTS["diagnostics"])


def test_errors_are_gathered_until_they_are_asked_for(domains: tuple[int, ...], ending: ExitStack) -> None:
    tells, hears = (Peer(ending, domains[1], name) for name in ("tells", "hears"))
    listener = OutputListener(hears.node, {"diagnostics": ROW}, lambda topic: topic, Inbox(("control",)))
    # As diagnostic_updater publishes.
    publisher = tells.publisher(ROW.type, ROW.topic, QoSProfile(depth=1))
    until(lambda: publisher.get_subscription_count() > 0 and listener.publisher_counts()[ROW.topic] > 0)
    assert listener.diagnostics() is None, "nobody has told anything"
    gathered: dict[str, str] = {}

    def heard(name: str) -> bool:
        told = listener.diagnostics()
        gathered.update(told.errors if told else {})
        return name in gathered

    for name, level in (
        ("lidar", DiagnosticStatus.ERROR),
        ("map", DiagnosticStatus.WARN),
        ("gps", DiagnosticStatus.ERROR),
    ):
        publisher.publish(DiagnosticArray(status=[DiagnosticStatus(level=level, name=name, message="no data")]))
        if level == DiagnosticStatus.ERROR:
            until(lambda name=name: heard(name))  # type: ignore[misc]
    assert gathered == {"lidar": "no data", "gps": "no data"}
    assert listener.diagnostics() == Diagnostics({}), "what was told once is not told again"


def test_an_answer_takes_them_along() -> None:
    ticket = Ticket(7, 1.0)
    ticket.parts["control"] = (ReceivedOutput(Control(7, speed_mps=3.0), Wire("/control", "t", 7, b"")), 1.5)
    answer = answer_of(ticket, 1.5, Diagnostics({"lidar": "no data"}))
    assert answer.output.diagnostics == Diagnostics({"lidar": "no data"})
    assert answer.output.control is not None and answer.output.answer_ms == 500.0
