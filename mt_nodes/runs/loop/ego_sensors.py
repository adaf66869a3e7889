# SPDX-License-Identifier: Apache-2.0
"""The ego's sensors: from the state of a world to the bundle that a stack is given.

What is random comes from (seed, sensor, episode, instant) alone, never from what has happened: see ``seeds.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.seeds import generator
from mt_nodes.data.ego.ego_motion import TF, EgoMotion
from mt_nodes.data.intensity.sensor_reading import SensorReading
from mt_nodes.data.messages import Bundle, Cloud, Image, Points, WorldMessage
from mt_nodes.data.radar import Radar
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, Matrix, Transform, TransformTree, move, pose_matrix
from mt_nodes.runs.loop.lidar_sweep import Sweep
from mt_nodes.runs.loop.rig import CAMERA_FRAME, LIDAR_FRAME, RADAR_FRAME, RADAR_PLACE_M, Rig
from mt_nodes.runs.loop.world_weather import WorldWeather
from mt_nodes.world.drive.ground import surface_of
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.drive.looks import body_of, obstacle_body
from mt_nodes.world.drive.picture import Camera, developed
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.drive.scenery import GROUND, HOUSES, Scenery, light_paint, scenery_of, standing
from mt_nodes.world.drive.solids import Solids, rays_of
from mt_nodes.world.drive.teller import Teller
from mt_nodes.world.drive.trace import WorldState
from mt_nodes.world.scene.drive import PERIOD_NS, START_NS
from mt_nodes.world.scene.lidar import LidarModel
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.radar_model import GROUND_M0, HOUSE_M0, POLE_M0, RadarModel, backscatter, detect
from mt_nodes.world.scene.raycast import INTENSITY_CONVENTION

#: What moves farther away than this is not looked for by rays.
_SIGHT_M = 150.0
#: Topic of a calibration that weather needs and the stack is not told.
_UNTOLD = "camera_info of nobody"
#: The fastest that weather knows.
_FASTEST_MPS = 70.0


class Sensors:
    """The sensors of one scenario's ego; the scenery of a map is built once."""

    def __init__(self, scenario: Scenario, road: RoadMap, rig: Rig, seed: int) -> None:
        self._scenario, self._rig, self._seed = scenario, rig, seed
        self._teller = Teller(scenario, road)
        self._mounts = rig.mounts.transforms
        self._surface = surface_of(road)
        self._weather = WorldWeather(scenario.environment, rig.lidar.range_max_m if rig.lidar else 120.0)
        self._begun: tuple[int, tuple[Any, ...]] = (-1, ())
        if rig.lidar or rig.camera or rig.radar:
            self._scenery = scenery_of(road)
        self._dark = bool(light_of(scenario.environment).headlamps)
        self._camera = self._camera_of(rig, scenario)

    def observe(self, state: WorldState, episode: int, index: int) -> Bundle:
        """Return all that the stack is given of an instant; the same arguments give the same bytes.

        Clouds are as those of :func:`mt_nodes.world.scene.drive.generate_drive`; the tree of frames is ``map`` →
        ``base_link`` → ``velodyne``, ``camera``, of which the first moves.
        """
        stamp_ns = START_NS + index * PERIOD_NS
        ego = pose_matrix((state.ego.x_m, state.ego.y_m, 0.0), quaternion_of_yaw(state.ego.yaw_rad))
        moved = Transform(MAP_FRAME, EGO_FRAME, ego, stamp_ns, static=False)
        bundle = Bundle(
            episode,
            index,
            stamp_ns,
            transforms=TransformTree([moved, *self._mounts]),
            world_messages=self._world_messages(state, stamp_ns, episode, index),
            motion=self._motion(state, stamp_ns, ego),
        )
        if not (self._rig.lidar or self._rig.camera or self._rig.radar):
            return bundle
        ego_in_scenery = ego.copy()
        ego_in_scenery[:2, 3] -= self._scenery.shift_m
        moving = self._moving(state)
        if self._begun[0] != episode:
            self._begun = episode, self._weather.begin(self._rng("weather", episode, None))
        if self._rig.lidar:
            bundle = self._swept(bundle, state, self._rig.lidar, moving, ego_in_scenery)
        if self._rig.radar:
            bundle = self._sensed(bundle, state, self._rig.radar, moving, ego_in_scenery)
        return self._photographed(bundle, state, self._camera, moving, ego_in_scenery) if self._camera else bundle

    def _motion(self, state: WorldState, stamp_ns: int, ego: Matrix) -> EgoMotion:
        """Return the ego's true motion; ``ego`` is its pose (4, 4) in the map."""
        odometry = self._teller.odometry(state, stamp_ns)
        x, y, z = (ego[:3, :3].T @ ego[:3, 3]).tolist()
        velocity = np.array([odometry.speed_mps, 0.0, 0.0])
        return EgoMotion(ego, velocity, odometry.yaw_rate_radps, TF, f"/tf {MAP_FRAME} → {EGO_FRAME}", 0, (x, y, z))

    def _swept(self, bundle: Bundle, state: WorldState, lidar: LidarModel, moving: Solids, ego: Matrix) -> Bundle:
        """Return a bundle with the cloud of its instant; ``ego`` leads to the scenery's frame."""
        rig, episode, index = self._rig, bundle.episode, bundle.index
        sweep = Sweep(self._scenery, moving, lidar, ego @ rig.lidar_mount, self._weather)
        points = sweep.points(self._rng("lidar", episode, index))
        topic = rig.topics["lidar"]
        reading = SensorReading.known(topic, INTENSITY_CONVENTION)
        swept = replace(bundle, clouds=(Cloud(topic, bundle.stamp_ns, LIDAR_FRAME, points).read_as(reading),))
        return self._weather.on_clouds(swept, self._begun[1], _speed_mps(state), self._rng("weather", episode, index))

    def _sensed(self, bundle: Bundle, state: WorldState, radar: RadarModel, moving: Solids, ego: Matrix) -> Bundle:
        """Return a bundle with the radar detections of its instant."""
        rig, near, yaw = self._rig, self._near(state), state.actors[:, 2]
        velocity = np.zeros((len(moving), 2))
        velocity[: len(near)] = (state.actors[:, 3] * np.stack([np.cos(yaw), np.sin(yaw)])).T[near]
        labels = [KINDS[self._scenario.actors[i].kind].label for i in near]
        labels += ["unknown"] * (len(moving) - len(near))
        turn = state.ego.speed_mps * np.tan(state.ego.steering_rad) / self._scenario.ego.vehicle.wheelbase_m
        own = ego[:2, :2] @ np.array([state.ego.speed_mps, turn * RADAR_PLACE_M[0]])
        sweep = RadarSweep(self._scenery, moving, labels, velocity, radar, ego @ rig.radar_mount, own)
        points = sweep.points(self._rng("radar", bundle.episode, bundle.index))
        sensed = replace(bundle, radars=(Radar(rig.topics["radar"], bundle.stamp_ns, RADAR_FRAME, points),))
        return self._weather.on_radars(sensed, self._rng("weather_radar", bundle.episode, bundle.index))

    def _photographed(self, bundle: Bundle, state: WorldState, camera: Camera, moving: Solids, ego: Matrix) -> Bundle:
        """Return a bundle with the picture of its instant."""
        sensor, topics = camera.sensor, self._rig.topics
        shining = [(number, state.signals.get(name)) for name, number in self._scenery.lights.items()]
        lights = {number: light_paint(colour) for number, colour in shining if colour}
        radiance, range_m = camera.render(moving, ego, lights)
        pixels = developed(radiance, sensor.noise, self._rng("camera", bundle.episode, bundle.index))
        image = Image(topics["camera"], bundle.stamp_ns, CAMERA_FRAME, pixels, "bgr8")
        info = sensor.info(topics.get("camera_info", _UNTOLD), bundle.stamp_ns, CAMERA_FRAME)
        taken = replace(bundle, images=(image,), camera_infos=(info,))
        if self._weather.falls:
            rng = self._rng("weather_seen", bundle.episode, bundle.index)
            taken = self._weather.on_picture(
                taken, camera.surroundings_of(range_m), self._begun[1], _speed_mps(state), rng
            )
        return taken if info.topic in topics.values() else replace(taken, camera_infos=())

    def _camera_of(self, rig: Rig, scenario: Scenario) -> Camera | None:
        if rig.camera is None:
            return None
        light, weather = light_of(scenario.environment), scenario.environment
        wet = max(weather.wetness, weather.rain)
        return Camera(self._scenery, rig.camera, light, self._weather.veil_per_m, weather.snow, wet)

    def _moving(self, state: WorldState) -> Solids:
        """Return what is the scenario's and not the map's, where it is: actors in sight, and obstacles."""
        near, actors = self._near(state), self._scenario.actors
        bodies = [body_of(actors[i], float(state.travelled_m[i]), lit=self._dark) for i in near]
        obstacles = self._scenario.obstacles
        places = [(thing.pose.x_m, thing.pose.y_m, thing.pose.yaw_rad) for thing in obstacles]
        poses = np.concatenate([state.actors[near, :3], np.array(places).reshape(-1, 3)])
        poses_on_ground = standing(self._surface, poses)
        return Solids([*bodies, *map(obstacle_body, obstacles)], poses_on_ground, self._scenery.shift_m)

    def _near(self, state: WorldState) -> Ints:
        """Return the numbers (n,) of the actors in sight."""
        away = np.hypot(state.actors[:, 0] - state.ego.x_m, state.actors[:, 1] - state.ego.y_m)
        return np.flatnonzero(away < _SIGHT_M)

    def _world_messages(self, state: WorldState, stamp_ns: int, episode: int, index: int) -> tuple[WorldMessage, ...]:
        """Return one message for each role that is told and has a topic."""
        tell: dict[str, Any] = {
            "objects": lambda: self._teller.objects(state, stamp_ns, self._rng("objects", episode, index)),
            "odometry": lambda: self._teller.odometry(state, stamp_ns),
            "route": lambda: self._teller.route(state, stamp_ns),
            "signals": lambda: self._teller.signals(state, stamp_ns),
            "lanes": lambda: self._teller.lanes(state, stamp_ns),
        }
        return tuple(
            WorldMessage(topic, role, stamp_ns, data.frame_id, data)
            for role, topic in self._rig.topics.items()
            if role in tell
            for data in (tell[role](),)
        )

    def _rng(self, what: str, episode: int, index: int | None) -> np.random.Generator:
        return generator(self._seed, f"drive_{what}", episode, index, "noise")


