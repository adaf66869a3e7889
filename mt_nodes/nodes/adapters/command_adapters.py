# SPDX-License-Identifier: Apache-2.0
"""Commands as messages of ``ackermann_msgs``, ``geometry_msgs``, ``sensor_msgs``, Autoware and CARLA's ROS bridge."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from geometry_msgs.msg import Twist, TwistStamped
from sensor_msgs.msg import JointState

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.message_headers import set_stamp, stamp_of
from mt_nodes.data.outputs import Control
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.stacks.message_adapter import Adapter, OutputPart, StampedAdapter

#: Either tells where to go: a type that carries one of those that are said loses nothing.
_TURN = frozenset({"steering_rad", "yaw_rate_radps"})


class StampedCommand(StampedAdapter):
    """A command whose message bears a stamp, in its header or beside it."""

    role: ClassVar[str] = "control"


def or_nought(value: float) -> float:
    """Return a value for a field that must hold one: 0 where the command holds none (NaN)."""
    return 0.0 if math.isnan(value) else float(value)


def refuse_lost(adapter: Adapter, output: Control, message: Any) -> None:
    """Refuse to publish a command as a message that does not hold all that was said.

    Raises UsageError: what would be lost, and what the type carries.
    """
    wanted_fields, carried = _held(output), _held(adapter.decode(message))
    lost = wanted_fields - carried - (_TURN if _TURN & wanted_fields & carried else frozenset())
    if lost:
        raise UsageError(
            f"{adapter.type} carries {', '.join(sorted(carried))}; the callable says {', '.join(sorted(lost))}, which "
            "would be lost: say what it carries, or choose another type (`mt list adapters`)"
        )


def _held(command: Any) -> frozenset[str]:
    values = asdict(command)
    return frozenset(name for name, value in values.items() if name != "stamp_ns" and not math.isnan(value))


class AckermannDriveControl(Adapter):
    """Steering angle in rad, to the left positive, and speed in m/s; answers the oldest outstanding input.

    ``acceleration`` and ``jerk`` are limits without a sign, by the comments of the message's definition, and 0 says
    "as quickly as possible": neither is what the stack wants the vehicle to do, and neither is read.
    """

    type: ClassVar[str] = "ackermann_msgs/msg/AckermannDrive"
    role: ClassVar[str] = "control"
    stamped: ClassVar[bool] = False

    def stamp_ns(self, message: Any) -> int | None:
        """There is none."""
        return None

    def decode(self, message: Any) -> Control:
        """Read steering angle and speed."""
        return of_drive(message, None)

    def encode(self, output: OutputPart) -> Any:
        """Write steering angle and speed; what the command does not hold is 0."""
        message = message_class(self.type)()
        into_drive(output, message)
        return message


def of_drive(drive: Any, stamp_ns: int | None) -> Control:
    """Read an ``AckermannDrive``."""
    return Control(stamp_ns, steering_rad=drive.steering_angle, speed_mps=drive.speed)


def into_drive(output: OutputPart, drive: Any) -> None:
    """Write an ``AckermannDrive``."""
    assert isinstance(output, Control)
    drive.steering_angle, drive.speed = or_nought(output.steering_rad), or_nought(output.speed_mps)


class AckermannDriveStampedControl(StampedCommand):
    """Steering angle in rad, to the left positive, and speed in m/s, with a header."""

    type: ClassVar[str] = "ackermann_msgs/msg/AckermannDriveStamped"

    def decode(self, message: Any) -> Control:
        """Read steering angle and speed."""
        return of_drive(message.drive, stamp_of(message))

    def encode(self, output: OutputPart) -> Any:
        """Write steering angle and speed; what the command does not hold is 0."""
        assert isinstance(output, Control)
        message = message_class(self.type)()
        set_stamp(message.header.stamp, output.stamp_ns or 0)
        into_drive(output, message.drive)
        return message


class TwistControl(Adapter):
    """``linear.x`` is the speed in m/s, ``angular.z`` the yaw rate in rad/s; answers the oldest outstanding input."""

    type: ClassVar[str] = "geometry_msgs/msg/Twist"
    role: ClassVar[str] = "control"
    stamped: ClassVar[bool] = False

    def stamp_ns(self, message: Any) -> int | None:
        """There is none."""
        return None

    def decode(self, message: Any) -> Control:
        """Read speed and yaw rate."""
        return Control(None, speed_mps=message.linear.x, yaw_rate_radps=message.angular.z)

    def encode(self, output: OutputPart) -> Twist:
        """Write speed and yaw rate; what the command does not hold is 0."""
        assert isinstance(output, Control)
        message = Twist()
        message.linear.x, message.angular.z = or_nought(output.speed_mps), or_nought(output.yaw_rate_radps)
        return message


class TwistStampedControl(StampedCommand):
    """``linear.x`` is the speed in m/s, ``angular.z`` the yaw rate in rad/s."""

    type: ClassVar[str] = "geometry_msgs/msg/TwistStamped"

    def decode(self, message: Any) -> Control:
        """Read speed and yaw rate."""
        twist = message.twist
        return Control(stamp_of(message), speed_mps=twist.linear.x, yaw_rate_radps=twist.angular.z)

    def encode(self, output: OutputPart) -> TwistStamped:
        """Write speed and yaw rate; what the command does not hold is 0."""
        assert isinstance(output, Control)
        message = TwistStamped()
        set_stamp(message.header.stamp, output.stamp_ns or 0)
        twist = message.twist
        twist.linear.x, twist.angular.z = or_nought(output.speed_mps), or_nought(output.yaw_rate_radps)
        return message


@dataclass(frozen=True)
class JointStateControl(StampedCommand):
    """Position of a steering joint in rad, to the left positive, and velocity of the joint that drives.

    The one type of ``common_interfaces`` that carries a steering angle.
    """

    steering: str = param("steering", help="name of the joint that steers; its position is the road wheels' angle")
    drive: str = param("drive", help="name of the joint that drives")
    wheel_radius_m: float = param(
        0.0, low=0.0, high=2.0, unit="m", help="of the driving wheel, whose velocity is in rad/s; 0: it is in m/s"
    )

    type: ClassVar[str] = "sensor_msgs/msg/JointState"

    def decode(self, message: Any) -> Control:
        """Read steering angle and speed; a joint that is not there says nothing."""
        columns = (message.position, message.velocity)
        position, velocity = (dict(zip(message.name, column, strict=False)) for column in columns)
        speed = velocity.get(self.drive, math.nan) * (self.wheel_radius_m or 1.0)
        return Control(stamp_of(message), steering_rad=position.get(self.steering, math.nan), speed_mps=speed)

    def encode(self, output: OutputPart) -> JointState:
        """Write both; what the command does not hold is NaN."""
        assert isinstance(output, Control)
        message = JointState(name=[self.steering, self.drive])
        set_stamp(message.header.stamp, output.stamp_ns or 0)
        message.position = [output.steering_rad, math.nan]
        message.velocity = [math.nan, output.speed_mps / (self.wheel_radius_m or 1.0)]
        return message


class AutowareControl(StampedCommand):
    """Tire angle in rad, to the left positive, velocity in m/s and, where it is filled in, acceleration in m/s².

    Autoware's own controller stamps it with the time at which its timer fired, not with that of any input: such a
    stack file says ``match: order``, or, for a live stack, ``arrival``. ``control_time``, jerk and the rate of the
    tire angle are not read.
    """

    type: ClassVar[str] = "autoware_control_msgs/msg/Control"

    def decode(self, message: Any) -> Control:
        """Read tire angle, velocity and, if ``is_defined_acceleration``, acceleration."""
        motion = message.longitudinal
        return Control(
            stamp_of(message),
            steering_rad=message.lateral.steering_tire_angle,
            speed_mps=motion.velocity,
            acceleration_mps2=motion.acceleration if motion.is_defined_acceleration else math.nan,
        )

    def encode(self, output: OutputPart) -> Any:
        """Write the three; what the command does not hold is 0, and an acceleration is then not defined."""
        assert isinstance(output, Control)
        message = message_class(self.type)()
        for part in (message, message.lateral, message.longitudinal):
            set_stamp(part.stamp, output.stamp_ns or 0)
        message.lateral.steering_tire_angle = or_nought(output.steering_rad)
        message.longitudinal.velocity = or_nought(output.speed_mps)
        message.longitudinal.acceleration = or_nought(output.acceleration_mps2)
        message.longitudinal.is_defined_acceleration = not math.isnan(output.acceleration_mps2)
        return message


class AutowareAutoControl(StampedCommand):
    """Tire angle in rad, to the left positive, speed in m/s and acceleration in m/s², which is always there.

    As with its successor the stamp is that of the controller, not of an input. The message can say of none of the
    three that it is not given. Jerk and the rate of the tire angle are not read.
    """

    type: ClassVar[str] = "autoware_auto_control_msgs/msg/AckermannControlCommand"

    def decode(self, message: Any) -> Control:
        """Read tire angle, speed and acceleration."""
        motion = message.longitudinal
        return Control(
            stamp_of(message),
            steering_rad=message.lateral.steering_tire_angle,
            speed_mps=motion.speed,
            acceleration_mps2=motion.acceleration,
        )

    def encode(self, output: OutputPart) -> Any:
        """Write the three; what the command does not hold is 0."""
        assert isinstance(output, Control)
        message = message_class(self.type)()
        for part in (message, message.lateral, message.longitudinal):
            set_stamp(part.stamp, output.stamp_ns or 0)
        message.lateral.steering_tire_angle = or_nought(output.steering_rad)
        message.longitudinal.speed = or_nought(output.speed_mps)
        message.longitudinal.acceleration = or_nought(output.acceleration_mps2)
        return message


@dataclass(frozen=True)
class CarlaControl(StampedCommand):
    """Throttle and brake from 0 to 1, and steering from -1 (left) to 1 (right) as a share of the full lock.

    CARLA's axes are left-handed, hence the sign (``carla_twist_to_control`` of its bridge turns it, too). The bridge's
    own agents leave the stamp at 0; such a message answers by order. A pulled hand brake is a full brake. Reverse and
    gears are not read, and the lock that CARLA narrows with speed is taken as constant.
    """

    full_lock_rad: float = param(
        math.radians(70),  # the default of CARLA's WheelPhysicsControl
        low=0.01,
        high=math.pi / 2,
        unit="rad",
        help="road-wheel angle at steer = 1: max_steer_angle of the front wheels in /carla/<role>/vehicle_info",
    )

    type: ClassVar[str] = "carla_msgs/msg/CarlaEgoVehicleControl"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp; None where it was left at 0."""
        return stamp_of(message) or None

    def decode(self, message: Any) -> Control:
        """Read steering, throttle and brake."""
        return Control(
            self.stamp_ns(message),
            steering_rad=-message.steer * self.full_lock_rad,
            throttle=message.throttle,
            brake=1.0 if message.hand_brake else message.brake,
        )

    def encode(self, output: OutputPart) -> Any:
        """Write the three, steering no further than the lock; what the command does not hold is 0."""
        assert isinstance(output, Control)
        message = message_class(self.type)()
        set_stamp(message.header.stamp, output.stamp_ns or 0)
        message.steer = max(-1.0, min(1.0, -or_nought(output.steering_rad) / self.full_lock_rad))
        message.throttle, message.brake = or_nought(output.throttle), or_nought(output.brake)
        return message
