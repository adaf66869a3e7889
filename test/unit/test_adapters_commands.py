# SPDX-License-Identifier: Apache-2.0
"""Commands, reports and trajectories in the types that stacks use, on messages built from their definitions."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from ros_types import installed, make, wired

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import remedy
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.outputs import Control, Path
from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.adapters.command_adapters import CarlaControl, refuse_lost
from mt_nodes.nodes.message_classes import available, decode, message_class
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.message_adapter import Adapter, adapter_for
from mt_nodes.stacks.stack import load_stack

STAMP = 1_700_000_000_123_456_789
LOCK = math.radians(70)
ADAPTERS: dict[str, Any] = plugins.catalogue("adapters")
TRAJECTORIES = ("autoware_trajectory", "autoware_auto_trajectory")


def filled(message: Any, fields: dict[str, Any]) -> Any:
    """A message with fields set by dotted paths, and stamped if it has a place for that."""
    if holder := getattr(message, "header", message if hasattr(message, "stamp") else None):
        set_stamp(holder.stamp, STAMP)
    for path, value in fields.items():
        where, _, last = path.rpartition(".")
        setattr(attrgetter(where)(message) if where else message, last, value)
    return message


#: adapter -> fields of its message, what is read of them. Numbers that single precision holds exactly.
READ: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "ackermann_drive_control": (
        {"steering_angle": 0.25, "speed": 3.5, "acceleration": 2.0, "jerk": 1.0, "steering_angle_velocity": 0.5},
        {"steering_rad": 0.25, "speed_mps": 3.5},
    ),
    "ackermann_drive_stamped_control": (
        {"drive.steering_angle": -0.25, "drive.speed": -1.5, "drive.acceleration": 2.0},
        {"steering_rad": -0.25, "speed_mps": -1.5},
    ),
    "autoware_control": (
        {
            "lateral.steering_tire_angle": 0.125,
            "lateral.steering_tire_rotation_rate": 9.0,
            "longitudinal.velocity": 8.25,
            "longitudinal.acceleration": -2.5,
            "longitudinal.is_defined_acceleration": True,
            "longitudinal.jerk": 9.0,
        },
        {"steering_rad": 0.125, "speed_mps": 8.25, "acceleration_mps2": -2.5},
    ),
    "autoware_auto_control": (
        {"lateral.steering_tire_angle": 0.125, "longitudinal.speed": 8.25, "longitudinal.acceleration": -2.5},
        {"steering_rad": 0.125, "speed_mps": 8.25, "acceleration_mps2": -2.5},
    ),
    "velocity_report_control": (
        {"longitudinal_velocity": 5.5, "lateral_velocity": 9.0, "heading_rate": -0.25},
        {"speed_mps": 5.5, "yaw_rate_radps": -0.25},
    ),
    "steering_report_control": ({"steering_tire_angle": -0.5}, {"steering_rad": -0.5}),
    "odometry_control": (
        {"twist.twist.linear.x": 4.0, "twist.twist.linear.y": 9.0, "twist.twist.angular.z": 0.1},
        {"speed_mps": 4.0, "yaw_rate_radps": 0.1},
    ),
    "carla_control": (
        {"throttle": 0.5, "steer": -0.5, "brake": 0.25, "gear": 3},
        {"steering_rad": 0.5 * LOCK, "throttle": 0.5, "brake": 0.25},
    ),
    "twist_control": ({"linear.x": 2.0, "linear.y": 9.0, "angular.z": 0.3}, {"speed_mps": 2.0, "yaw_rate_radps": 0.3}),
    "twist_stamped_control": (
        {"twist.linear.x": 2.0, "twist.angular.z": 0.3},
        {"speed_mps": 2.0, "yaw_rate_radps": 0.3},
    ),
    "joint_state_control": (
        {"name": ["wiper", "drive", "steering"], "position": [9.0, 9.0, -0.25], "velocity": [9.0, 3.5, 9.0]},
        {"steering_rad": -0.25, "speed_mps": 3.5},
    ),
}
#: Fields of messages that can say that they hold nothing; others are 0 then.
HOLD_NOTHING = {
    ("autoware_control", "acceleration_mps2"),
    ("joint_state_control", "steering_rad"),
    ("joint_state_control", "speed_mps"),
}


def test_every_adapter_of_commands_is_tried_here() -> None:
    assert set(READ) == {name for name, cls in ADAPTERS.items() if cls.role == "control"}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_of_a_command(name: str) -> None:
    adapter = ADAPTERS[name]()
    fields, expected = READ[name]
    message = wired(filled(make(adapter.type), fields))
    assert adapter.stamp_ns(message) == (STAMP if adapter.stamped else None)
    assert known(adapter.decode(message)) == (adapter.stamp_ns(message), expected)


@pytest.mark.parametrize("name", READ)
def test_the_same_with_rclpy_where_the_package_is_installed(name: str) -> None:
    adapter = ADAPTERS[name]()
    if not available(adapter.type):
        pytest.skip(f"{adapter.type} is not installed here: {remedy([adapter.type])}")
    fields, expected = READ[name]
    data = serialize_message(filled(message_class(adapter.type)(), fields))
    assert known(adapter.decode(decode(adapter.type, data)))[1] == expected


def test_the_velocity_of_a_wheel_is_that_of_the_car_by_its_radius() -> None:
    adapter = ADAPTERS["joint_state_control"](wheel_radius_m=0.25)
    message = adapter.encode(Control(STAMP, steering_rad=0.1, speed_mps=2.0))
    assert list(message.velocity)[1] == 8.0 and adapter.decode(message).speed_mps == 2.0
    assert known(adapter.decode(make(adapter.type)))[1] == {}, "a message without joints commands nothing"


def known(said: Control) -> tuple[int | None, dict[str, float]]:
    """The stamp, and what the command holds."""
    values = dataclasses.asdict(said)
    return values.pop("stamp_ns"), {key: value for key, value in values.items() if not math.isnan(value)}


@pytest.mark.parametrize("name", [n for n in READ if ADAPTERS[n].encode is not Adapter.encode])
@settings(max_examples=20)
@given(values=st.lists(st.floats(-1, 1, width=16) | st.just(math.nan), min_size=6, max_size=6))
def test_a_command_that_is_published_reads_the_same(name: str, values: list[float]) -> None:
    adapter = ADAPTERS[name]()
    said = Control(STAMP, *values)
    with installed():
        again = adapter.decode(wired(adapter.encode(said)))
    carried = set(READ[name][1])
    for field in carried:
        expected = getattr(said, field)
        if math.isnan(expected) and (name, field) not in HOLD_NOTHING:
            expected = 0.0
        assert getattr(again, field) == pytest.approx(expected, abs=1e-6, nan_ok=True), field
    assert again.stamp_ns == (STAMP if adapter.stamped else None)


@pytest.mark.parametrize(
    ("name", "said", "lost"),
    [
        ("twist_control", {"steering_rad": 0.02}, "steering_rad"),
        ("twist_stamped_control", {"speed_mps": 3.0, "acceleration_mps2": -2.0}, "acceleration_mps2"),
        ("twist_stamped_control", {"throttle": 0.5, "brake": 0.0}, "brake, throttle"),
        ("ackermann_drive_control", {"yaw_rate_radps": 0.1}, "yaw_rate_radps"),
        ("autoware_control", {"speed_mps": 3.0, "brake": 0.1}, "brake"),
        ("twist_stamped_control", {"speed_mps": 3.0, "steering_rad": 0.1, "yaw_rate_radps": 0.1}, ""),
        ("ackermann_drive_control", {"steering_rad": 0.1}, ""),
        ("autoware_control", {"steering_rad": 0.1, "speed_mps": 3.0, "acceleration_mps2": -1.0}, ""),
        ("carla_control", {"steering_rad": 0.1, "throttle": 0.2}, ""),
        ("joint_state_control", {"steering_rad": 0.1, "brake": 0.2}, "brake"),
        ("joint_state_control", {"steering_rad": 0.1}, ""),
    ],
)
def test_a_command_that_its_type_cannot_hold_is_refused_rather_than_lost(
    name: str, said: dict[str, float], lost: str
) -> None:
    adapter, command = ADAPTERS[name](), Control(STAMP, **said)
    told = rf"{adapter.type} carries .*; the callable says {lost}, which would be lost"
    with installed(), pytest.raises(UsageError, match=told) if lost else contextlib.nullcontext():
        refuse_lost(adapter, command, adapter.encode(command))


def test_all_that_the_driver_tells_of_its_acceleration_is_published() -> None:
    stack = load_stack("reference_driver_ackermann")
    command = CallableHost.make(stack).function(np.zeros((1, 4), dtype=np.float32), stamp_ns=STAMP).control
    with installed():
        adapter = adapter_of("control", stack.outputs["control"])
        refuse_lost(adapter, command, adapter.encode(command))
    assert set(known(command)[1]) == {"steering_rad", "speed_mps", "acceleration_mps2"}


@pytest.mark.parametrize("name", ["velocity_report_control", "steering_report_control", "odometry_control"])
def test_what_the_vehicle_does_is_read_only(name: str) -> None:
    with pytest.raises(UsageError, match="can be read but not published"):
        ADAPTERS[name]().encode(Control(STAMP))


def test_an_acceleration_that_is_not_filled_in_is_not_read() -> None:
    message = filled(make("autoware_control_msgs/msg/Control"), {"longitudinal.acceleration": -2.5})
    assert math.isnan(ADAPTERS["autoware_control"]().decode(message).acceleration_mps2)


def test_carla_lock_is_a_parameter_and_its_own_agents_give_no_stamp() -> None:
    row = OutputTopic("/cmd", CarlaControl.type, params={"full_lock_rad": 0.5})
    adapter = adapter_of("control", row)
    message = make(CarlaControl.type, steer=1.0, hand_brake=True, brake=0.25)
    said = adapter.decode(wired(message))
    assert (said.steering_rad, said.brake, said.stamp_ns, adapter.stamp_ns(message)) == (-0.5, 1.0, None, None)
    with installed():
        assert adapter.encode(Control(STAMP, steering_rad=2.0)).steer == -1.0, "no further than the lock"
    with pytest.raises(UsageError, match=r"control\.params\.full_lock_rad: got 9 rad, expected 0\.01 to"):
        adapter_for("control", CarlaControl.type, params={"full_lock_rad": 9.0})


# --- trajectories


def trajectory(rows: list[Any]) -> Path:
    """Of x, y, yaw, speed, time."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return Path("map", STAMP, table[:, :3], table[:, 3], table[:, 4])