def _speed_mps(state: WorldState) -> float:
    """Return the ego's speed as far as weather knows it."""
    return min(state.ego.speed_mps, _FASTEST_MPS)


@dataclass(frozen=True, eq=False)
class RadarSweep:
    """One measurement of a radar in a world.

    Attributes:
        labels: class of each moving body, for its cross-section. velocity_mps: (B, 2) of each, along the map's axes.
        mount: (4, 4) takes places of the sensor to the scenery's own frame (``map`` but for ``shift_m``).
        own_mps: (2,) velocity of the sensor, along the map's axes.
    """

    scenery: Scenery
    moving: Solids
    labels: Sequence[str]
    velocity_mps: Floats
    radar: RadarModel
    mount: Matrix
    own_mps: Floats

    def points(self, rng: np.random.Generator) -> Points:
        """Return the detections in the sensor's frame, as :func:`mt_nodes.world.scene.radar_model.detect` does."""
        own = self.radar.rays[0]
        turn = np.eye(4)
        turn[:3, :3] = self.mount[:3, :3]
        rays = rays_of(self.mount[:3, 3], move(turn, own))
        hits = self.scenery.solids.cast(rays)
        range_m = hits.range_m.astype(np.float64)
        body = self.scenery.solids.of[np.where(np.isfinite(range_m), hits.triangle, 0)]
        returned = np.select([body == GROUND, body == HOUSES], [GROUND_M0, HOUSE_M0], POLE_M0)
        velocity = np.zeros((len(own), 2))
        if len(self.moving):
            nearer = self.moving.cast(rays)
            rows = np.flatnonzero(nearer.range_m < range_m)
            who = self.moving.of[nearer.triangle[rows]]
            range_m[rows], velocity[rows] = nearer.range_m[rows], self.velocity_mps[who]
            returned[rows] = np.array([backscatter(label) for label in self.labels])[who]
        hit = np.flatnonzero(np.isfinite(range_m))
        rate = ((velocity[hit] - self.own_mps) * rays[hit, 3:5]).sum(axis=1)
        return detect(self.radar, own[hit], range_m[hit], returned[hit], rate, rng)
