# SPDX-License-Identifier: Apache-2.0
"""Client for simulators with scenario_simulator_v2's interface (AWSIM, its own simple sensor simulator).

ZeroMQ: we request (REQ), the simulator replies (REP), with one message of :mod:`mt_nodes.world.drive.traffic_messages`
each. In every step the order is as there: statuses of all entities, changed traffic lights, frame. The ego is the
simulator's own: it subscribes to the stack's commands itself, so :meth:`TrafficSimulator.drive` sends nothing, and the
stack must be in the simulator's ROS domain. The interface has no weather and no collisions: the former is not shown,
the latter are found by footprints. There are no animals.

Never tested with the real ones: only with a fake that speaks the same messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import atan2
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.world.drive import traffic_messages as api
from mt_nodes.world.drive.external import SAME_ORIGIN, Origin, SimulatedObject, ego_of
from mt_nodes.world.drive.scenario import Ego, Environment, Pose, Vehicle
from mt_nodes.world.drive.trace import EgoState

#: Classes with vehicles; all others go on foot.
_SUBTYPES = {
    "car": api.CAR,
    "truck": api.TRUCK,
    "bus": api.BUS,
    "motorcycle": api.MOTORCYCLE,
    "cyclist": api.BICYCLE,
}
EGO_NAME = "ego"
#: Values that no scenario gives: usual ones of a mid-size car (assumed), for display only.
_WHEEL_M, _TRACK_M, _TOP_MPS, _JERK_MPS3 = 0.65, 1.55, 50.0, 10.0
USUAL_CAR = Vehicle()


@dataclass(frozen=True)
class TrafficSettings:
    """Settings of the connection, and the meaning of names there.

    Attributes:
        endpoint: of ZeroMQ. step_s: duration of a frame. timeout_s: for one reply.
        map_path: of the Lanelet2 map. origin: of the scenario's frame in that map.
        assets: model for a kind, ``ego`` for the ego; empty by default.
        lights: id in the map by the scenario's signals; signals without one are not sent.
    """

    endpoint: str = "tcp://localhost:5555"
    step_s: float = 0.02
    timeout_s: float = 30.0
    map_path: str = ""
    origin: Origin = SAME_ORIGIN
    assets: Mapping[str, str] = field(default_factory=dict)
    lights: Mapping[str, int] = field(default_factory=dict)


class TrafficSimulator:
    """One connection to one simulator; see :class:`mt_nodes.world.drive.external.Simulator`.

    Raises UsageError: pyzmq or protobuf is not installed.
    """

    def __init__(self, settings: TrafficSettings) -> None:
        self.settings = settings
        self._socket = _connected(settings)
        self._things: dict[str, Any] = {}
        self._shown: dict[str, str] = {}
        self._lights_due = False
        self._time_s, self._vehicle = 0.0, USUAL_CAR
        self._ego = EgoState(0.0, 0.0, 0.0, 0.0)

    @property
    def step_s(self) -> float:
        """Duration of a frame."""
        return self.settings.step_s

    def begin(self, ego: Ego) -> None:
        """Begin an episode with the ego at its start."""
        self._things, self._time_s, self._vehicle = {}, 0.0, ego.vehicle
        given = self.settings
        self._ask("initialize", realtime_factor=1.0, step_time=given.step_s, lanelet2_map_path=given.map_path)
        car, speed = ego.vehicle, ego.speed_mps
        size = (car.front_m + car.rear_m, car.width_m, car.height_m)
        parameters = _vehicle(EGO_NAME, size, (car.front_m - car.rear_m) / 2.0, car)
        pose, asset = self._pose(ego.start), given.assets.get(EGO_NAME, "")
        spawned = {"parameters": parameters, "asset_key": asset, "pose": pose}
        self._ask("spawn_vehicle_entity", **spawned, is_ego=True, initial_speed=speed)
        self._add(EGO_NAME, api.EGO, api.CAR, pose, speed)
        self._ego = EgoState(ego.start.x_m, ego.start.y_m, ego.start.yaw_rad, speed)

    def spawn(self, thing: SimulatedObject) -> None:
        """Create a body. Raises UsageError: it is an animal."""
        if thing.label == "animal":
            raise UsageError(f"{thing.name} is a {thing.kind}: this simulator has no animals; take them out")
        pose, subtype = self._pose(thing.pose), _SUBTYPES.get(thing.label, api.UNKNOWN)
        spawned = {"asset_key": self.settings.assets.get(thing.kind, ""), "pose": pose}
        if subtype != api.UNKNOWN:
            self._ask("spawn_vehicle_entity", parameters=_vehicle(thing.name, thing.size_m, 0.0), **spawned)
            self._add(thing.name, api.VEHICLE, subtype, pose, 0.0)
            return
        named = {"name": thing.name, "bounding_box": _box(thing.size_m)}
        if thing.label == "pedestrian":
            self._ask("spawn_pedestrian_entity", parameters=named, **spawned)
            self._add(thing.name, api.PEDESTRIAN, api.ON_FOOT, pose, 0.0)
        else:
            self._ask("spawn_misc_object_entity", parameters=named, **spawned)
            self._add(thing.name, api.MISC_OBJECT, api.UNKNOWN, pose, 0.0)

    def move(self, name: str, pose: Pose, speed_mps: float) -> None:
        """Set a body's pose for the next frame."""
        self._things[name] |= {"pose": self._pose(pose), "action_status": _moving(speed_mps)}

    def weather(self, environment: Environment) -> None:
        """Do nothing: the interface has no weather."""

    def lights(self, colours: Mapping[str, str]) -> None:
        """Set lights with known ids for the next frame."""
        self._shown = {name: colour for name, colour in colours.items() if name in self.settings.lights}
        self._lights_due = bool(self._shown)

    def drive(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Do nothing: the ego gets the stack's commands from their topics."""

    def tick(self) -> None:
        """Advance by one frame."""
        statuses = [{**status, "time": self._time_s} for status in self._things.values()]
        answer = self._ask("update_entity_status", status=statuses, npc_logic_started=True)
        for status in answer.status:
            if status.name == EGO_NAME:
                self._store_state(status)
        if self._lights_due:
            self._ask("update_traffic_lights", states=[self._light(name) for name in self._shown])
            self._lights_due = False
        self._time_s += self.step_s
        times = {"current_simulation_time": self._time_s, "current_scenario_time": self._time_s}
        self._ask("update_frame", **times, current_ros_time=_time(self._time_s))

    def ego(self) -> EgoState:
        """Return the ego's state after the last frame."""
        return self._ego

    def collisions(self) -> Sequence[str]:
        """Return none: the interface does not report collisions."""
        return ()

    def end(self) -> None:
        """Remove all bodies."""
        for name in list(self._things):
            self._ask("despawn_entity", name=name)
            del self._things[name]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close(linger=0)

    def _add(self, name: str, kind: int, subtype: int, pose: dict[str, Any], speed_mps: float) -> None:
        kinds = {"type": {"type": kind}, "subtype": {"value": subtype}}
        self._things[name] = {"name": name, **kinds, "pose": pose, "action_status": _moving(speed_mps)}

    def _store_state(self, status: Any) -> None:
        """Store the simulator's state of the ego, and send it back: the simulator moves it."""
        at, q, twist = status.pose.position, status.pose.orientation, status.action_status.twist
        yaw = atan2(2.0 * (q.w * q.z + q.x * q.y), q.w**2 + q.x**2 - q.y**2 - q.z**2)
        pose = self.settings.origin.from_simulator(Pose(at.x, at.y, yaw))
        self._ego = ego_of(pose, twist.linear.x, twist.angular.z, self._vehicle.wheelbase_m)
        self._things[EGO_NAME] |= {"pose": status.pose, "action_status": status.action_status}

    def _pose(self, pose: Pose) -> dict[str, Any]:
        moved = self.settings.origin.to_simulator(pose)
        position = {"x": moved.x_m, "y": moved.y_m, "z": self.settings.origin.z_m}
        return {"position": position, "orientation": dict(zip("xyzw", quaternion_of_yaw(moved.yaw_rad), strict=True))}

    def _light(self, name: str) -> dict[str, Any]:
        bulb = {"color": api.COLOURS[self._shown[name]], "shape": api.CIRCLE, "status": api.SHINES, "confidence": 1.0}
        return {"id": self.settings.lights[name], "traffic_light_status": [bulb]}

    def _ask(self, what: str, **fields: Any) -> Any:
        """Send a request and return its reply.

        Raises InfrastructureError: there is no reply in time, a wrong one, or a refusal.
        """
        import zmq
        from google.protobuf.message import DecodeError

        request = api.message("SimulationRequest")(**{what: fields})
        where = f"simulator at {self.settings.endpoint}"
        try:
            self._socket.send(request.SerializeToString())
            answer = api.message("SimulationResponse").FromString(self._socket.recv())
        except zmq.ZMQError as error:  # of one that is still owed an answer, too
            limit = f"{self.settings.timeout_s:g} s"
            raise InfrastructureError(f"{where}: no answer to {what} within {limit}; is it running? {error}") from error
        except DecodeError as error:
            raise InfrastructureError(f"{where}: the answer to {what} cannot be read: {error}") from error
        if (got := answer.WhichOneof("what")) != what:
            raise InfrastructureError(f"{where}: got an answer to {got}, expected one to {what}")
        if not getattr(answer, what).result.success:
            raise InfrastructureError(f"{where}: refuses {what}: {getattr(answer, what).result.description}")
        return getattr(answer, what)


def _connected(settings: TrafficSettings) -> Any:
    api.message("SimulationRequest")
    try:
        import zmq
    except ImportError as error:
        raise UsageError(f"this simulator needs pyzmq: pip install 'mt_nodes[awsim]' ({error})") from error
    socket = zmq.Context.instance().socket(zmq.REQ)
    socket.setsockopt(zmq.SNDTIMEO, round(settings.timeout_s * 1e3))
    socket.setsockopt(zmq.RCVTIMEO, round(settings.timeout_s * 1e3))
    try:
        socket.connect(settings.endpoint)
    except zmq.ZMQError as error:
        expected = f"expected one such as tcp://host:5555 ({error})"
        raise UsageError(f"endpoint: got '{settings.endpoint}', {expected}") from error
    return socket


def _box(size_m: tuple[float, float, float], forward_m: float = 0.0) -> dict[str, Any]:
    length, width, height = size_m
    return {"center": {"x": forward_m, "z": height / 2.0}, "dimensions": {"x": length, "y": width, "z": height}}


def _vehicle(
    name: str, size_m: tuple[float, float, float], forward_m: float, car: Vehicle = USUAL_CAR
) -> dict[str, Any]:
    limits = (car.acceleration_mps2, _JERK_MPS3, car.brake_mps2, car.brake_jerk_mps3)
    named = ("max_acceleration", "max_acceleration_rate", "max_deceleration", "max_deceleration_rate")
    axle = {"wheel_diameter": _WHEEL_M, "track_width": _TRACK_M, "position_z": _WHEEL_M / 2.0}
    return {
        "name": name,
        "performance": {"max_speed": _TOP_MPS, **dict(zip(named, limits, strict=True))},
        "bounding_box": _box(size_m, forward_m),
        "axles": {
            "front_axle": {**axle, "max_steering": car.steering_rad, "position_x": car.wheelbase_m},
            "rear_axle": axle,
        },
    }


def _moving(speed_mps: float) -> dict[str, Any]:
    return {"current_action": "", "twist": {"linear": {"x": speed_mps}}}


def _time(time_s: float) -> dict[str, int]:
    sec, nanosec = divmod(round(time_s * 1e9), 1_000_000_000)
    return {"sec": sec, "nanosec": nanosec}
