# SPDX-License-Identifier: Apache-2.0
"""What every check is: a judgement over two outputs and the effects of the mutation between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement

C = TypeVar("C", bound="Check")


class Check(ABC):
    """An output relation. Subclasses are frozen dataclasses whose fields are their parameters."""

    #: Parts of :class:`Output` that the check reads.
    needs: ClassVar[tuple[str, ...]] = ("detections",)
    #: Whether a follow-up arm that said nothing is judged as one that saw nothing; False: its silence is the violation.
    silence_is_nothing_seen: ClassVar[bool] = True
    #: Whether what it demands does not depend on how the stack flickers: a violated pair of a necessary relation fails
    #: without control or sham.
    demands_of_itself: ClassVar[bool] = False

    #: Of a stack that remembers, what a check reads of ``control`` or ``path`` is judged for so long after the arms
    #: agreed, if the input obeys no command; see :mod:`mt_nodes.engine.open_loop`.
    open_loop_s: ClassVar[float] = 2.0

    @property
    def background(self) -> Check:
        """The check that judges control and sham in its place: what an input that did not change must not do.

        Itself, but for a check that demands a difference.
        """
        return self

    def of_stack(self: C, traits: OutputTraits) -> C:
        """Return the check with what it lacks and the stack file says, such as thresholds of scores."""
        return self

    @abstractmethod
    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair. ``bundle`` is the source bundle: transforms and regions of that instant.

        Returns ``NOT_APPLICABLE`` when there is nothing to demand. A part that the check needs and an arm did not
        say is the engine's matter: it never reaches a check.
        """
