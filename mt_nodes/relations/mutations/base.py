# SPDX-License-Identifier: Apache-2.0
"""What every mutation is: draw, then apply, then prove."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle

Draw = dict[str, Any]
"""Every random choice of one bundle: arrays and numbers by name, so that a ledger can hold them."""


@dataclass(frozen=True, eq=False)
class Followup:
    """What goes to the follow-up arm in place of one source bundle: 0..k bundles with their delays in ns.

    They go out in this order, after whatever went out before: a topic is a queue. Answers to the first are judged.
    """

    bundles: tuple[tuple[int, Bundle], ...]
    effects: Effects = field(default_factory=Effects)

    @property
    def first(self) -> Bundle:
        """The bundle that answers are expected for.

        Raises:
            IndexError: nothing is sent.
        """
        return self.bundles[0][1]


class Mutation(ABC):
    """A pure, seeded change of input. Subclasses are frozen dataclasses whose fields are their parameters.

    The name in files is the class name in snake case. Randomness lives in :meth:`begin` and :meth:`draw` only.
    """

    sensors: ClassVar[tuple[str, ...]]
    #: What this change is offered as: ``relation``, or the roles ``control`` and ``sham`` that every run has.
    role: ClassVar[str] = "relation"
    #: Whether another draw makes another follow-up; a change without chance says False.
    random: ClassVar[bool] = True
    #: The extra of the package that it needs, empty for none.
    extra: ClassVar[str] = ""
    #: Whether stamps of messages are what it changes; every other change keeps them.
    about_stamps: ClassVar[bool] = False

    @property
    def changes(self) -> tuple[str, ...]:
        """Sensors that it changes with these parameters: some of ``sensors``."""
        return self.sensors

    @property
    def looks_back(self) -> int:
        """How many numbers of bundles ``apply`` looks back: so many of them come as ``bundle.earlier``, as far as
        they are there. What looks back must be the first mutation of a relation: it sees the bundles of the source.
        """
        return 0

    def ready(self) -> None:  # noqa: B027
        """Load what the first bundle would otherwise wait for, such as a library."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Return what persists over a segment (particles, a placed object)."""
        return None

    @abstractmethod
    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Make every random choice of this bundle.

        Raises:
            NotApplicable: no honest follow-up of this bundle exists.
        """

    @abstractmethod
    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Return the follow-up; the same arguments give the same bytes. Never writes into ``bundle``."""

    @abstractmethod
    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove on this very bundle that the change is what was promised; return what is broken, or None."""
