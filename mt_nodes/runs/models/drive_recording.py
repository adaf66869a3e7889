# SPDX-License-Identifier: Apache-2.0
"""Makes training data in the drive world: pictures of the ego's camera, and what an expert would do there.

Who learns from pictures of faultless driving alone never sees how to come back: errors add up (S. Ross et al., A
Reduction of Imitation Learning and Structured Prediction to No-Regret Online Learning, AISTATS 2011). Two remedies are
here: the expert is pushed off its line now and then and drives back, as the shifted cameras of PilotNet show (M.
Bojarski et al., arXiv 1604.07316, 2016); and a model that learned already drives a share of the time while the expert
says what it would have done, the DAgger of the first.

An expert who keeps to a lane by the map: what pictures are labelled with, and what a model is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import atan, tan
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Image
from mt_nodes.data.outputs import Control
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import PlannedEpisode, ScenarioRun
from mt_nodes.runs.models.frame_edits import FrameEdits
from mt_nodes.runs.models.lap import LaneKeeping
from mt_nodes.runs.models.record_request import RecordRequest
from mt_nodes.runs.models.samples import FILE, Sample, read_samples, write_samples
from mt_nodes.stacks.reference import traffic
from mt_nodes.stacks.reference.pursuit import Pursuit
from mt_nodes.stacks.reference.way import LanePath
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose, Scenario, Vehicle
from mt_nodes.world.drive.trace import EgoState
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.drive import PERIOD_NS

#: Aims so far ahead, as driving time and in metres; a camera sees the road there.
_AHEAD_S, _AHEAD_M = 0.6, (4.0, 14.0)
#: Comfortable across the road in bends and along it before them; so slow that a bend can be taken in its lane.
_ACROSS_MPS2, _SLOWING_MPS2 = 1.5, 1.5
#: Steering and brakes act so late; a speed that is said is driven so much later.
_LATE_S, _SPEED_LATE_S = 0.15, 0.5
#: Curvature across the road is cut by what no car here drives.
_MOST_MPS2 = 8.0


@dataclass(frozen=True, eq=False)
class Expert:
    """Pure pursuit along a route, slow in bends; sees nobody and no light.

    The line that it keeps its rear axle on is where that runs when the front axle follows the middle of the lane. On a
    circle of radius R it lies R - sqrt(R² - L²), about L²/2 times the curvature, farther inside, for a wheelbase L
    (Pythagoras): so the vehicle's corners stay as far from the outer edge as its side from the inner one.
    """

    route: Route
    vehicle: Vehicle
    cruise_mps: float = 8.0

    @classmethod
    def of(cls, scenario: Scenario, road: RoadMap, cruise_mps: float = 8.0) -> Expert:
        """Return the one for the ego of a scenario."""
        return cls(Route(road, scenario.ego.start, scenario.ego.target), scenario.ego.vehicle, cruise_mps)

    def command(self, ego: EgoState) -> Control:
        """Return the speed that is wanted here and the steering of the road wheels, positive to the left."""
        pose, _ = self.route.ahead(Pose(ego.x_m, ego.y_m, ego.yaw_rad))
        way = LanePath(pose[:, :2], np.full(len(pose), np.inf))
        turning = ego.speed_mps * tan(ego.steering_rad) / self.vehicle.wheelbase_m
        pose_at_arrival = traffic.EgoPose(ego.x_m, ego.y_m, ego.yaw_rad, ego.speed_mps, turning).later(_LATE_S)
        pursuit = Pursuit(_AHEAD_S, *_AHEAD_M, _MOST_MPS2)
        station = float(way.place(np.array([[pose_at_arrival.x_m, pose_at_arrival.y_m]]))[0][0])
        bend = float(np.interp(station + pursuit.ahead_m(ego.speed_mps), way.stations_m, way.curvature_1pm))
        curvature = pursuit.curvature_1pm(way, pose_at_arrival, self.vehicle.wheelbase_m**2 / 2.0 * bend)
        allowed = way.allowed_mps(station + _SPEED_LATE_S * ego.speed_mps, _ACROSS_MPS2, _SLOWING_MPS2)
        steering = atan(self.vehicle.wheelbase_m * curvature)
        return Control(None, steering_rad=steering, speed_mps=min(self.cruise_mps, allowed))


_PERIOD_S = PERIOD_NS * 1e-9
#: One push in each leg of a drive: when it begins, how long it lasts. Who drives is drawn for each leg, too.
_LEG_S, _PUSH_BEGINS_S, _PUSH_LASTS_S = 4.0, (0.0, 3.0), (0.4, 1.0)
#: The expert takes over from a model that is so far outside its lane, and gives back when it is so far inside.
_LEFT_M, _BACK_M = -0.4, 0.15
#: A push is steering that turns the ego with this acceleration or less, as if it drove no slower than that.
_PUSHED_MPS = 3.5

Driver = Callable[..., Any]


@dataclass(frozen=True)
class ExpertFrame:
    """A picture, and what the expert would do there."""

    image: Image
    target: Control


def drives_of(request: RecordRequest) -> tuple[Rig, tuple[PlannedEpisode, ...]]:
    """Return the camera, and what is to be driven through.

    Raises UsageError: the stack takes no picture; a scenario cannot be driven, or is of no empty road.
    """
    scenarios = ScenarioRequest(
        request.scenarios,
        stack=request.stack,
        repeat=request.drives,
        jitter=request.jitter,
        seed=request.seed,
        parameters=request.parameters,
    )
    run = ScenarioRun.make(scenarios, Path())
    if run.rig.camera is None:
        raise UsageError(f"stack '{run.stack.name}' takes {', '.join(run.stack.inputs)}, expected camera among them")
    for planned in run.episodes:
        scenario = planned.setting.scenario
        actors, obstacles = ([thing.name for thing in things] for things in (scenario.actors, scenario.obstacles))
        if others := ", ".join([*actors, *obstacles]):
            raise UsageError(f"{planned.name}: got {others}, expected an empty road: the expert sees nobody")
    topic = run.rig.topics["camera"]
    return Rig(None, run.rig.camera, {"camera": topic}), run.episodes


def record(request: RecordRequest, out: Path, progress: Callable[[str, int], None]) -> int:
    """Drive, and write pictures (PNG) and ``samples.csv``, to which each drive is added when it is whole.

    A folder that holds drives of other seeds gets more of them. A drive that is there already is not made again: so a
    recording that was stopped goes on where it was.

    Args:
        progress: called after each drive with its name and how many pictures it has.

    Returns:
        how many pictures the folder holds.

    Raises:
        UsageError: what :func:`drives_of` and :class:`FrameEdits` refuse, or there are no such weights.
        InfrastructureError: the folder cannot be written.
    """
    rig, episodes = drives_of(request)
    driver, edits = _driver(request), FrameEdits(request.edits, request.edited, request.seed)
    samples = read_samples(out) if (out / FILE).exists() else []
    recorded = {sample.drive for sample in samples}
    for planned in episodes:
        name = f"{planned.setting.scenario.name}_{request.seed}_{planned.number}{'_driven' * bool(driver)}"
        if name in recorded:
            continue
        try:
            samples_of_drive = _written(out, name, drive(planned, rig, request, driver, edits))
            edits.refuse_unapplied()
            samples += samples_of_drive
            write_samples(out, samples)
        except OSError as error:
            raise cannot_write(out, error) from error
        progress(name, len(samples_of_drive))
    return len(samples)


def _written(out: Path, name: str, drive: Iterable[ExpertFrame]) -> list[Sample]:
    """Write the pictures of a drive into a folder of its own, and return what is said of them."""
    import cv2

    (out / name).mkdir(parents=True, exist_ok=True)
    samples = []
    for number, frame in enumerate(drive):
        path = out / name / f"{number:05d}.png"
        if not cv2.imwrite(str(path), frame.image.pixels):
            raise OSError(None, "the picture cannot be written", str(path))
        samples.append(Sample(path, frame.target.speed_mps, frame.target.steering_rad, name))
    return samples


def drive(
    planned: PlannedEpisode,
    rig: Rig,
    request: RecordRequest,
    driver: Driver | None = None,
    edits: FrameEdits | None = None,
) -> Iterator[ExpertFrame]:
    """Yield what is seen in one drive and what the expert would do, until the world ends it.

    A model that drives, too, sees what was seen, not what ``edits`` make of it.
    """
    setting, number = planned.setting, planned.number
    expert = Expert.of(setting.scenario, setting.road, request.cruise_mps)
    keeping = LaneKeeping.of(setting.scenario, setting.road)
    rng = generator(request.seed, f"models record {planned.name}", number, None, "hands")
    hands = RecordedDriver.drawn(rng, setting.scenario.duration_s, request, setting.scenario.ego.vehicle)
    eyes = Sensors(setting.scenario, setting.road, rig, request.seed)
    world, index = World(setting.scenario, request.seed, setting.road), 0
    while not world.ended:
        ego = world.state.ego
        bundle = eyes.observe(world.state, number, index)
        target = expert.command(ego)
        yield ExpertFrame((edits.edited(bundle) if edits else bundle).images[0], target)
        output = driver(decode(bundle.images[0]).rgb8(), stamp_ns=bundle.stamp_ns) if driver else None
        predicted = output.control if output is not None else None
        room = keeping.room_m(ego.x_m, ego.y_m, ego.yaw_rad)
        index += 1
        world.step(hands.command(world.state.time_s, ego.speed_mps, target, predicted, room), index * _PERIOD_S)


@dataclass(eq=False)
class RecordedDriver:
    """Who drives: the expert, who is pushed aside now and then, or a model, until it has left its lane.

    ``begins_s``, ``lasts_s``, ``push_mps2``: (N,) of the push in each leg, positive to the left. ``models``: (N,)
    whether a model drives there.
    """

    begins_s: np.ndarray[Any, np.dtype[np.float64]]
    lasts_s: np.ndarray[Any, np.dtype[np.float64]]
    push_mps2: np.ndarray[Any, np.dtype[np.float64]]
    models: np.ndarray[Any, np.dtype[np.bool_]]
    vehicle: Vehicle
    saved: bool = False

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, duration_s: float, request: RecordRequest, vehicle: Vehicle
    ) -> RecordedDriver:
        """Draw who drives when, and when the expert is pushed."""
        legs = 1 + int(duration_s / _LEG_S)
        pushes = request.push_mps2 * rng.uniform(-1.0, 1.0, legs)
        begins, lasts = rng.uniform(*_PUSH_BEGINS_S, legs), rng.uniform(*_PUSH_LASTS_S, legs)
        return cls(begins, lasts, pushes, rng.random(legs) < request.share, vehicle)

    def command(
        self, time_s: float, speed_mps: float, target: Control, predicted: Control | None, room_m: float
    ) -> Control:
        """Return what the world is told, of what the expert wants and a model says (None: there is none).

        ``room_m``: see :meth:`mt_nodes.runs.models.lap.LaneKeeping.room_m`.
        """
        leg, into_s = divmod(time_s, _LEG_S)
        leg = min(int(leg), len(self.models) - 1)
        self.saved = room_m < (_BACK_M if self.saved else _LEFT_M)
        if predicted is not None and self.models[leg] and not self.saved:
            return Control(None, steering_rad=predicted.steering_rad, speed_mps=max(0.0, predicted.speed_mps))
        pushed = self.begins_s[leg] <= into_s < self.begins_s[leg] + self.lasts_s[leg] and not self.saved
        speed = max(speed_mps, _PUSHED_MPS)
        aside = float(self.push_mps2[leg]) * self.vehicle.wheelbase_m / speed**2 if pushed else 0.0
        return Control(None, steering_rad=target.steering_rad + aside, speed_mps=target.speed_mps)


def _driver(request: RecordRequest) -> Driver | None:
    if not request.driver:
        return None
    from mt_nodes.runs.models.driving_model import DrivingModel

    return DrivingModel(request.driver)
