# SPDX-License-Identifier: Apache-2.0
"""Another simulator in place of our own world: what it has to be able to do, and the world that is made of it.

It moves the ego, shows weather and lights, and may tell of collisions. All the others move as the scenario says: we
lead them, a pose an instant. So an episode is driven and judged as one of our own, see ``docs/simulators.md``.
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
from mt_nodes.world.drive.trace import Collision, EgoState
from mt_nodes.world.drive.world import World


@dataclass(frozen=True)
class SimulatedObject:
    """Somebody or something that is to be in the simulator.

    Attributes:
        kind: a name of :data:`mt_nodes.world.scene.objects.KINDS`, or of an obstacle its shape.
        label: its class: ``pedestrian``, ``car`` … or ``unknown``.
        pose: of its middle on the ground. size_m: length, width, height. moves: whether it ever does.
    """

    name: str
    kind: str
    label: str
    pose: Pose
    size_m: tuple[float, float, float]
    moves: bool = True


class Simulator(Protocol):
    """What a simulator has to be able to do.

    Poses are in the frame of the scenario (:mod:`mt_nodes.world.drive.scenario`); an implementation takes them to its
    own. Every method raises ``InfrastructureError`` where the simulator does not answer or refuses.

    Attributes:
        step_s: of one :meth:`tick`; no more than there is between two instants, 0.1 s.
    """

    @property
    def step_s(self) -> float:
        """How long a step is."""

    def begin(self, ego: Ego) -> None:
        """Begin an episode: an empty road, and the ego at its start with its speed."""

    def spawn(self, thing: SimulatedObject) -> None:
        """Put somebody or something there."""

    def move(self, name: str, pose: Pose, speed_mps: float) -> None:
        """Say where somebody is at the next instant, and how fast."""

    def weather(self, environment: Environment) -> None:
        """Show an hour and a weather."""

    def lights(self, colours: Mapping[str, str]) -> None:
        """Show colours of traffic lights, by signal."""

    def drive(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Ask the ego's actuators for something; they have it until they are asked again."""

    def tick(self) -> None:
        """Go on by one step, and return when it is made."""

    def ego(self) -> EgoState:
        """Return the ego as of the last step."""

    def collisions(self) -> Sequence[str]:
        """Return the names of whom the ego was reported to hit in the last step; empty for what has no name."""

    def end(self) -> None:
        """Take away all that :meth:`begin` and :meth:`spawn` put there."""


@dataclass(frozen=True)
class Origin:
    """Where the scenario's frame lies in the simulator's: its origin's place there, and its turn about the vertical."""

    x_m: float = 0.0
    y_m: float = 0.0
    z_m: float = 0.0
    yaw_rad: float = 0.0

    def theirs(self, pose: Pose, forward_m: float = 0.0) -> Pose:
        """Return a pose in the simulator's frame, so far ahead along itself."""
        x, y = pose.x_m + forward_m * cos(pose.yaw_rad), pose.y_m + forward_m * sin(pose.yaw_rad)
        c, s = cos(self.yaw_rad), sin(self.yaw_rad)
        return Pose(self.x_m + c * x - s * y, self.y_m + s * x + c * y, pose.yaw_rad + self.yaw_rad)

    def ours(self, pose: Pose, forward_m: float = 0.0) -> Pose:
        """Return what :meth:`theirs` was made of."""
        yaw = pose.yaw_rad - self.yaw_rad
        c, s = cos(self.yaw_rad), sin(self.yaw_rad)
        x, y = pose.x_m - self.x_m, pose.y_m - self.y_m
        return Pose(c * x + s * y - forward_m * cos(yaw), c * y - s * x - forward_m * sin(yaw), yaw)


#: Both frames are the same.
HERE = Origin()


class ExternalWorld(World):
    """A world of which another simulator moves the ego; all that a :class:`World` does otherwise is as it is there.

    Args:
        simulator: which is used by nobody else until :meth:`close`. road: the same roads as the simulator's.
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

        Raises:
            UsageError: as of :class:`World`, or the simulator cannot show what the scenario holds.
            InfrastructureError: the simulator does not answer, or refuses.
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
        names = [actor.name for actor in scenario.actors]
        self._plant = _Led(simulator, self._motion, names, self._colours)
        self.state = self._now()

    def _set_up(self) -> None:
        self._simulator.begin(self.scenario.ego)
        for thing in things_of(self.scenario):
            self._simulator.spawn(thing)
        self._simulator.weather(self.scenario.environment)
        self._simulator.lights(self._colours())

    def close(self) -> None:
        """Leave the simulator as it was before."""
        self._simulator.end()

    def _tick(self) -> None:
        super()._tick()
        known = {hit.name for hit in self.collisions}
        told = [name for name in self._simulator.collisions() if name not in known]
        self.collisions += tuple(self._told(name) for name in dict.fromkeys(told))
        if told and self._stop_at_collision:
            self.ended = "collision"

    def _told(self, name: str) -> Collision:
        """Return a collision that the simulator tells of: where and with what part is not known, nor how hard."""
        ego, kind = self._plant.state, self._kinds.get(name, "unknown")
        x_m = ego.x_m + self._front_m * cos(ego.yaw_rad)
        y_m = ego.y_m + self._front_m * sin(ego.yaw_rad)
        return Collision(self._steps * self._step_s, name, kind, x_m, y_m, "", ego.speed_mps, ego.speed_mps)


class _Led:
    """What drives the ego in place of a plant: the simulator, to which all others are led."""

    def __init__(
        self, simulator: Simulator, motion: Motion, names: Sequence[str], colours: Callable[[], dict[str, str]]
    ) -> None:
        self.state = simulator.ego()
        self._simulator, self._motion, self._names, self._colours = simulator, motion, names, colours
        self._shown = colours()

    def advance(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Have the simulator make one step."""
        for name, (x, y, yaw, speed) in zip(self._names, self._motion.rows.tolist(), strict=True):
            self._simulator.move(name, Pose(x, y, yaw), speed)
        if (colours := self._colours()) != self._shown:
            self._shown = colours
            self._simulator.lights(colours)
        self._simulator.drive(acceleration_mps2, steering_rad)
        self._simulator.tick()
        self.state = self._simulator.ego()


def things_of(scenario: Scenario) -> list[SimulatedObject]:
    """Return all that a scenario has beside the ego."""
    actors = [SimulatedObject(a.name, a.kind, facts_of(a.kind).label, a.start, size_of(a)) for a in scenario.actors]
    return actors + [
        SimulatedObject(o.name, o.shape, "unknown", o.pose, o.size_m, moves=False) for o in scenario.obstacles
    ]


def ego_of(pose: Pose, forward_mps: float, yaw_rate_radps: float, wheelbase_m: float) -> EgoState:
    """Return an ego of which a simulator tells pose, speed along itself and yaw rate.

    Steering is that of a bicycle that turns so at such a speed, 0 below 0.1 m/s. Backwards is as standing: this
    package's cars do not reverse.
    """
    speed = max(forward_mps, 0.0)
    steering = atan(wheelbase_m * yaw_rate_radps / speed) if speed > 0.1 else 0.0
    return EgoState(pose.x_m, pose.y_m, pose.yaw_rad, speed, 0.0, steering)