@pytest.mark.parametrize("name", TRAJECTORIES)
@settings(max_examples=20)
@given(rows=st.lists(st.tuples(*[st.floats(-3, 3, width=16)] * 4, st.floats(0.125, 100, width=16)), max_size=4))
def test_a_trajectory_that_is_published_reads_the_same(name: str, rows: list[Any]) -> None:
    adapter, said = ADAPTERS[name](), trajectory(rows)
    with installed():
        message = wired(adapter.encode(said))
    again = adapter.decode(message)
    assert (again.frame_id, again.stamp_ns, adapter.stamp_ns(message)) == ("map", STAMP, STAMP)
    np.testing.assert_allclose(again.pose, said.pose, atol=1e-12)
    np.testing.assert_array_equal(again.speed_mps, said.speed_mps)
    np.testing.assert_allclose(again.time_s, said.time_s, atol=1e-9)


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_times_that_were_not_filled_in_are_none(name: str) -> None:
    adapter = ADAPTERS[name]()
    with installed():
        message = adapter.encode(Path.make("map", STAMP, [[1, 2, 0.5], [2, 2, 0.5]]))
        one = adapter.encode(trajectory([[1, 2, 0.5, 3, 0.0], [2, 2, 0.5, 3, 0.1]]))
    assert np.isnan(adapter.decode(message).time_s).all() and (adapter.decode(message).speed_mps == 0.0).all()
    np.testing.assert_allclose(adapter.decode(one).time_s, [0.0, 0.1])


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_an_orientation_that_was_never_set_is_no_turn_and_no_number_stays_none(name: str) -> None:
    adapter = ADAPTERS[name]()
    with installed():
        message = adapter.encode(trajectory([[1, 2, 0.5, 3, 1], [2, 2, 0.5, 3, 2]]))
    turn = message.points[0].pose.orientation
    turn.z = turn.w = 0.0
    message.points[1].pose.position.x = math.nan
    again = adapter.decode(wired(message))
    assert again.pose[0, 2] == 0.0 and np.isnan(again.pose[1, 0])
