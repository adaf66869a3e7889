# SPDX-License-Identifier: Apache-2.0
"""CARLA over its ROS bridge, as a simulator that our scenarios are driven in.

After github.com/carla-simulator/ros-bridge (e9063d9 of July 2022, for CARLA 0.9.13) and ros-carla-msgs (081fdcd). The
bridge must tick CARLA itself (``synchronous_mode:=True``, the default, ``passive:=False``) with our ``step_s`` as its
``fixed_delta_seconds``. Each step is one STEP_ONCE on ``/carla/control``, made when the ego's odometry of it is there.
The bridge turns y and yaw between ROS and CARLA itself; only steering, which it hands on as it comes, is to the right.

Objects are spawned by service; each gets a control (``actor.pseudo.control``), by which it is put where it has to be
before each step. The ego gets odometry and a collision sensor. Lights cannot be set over the bridge: a map with lights
is refused unless they do not matter. Kinds that no blueprint is named for (animals, wheelchairs …) are refused unless
the user names one. Topics keep no order among each other: a pose or a command may count a step later.

Never tried with CARLA: only with a fake that speaks the same messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.nodes.channel import SimulatorChannel
from mt_nodes.nodes.orientation import yaws
from mt_nodes.world.drive.external import SAME_ORIGIN, Origin, SimulatedObject, ego_of
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.drive.scenario import Ego, Environment, Pose, Vehicle
from mt_nodes.world.drive.trace import EgoState

PLAY, PAUSE, STEP_ONCE = range(3)
"""``carla_msgs/msg/CarlaControl``."""
#: How long the odometry of a step is waited for before the step after is made, as long as it has never come.
_MEET_S = 1.0
#: CARLA's blueprints by kind, else by label. The car is that of the bridge's own configuration; adult and box are in
#: CARLA's catalogues of pedestrians (0.9.15) and props (0.9.16); the other names are from memory and not checked.
BLUEPRINTS = {
    "ego": "vehicle.tesla.model3",
    "car": "vehicle.tesla.model3",
    "truck": "vehicle.carlamotors.carlacola",
    "motorcycle": "vehicle.yamaha.yzf",
    "cyclist": "vehicle.bh.crossbike",
    "adult": "walker.pedestrian.0001",
    "elderly": "walker.pedestrian.0001",
    "child": "walker.pedestrian.0011",
    "cone": "static.prop.trafficcone01",
    "box": "static.prop.box01",
    "barrier": "static.prop.streetbarrier",
}


@dataclass(frozen=True)
class CarlaSettings:
    """How the bridge runs, and what names mean there.

    Attributes:
        role: of the ego, one of the bridge's ``ego_vehicle_role_name``. step_s: the bridge's ``fixed_delta_seconds``,
            less than 0.1. timeout_s: for the answer to one step.
        origin: of the scenario's frame in the bridge's ``map``; its z a little above the road, onto which all drop.
        blueprints: by kind or label, where they are not :data:`BLUEPRINTS`. full_lock_rad: road-wheel angle at steer 1.
        own_lights: CARLA's traffic lights shine as they do there, whatever the scenario says.
    """

    role: str = "ego_vehicle"
    step_s: float = 0.05
    timeout_s: float = 30.0
    origin: Origin = SAME_ORIGIN
    blueprints: Mapping[str, str] = field(default_factory=dict)
    full_lock_rad: float = math.radians(70)
    own_lights: bool = False


class CarlaBridge:
    """One bridge; see :class:`mt_nodes.world.drive.external.Simulator`."""

    def __init__(self, channel: SimulatorChannel, settings: CarlaSettings) -> None:
        self.settings, self._channel = settings, channel
        self._ids: dict[str, int] = {}
        self._hit: list[str] = []
        self._frames, self._settled, self._shift_m = 0, False, 0.0
        self._start, self._vehicle = Ego(Pose(0.0, 0.0)), Vehicle()
        self._ego = EgoState(0.0, 0.0, 0.0, 0.0)

    @property
    def step_s(self) -> float:
        """How long a step is."""
        return self.settings.step_s

    def begin(self, ego: Ego) -> None:
        """Stop time, and spawn the ego with its odometry and collision sensor."""
        self._start, self._vehicle, self._settled = ego, ego.vehicle, False
        self._hit.clear()
        # CARLA's vehicles stand where their middle is, ours where their rear axle is.
        self._shift_m = (ego.vehicle.front_m - ego.vehicle.rear_m) / 2.0
        self._ego = EgoState(ego.start.x_m, ego.start.y_m, ego.start.yaw_rad, ego.speed_mps)
        self._command(PAUSE)
        role = self.settings.role
        vehicle = self._spawn(self._blueprint("ego", "car", role), role, self._pose(ego.start, self._shift_m))
        for kind, name in (("sensor.pseudo.odom", "odometry"), ("sensor.other.collision", "collision")):
            self._spawn(kind, name, self._channel.make("geometry_msgs/msg/Pose"), vehicle)
        self._spawn("actor.pseudo.control", "control", self._channel.make("geometry_msgs/msg/Pose"), vehicle)
        self._channel.hear(f"/carla/{role}/odometry", "nav_msgs/msg/Odometry", self._moved)
        self._channel.hear(f"/carla/{role}/collision", "carla_msgs/msg/CarlaCollisionEvent", self._collided)

    def spawn(self, thing: SimulatedObject) -> None:
        """Put somebody or something there. Raises UsageError: there is no blueprint for its kind."""
        id_ = self._spawn(self._blueprint(thing.kind, thing.label, thing.name), thing.name, self._pose(thing.pose))
        if thing.moves:
            self._spawn("actor.pseudo.control", "control", self._channel.make("geometry_msgs/msg/Pose"), id_)

    def move(self, name: str, pose: Pose, speed_mps: float) -> None:
        """Put somebody where he is at the next step."""
        self._settle()
        self._channel.send(f"/carla/{name}/control/set_transform", self._pose(pose))

    def weather(self, environment: Environment) -> None:
        """Show an hour and a weather; of snow CARLA knows nothing."""
        message = self._channel.make("carla_msgs/msg/CarlaWeatherParameters")
        message.cloudiness, message.precipitation = 100.0 * environment.cloudiness, 100.0 * environment.rain
        message.precipitation_deposits = message.wetness = 100.0 * max(environment.wetness, environment.rain)
        message.fog_density = 100.0 * environment.fog
        east, north, up = (float(part) for part in light_of(environment).to_sun)
        message.sun_altitude_angle = math.degrees(math.asin(up))
        message.sun_azimuth_angle = math.degrees(math.atan2(east, north)) % 360.0
        self._channel.send("/carla/weather_control", message)

    def lights(self, colours: Mapping[str, str]) -> None:
        """Refuse lights, unless CARLA's are to shine as they like. Raises UsageError: there are any."""
        if colours and not self.settings.own_lights:
            raise UsageError(
                f"traffic lights {', '.join(sorted(colours))}: CARLA's cannot be set over its ROS bridge; choose a map "
                "without lights, or say own_lights=True if they do not matter"
            )

    def drive(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Ask for throttle or brake, as shares of what the scenario's vehicle can, and steering."""
        self._settle()
        message, car = self._channel.make("carla_msgs/msg/CarlaEgoVehicleControl"), self._vehicle
        message.throttle = min(max(acceleration_mps2 / car.acceleration_mps2, 0.0), 1.0)
        message.brake = min(max(-acceleration_mps2 / car.brake_mps2, 0.0), 1.0)
        message.steer = min(max(-steering_rad / self.settings.full_lock_rad, -1.0), 1.0)
        self._channel.send(f"/carla/{self.settings.role}/vehicle_control_cmd", message)

    def tick(self) -> None:
        """Make one step. Raises InfrastructureError: its odometry does not come in time."""
        self._settle()
        self._hit.clear()
        if not self._stepped(self.settings.timeout_s):
            raise self._trouble(f"no odometry of a step within {self.settings.timeout_s:g} s; does the bridge tick?")

    def ego(self) -> EgoState:
        """Return the ego as of the last step."""
        return self._ego

    def collisions(self) -> Sequence[str]:
        """Return the names of whom the ego was reported to hit in the last step."""
        return tuple(self._hit)

    def end(self) -> None:
        """Take away all that was put there, and let time go on."""
        self._channel.forget(lambda topic: topic.startswith("/carla/") and topic != "/carla/control")
        for id_ in reversed(self._ids.values()):
            request = self._channel.make("carla_msgs/srv/DestroyObject")
            request.id = id_
            self._channel.call("/carla/destroy_object", request)
        self._ids.clear()
        self._command(PLAY)

    def _settle(self) -> None:
        """Step until all that was spawned is there, then put the ego at its start again, with its speed."""
        if self._settled:
            return
        for _ in range(math.ceil(self.settings.timeout_s / _MEET_S)):
            if self._stepped(_MEET_S):
                break
        else:
            raise self._trouble(f"no odometry of the ego within {self.settings.timeout_s:g} s; does the bridge tick?")
        self._settled, start, control = True, self._start, f"/carla/{self.settings.role}/control"
        self._channel.send(f"{control}/set_transform", self._pose(start.start, self._shift_m))
        twist = self._channel.make("geometry_msgs/msg/Twist")
        twist.linear.x = start.speed_mps
        self._channel.send(f"{control}/set_target_velocity", twist)
        self._ego = EgoState(start.start.x_m, start.start.y_m, start.start.yaw_rad, start.speed_mps)

    def _stepped(self, limit_s: float) -> bool:
        before = self._frames
        self._command(STEP_ONCE)
        return self._channel.wait(lambda: self._frames > before, limit_s)

    def _command(self, command: int) -> None:
        message = self._channel.make("carla_msgs/msg/CarlaControl")
        message.command = command
        self._channel.send("/carla/control", message)

    def _spawn(self, blueprint: str, name: str, pose: Any, attach_to: int = 0) -> int:
        request = self._channel.make("carla_msgs/srv/SpawnObject")
        request.type, request.id, request.transform, request.attach_to = blueprint, name, pose, attach_to
        response = self._channel.call("/carla/spawn_object", request)
        if response.id < 0:
            raise self._trouble(f"{blueprint} cannot be spawned as {name}: {response.error_string}")
        if not attach_to:
            self._ids[name] = response.id
        return int(response.id)

    def _blueprint(self, kind: str, label: str, name: str) -> str:
        known = {**BLUEPRINTS, **self.settings.blueprints}
        if not (found := known.get(kind) or known.get(label)):
            raise UsageError(f"{name}: no blueprint of CARLA for a {kind}; name one: blueprints={{'{kind}': '…'}}")
        return found

    def _pose(self, pose: Pose, forward_m: float = 0.0) -> Any:
        there, message = (
            self.settings.origin.to_simulator(pose, forward_m),
            self._channel.make("geometry_msgs/msg/Pose"),
        )
        at, by = message.position, message.orientation
        at.x, at.y, at.z = there.x_m, there.y_m, self.settings.origin.z_m
        by.x, by.y, by.z, by.w = quaternion_of_yaw(there.yaw_rad)
        return message

    def _moved(self, message: Any) -> None:
        """Take in the ego's odometry, of which the twist is along the ego."""
        at, by, twist = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist
        there = Pose(at.x, at.y, float(yaws(np.array([[by.x, by.y, by.z, by.w]]))[0]))
        pose = self.settings.origin.from_simulator(there, self._shift_m)
        self._ego = ego_of(pose, twist.linear.x, twist.angular.z, self._vehicle.wheelbase_m)
        self._frames += 1

    def _collided(self, message: Any) -> None:
        names = {id_: name for name, id_ in self._ids.items()}
        self._hit.append(names.get(message.other_actor_id, ""))

    def _trouble(self, what: str) -> InfrastructureError:
        return InfrastructureError(f"CARLA's bridge: {what}")
