# SPDX-License-Identifier: Apache-2.0
"""Base class of all checks: a check judges two outputs, given the effects of the mutation between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome

#: Numbers are compared to so many decimals: a message may round the last digits of what was computed.
DECIMALS = 9
C = TypeVar("C", bound="Check")


class Check(ABC):
    """An output relation. Subclasses are frozen dataclasses whose fields are their parameters."""

    #: Parts of :class:`Output` that the check reads.
    needs: ClassVar[tuple[str, ...]] = ("detections",)
    #: Whether a follow-up arm without an answer is judged as if it detected nothing; False: its silence is the
    #: violation.
    silence_means_no_obstacles: ClassVar[bool] = True
    #: Whether its demand does not depend on how the stack flickers: a violated pair of a necessary relation fails the
    #: relation without control or sham.
    demands_of_itself: ClassVar[bool] = False

    #: In open-loop replay, a check that reads ``control`` or ``path`` of a stack with memory is evaluated for so long
    #: after the arms agreed; see :mod:`mt_nodes.engine.open_loop`.
    open_loop_s: ClassVar[float] = 2.0

    @property
    def background(self) -> Check:
        """The check that judges control and sham in its place: what must hold when the input did not change.

        The check itself, unless it demands a difference.
        """
        return self

    def of_stack(self: C, traits: OutputTraits) -> C:
        """Return the check with missing settings, such as score thresholds, taken from the stack file."""
        return self

    @abstractmethod
    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair. ``bundle`` is the source bundle: transforms and regions of that instant.

        Returns ``NOT_APPLICABLE`` if there is nothing to demand. The engine handles outputs that the check needs and an
        arm did not publish: they never reach a check.
        """


def at_most(measured: float, bound: float, unit: str, reason: str, **rest: Any) -> Judgement:
    """Judge that a number is no larger than a bound."""
    return _judgement(measured, bound, bound - measured, unit, reason, rest)


def at_least(measured: float, bound: float, unit: str, reason: str, **rest: Any) -> Judgement:
    """Judge that a number is no smaller than a bound."""
    return _judgement(measured, bound, measured - bound, unit, reason, rest)


def nothing_to_judge(reason: str, unit: str = "") -> Judgement:
    """Return NOT_APPLICABLE with a reason."""
    return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit=unit)


def _judgement(measured: float, bound: float, margin: float, unit: str, reason: str, rest: dict[str, Any]) -> Judgement:
    margin = round(margin, DECIMALS)
    outcome = Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS
    return Judgement(
        outcome, round(measured, DECIMALS), round(bound, DECIMALS), margin, unit=unit, reason=reason, **rest
    )
