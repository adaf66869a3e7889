# SPDX-License-Identifier: Apache-2.0
"""Base class of changes of a scenario: draw, apply, and the effects on the world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mt_nodes.base.params import plain
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.world_changes.scenario_carry import Carry
from mt_nodes.world.drive.scenario import Pose, Scenario

if TYPE_CHECKING:
    from mt_nodes.world.drive.road_map import RoadMap

__all__ = ["Draw", "ScenarioChange", "Setting", "WorldEffects"]


@dataclass(frozen=True, eq=False)
class Setting:
    """A scenario, its map and its sensor noise. ``noise``: index of the sensor noise; 0 is the source's."""

    scenario: Scenario
    road: RoadMap
    noise: int = 0


@dataclass(frozen=True)
class WorldEffects:
    """Differences between the follow-up's and the source's world that checks must know.

    Attributes:
        carried: movement of the expected trace. added: names of actors and obstacles that the source lacks.
        changed: names of actors that changed or moved.
        at: place on the ego's way, in the source's world, at which the worlds differ; None if that moves, or is no
            single place.
        numbers: measured values, such as the distance of an added actor.
    """

    carried: Carry = field(default_factory=Carry)
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    at: Pose | None = None
    numbers: dict[str, float] = field(default_factory=dict)

    def merged(self, later: WorldEffects) -> WorldEffects:
        """Return these effects followed by those of a change applied after."""
        return WorldEffects(
            self.carried.then(later.carried),
            self.added + later.added,
            self.changed + later.changed,
            self.at or later.at,
            {**self.numbers, **later.numbers},
        )

    def as_plain(self) -> dict[str, Any]:
        """Return the effects as recorded in the ledger; leaves out empty ones."""
        fields = {
            name: plain(getattr(self, name)) for name in ("added", "changed", "at", "numbers") if getattr(self, name)
        }
        return fields if self.carried.stays else {"carried": plain(self.carried), **fields}


class ScenarioChange(ABC):
    """A pure, seeded change of a scenario. Subclasses are frozen dataclasses whose fields are their parameters.

    The name in files is the class name in snake case. Only :meth:`draw` is random. The changed scenario must pass all
    checks of a scenario before the drive.
    """

    #: Role in a run: ``relation``, or ``control`` and ``sham``, which every run has.
    role: ClassVar[str] = "relation"

    @abstractmethod
    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Make every random choice: numbers, texts and arrays by name, so that a ledger can hold them.

        Raises NotApplicable: no honest follow-up of this scenario exists.
        """

    @abstractmethod
    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Return the follow-up's setting, and its differences; equal arguments give equal results."""

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """Return the strength parameters: the value that changes nothing of a world, or least.

        Only numbers for which values in between change less than the change's own value.
        """
        return {}
