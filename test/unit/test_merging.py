# SPDX-License-Identifier: Apache-2.0
"""One command of several topics: what the stack file says, what is put together, and that over topics."""

from __future__ import annotations

import math
from contextlib import ExitStack
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ros_support import LIMIT_S, Peer, until
from ros_types import make, wired

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.messages import Wire
from mt_nodes.data.outputs import Control
from mt_nodes.data.stack_topics import OutputTopic, read_outputs
from mt_nodes.engine.judging import AnswerStatus
from mt_nodes.engine.pairing import Inbox
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.output_listener import OutputListener, answer_of
from mt_nodes.stacks.command_merger import CommandMerger, MergedCommand, merged

MS, STAMP = 1_000_000, 1_700_000_000_123_456_789
SPEED, STEERING = "/speed", "/steering"
REPORTS = [
    {"topic": SPEED, "type": "autoware_vehicle_msgs/msg/VelocityReport"},
    {"topic": STEERING, "type": "autoware_vehicle_msgs/msg/SteeringReport"},
]


def speed(stamp_ns: int | None, mps: float = 5.0) -> tuple[str, Control, Wire]:
    return SPEED, Control(stamp_ns, speed_mps=mps), Wire(SPEED, "v", stamp_ns or 0, b"v")


def steering(stamp_ns: int | None, rad: float = 0.1) -> tuple[str, Control, Wire]:
    return STEERING, Control(stamp_ns, steering_rad=rad), Wire(STEERING, "s", stamp_ns or 0, b"s")


def told(command: MergedCommand | None) -> tuple[int | None, float, float] | None:
    return (
        None if command is None else (command.control.stamp_ns, command.control.speed_mps, command.control.steering_rad)
    )


def test_what_one_leaves_open_the_next_tells() -> None:
    made = merged([Control(7, speed_mps=3.0), Control(8, 0.1, 9.0), Control(9, 0.3, acceleration_mps2=-1.0)])
    assert (made.stamp_ns, made.speed_mps, made.steering_rad, made.acceleration_mps2) == (7, 3.0, 0.1, -1.0)
    assert math.isnan(made.brake) and merged([Control(1, 0.2)]).steering_rad == 0.2


def test_the_nearest_to_the_leading_message_is_taken_whichever_comes_first() -> None:
    merger = CommandMerger([SPEED, STEERING], 10 * MS, by_arrival=False)
    assert merger.take(*steering(100 * MS, 0.1), 0) is None and merger.take(*steering(130 * MS, 0.2), 0) is None
    command = merger.take(*speed(125 * MS), 0)
    assert told(command) == (125 * MS, 5.0, 0.2)
    assert command is not None and [wire.topic for wire in command.wires] == [SPEED, STEERING]
    assert merger.take(*speed(225 * MS), 0) is None, "each is taken once"
    assert told(merger.take(*steering(235 * MS, 0.3), 0)) == (225 * MS, 5.0, 0.3)
    assert merger.take(*speed(325 * MS), 0) is None and merger.take(*steering(336 * MS), 0) is None, "too far apart"


def test_what_has_no_stamp_is_put_together_by_its_arrival() -> None:
    merger = CommandMerger([SPEED, STEERING], 10 * MS, by_arrival=True)
    assert merger.take(*speed(None), 100 * MS) is None
    assert told(merger.take(*steering(STAMP), 109 * MS)) == (None, 5.0, 0.1), (
        "the leading one says which input it answers"
    )
    assert merger.take(*speed(None), 200 * MS) is None and merger.take(*steering(STAMP), 211 * MS) is None


def test_what_waits_is_forgotten_when_the_stack_is_started_anew() -> None:
    merger = CommandMerger([SPEED, STEERING], 10 * MS, by_arrival=False)
    assert merger.take(*steering(100 * MS), 0) is None
    merger.forget()
    assert merger.take(*speed(100 * MS), 0) is None


@settings(max_examples=40)
@given(late=st.lists(st.booleans(), min_size=2, max_size=12))
def test_every_instant_is_told_once_in_its_order(late: list[bool]) -> None:
    merger, made = CommandMerger([SPEED, STEERING], 10 * MS, by_arrival=False), []
    for i, speed_is_late in enumerate(late):
        both = [speed(100 * i * MS, float(i)), steering((100 * i + 5) * MS, 0.01 * i)]
        for part in reversed(both) if speed_is_late else both:
            made += [told(command)] if (command := merger.take(*part, 0)) else []
    assert made == [(100 * i * MS, float(i), 0.01 * i) for i in range(len(late))]
    assert all(a < b for a, b in pairwise(row[0] for row in made if row is not None))  # type: ignore[operator]


def test_what_the_vehicle_reports_on_two_topics_is_one_command() -> None:
    row = read_outputs({"control": REPORTS}, "outputs")["control"]
    values = ({"longitudinal_velocity": 4.0, "heading_rate": 0.5}, {"steering_tire_angle": 0.25})
    parts = [adapter_of("control", r).decode(wired(make(r.type, **v))) for r, v in zip(row.rows, values, strict=True)]
    made = merged(parts)  # type: ignore[arg-type]
    assert (made.speed_mps, made.yaw_rate_radps, made.steering_rad) == (4.0, 0.5, 0.25)


@pytest.mark.parametrize("leads", ["geometry_msgs/msg/TwistStamped", "geometry_msgs/msg/Twist"])
def test_a_command_of_two_topics_is_heard_as_one(leads: str, ending: ExitStack, domains: tuple[int, ...]) -> None:
    accel = OutputTopic("/accel", "geometry_msgs/msg/AccelStamped", fields={"acceleration_mps2": "accel.linear.x"})
    row = OutputTopic("/twist", leads, beside=(accel,))
    peer, inbox, stack = Peer(ending, domains[0]), Inbox(["control"]), Peer(ending, domains[0], "stack")
    # Without a stamp it is arrival that counts, and the machine may be busy.
    listener = OutputListener(peer.node, {"control": row}, lambda topic: topic, inbox, within_ns=round(LIMIT_S * 1e9))
    publishers = [stack.publisher(part.type, part.topic) for part in row.rows]
    until(lambda: all(p.get_subscription_count() for p in publishers) and all(listener.publisher_counts().values()))
    assert set(listener.publisher_counts()) == {"/twist", "/accel"}
    twist, acceleration = make(leads), make(accel.type)
    for message in (twist, acceleration):
        if hasattr(message, "header"):
            set_stamp(message.header.stamp, STAMP)
    getattr(twist, "twist", twist).linear.x = 6.0
    acceleration.accel.linear.x = -1.5
    ticket = inbox.expect(STAMP)
    publishers[0].publish(twist)
    publishers[1].publish(acceleration)
    assert inbox.wait(ticket, process_time_s() + LIMIT_S), listener.failure
    answer = answer_of(ticket, process_time_s())
    assert answer.status is AnswerStatus.ANSWERED and answer.output.control is not None
    assert (answer.output.control.speed_mps, answer.output.control.acceleration_mps2) == (6.0, -1.5)
    assert [(w.topic, w.stamp_ns) for w in answer.wires] == [("/twist", STAMP), ("/accel", STAMP)]
