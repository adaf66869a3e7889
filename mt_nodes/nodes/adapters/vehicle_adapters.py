# SPDX-License-Identifier: Apache-2.0
"""What the vehicle does and where it is, and the health of a stack's nodes."""

from __future__ import annotations

from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry as OdometryMessage

from mt_nodes.data.message_headers import set_header, stamp_of
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Control, Diagnostics
from mt_nodes.nodes.adapters.command_adapters import StampedCommand
from mt_nodes.nodes.orientation import planar, set_planar
from mt_nodes.stacks.message_adapter import Adapter, OutputPart, StampedAdapter


class OdometryControl(StampedCommand):
    """Speed along x in m/s and yaw rate in rad/s of ``child_frame_id``, in which the twist is given.

    An outcome and no command: on recorded or live input it follows what really drove, not what the stack says. It is
    of use where the vehicle is simulated in each arm. Pose, covariances and the rest of the twist are not read, and it
    is read only.
    """

    type: ClassVar[str] = "nav_msgs/msg/Odometry"

    def decode(self, message: Any) -> Control:
        """Read forward speed and yaw rate."""
        twist = message.twist.twist
        return Control(stamp_of(message), speed_mps=twist.linear.x, yaw_rate_radps=twist.angular.z)


class VelocityReportControl(StampedCommand):
    """Speed in m/s, forwards positive, and yaw rate in rad/s, to the left positive, as the vehicle reports them.

    An outcome and no command: on recorded or live input it follows what really drove, not what the stack says. It is
    of use where the vehicle is simulated in each arm. Read only; the lateral velocity is left out.
    """

    type: ClassVar[str] = "autoware_vehicle_msgs/msg/VelocityReport"

    def decode(self, message: Any) -> Control:
        """Read longitudinal velocity and heading rate."""
        return Control(stamp_of(message), speed_mps=message.longitudinal_velocity, yaw_rate_radps=message.heading_rate)


class SteeringReportControl(StampedCommand):
    """Tire angle in rad, to the left positive, as the vehicle reports it; it has a stamp and no header.

    An outcome and no command, see ``velocity_report_control``. The other messages of that package (gear, control
    mode, lights, engagement) are states of switches that no control check compares, and have no adapter. Read only.
    """

    type: ClassVar[str] = "autoware_vehicle_msgs/msg/SteeringReport"

    def decode(self, message: Any) -> Control:
        """Read the tire angle."""
        return Control(stamp_of(message), steering_rad=message.steering_tire_angle)


class VehicleOdometry(StampedAdapter):
    """Pose on the ground, forward speed and yaw rate; height, roll, pitch, the rest of the twist and covariances are
    neither read nor written.
    """

    type: ClassVar[str] = "nav_msgs/msg/Odometry"
    role: ClassVar[str] = "odometry"

    def decode(self, message: Any) -> Odometry:
        """Read pose, forward speed and yaw rate."""
        ((x, y, yaw),) = planar([message.pose.pose]).tolist()
        twist = message.twist.twist
        return Odometry(
            message.header.frame_id,
            stamp_of(message),
            x,
            y,
            yaw,
            twist.linear.x,
            twist.angular.z,
            message.child_frame_id,
        )

    def encode(self, output: OutputPart) -> OdometryMessage:
        """Write pose, forward speed and yaw rate."""
        assert isinstance(output, Odometry)
        message = OdometryMessage(child_frame_id=output.child_frame_id)
        set_header(message.header, output.frame_id, output.stamp_ns)
        set_planar(message.pose.pose, output.x_m, output.y_m, output.yaw_rad)
        twist = message.twist.twist
        twist.linear.x, twist.angular.z = output.speed_mps, output.yaw_rate_radps
        return message


class DiagnosticArrayErrors(Adapter):
    """Statuses at level ERROR, by name, each with its text; those at OK, WARN and STALE are no errors.

    They answer no input: what was told since the last answer goes with the next one.
    """

    type: ClassVar[str] = "diagnostic_msgs/msg/DiagnosticArray"
    role: ClassVar[str] = "diagnostics"
    stamped: ClassVar[bool] = False

    def stamp_ns(self, message: Any) -> None:
        """The stamp of the array is that of its telling, not that of an input."""

    def decode(self, message: Any) -> Diagnostics:
        """Read the errors."""
        return Diagnostics({s.name: s.message for s in message.status if _level(s.level) == _level(_ERROR)})

    def encode(self, output: OutputPart) -> DiagnosticArray:
        """Write one status an error."""
        assert isinstance(output, Diagnostics)
        return DiagnosticArray(
            status=[DiagnosticStatus(level=_ERROR, name=name, message=text) for name, text in output.errors.items()]
        )


_ERROR = DiagnosticStatus.ERROR


def _level(value: Any) -> int:
    """Levels are bytes to rclpy and numbers to others."""
    return value[0] if isinstance(value, bytes) else int(value)
