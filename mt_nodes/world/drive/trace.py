# SPDX-License-Identifier: Apache-2.0
"""Trace of one closed-loop episode: one row for each instant at which the stack got input."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mt_nodes.base.arrays import Floats, Mask

EGO_COLUMNS = ("x_m", "y_m", "yaw_rad", "speed_mps", "acceleration_mps2", "steering_rad")
ACTOR_COLUMNS = ("x_m", "y_m", "yaw_rad", "speed_mps")
COMMAND_COLUMNS = ("steering_rad", "speed_mps", "acceleration_mps2")


@dataclass(frozen=True)
class EgoState:
    """The ego at an instant; see :mod:`mt_nodes.world.drive.scenario` for the frame.

    ``steering_rad``: of the road wheels, positive to the left.
    """

    x_m: float
    y_m: float
    yaw_rad: float
    speed_mps: float
    acceleration_mps2: float = 0.0
    steering_rad: float = 0.0

    @property
    def row(self) -> tuple[float, ...]:
        """The values in the order of :data:`EGO_COLUMNS`."""
        return tuple(getattr(self, name) for name in EGO_COLUMNS)


@dataclass(frozen=True, eq=False)
class WorldState:
    """State of everything that moves, at an instant.

    Attributes:
        actors: (N, 4) in the order of the scenario's actors, columns :data:`ACTOR_COLUMNS`.
        travelled_m: (N,) each actor's distance so far, for swinging legs.
        signals: colour of each traffic light: ``red``, ``yellow``, ``green``.
    """

    time_s: float
    ego: EgoState
    actors: Floats
    travelled_m: Floats
    signals: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Collision:
    """The ego's first contact with a body.

    Attributes:
        name, kind: of the body. x_m, y_m: centre of the contact. side: of the ego: front, left, right, rear.
        ego_mps: speed of the ego. closing_mps: closing speed along that side's normal.
        fatal, injured: probabilities by the published curves of :mod:`mt_nodes.world.drive.risk`; None if none applies.
    """

    time_s: float
    name: str
    kind: str
    x_m: float
    y_m: float
    side: str
    ego_mps: float
    closing_mps: float
    fatal: float | None = None
    injured: float | None = None


@dataclass(frozen=True, eq=False)
class Trace:
    """One episode.

    Attributes:
        time_s: (T,). ego: (T, 6), columns :data:`EGO_COLUMNS`. actors: (T, N, 4). names: (N,) of the actors.
        commands: (T, 3), columns :data:`COMMAND_COLUMNS`, NaN if missing: the answer to the input of that row.
        answered: (T,) whether there was an answer.
        ended: reason of the end: ``time``, ``target``, ``standstill``, ``collision``, ``off_road``, ``silent`` …
    """

    scenario: str
    time_s: Floats
    ego: Floats
    actors: Floats
    names: tuple[str, ...]
    commands: Floats
    answered: Mask
    collisions: tuple[Collision, ...]
    ended: str

    def __len__(self) -> int:
        return len(self.time_s)

    def column(self, name: str) -> Floats:
        """Return (T,) one column of the ego by its name in :data:`EGO_COLUMNS`."""
        return np.asarray(self.ego[:, EGO_COLUMNS.index(name)])
