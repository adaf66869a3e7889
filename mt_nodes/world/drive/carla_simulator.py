# SPDX-License-Identifier: Apache-2.0
"""CARLA over its Python interface, as a simulator that our scenarios are driven in.

Written from the type stubs and docstrings of the package ``carla`` 0.9.16. CARLA ticks when asked (synchronous mode,
fixed step). Its frame is left-handed: y and yaw are turned between it and ours, steering is positive to the right.
An OpenDRIVE file of the scenario is given to CARLA, which builds its roads of it; a map of ours needs a town that is
the same.

Bodies are spawned from blueprints, without physics, and put where they have to be before each step. The ego has
physics; it is dropped onto the road, put at its start again, and given its speed. Throttle and brake are shares of what
the scenario's car can do; steering is the angle of the wheels as a share of their lock, which CARLA tells. Traffic
lights are those of the OpenDRIVE ids that are named as the scenario's, or as ``lights`` says.

Never tried with a CARLA server: only with a fake of the same interface, whose names are compared with the package's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError, needs_extra
from mt_nodes.world.drive.external import SAME_ORIGIN, Origin, SimulatedObject, ego_of
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.drive.scenario import Ego, Environment, Pose, Vehicle
from mt_nodes.world.drive.trace import EgoState

#: CARLA's blueprints by kind, else by label. Adult and box are in its catalogues of pedestrians (0.9.15) and props
#: (0.9.16), the car in its ROS bridge; the other names are from memory: one that it does not have is refused by name.
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
#: The ego falls from so high, for so many steps; the ground is looked for from so high and so deep (assumed).
_DROP_M, _DROP_STEPS, _ABOVE_M, _BELOW_M = 0.3, 20, 50.0, 100.0
#: The simulator's clock goes on by a step to within so much.
_CLOCK_S = 1e-3


@dataclass(frozen=True)
class CarlaSettings:
    """Where CARLA is, and what names mean there.

    Attributes:
        host, port: of its server. step_s: of a tick, at most 0.1. timeout_s: for one answer.
        town: CARLA's own map, for scenarios whose map is not an OpenDRIVE file. origin: of the scenario's frame in it.
        blueprints: by kind or label, where they are not :data:`BLUEPRINTS`. lights: OpenDRIVE id by the scenario's
            signals, where they are not the same. own_lights: CARLA's lights shine as they do there.
    """

    host: str = "localhost"
    port: int = 2000
    step_s: float = 0.05
    timeout_s: float = 30.0
    town: str = ""
    origin: Origin = SAME_ORIGIN
    blueprints: Mapping[str, str] = field(default_factory=dict)
    lights: Mapping[str, str] = field(default_factory=dict)
    own_lights: bool = False


class CarlaSimulator:
    """One CARLA server; see :class:`mt_nodes.world.drive.external.Simulator`.

    ``carla``: the package, or what takes its place.
    Raises UsageError: the package is missing. InfrastructureError: no server answers.
    """

    def __init__(self, settings: CarlaSettings, carla: Any = None) -> None:
        self.settings, self._carla = settings, carla or _imported()
        self._client = self._carla.Client(settings.host, settings.port)
        self._client.set_timeout(settings.timeout_s)
        self._asked(self._client.get_server_version)
        self._world: Any = None
        self._road, self._elapsed_s = "", 0.0
        self._bodies: dict[str, Any] = {}
        self._heights_m: dict[str, float] = {}
        self._hit: list[int] = []
        self._ego: Any = None
        self._sensor: Any = None
        self._vehicle, self._shift_m, self._lock_rad = Vehicle(), 0.0, math.radians(70.0)
        self._begun, self._ticked = EgoState(0.0, 0.0, 0.0, 0.0), False

    @property
    def step_s(self) -> float:
        """Duration of a tick."""
        return self.settings.step_s

    def load_map(self, road: str) -> None:
        """Build the roads of an OpenDRIVE file, or load the town. Raises UsageError: the map is neither."""
        if road == self._road:
            return
        if road.endswith(".xodr"):
            walls = self._carla.OpendriveGenerationParameters(wall_height=0.0)
            text = Path(road).read_text(encoding="utf-8")
            self._world = self._asked(self._client.generate_opendrive_world, text, walls)
        elif self.settings.town:
            self._world = self._asked(self._client.load_world, self.settings.town)
        else:
            raise UsageError(f"map '{road}': expected an OpenDRIVE file (.xodr), or town in the simulator's settings")
        self._road = road
        self._synchronous(True)

    def begin(self, ego: Ego) -> None:
        """Spawn the ego with a collision sensor, let it stand on its wheels, and give it its speed."""
        self._vehicle = ego.vehicle
        self._ego = self._spawned(self._blueprint("ego", "car", "ego"), ego.start, "ego", drop_m=_DROP_M)
        wheels = self._asked(self._ego.get_physics_control).wheels
        self._lock_rad = math.radians(max(wheel.max_steer_angle for wheel in wheels))
        # Its place is the middle of the vehicle, ours the rear axle.
        self._shift_m = (ego.vehicle.front_m - ego.vehicle.rear_m) / 2.0 - self._ego.bounding_box.location.x
        library = self._world.get_blueprint_library()
        sensor = library.find("sensor.other.collision")
        self._sensor = self._asked(self._world.spawn_actor, sensor, self._carla.Transform(), self._ego)
        self._sensor.listen(lambda event: self._hit.append(event.other_actor.id))
        self._elapsed_s = self._asked(self._world.get_snapshot).timestamp.elapsed_seconds
        self._ego.apply_control(self._carla.VehicleControl(hand_brake=True))
        for _ in range(_DROP_STEPS):
            self.tick()
        start = self._transform(ego.start, self._ego.get_transform().location.z, self._shift_m)
        self._ego.set_transform(start)
        ahead = start.get_forward_vector()
        velocity = self._carla.Vector3D(ahead.x * ego.speed_mps, ahead.y * ego.speed_mps, 0.0)
        self._ego.set_target_velocity(velocity)
        self._hit.clear()
        self._begun = EgoState(ego.start.x_m, ego.start.y_m, ego.start.yaw_rad, ego.speed_mps)
        self._ticked = False

    def spawn(self, thing: SimulatedObject) -> None:
        """Put a body there. Raises UsageError: there is no blueprint for its kind."""
        actor = self._spawned(self._blueprint(thing.kind, thing.label, thing.name), thing.pose, thing.name)
        actor.set_simulate_physics(False)
        self._bodies[thing.name] = actor

    def move(self, name: str, pose: Pose, speed_mps: float) -> None:
        """Put a body where it is at the next step."""
        self._bodies[name].set_transform(self._transform(pose, self._heights_m[name]))

    def weather(self, environment: Environment) -> None:
        """Show an hour and a weather; of snow CARLA knows nothing."""
        east, north, up = (float(part) for part in light_of(environment).to_sun)
        wet = 100.0 * max(environment.wetness, environment.rain)
        shown = self._carla.WeatherParameters(
            cloudiness=100.0 * environment.cloudiness,
            precipitation=100.0 * environment.rain,
            precipitation_deposits=wet,
            sun_azimuth_angle=math.degrees(math.atan2(east, north)) % 360.0,
            sun_altitude_angle=math.degrees(math.asin(up)),
            fog_density=100.0 * environment.fog,
            wetness=wet,
        )
        self._asked(self._world.set_weather, shown)

    def lights(self, colours: Mapping[str, str]) -> None:
        """Set the lights and freeze them. Raises UsageError: CARLA has none of that id, and its own do not do."""
        if self.settings.own_lights:
            return
        for name, colour in colours.items():
            id_ = self.settings.lights.get(name, name)
            light = self._asked(self._world.get_traffic_light_from_opendrive_id, id_)
            if light is None:
                raise UsageError(
                    f"traffic light '{name}': CARLA's map has none with the OpenDRIVE id '{id_}'; name it in lights, "
                    "or say own_lights: true if it does not matter"
                )
            light.freeze(True)
            light.set_state(getattr(self._carla.TrafficLightState, colour.capitalize()))

    def drive(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Ask for throttle or brake, as shares of what the scenario's vehicle can, and steering."""
        car, control = self._vehicle, self._carla.VehicleControl()
        control.throttle = min(max(acceleration_mps2 / car.acceleration_mps2, 0.0), 1.0)
        control.brake = min(max(-acceleration_mps2 / car.brake_mps2, 0.0), 1.0)
        control.steer = min(max(-steering_rad / self._lock_rad, -1.0), 1.0)
        self._ego.apply_control(control)

    def tick(self) -> None:
        """Make one step. Raises InfrastructureError: its clock does not go on by that."""
        self._hit.clear()
        self._ticked = True
        frame = self._asked(self._world.tick)
        now = self._asked(self._world.get_snapshot)
        passed_s = now.timestamp.elapsed_seconds - self._elapsed_s
        self._elapsed_s = now.timestamp.elapsed_seconds
        if now.frame != frame or abs(passed_s - self.step_s) > _CLOCK_S:
            raise self._trouble(
                f"after a step it is at frame {now.frame} and {passed_s:.3f} s on, expected frame {frame} and "
                f"{self.step_s:g} s; does another client tick it?"
            )

    def ego(self) -> EgoState:
        """Return the ego as of the last step."""
        if not self._ticked:
            return self._begun
        velocity, ahead = self._ego.get_velocity(), self._ego.get_transform().get_forward_vector()
        forward_mps = velocity.x * ahead.x + velocity.y * ahead.y
        yaw_rate = -math.radians(self._ego.get_angular_velocity().z)
        return ego_of(self._place(self._ego, self._shift_m), forward_mps, yaw_rate, self._vehicle.wheelbase_m)

    def places(self) -> Mapping[str, Pose]:
        """Return where the bodies are, of those that are still there."""
        return {name: self._place(actor) for name, actor in self._bodies.items() if actor.is_alive}

    def collisions(self) -> Sequence[str]:
        """Return the names of those the ego's sensor reported in the last step."""
        names = {actor.id: name for name, actor in self._bodies.items()}
        return tuple(names.get(id_, "") for id_ in self._hit)

    def end(self) -> None:
        """Remove everything."""
        if self._sensor is not None:
            self._sensor.stop()
        for actor in (self._sensor, self._ego, *self._bodies.values()):
            if actor is not None:
                self._asked(actor.destroy)
        self._sensor = self._ego = None
        self._bodies.clear()
        self._heights_m.clear()

    def close(self) -> None:
        """Let CARLA's time go on by itself again."""
        if self._world is not None:
            self._synchronous(False)

    def _synchronous(self, on: bool) -> None:
        settings = self._asked(self._world.get_settings)
        settings.synchronous_mode, settings.fixed_delta_seconds = on, self.step_s if on else None
        self._asked(self._world.apply_settings, settings)

    def _spawned(self, blueprint: str, pose: Pose, name: str, drop_m: float = 0.0) -> Any:
        """Return a new actor whose lowest point is on the road, or above it."""
        try:
            kind = self._world.get_blueprint_library().find(blueprint)
        except (RuntimeError, IndexError) as error:
            raise UsageError(f"{name}: this CARLA has no blueprint '{blueprint}'; name one in blueprints") from error
        above = self._transform(pose, self.settings.origin.z_m + _ABOVE_M)
        ground = self._asked(self._world.ground_projection, above.location, _ABOVE_M + _BELOW_M)
        if ground is None:
            raise self._trouble(f"there is no ground at ({pose.x_m:.1f}, {pose.y_m:.1f}) m, where {name} should be")
        actor = self._asked(self._world.try_spawn_actor, kind, self._transform(pose, ground.location.z + _DROP_M))
        if actor is None:
            raise self._trouble(f"{blueprint} cannot be spawned as {name}: something is in its place")
        box = actor.bounding_box
        self._heights_m[name] = ground.location.z + box.extent.z - box.location.z
        if not drop_m:
            actor.set_transform(self._transform(pose, self._heights_m[name]))
        return actor

    def _blueprint(self, kind: str, label: str, name: str) -> str:
        known = {**BLUEPRINTS, **self.settings.blueprints}
        if not (found := known.get(kind) or known.get(label)):
            raise UsageError(f"{name}: no blueprint of CARLA for a {kind}; name one: blueprints: {{{kind}: …}}")
        return found

    def _transform(self, pose: Pose, z_m: float, forward_m: float = 0.0) -> Any:
        there = self.settings.origin.to_simulator(pose, forward_m)
        place = self._carla.Location(there.x_m, -there.y_m, z_m)
        return self._carla.Transform(place, self._carla.Rotation(0.0, -math.degrees(there.yaw_rad), 0.0))

    def _place(self, actor: Any, forward_m: float = 0.0) -> Pose:
        there = actor.get_transform()
        pose = Pose(there.location.x, -there.location.y, -math.radians(there.rotation.yaw))
        return self.settings.origin.from_simulator(pose, forward_m)

    def _asked(self, call: Any, *given: Any) -> Any:
        """Return what CARLA answers. Raises InfrastructureError: it does not in time, or raises."""
        try:
            return call(*given)
        except RuntimeError as error:
            raise self._trouble(str(error)) from error

    def _trouble(self, what: str) -> InfrastructureError:
        return InfrastructureError(f"CARLA at {self.settings.host}:{self.settings.port}: {what}")


def _imported() -> Any:
    with needs_extra("carla", "--simulator carla needs a package; type"):
        import carla
    return carla
