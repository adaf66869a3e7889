# SPDX-License-Identifier: Apache-2.0
"""Base class of all mutations: draw, apply, prove."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle

Draw = dict[str, Any]
"""Every random choice of one bundle: arrays and numbers by name, so that a ledger can hold them."""


@dataclass(frozen=True, eq=False)
class Followup:
    """What the follow-up arm gets instead of one source bundle: 0..k bundles with their delays in ns.

    They go out in this order, after all earlier ones: a topic is a queue. The answer to the first one is judged.
    """

    bundles: tuple[tuple[int, Bundle], ...]
    effects: Effects = field(default_factory=Effects)

    @property
    def first(self) -> Bundle:
        """The bundle whose answer is judged.

        Raises:
            IndexError: nothing is sent.
        """
        return self.bundles[0][1]


class Mutation(ABC):
    """A pure, seeded change of input. Subclasses are frozen dataclasses whose fields are their parameters.

    The name in files is the class name in snake case. Randomness lives in :meth:`begin` and :meth:`draw` only.
    """

    sensors: ClassVar[tuple[str, ...]]
    #: Role in a run: ``relation``, or ``control`` and ``sham``, which every run has.
    role: ClassVar[str] = "relation"
    #: Whether another draw gives another follow-up.
    random: ClassVar[bool] = True
    #: Extra of the package that it needs, empty for none.
    extra: ClassVar[str] = ""
    #: Whether it changes stamps of messages; every other mutation keeps them.
    about_stamps: ClassVar[bool] = False
    #: Whether it changes serialized messages that no bundle decodes (``Wire.changed``).
    about_wires: ClassVar[bool] = False
    #: Whether it changes the transforms that a stack is given (``TransformTree.wrong``).
    about_transforms: ClassVar[bool] = False
    #: Whether it changes one world for several sensors: each message of those in ``changes`` then shows the change, or
    #: has its reason in ``Effects.unchanged``; otherwise the pair is INVALID.
    joint: ClassVar[bool] = False
    #: Whether its draw of an instant holds for the cameras' frames between instants, too: it changes the camera or the
    #: air, nothing that has a place in the scene. Other mutations of cameras refuse bundles with such frames.
    for_frames_between: ClassVar[bool] = False

    @property
    def needs_motion(self) -> bool:
        """Whether ``begin`` and ``draw`` read ``bundle.motion``; what ``apply`` needs of it must be in the draw."""
        return False

    @property
    def changes(self) -> tuple[str, ...]:
        """Sensors that it changes with these parameters: a subset of ``sensors``."""
        return self.sensors

    @property
    def needs_history(self) -> int:
        """How many bundles ``apply`` looks back: as many come as ``bundle.earlier``, if they exist."""
        return 0

    @property
    def draw_history(self) -> int:
        """How many earlier bundles with images ``draw`` looks back on, with their motion, where there are any.

        What ``apply`` needs of them must be in the draw. A step that is not the first gets none: they are the source's.
        """
        return 0

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say why sensors among a stack's inputs would contradict each other in its follow-ups, empty if they do not.

        Args:
            inputs: roles, such as ``lidar`` and ``radar``.
            sync_s: largest time between the inputs that the stack joins; infinite if nobody knows.
        """
        return ""

    def ready(self) -> None:  # noqa: B027
        """Load what the first bundle would otherwise wait for, such as a library."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Return the state of a segment (particles, a placed object)."""
        return None

    def ended(self, state: Any, bundle: Bundle) -> bool:
        """Whether what ``begin`` returned is over at a bundle, such as an object that the ego has passed.

        Then ``begin`` is called again. It is a function of its arguments alone; the bundle is the source's, before any
        mutation.
        """
        return False

    def foresee(self, rng: np.random.Generator, last: Bundle) -> Any:
        """Draw ahead what the next bundle does not decide, from a generator in the state in which ``draw`` gets its.

        ``draw`` finds it by :func:`mt_nodes.base.seeds.drawn_ahead`, and gives the same draw with it or without it.
        ``last``: the latest bundle. None: there is nothing to draw ahead.
        """
        return None

    @abstractmethod
    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Make every random choice of this bundle.

        Raises:
            NotApplicable: no honest follow-up of this bundle exists.
        """

    @abstractmethod
    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Return the follow-up. Equal arguments give equal bytes, and ``bundle`` is never written to."""

    @abstractmethod
    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove on this very bundle that the change is as promised; return the broken promise, or None."""


def stamps_apart(offset_s: float, moved: str, others: Sequence[str], sync_s: float) -> str:
    """Say that a sensor's stamps are farther from those of other sensors than a stack takes (``sync_s``)."""
    return (
        f"the stamps of the {moved} would be {offset_s:+g} s off those of the {' and the '.join(others)}, and it joins "
        f"inputs up to {sync_s:g} s apart (sync_s)"
    )
