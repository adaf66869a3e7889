# SPDX-License-Identifier: Apache-2.0
"""What every change of a scenario is: draw, then apply; and what it says about the world that it made."""

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
    """What a world is made of.

    Attributes:
        noise: which noise the sensors have; 0 is the source's.
    """

    scenario: Scenario
    road: RoadMap
    noise: int = 0


@dataclass(frozen=True)
class WorldEffects:
    """How the follow-up's world differs from the source's, as far as a check must know.

    Attributes:
        carried: where the source's trace is expected. added: names of actors and obstacles that the source has not.
        changed: names of those who are another, or elsewhere.
        at: place of the ego's way, as the source has it, at which something is another; None where that moves, or where
            it is no one place.
        numbers: measured facts, such as how far away somebody was put.
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
        """Return what the ledger records; nothing of what there is none of."""
        told = {
            name: plain(getattr(self, name)) for name in ("added", "changed", "at", "numbers") if getattr(self, name)
        }
        return told if self.carried.stays else {"carried": plain(self.carried), **told}


class ScenarioChange(ABC):
    """A pure, seeded change of a scenario. Subclasses are frozen dataclasses whose fields are their parameters.

    The name in files is the class name in snake case. Randomness lives in :meth:`draw` only. Whatever is made is
    held to what a world demands of a scenario before it is driven through.
    """

    #: What it is offered as: ``relation``, or the roles ``control`` and ``sham`` that every run has.
    role: ClassVar[str] = "relation"

    @abstractmethod
    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Make every random choice: numbers, texts and arrays by name, so that a ledger can hold them.

        Raises:
            NotApplicable: no honest follow-up of this scenario exists.
        """

    @abstractmethod
    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Return the follow-up's setting, and how it differs; the same arguments give the same."""

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """Return the parameters that say how much is changed: the value that changes nothing of a world, or least.

        Only numbers of which a value between it and the change's own changes less.
        """
        return {}
