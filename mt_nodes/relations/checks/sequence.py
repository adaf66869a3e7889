# SPDX-License-Identifier: Apache-2.0
"""What every check over a sequence is: a judgement over all that both arms said to an episode or a segment."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check


class SequenceCheck(Check):
    """A relation of two series of outputs. Subclasses are frozen dataclasses whose fields are their parameters.

    One verdict is given of an episode (pair ``<episode>/-/…``) or, of live input, of a segment. Instants at which the
    relation's ``given`` does not hold are left out.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    #: Numbers of :mod:`mt_nodes.data.arm_series` that it reads; nothing else is kept of the answers.
    reads: ClassVar[tuple[str, ...]] = ()

    @property
    def agreement(self) -> Check | None:
        """What two answers to one input must hold for the arms to agree, beside the commands' usual tolerances."""
        return None

    @abstractmethod
    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Judge a stretch of at least one instant, in which both arms were given the same but for the follow-up."""

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Say that one instant is no sequence."""
        return Judgement(Outcome.NOT_APPLICABLE, reason="one instant is no sequence")
