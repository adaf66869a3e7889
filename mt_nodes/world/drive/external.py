# SPDX-License-Identifier: Apache-2.0
"""Another simulator instead of our own world: its required interface, and the world built on it.

It moves the ego, shows weather and lights, and may report collisions. All other actors move as the scenario says: we
set their poses at each instant. So an episode is driven and judged like one of our own, see ``docs/simulators.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import atan, cos, sin
from typing import Protocol

from mt_nodes.base.errors import MtError
from mt_nodes.world.drive.bodies import facts_of, size_of
from mt_nodes.world.drive.motion import Motion
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Ego, Environment, Pose, Scenario
from mt_nodes.world.drive.simulator_watch import SimulatorWatch
from mt_nodes.world.drive.trace import Collision, EgoState
from mt_nodes.world.drive.world import World


@dataclass(frozen=True)
class SimulatedObject:
    """A body to be created in the simulator.

    Attributes:
        kind: a name of :data:`mt_nodes.world.scene.objects.KINDS`, or the shape of an obstacle.
        label: its class: ``pedestrian``, ``car`` … or ``unknown``.
        pose: of its centre on the ground. size_m: length, width, height. moves: whether it ever moves.
    """

    name: str
    kind: str
    label: str
    pose: Pose
    size_m: tuple[float, float, float]
    moves: bool = True


class Simulator(Protocol):
    """Interface of a simulator.

    Poses are in the frame of the scenario (:mod:`mt_nodes.world.drive.scenario`); an implementation converts them to
    its own. Every method raises ``InfrastructureError`` if the simulator does not answer or refuses.
    ``step_s``: duration of one :meth:`tick`; at most the time between two instants, 0.1 s.
    """

    @property
    def step_s(self) -> float:
        """Duration of a step."""

    def load_map(self, road: str) -> None:
        """Load the map of a name, or a user's file. Raises UsageError: the simulator cannot have that one."""

    def begin(self, ego: Ego) -> None:
        """Begin an episode: an empty road, and the ego at its start with its speed."""

    def spawn(self, thing: SimulatedObject) -> None:
        """Create a body."""

    def move(self, name: str, pose: Pose, speed_mps: float) -> None:
        """Set a body's pose and speed for the next instant."""

    def weather(self, environment: Environment) -> None:
        """Set time of day and weather."""

    def lights(self, colours: Mapping[str, str]) -> None:
        """Set the colours of traffic lights, by signal."""

    def drive(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Command the ego's actuators; the command holds until the next one."""

    def tick(self) -> None:
        """Advance by one step, and return when it is done."""

    def ego(self) -> EgoState:
        """Return the ego's state after the last step."""

    def places(self) -> Mapping[str, Pose]:
        """Return where the simulator has the bodies after the last step, by name: read from it, not remembered."""

    def collisions(self) -> Sequence[str]:
        """Return the names of bodies that the ego hit in the last step; empty for one without a name."""

    def end(self) -> None:
        """Remove everything that :meth:`begin` and :meth:`spawn` created."""


@dataclass(frozen=True)
class Origin:
    """Position and rotation of the scenario's frame in the simulator's."""

    x_m: float = 0.0
    y_m: float = 0.0
    z_m: float = 0.0
    yaw_rad: float = 0.0

    def to_simulator(self, pose: Pose, forward_m: float = 0.0) -> Pose:
        """Return a pose in the simulator's frame, moved ahead along itself."""
        x, y = pose.x_m + forward_m * cos(pose.yaw_rad), pose.y_m + forward_m * sin(pose.yaw_rad)
        c, s = cos(self.yaw_rad), sin(self.yaw_rad)
        return Pose(self.x_m + c * x - s * y, self.y_m + s * x + c * y, pose.yaw_rad + self.yaw_rad)

    def from_simulator(self, pose: Pose, forward_m: float = 0.0) -> Pose:
        """Return the reverse of :meth:`to_simulator`."""
        yaw = pose.yaw_rad - self.yaw_rad
        c, s = cos(self.yaw_rad), sin(self.yaw_rad)
        x, y = pose.x_m - self.x_m, pose.y_m - self.y_m
        return Pose(c * x + s * y - forward_m * cos(yaw), c * y - s * x - forward_m * sin(yaw), yaw)


#: Both frames are the same.
SAME_ORIGIN = Origin()


class ExternalWorld(World):
    """A world whose ego another simulator moves; everything else is as in a :class:`World`.

    ``simulator``: not shared until :meth:`close`. ``road``: the same roads as the simulator's.
    """

    def __init__(
        self,
        scenario: Scenario,
        simulator: Simulator,
        seed: int = 0,
        road: RoadMap | None = None,
        *,
        stop_at_collision: bool = True,
    ) -> None:
        """Set up a scenario in the simulator at time 0.

        Raises UsageError: as for :class:`World`, or the simulator cannot represent the scenario. InfrastructureError:
        the simulator does not answer, or refuses. So do steps; and they do where a body is not where it was put, and
        where the ego has not moved in a whole episode (:mod:`mt_nodes.world.drive.simulator_watch`).
        """
        super().__init__(scenario, seed, road, simulator.step_s, stop_at_collision=stop_at_collision)
        self._simulator = simulator
        self._kinds = {thing.name: thing.kind for thing in things_of(scenario)}
        try:
            self._set_up()
        except BaseException:
            with suppress(MtError):
                simulator.end()
            raise
        self._watch = SimulatorWatch(scenario.ego, simulator.step_s)
        self._plant = _Led(simulator, self._motion, scenario, self._colours, self._watch)
        self.state = self._now()

    def _set_up(self) -> None:
        self._simulator.load_map(self.scenario.road)
        self._simulator.begin(self.scenario.ego)
        for thing in things_of(self.scenario):
            self._simulator.spawn(thing)
        self._simulator.weather(self.scenario.environment)
        self._simulator.lights(self._colours())

    def close(self) -> None:
        """Remove everything from the simulator."""
        self._simulator.end()

    def _tick(self) -> None:
        super()._tick()
        known = {hit.name for hit in self.collisions}
        hit_names = [name for name in self._simulator.collisions() if name not in known]
        self.collisions += tuple(self._reported_collision(name) for name in dict.fromkeys(hit_names))
        if hit_names and self._stop_at_collision:
            self.ended = "collision"
        if self.ended:
            self._watch.moved("in the whole episode")

    def _reported_collision(self, name: str) -> Collision:
        """Return a collision reported by the simulator, without place, side and severity."""
        ego, kind = self._plant.state, self._kinds.get(name, "unknown")
        x_m = ego.x_m + self._front_m * cos(ego.yaw_rad)
        y_m = ego.y_m + self._front_m * sin(ego.yaw_rad)
        return Collision(self._steps * self._step_s, name, kind, x_m, y_m, "", ego.speed_mps, ego.speed_mps)


class _Led:
    """Replaces the plant: the simulator moves the ego, and gets the poses of all others."""

    def __init__(
        self,
        simulator: Simulator,
        motion: Motion,
        scenario: Scenario,
        colours: Callable[[], dict[str, str]],
        watch: SimulatorWatch,
    ) -> None:
        self.state = simulator.ego()
        self._simulator, self._motion, self._colours, self._watch = simulator, motion, colours, watch
        self._names = [actor.name for actor in scenario.actors]
        self._standing = {obstacle.name: (obstacle.pose, 0.0) for obstacle in scenario.obstacles}
        self._shown = colours()

    def advance(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Advance the simulator by one step."""
        rows = zip(self._names, self._motion.rows.tolist(), strict=True)
        asked = {name: (Pose(x, y, yaw), speed) for name, (x, y, yaw, speed) in rows}
        for name, (pose, speed) in asked.items():
            self._simulator.move(name, pose, speed)
        if (colours := self._colours()) != self._shown:
            self._shown = colours
            self._simulator.lights(colours)
        self._simulator.drive(acceleration_mps2, steering_rad)
        self._simulator.tick()
        self.state = self._simulator.ego()
        self._watch.bodies({**self._standing, **asked}, self._simulator.places())
        self._watch.ego(self.state, acceleration_mps2)


def things_of(scenario: Scenario) -> list[SimulatedObject]:
    """Return all bodies of a scenario except the ego."""
    actors = [SimulatedObject(a.name, a.kind, facts_of(a.kind).label, a.start, size_of(a)) for a in scenario.actors]
    return actors + [
        SimulatedObject(o.name, o.shape, "unknown", o.pose, o.size_m, moves=False) for o in scenario.obstacles
    ]


def ego_of(pose: Pose, forward_mps: float, yaw_rate_radps: float, wheelbase_m: float) -> EgoState:
    """Return an ego state from a simulator's pose, forward speed and yaw rate.

    Steering is that of a bicycle model with this yaw rate and speed, 0 below 0.1 m/s. Reversing counts as standing:
    this package's cars do not reverse.
    """
    speed = max(forward_mps, 0.0)
    steering = atan(wheelbase_m * yaw_rate_radps / speed) if speed > 0.1 else 0.0
    return EgoState(pose.x_m, pose.y_m, pose.yaw_rad, speed, 0.0, steering)
