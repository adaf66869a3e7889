# SPDX-License-Identifier: Apache-2.0
"""Converts the stack's commands to actuator demands, and refuses impossible ones.

Along the road the first given of these counts: acceleration; speed, by the law a = 2/s * (desired - present); throttle
and brake, as shares of the limits of engine and brakes. Across it: steering, else the yaw rate w, by steering = atan(L
w / v), with the wheelbase L and v at least 1 m/s. Values beyond the car's limits are cut to them.
"""

from __future__ import annotations

from math import atan, isnan

from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.scenario import Vehicle

SPEED_GAIN_1PS = 2.0
LEAST_MPS = 1.0
"""Below this speed a yaw rate is turned into steering as if the car were so fast."""
REVERSE_MPS = -0.05
"""What is faster backwards than this is no rounding, but asks to reverse."""


def refusal(command: Control) -> str:
    """Return why a command is impossible, empty if it is not."""
    if command.endless:
        name = command.endless[0]
        return f"{name} is {getattr(command, name)}: expected a finite number"
    along = (command.acceleration_mps2, command.speed_mps, command.throttle, command.brake)
    if all(isnan(value) for value in along):
        return "none of acceleration_mps2, speed_mps, throttle and brake is a number: expected one at least"
    if isnan(command.steering_rad) and isnan(command.yaw_rate_radps):
        return "neither steering_rad nor yaw_rate_radps is a number: expected one of them"
    if isnan(command.acceleration_mps2) and command.speed_mps < REVERSE_MPS:
        return f"speed_mps is {command.speed_mps:g}: this world does not reverse, expected 0 or more"
    for name in ("throttle", "brake"):
        if getattr(command, name) < 0.0:
            return f"{name} is {getattr(command, name):g}: expected 0 to 1"
    return ""


def commanded_acceleration_mps2(command: Control, speed_mps: float, vehicle: Vehicle) -> float:
    """Return the demanded acceleration at a speed, within the limits of engine and brakes."""
    if not isnan(command.acceleration_mps2):
        demanded = command.acceleration_mps2
    elif not isnan(command.speed_mps):
        demanded = SPEED_GAIN_1PS * (command.speed_mps - speed_mps)
    else:
        throttle, brake = (0.0 if isnan(share) else min(share, 1.0) for share in (command.throttle, command.brake))
        demanded = throttle * vehicle.acceleration_mps2 - brake * vehicle.brake_mps2
    return min(max(demanded, -vehicle.brake_mps2), vehicle.acceleration_mps2)


def commanded_steering_rad(command: Control, speed_mps: float, vehicle: Vehicle) -> float:
    """Return the demanded angle of the road wheels at a speed, within their limits."""
    demanded = command.steering_rad
    if isnan(demanded):
        demanded = atan(vehicle.wheelbase_m * command.yaw_rate_radps / max(speed_mps, LEAST_MPS))
    return min(max(demanded, -vehicle.steering_rad), vehicle.steering_rad)
