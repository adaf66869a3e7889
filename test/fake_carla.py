# SPDX-License-Identifier: Apache-2.0
"""What CARLA's Python interface does, as far as it is spoken to; its names are compared with the package's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class Vector:
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass
class Turn:
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0


@dataclass
class Placed:
    location: Vector = field(default_factory=Vector)
    rotation: Turn = field(default_factory=Turn)

    def get_forward_vector(self) -> Vector:
        return Vector(math.cos(math.radians(self.rotation.yaw)), math.sin(math.radians(self.rotation.yaw)), 0.0)


@dataclass
class Pedals:
    throttle: float = 0.0
    steer: float = 0.0
    brake: float = 0.0
    hand_brake: bool = False


class FakeActor:
    """An actor: the ego goes straight on with its speed, others stay where they are put; both from the next tick on."""

    def __init__(self, world: FakeWorld, id_: int, kind: str, at: Placed) -> None:
        self.id, self.kind, self._world, self._at = id_, kind, world, at
        self.bounding_box = SimpleNamespace(
            location=Vector(0.1 if "vehicle" in kind else 0.0), extent=Vector(2, 1, 0.9)
        )
        self.is_alive, self.physics, self.due = True, True, at
        self.control, self.velocity = Pedals(), Vector()
        self.heard: Any = None

    def set_transform(self, at: Placed) -> None:
        self.due = at

    def get_transform(self) -> Placed:
        return self._at

    def set_target_velocity(self, velocity: Vector) -> None:
        self.velocity = velocity

    def get_velocity(self) -> Vector:
        return self.velocity

    def get_angular_velocity(self) -> Vector:
        return Vector(0.0, 0.0, math.degrees(-0.1))

    def set_simulate_physics(self, on: bool) -> None:
        self.physics = on

    def apply_control(self, control: Pedals) -> None:
        self.control = control

    def get_physics_control(self) -> Any:
        return SimpleNamespace(wheels=[SimpleNamespace(max_steer_angle=angle) for angle in (40.0, 40.0, 0.0, 0.0)])

    def listen(self, take: Any) -> None:
        self.heard = take

    def stop(self) -> None:
        self.heard = None

    def destroy(self) -> None:
        self.is_alive = False

    def advance(self, step_s: float) -> None:
        if self._world.loses and self.kind.startswith("walker"):
            self.is_alive = False
        if self._world.stands:
            self.velocity = Vector()
        if self._world.obeys:
            speed = math.hypot(self.velocity.x, self.velocity.y)
            ahead = self.due.get_forward_vector()
            speed = max(0.0, speed + (3.0 * self.control.throttle - 9.0 * self.control.brake) * step_s)
            self.velocity = Vector(ahead.x * speed, ahead.y * speed)
        place = self.due.location
        moved = Vector(place.x + self.velocity.x * step_s, place.y + self.velocity.y * step_s, place.z)
        self.due = self._at = Placed(moved, self.due.rotation)


class FakeWorld:
    """A world in synchronous mode.

    ``frozen``: it answers ticks and does nothing. ``stands``: nothing moves in it. ``loses``: walkers vanish from it.
    ``obeys``: its vehicles take throttle and brake, but do not steer.
    """

    def __init__(self, frozen: bool = False, *, obeys: bool = False, stands: bool = False, loses: bool = False) -> None:
        self.obeys, self.stands, self.loses = obeys, stands, loses
        self.frozen, self.frame, self.elapsed_s = frozen, 7, 3.0
        self.actors: list[FakeActor] = []
        self.settings = SimpleNamespace(synchronous_mode=False, fixed_delta_seconds=None)
        self.weather: Any = None
        self.lights: dict[str, Any] = {}
        self.full = False

    def get_settings(self) -> Any:
        return self.settings

    def apply_settings(self, settings: Any) -> None:
        self.settings = settings

    def get_blueprint_library(self) -> Any:
        return self

    def find(self, name: str) -> str:
        if "deer" in name:
            raise IndexError(f"blueprint '{name}' not found")
        return name

    def ground_projection(self, location: Vector, depth_m: float) -> Any:
        return SimpleNamespace(location=Vector(location.x, location.y, 1.0)) if location.x < 1e4 else None

    def try_spawn_actor(self, kind: str, at: Placed) -> FakeActor | None:
        if self.full and kind.startswith("walker"):
            return None
        return self.spawn_actor(kind, at, None)

    def spawn_actor(self, kind: str, at: Placed, parent: Any) -> FakeActor:
        self.actors.append(FakeActor(self, 100 + len(self.actors), kind, at))
        return self.actors[-1]

    def set_weather(self, weather: Any) -> None:
        self.weather = weather

    def get_traffic_light_from_opendrive_id(self, id_: str) -> Any:
        return self.lights.get(id_)

    def get_snapshot(self) -> Any:
        return SimpleNamespace(frame=self.frame, timestamp=SimpleNamespace(elapsed_seconds=self.elapsed_s))

    def tick(self) -> int:
        if self.frozen:
            return self.frame
        self.frame, self.elapsed_s = self.frame + 1, self.elapsed_s + self.settings.fixed_delta_seconds
        for actor in self.alive:
            actor.advance(self.settings.fixed_delta_seconds)
        self._collide()
        return self.frame

    @property
    def alive(self) -> list[FakeActor]:
        return [actor for actor in self.actors if actor.is_alive]

    def _collide(self) -> None:
        sensor = next((actor for actor in self.alive if actor.heard), None)
        ego = self.alive[0].get_transform().location if self.alive else Vector()
        for actor in self.alive[1:]:
            at = actor.get_transform().location
            if sensor and actor is not sensor and math.hypot(at.x - ego.x, at.y - ego.y) < 2.0:
                sensor.heard(SimpleNamespace(other_actor=actor))


class FakeCarla:
    """The package, with one server."""

    Location, Vector3D, Rotation, Transform, VehicleControl = Vector, Vector, Turn, Placed, Pedals
    WeatherParameters = OpendriveGenerationParameters = SimpleNamespace
    TrafficLightState = SimpleNamespace(Red="red!", Yellow="yellow!", Green="green!")

    def __init__(self, world: FakeWorld | None = None) -> None:
        self.world, self.loaded, self.dead = world or FakeWorld(), list[str](), False

    def Client(self, host: str, port: int) -> FakeCarla:  # noqa: N802  as it is called there
        return self

    def set_timeout(self, seconds: float) -> None:
        pass

    def get_server_version(self) -> str:
        if self.dead:
            raise RuntimeError("time-out of 1000ms while waiting for the simulator")
        return "0.9.16"

    def load_world(self, town: str) -> FakeWorld:
        self.loaded.append(town)
        return self.world

    def generate_opendrive_world(self, text: str, parameters: Any) -> FakeWorld:
        self.loaded.append(text)
        return self.world
