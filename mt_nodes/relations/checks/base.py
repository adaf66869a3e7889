# SPDX-License-Identifier: Apache-2.0
"""What every check is: a judgement over two outputs and the effects of the mutation between them."""

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


def at_most(measured: float, bound: float, unit: str, reason: str, **rest: Any) -> Judgement:
    """Judge that a number is no larger than a bound."""
    return _judgement(measured, bound, bound - measured, unit, reason, rest)


def at_least(measured: float, bound: float, unit: str, reason: str, **rest: Any) -> Judgement:
    """Judge that a number is no smaller than a bound."""
    return _judgement(measured, bound, measured - bound, unit, reason, rest)


def nothing_to_judge(reason: str, unit: str = "") -> Judgement:
    """Say why a pair is not applicable."""
    return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit=unit)


def _judgement(measured: float, bound: float, margin: float, unit: str, reason: str, rest: dict[str, Any]) -> Judgement:
    margin = round(margin, DECIMALS)
    outcome = Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS
    return Judgement(
        outcome, round(measured, DECIMALS), round(bound, DECIMALS), margin, unit=unit, reason=reason, **rest
    )
