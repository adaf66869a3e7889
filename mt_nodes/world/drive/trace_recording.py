# SPDX-License-Identifier: Apache-2.0
"""Records a world's trace row by row."""

from __future__ import annotations

from math import nan

import numpy as np

from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.trace import ACTOR_COLUMNS, COMMAND_COLUMNS, EGO_COLUMNS, Trace, WorldState
from mt_nodes.world.drive.world import World


class TraceRecording:
    """A growing trace of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._states: list[WorldState] = []
        self._commands: list[tuple[float, ...]] = []
        self._answered: list[bool] = []

    def add(self, state: WorldState, command: Control | None, answered: bool) -> None:
        """Add a state that the stack got, and its answer; None: none."""
        self._states.append(state)
        self._commands.append(tuple(nan if command is None else getattr(command, name) for name in COMMAND_COLUMNS))
        self._answered.append(answered)

    def trace(self, ended: str = "") -> Trace:
        """Return the trace so far. ``ended``: reason of the end, instead of the world's own."""
        world, states = self._world, self._states
        names = tuple(actor.name for actor in world.scenario.actors)
        return Trace(
            scenario=world.scenario.name,
            time_s=np.array([state.time_s for state in states]),
            ego=np.array([state.ego.row for state in states]).reshape(-1, len(EGO_COLUMNS)),
            actors=np.array([state.actors for state in states]).reshape(len(states), len(names), len(ACTOR_COLUMNS)),
            names=names,
            commands=np.array(self._commands).reshape(-1, len(COMMAND_COLUMNS)),
            answered=np.array(self._answered, dtype=bool),
            collisions=world.collisions,
            ended=ended or world.ended,
        )
