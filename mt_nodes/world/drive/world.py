# SPDX-License-Identifier: Apache-2.0
"""A world that plays a scenario: the stack's commands drive the ego, and all others move on.

Time goes on in physics steps of one length; what happens depends on the scenario, the commands and when they came, and
on nothing else. An episode ends

=============  ========================================================================================================
collision      the ego touches somebody or something (:mod:`mt_nodes.world.drive.collisions`), unless it is to go on
bad_command    a command cannot be carried out (:mod:`mt_nodes.world.drive.vehicle_commands`);
               :attr:`World.reason` says why
off_road       the middle of the ego is off the carriageway
end_of_road    it is beyond the end of a lane that leads nowhere
target         ``base_link`` is within 3.5 m, a lane's width, of the ego's target
standstill     the ego has stood for 5 s and nothing there is to wait for: nobody moves within 30 m, and no light before
               it that is not green within 15 m
time           the scenario's time is over
=============  ========================================================================================================

or as whoever drives it says. Until its first command the ego rolls on straight; a missing one is the last one again.
"""

from __future__ import annotations

from math import cos, hypot, sin

import numpy as np
import shapely

from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.collisions import Contacts
from mt_nodes.world.drive.friction import GRAVITY_MPS2, friction
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.motion import LOOK_S, Motion
from mt_nodes.world.drive.plant import Car, Plant
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.drive.scenario_checks import checked
from mt_nodes.world.drive.signals import colour_at, programmes
from mt_nodes.world.drive.trace import Collision, EgoState, WorldState
from mt_nodes.world.drive.vehicle_commands import commanded_acceleration_mps2, commanded_steering_rad, refusal

TARGET_M = 3.5
STANDSTILL_S, STANDSTILL_MPS, STIR_M, LIGHT_M = 5.0, 0.02, 30.0, 15.0
#: Cosine of 45 degrees: two directions are about the same.
_ALIKE = 0.7
_ROLLING = Control(None, steering_rad=0.0, acceleration_mps2=0.0)


