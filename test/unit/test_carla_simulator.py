# SPDX-License-Identifier: Apache-2.0
"""CARLA as another simulator, before a fake of its Python interface, whose names are compared with the real ones."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_carla import FakeActor, FakeCarla, FakeWorld, Pedals, Placed, Turn, Vector
from made_drives import SPEED_MPS, box, crossing, pedestrian, setting

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.carla_simulator import CarlaSettings, CarlaSimulator
from mt_nodes.world.drive.external import ExternalWorld, Origin
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Pose
from mt_nodes.world.drive.simulator_watch import SimulatorWatch
from mt_nodes.world.drive.trace import EgoState

ORIGIN = Origin(100.0, -50.0, 3.0, 0.5)
TOWN = CarlaSettings(town="Town10HD", origin=ORIGIN, own_lights=True)


def test_a_drive_in_carla() -> None:
    scene = setting(
        crossing(within_m=80.0),
        duration_s=0.5,
        obstacles=(box(80.0),),
        environment=Environment(16.0, rain=0.4, fog=0.25),
    )
    carla = FakeCarla()
    simulator = CarlaSimulator(TOWN, carla)
    world = ExternalWorld(scene.scenario, simulator, 0, scene.road)
    ego, sensor, walker, carton = carla.world.actors
    assert carla.loaded == ["Town10HD"] and carla.world.settings.synchronous_mode
    assert [actor.kind for actor in carla.world.actors] == [
        *("vehicle.tesla.model3", "sensor.other.collision", "walker.pedestrian.0001", "static.prop.box01")
    ]
    assert (ego.physics, walker.physics, carton.physics) == (True, False, False) and sensor.heard
    start = scene.scenario.ego.start
    middle = ORIGIN.to_simulator(start, (3.8 - 1.1) / 2.0 - 0.1)
    assert (ego.due.location.x, -ego.due.location.y) == pytest.approx((middle.x_m, middle.y_m))
    assert -math.radians(ego.due.rotation.yaw) == pytest.approx(middle.yaw_rad), "its frame is left-handed"
    assert math.hypot(ego.velocity.x, ego.velocity.y) == pytest.approx(SPEED_MPS)
    assert walker.due.location.z == pytest.approx(1.0 + 0.9), "its middle is above the ground by half its height"
    weather = carla.world.weather
    assert (weather.precipitation, weather.wetness, weather.fog_density) == pytest.approx((40.0, 40.0, 25.0))
    assert weather.sun_altitude_angle == pytest.approx(20.7, abs=0.1) and 180.0 < weather.sun_azimuth_angle < 270.0
    before = carla.world.frame
    world.step(Control(None, steering_rad=0.1, acceleration_mps2=1.5), 0.1)
    assert carla.world.frame == before + 2
    assert (ego.control.throttle, ego.control.brake) == pytest.approx((0.5, 0.0))
    assert ego.control.steer == pytest.approx(-0.1 / math.radians(40)), "to the right is positive"
    end = world.state.ego
    assert (end.x_m, end.y_m, end.yaw_rad) == pytest.approx((start.x_m + SPEED_MPS * 0.1, start.y_m, start.yaw_rad))
    assert (end.speed_mps, end.steering_rad) == pytest.approx((SPEED_MPS, math.atan(2.8 * 0.1 / SPEED_MPS)))
    there = ORIGIN.to_simulator(Pose(*world.state.actors[0][:3]))
    assert (walker.due.location.x, -walker.due.location.y) == pytest.approx((there.x_m, there.y_m))
    world.step(Control(None, steering_rad=0.0, acceleration_mps2=-4.5), 0.2)
    assert ego.control.brake == pytest.approx(0.5)
    world.close()
    assert not any(actor.is_alive for actor in carla.world.actors) and sensor.heard is None
    simulator.close()
    assert not carla.world.settings.synchronous_mode, "its time goes on by itself again"


def test_roads_are_built_of_the_scenarios_own_file(tmp_path: Path) -> None:
    file = tmp_path / "a.xodr"
    file.write_text("<OpenDRIVE/>", encoding="utf-8")
    carla = FakeCarla()
    simulator = CarlaSimulator(CarlaSettings(), carla)
    simulator.load_map(str(file))
    simulator.load_map(str(file))
    assert carla.loaded == ["<OpenDRIVE/>"], "once"
    with pytest.raises(UsageError, match=r"map 'bridge': expected an OpenDRIVE file \(.xodr\), or town in the"):
        simulator.load_map("bridge")


def test_carla_tells_whom_the_ego_hits() -> None:
    scene = setting(pedestrian(7.6), duration_s=2.0)
    world = ExternalWorld(scene.scenario, CarlaSimulator(TOWN, FakeCarla()), 0, scene.road)
    while not world.ended:
        world.step(Control(None, steering_rad=0.0, speed_mps=SPEED_MPS), world.state.time_s + 0.05)
    assert world.ended == "collision" and [(hit.name, hit.kind) for hit in world.collisions] == [("walker", "adult")]


def test_lights_are_carlas_of_the_same_ids() -> None:
    scene = setting(duration_s=2.0, signals={"light_1": (("red", 0.25), ("green", 10.0))})
    shown: list[Any] = []
    carla = FakeCarla()
    light = SimpleNamespace(freeze=shown.append, set_state=shown.append)
    carla.world.lights = {"light_1": light, "39": SimpleNamespace(freeze=bool, set_state=str)}
    lights = dict.fromkeys(("light_2", "walk"), "39")
    world = ExternalWorld(
        scene.scenario, CarlaSimulator(replace(TOWN, own_lights=False, lights=lights), carla), 0, scene.road
    )
    world.step(Control(None, steering_rad=0.0, acceleration_mps2=0.0), 0.5)
    assert shown == [True, "red!", True, "green!"]
    with pytest.raises(UsageError, match=r"light 'walk': CARLA's map has none with the OpenDRIVE id 'walk'"):
        ExternalWorld(scene.scenario, CarlaSimulator(replace(TOWN, own_lights=False), carla), 0, scene.road)


def test_what_carla_cannot_show_or_do_is_told() -> None:
    deer = setting(Actor("bambi", "deer", Pose(80.0, 0.0)))
    with pytest.raises(UsageError, match=r"bambi: no blueprint of CARLA for a deer; name one: "):
        ExternalWorld(deer.scenario, CarlaSimulator(TOWN, FakeCarla()), 0, deer.road)
    named = replace(TOWN, blueprints={"deer": "walker.deer"})
    with pytest.raises(UsageError, match=r"bambi: this CARLA has no blueprint 'walker.deer'"):
        ExternalWorld(deer.scenario, CarlaSimulator(named, FakeCarla()), 0, deer.road)
    full = FakeCarla()
    full.world.full = True
    scene = setting(crossing())
    with pytest.raises(InfrastructureError, match=r"cannot be spawned as crosser: something is in its place"):
        ExternalWorld(scene.scenario, CarlaSimulator(TOWN, full), 0, scene.road)
    assert not any(actor.is_alive for actor in full.world.actors)
    away = CarlaSimulator(replace(TOWN, origin=Origin(1e5)), FakeCarla())
    with pytest.raises(InfrastructureError, match=r"there is no ground at .* where ego should be"):
        ExternalWorld(scene.scenario, away, 0, scene.road)
    dead = FakeCarla()
    dead.dead = True
    with pytest.raises(InfrastructureError, match=r"CARLA at localhost:2000: time-out of 1000ms"):
        CarlaSimulator(TOWN, dead)


def test_a_carla_that_does_not_step_is_told() -> None:
    scene = setting(crossing())
    with pytest.raises(InfrastructureError, match=r"after a step it is at frame 7 and 0\.000 s on, expected frame 7"):
        ExternalWorld(scene.scenario, CarlaSimulator(TOWN, FakeCarla(FakeWorld(frozen=True))), 0, scene.road)


def test_the_fake_has_the_names_of_the_package() -> None:
    carla = pytest.importorskip("carla", reason="carla is of the extra `carla`")
    pairs = [
        (FakeWorld, carla.World, {"find", "alive"}),
        (FakeActor, carla.Vehicle, {"listen", "stop", "advance"}),
        (FakeCarla, carla.Client, {*vars(carla), "Client"}),
    ]
    for fake, real, ours in pairs:
        names = {name for name in vars(fake) if not name.startswith("_")} - ours
        assert names <= set(dir(real)), f"{fake.__name__}: {names - set(dir(real))} are not of {real}"
    assert {"listen", "stop"} <= set(dir(carla.Sensor)) and hasattr(carla.BlueprintLibrary, "find")
    assert {"freeze", "set_state"} <= set(dir(carla.TrafficLight))
    for kind in (Vector, Turn, Placed, Pedals):
        real = {Vector: carla.Location, Turn: carla.Rotation, Placed: carla.Transform, Pedals: carla.VehicleControl}[
            kind
        ]
        assert set(vars(kind())) <= set(dir(real()))
    turned = carla.Transform(carla.Location(1.0, 2.0, 3.0), carla.Rotation(0.0, 90.0, 0.0)).get_forward_vector()
    assert (turned.x, turned.y) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert {"Red", "Yellow", "Green"} <= set(dir(carla.TrafficLightState))
    simulator = CarlaSimulator.__new__(CarlaSimulator)
    simulator.settings, simulator._carla = CarlaSettings(), carla
    shown: list[Any] = []
    simulator._world = SimpleNamespace(set_weather=shown.append)
    simulator.weather(Environment(16.0, rain=0.4, fog=0.25))
    assert (shown[0].precipitation, shown[0].fog_density) == pytest.approx((40.0, 25.0))
    client = carla.Client("localhost", 1)
    client.set_timeout(0.2)
    with pytest.raises(RuntimeError, match=r"time-out"):
        client.get_server_version()


def test_an_ego_that_stands_and_trembles_has_not_moved() -> None:
    watch = SimulatorWatch(Ego(Pose(0.0, 0.0, 0.0)), 0.1)
    for step in range(100):
        watch.ego(EgoState(0.02 * (step % 2), 0.0, 0.0, 0.2), 0.0)
    with pytest.raises(InfrastructureError, match="has not moved in the whole episode"):
        watch.moved("in the whole episode")
