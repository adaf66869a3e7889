# SPDX-License-Identifier: Apache-2.0
"""Base class of checks over a sequence: they judge all answers of both arms in an episode or a segment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check

PairMeasure = Callable[[Output, Output, Effects, Bundle], Sequence[float]]
"""Takes the answers of both arms to one instant, of source and follow-up, to numbers; it may remember former ones."""


class SequenceCheck(Check):
    """A relation of two series of outputs. Subclasses are frozen dataclasses whose fields are their parameters.

    There is one verdict for an episode (pair ``<episode>/-/…``) or, with live input, for a segment. Instants at which
    the relation's ``given`` does not hold are left out.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    #: Fields of :mod:`mt_nodes.data.arm_series` that it reads; no other parts of the answers are stored.
    reads: ClassVar[tuple[str, ...]] = ()
    #: Names of the numbers of each pair of answers, in the order in which :meth:`measure` gives them.
    measures: ClassVar[tuple[str, ...]] = ()

    @property
    def agreement(self) -> Check | None:
        """Check that two answers to one input must pass for the arms to agree; None: the usual tolerances."""
        return None

    def measure(self) -> PairMeasure:
        """Return what measures the pairs of one stretch, in their order: a number for each name in :attr:`measures`."""
        return lambda *_: ()

    @abstractmethod
    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Judge a window of at least one instant, in which both arms got the same input but for the mutation."""

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Return NOT_APPLICABLE: one instant is no sequence."""
        return Judgement(Outcome.NOT_APPLICABLE, reason="one instant is no sequence")
