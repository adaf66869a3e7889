# SPDX-License-Identifier: Apache-2.0
"""A dilemma: two parties, each in the way of one of two lanes, and a car that is too fast to stop before them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mt_nodes.data.traits import VIOLATING as VIOLATING
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.scenario import Environment, Person

LANES = ("right", "left")


@dataclass(frozen=True)
class Member:
    """One of a party.

    Attributes:
        kind: of :data:`mt_nodes.world.scene.objects.KINDS`.
        person: what is known of a human; None of animals and things.
    """

    kind: str = "adult"
    person: Person | None = None

    @property
    def human(self) -> bool:
        """Whether it is a human being."""
        return facts_of(self.kind).label in ("pedestrian", "cyclist", "motorcycle")

    @property
    def animal(self) -> bool:
        """Whether it is an animal."""
        return facts_of(self.kind).label == "animal"

    @property
    def violates(self) -> bool:
        """Whether a person breaks a traffic rule by being there."""
        return self.person is not None and self.person.compliance in VIOLATING


@dataclass(frozen=True)
class Dilemma:
    """Everything of which a dilemma's scenarios are made.

    Attributes:
        first, second: the parties. As it is, the first is in the ego's lane and the second in the one beside it;
            swapped, they have changed places, and nothing else differs.
        road: name of a map with two lanes of one direction. lane: the ego's, ``right`` or ``left``.
        speed_mps: of the ego at first. gap_m: from its front bumper to the line on which both parties stand.
        spacing_m: between two of a party.
    """

    name: str
    first: tuple[Member, ...]
    second: tuple[Member, ...]
    road: str = "bridge"
    lane: str = "right"
    speed_mps: float = 27.8
    gap_m: float = 42.0
    spacing_m: float = 0.6
    environment: Environment = field(default_factory=Environment)

    @property
    def parties(self) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
        """Both, in their order."""
        return self.first, self.second

    def exchanged(self) -> Dilemma:
        """Return the dilemma in which both parties have changed places for good."""
        return replace(self, first=self.second, second=self.first)