class World:
    """One episode of a scenario.

    Attributes:
        scenario, road: the scenario and its map. seed: of randomness in the world: as yet there is none.
        state: everything that moves, now. ended: reason of the end, empty while it goes on. reason: of ``bad_command``.
        collisions: contacts of the ego so far, in order.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 0,
        road: RoadMap | None = None,
        physics_s: float = 0.01,
        *,
        stop_at_collision: bool = True,
    ) -> None:
        """Set up a scenario at time 0.

        ``road``: map instead of the scenario's own. ``physics_s``: of one step.
        Raises UsageError: the map does not exist, or the scenario has problems; the text names them all.
        """
        self.scenario, self.seed = scenario, seed
        self.road = road or load_map(scenario.road)
        checked(scenario, self.road)
        start, vehicle = scenario.ego.start, scenario.ego.vehicle
        ego = EgoState(start.x_m, start.y_m, start.yaw_rad, scenario.ego.speed_mps)
        self._step_s, self._steps, self._stop_at_collision = physics_s, 0, stop_at_collision
        self._look_steps = max(1, round(LOOK_S / physics_s))
        self._programmes = programmes(self.road, scenario.signals)
        self._plant: Car = Plant(vehicle, ego, friction(scenario.environment) * GRAVITY_MPS2, physics_s)
        self._motion = Motion(scenario, self.road, ego, physics_s)
        self._contacts = Contacts(scenario, self.road)
        self._front_m, self._standing_steps = vehicle.front_m, 0
        self._stops = {s.name: self.road.lanes[s.lane].pose_at(s.stop_m) for s in self.road.signals if s.lane}
        shapely.prepare(self.road.carriageway)
        self._command = _ROLLING
        self.ended, self.reason = "", ""
        self.collisions: tuple[Collision, ...] = ()
        self.state = self._now()

    def step(self, command: Control | None, until_s: float) -> None:
        """Advance to the physics step nearest to ``until_s``, or until the episode ends.

        ``command``: the stack's answer; None: nothing new. Raises ValueError: that time is not ahead.
        """
        last = round(until_s / self._step_s)
        if last <= self._steps:
            raise ValueError(f"got a step to {until_s:g} s at {self.state.time_s:g} s, expected a later time")
        if command is not None and not self.ended:
            self.reason = refusal(command)
            self.ended = "bad_command" if self.reason else ""
            self._command = command
        while not self.ended and self._steps < last:
            self._tick()
        self.state = self._now()

    def close(self) -> None:
        """Let go of what plays it, if that is not this object."""

    def _tick(self) -> None:
        ego, vehicle = self._plant.state, self.scenario.ego.vehicle
        if self._steps % self._look_steps == 0:
            self._motion.look(ego, self._colours())
        self._motion.advance(self._steps * self._step_s, ego)
        self._plant.advance(
            commanded_acceleration_mps2(self._command, ego.speed_mps, vehicle),
            commanded_steering_rad(self._command, ego.speed_mps, vehicle),
        )
        self._steps += 1
        new = self._contacts.found(self._steps * self._step_s, self._plant.state, self._motion.rows)
        self.collisions += tuple(new)
        self.ended = "collision" if new and self._stop_at_collision else self._over()

    def _over(self) -> str:
        """Return the reason of the end at this instant, except collisions."""
        ego = self._plant.state
        if not shapely.contains_xy(self.road.carriageway, *self._middle(ego)):
            return self._off(ego)
        target = self.scenario.ego.target
        if target is not None and hypot(target.x_m - ego.x_m, target.y_m - ego.y_m) <= TARGET_M:
            return "target"
        if self._steps % self._look_steps == 0:
            standing = ego.speed_mps < STANDSTILL_MPS and not self._waits(ego)
            self._standing_steps = self._standing_steps + self._look_steps if standing else 0
            if self._standing_steps * self._step_s >= STANDSTILL_S - 1e-9:
                return "standstill"
        return "time" if self._steps * self._step_s >= self.scenario.duration_s - 1e-9 else ""

    def _middle(self, ego: EgoState) -> tuple[float, float]:
        along = (self.scenario.ego.vehicle.front_m - self.scenario.ego.vehicle.rear_m) / 2.0
        return ego.x_m + along * cos(ego.yaw_rad), ego.y_m + along * sin(ego.yaw_rad)

    def _off(self, ego: EgoState) -> str:
        """Return whether the ego left the carriageway at a road's end or elsewhere."""
        place = self._middle(ego)
        lane = self.road.nearest_lane(*place)
        at_end = not lane.next and lane.station_of(*place)[0] >= lane.length_m - 1e-6
        return "end_of_road" if at_end else "off_road"

    def _waits(self, ego: EgoState) -> bool:
        """Return whether a standing ego may have a reason: somebody moves nearby, or a light is not green."""
        rows = self._motion.rows
        near = (rows[:, 3] > 0.0) & (np.hypot(rows[:, 0] - ego.x_m, rows[:, 1] - ego.y_m) < STIR_M)
        if near.any():
            return True
        front = ego.x_m + self._front_m * cos(ego.yaw_rad), ego.y_m + self._front_m * sin(ego.yaw_rad)
        colours = self._colours()
        return any(
            colours[name] != "green"
            and hypot(stop.x_m - front[0], stop.y_m - front[1]) < LIGHT_M
            and cos(stop.yaw_rad - ego.yaw_rad) > _ALIKE
            for name, stop in self._stops.items()
        )

    def _colours(self) -> dict[str, str]:
        time_s = self._steps * self._step_s
        own = {name: colour_at(programme, time_s) for name, programme in self._programmes.items()}
        return own | self._motion.events.lights

    def _now(self) -> WorldState:
        time_s, moving = self._steps * self._step_s, self._motion
        return WorldState(time_s, self._plant.state, moving.rows.copy(), moving.travelled_m.copy(), self._colours())
