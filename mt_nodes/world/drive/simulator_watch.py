# SPDX-License-Identifier: Apache-2.0
"""Whether another simulator does what a closed loop needs of it: bodies stand where they were put, and the ego moves.

A simulator that answers but does nothing would otherwise give drives in which nothing happens, and relations that hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.world.drive.scenario import Ego, Pose
from mt_nodes.world.drive.trace import EgoState

#: A body may be off its place by so much, and by the way of so many steps: commands may take effect one step later.
BODY_OFF_M, LATE_STEPS = 1.0, 2.0
#: Over a whole episode the ego comes farther than this from its first place. From the start, or from a command to
#: drive, it has so long.
MOVES_M, WAKES_S = 0.1, 3.0
#: An ego that rolls faster than so, or is asked to speed up by more, should move.
_ROLLS_MPS, _ASKED_MPS2 = 0.5, 0.3
#: The simulator's ego begins within this of the scenario's.
_START_OFF_M = 2.0


class SimulatorWatch:
    """What was asked of a simulator in one episode, and whether it happened."""

    def __init__(self, ego: Ego, step_s: float) -> None:
        self._start, self._rolls, self._step_s = ego.start, ego.speed_mps > _ROLLS_MPS, step_s
        self._first: EgoState | None = None
        self._farthest_m = self._asked_s = 0.0

    def bodies(self, asked: Mapping[str, tuple[Pose, float]], places: Mapping[str, Pose]) -> None:
        """Compare the places of bodies with those that were asked for, each with its speed in m/s.

        Raises InfrastructureError: one is missing or elsewhere.
        """
        for name, (pose, speed_mps) in asked.items():
            if (there := places.get(name)) is None:
                raise InfrastructureError(f"the simulator does not have '{name}', which was spawned there")
            off_m = hypot(there.x_m - pose.x_m, there.y_m - pose.y_m)
            if off_m > BODY_OFF_M + LATE_STEPS * self._step_s * speed_mps:
                raise InfrastructureError(
                    f"the simulator has '{name}' at ({there.x_m:.1f}, {there.y_m:.1f}) m, {off_m:.1f} m from "
                    f"({pose.x_m:.1f}, {pose.y_m:.1f}) m, where it was put: does it step, and is the origin right?"
                )

    def ego(self, state: EgoState, acceleration_mps2: float) -> None:
        """Take in the ego after a step with a command. Raises InfrastructureError: it does not begin or move."""
        if self._first is None:
            if (off_m := hypot(state.x_m - self._start.x_m, state.y_m - self._start.y_m)) > _START_OFF_M:
                raise InfrastructureError(
                    f"the simulator's ego begins at ({state.x_m:.1f}, {state.y_m:.1f}) m, {off_m:.1f} m from its start"
                )
            self._first = state
        # Not the way: that of an ego which stands and trembles adds up.
        away_m = hypot(state.x_m - self._first.x_m, state.y_m - self._first.y_m)
        self._farthest_m = max(self._farthest_m, away_m)
        driven = self._rolls or acceleration_mps2 > _ASKED_MPS2
        self._asked_s = self._asked_s + self._step_s if driven else 0.0
        if self._asked_s > WAKES_S:
            self.moved(f"{WAKES_S:g} s after it should have")

    def moved(self, when: str) -> None:
        """Demand that the ego has moved. Raises InfrastructureError: it has not."""
        if self._farthest_m < MOVES_M:
            raise InfrastructureError(
                f"the simulator's ego has not moved {when}: nothing shows that the simulator runs and takes commands, "
                "so nothing was tested"
            )
