# SPDX-License-Identifier: Apache-2.0
"""Client for simulators with scenario_simulator_v2's interface (AWSIM, its own simple sensor simulator).

ZeroMQ: we request (REQ), the simulator replies (REP), with one message of :mod:`mt_nodes.world.drive.traffic_messages`
each. In every step the order is as there: statuses of all entities, changed traffic lights, frame. The ego is the
simulator's own: it subscribes to the stack's commands itself, so :meth:`TrafficSimulator.drive` sends nothing, and the
stack must be in the simulator's ROS domain. The interface has no weather and no collisions: the former is not shown,
the latter are found by footprints. There are no animals. Read as well: AWSIM's side of it (tier4/AWSIM,
``ScenarioSimulatorConnector``). It needs a known ``asset_key`` and all times and poses, or it fails; it answers at once
and lets its time go on by itself, so that frames are sent no faster than time; and of all bodies but the ego it answers
what it was sent, so that their places are no evidence: that it runs shows in the ego's.

Never tested with the real ones: only with a fake that speaks the same messages and fails where AWSIM does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import atan2
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError, needs_extra
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.world.drive import traffic_messages as api
from mt_nodes.world.drive.external import SAME_ORIGIN, Origin, SimulatedObject, ego_of
from mt_nodes.world.drive.scenario import Ego, Environment, Pose, Vehicle
from mt_nodes.world.drive.trace import EgoState

#: Classes with vehicles; all others go on foot.
_SUBTYPES = {"car": api.CAR, "truck": api.TRUCK, "bus": api.BUS, "motorcycle": api.MOTORCYCLE, "cyclist": api.BICYCLE}
EGO_NAME = "ego"
#: Values that no scenario gives: usual ones of a mid-size car (assumed), for display only.
_WHEEL_M, _TRACK_M, _TOP_MPS, _JERK_MPS3 = 0.65, 1.55, 50.0, 10.0
USUAL_CAR = Vehicle()


@dataclass(frozen=True)
class TrafficSettings:
    """Settings of the connection, and the meaning of names there.

    Attributes:
        endpoint: of ZeroMQ. step_s: duration of a frame. timeout_s: for one reply.
        map_path: of the Lanelet2 map, where the scenario's own is not one. origin: of the scenario's frame in it.
        assets: model (``asset_key``) for a kind, else for a label; ``ego`` for the ego. Without any, none is sent,
            which simple_sensor_simulator takes.
        pace: simulated seconds per second, at most; 0: as fast as it answers, for simulators that step on request.
        lights: id in the map by the scenario's signals; signals without one are not sent.
    """

    endpoint: str = "tcp://localhost:5555"
    step_s: float = 0.02
    timeout_s: float = 30.0
    map_path: str = ""
    origin: Origin = SAME_ORIGIN
    assets: Mapping[str, str] = field(default_factory=dict)
    lights: Mapping[str, int] = field(default_factory=dict)
    pace: float = 1.0


class TrafficSimulator:
    """One connection to one simulator; see :class:`mt_nodes.world.drive.external.Simulator`.

    Raises UsageError: pyzmq or protobuf is not installed.
    """

    def __init__(
        self,
        settings: TrafficSettings,
        now_s: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect. ``now_s``, ``wait``: the clock by which frames are paced."""
        self.settings, self._now_s, self._wait = settings, now_s, wait
        self._road, self._due_s = "", 0.0
        self._places: dict[str, Pose] = {}
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

    def load_map(self, road: str) -> None:
        """Take the scenario's map, if it is a Lanelet2 file. Raises UsageError: it is none, and ``map_path`` says none.

        The simulator is told its path with the first request; AWSIM has a map of its own.
        """
        path = road.partition("@")[0]
        self._road = self.settings.map_path or (path if path.endswith(".osm") else "")
        if not self._road:
            raise UsageError(f"map '{road}': expected a Lanelet2 file (.osm), or map_path in the simulator's settings")

    def begin(self, ego: Ego) -> None:
        """Begin an episode with the ego at its start."""
        self._things, self._places, self._time_s, self._vehicle = {}, {}, 0.0, ego.vehicle
        given, pace = self.settings, self.settings.pace or 1.0
        times = {"realtime_factor": pace, "step_time": given.step_s, "initialize_ros_time": _time(0.0)}
        self._ask("initialize", **times, lanelet2_map_path=self._road)
        car, speed = ego.vehicle, ego.speed_mps
        size = (car.front_m + car.rear_m, car.width_m, car.height_m)
        parameters = _vehicle(EGO_NAME, size, (car.front_m - car.rear_m) / 2.0, car)
        pose, asset = self._pose(ego.start), self._asset(EGO_NAME)
        spawned = {"parameters": parameters, "asset_key": asset, "pose": pose}
        self._ask("spawn_vehicle_entity", **spawned, is_ego=True, initial_speed=speed)
        self._add(EGO_NAME, api.EGO, api.CAR, pose, speed)
        self._ego = EgoState(ego.start.x_m, ego.start.y_m, ego.start.yaw_rad, speed)

    def spawn(self, thing: SimulatedObject) -> None:
        """Create a body. Raises UsageError: it is an animal."""
        if thing.label == "animal":
            raise UsageError(f"{thing.name} is a {thing.kind}: this simulator has no animals; take them out")
        pose, subtype = self._pose(thing.pose), _SUBTYPES.get(thing.label, api.UNKNOWN)
        spawned = {"asset_key": self._asset(thing.kind, thing.label), "pose": pose}
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
        self._places = {status.name: self._place(status.pose) for status in answer.status}
        for status in answer.status:
            if status.name == EGO_NAME:
                self._store_state(status)
        if self._lights_due:
            self._ask("update_traffic_lights", states=[self._light(name) for name in self._shown])
            self._lights_due = False
        self._time_s += self.step_s
        times = {"current_simulation_time": self._time_s, "current_scenario_time": self._time_s}
        self._ask("update_frame", **times, current_ros_time=_time(self._time_s))
        if self.settings.pace:
            self._wait(max(0.0, self._due_s - self._now_s()))
            self._due_s = max(self._due_s, self._now_s()) + self.step_s / self.settings.pace

    def ego(self) -> EgoState:
        """Return the ego's state after the last frame."""
        return self._ego

    def collisions(self) -> Sequence[str]:
        """Return none: the interface does not report collisions."""
        return ()

    def places(self) -> Mapping[str, Pose]:
        """Return the places of bodies in the last answer; simulators of this interface repeat what they were sent."""
        return self._places

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
        twist, pose = status.action_status.twist, self._place(status.pose)
        self._ego = ego_of(pose, twist.linear.x, twist.angular.z, self._vehicle.wheelbase_m)
        self._things[EGO_NAME] |= {"pose": status.pose, "action_status": status.action_status}

    def _asset(self, *names: str) -> str:
        """Return the model for a kind or a label. Raises UsageError: models are named, and there is none for it."""
        assets = self.settings.assets
        if assets and not any(name in assets for name in names):
            raise UsageError(f"assets: none for {' or '.join(names)}; name a model that the simulator has")
        return next((assets[name] for name in names if name in assets), "")

    def _place(self, pose: Any) -> Pose:
        """Return a pose of the simulator in the scenario's frame."""
        at, q = pose.position, pose.orientation
        yaw = atan2(2.0 * (q.w * q.z + q.x * q.y), q.w**2 + q.x**2 - q.y**2 - q.z**2)
        return self.settings.origin.from_simulator(Pose(at.x, at.y, yaw))

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
    with needs_extra("awsim", "this simulator needs pyzmq"):
        import zmq
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
