# SPDX-License-Identifier: Apache-2.0
"""Shared code of checks of detections with scores: thresholds and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.params import param
from mt_nodes.data.output_traits import DEFAULT_THRESHOLDS, OutputTraits, Thresholds
from mt_nodes.relations.checks.base import Check

_NAMED = 3


def score_falls(before: Floats, after: Floats) -> list[list[float]]:
    """Return [score before, score after] of lost detections (N,), to three digits."""
    return np.column_stack([before, after]).round(3).tolist()  # type: ignore[no-any-return]


def of_classes(label: npt.NDArray[np.str_], classes: Sequence[str]) -> Mask:
    """Tell which rows (N,) are of one of some classes, however these are capitalised; all where none are named."""
    known = [name.lower() for name in classes]
    return np.isin(np.char.lower(label), known) if classes else np.ones(len(label), dtype=bool)


def described_unreported(label: npt.NDArray[np.str_], classes: Sequence[str]) -> str:
    """Say why an object that was added is not demanded of a stack that reports other classes."""
    kinds = ", ".join(sorted(set(label.tolist())))
    return f"what was added is a {kinds}, and the stack reports {', '.join(classes)} only (classes in its file)"


def described_falls(falls: Sequence[Sequence[float]]) -> str:
    """Describe how far scores fell: `` (score 0.95 to none)``; empty if there are none."""
    if not falls:
        return ""
    few = [f"{before:.2f} to {f'{after:.2f}' if after else 'none'}" for before, after in falls[:_NAMED]]
    return f" (score {', '.join(few)})"


C = TypeVar("C", bound="ScoredCheck")


@dataclass(frozen=True)
class ScoredCheck(Check):
    """Base of checks of one output with scores.

    What a score means depends on the stack. So the thresholds come from the stack file, unless the relation sets its
    own.
    """

    #: The output with the scores.
    scored: ClassVar[str]

    score_high: float | None = param(
        None,
        low=0.0,
        high=1.0,
        help="what the source shows with this score is demanded; not given: the stack's `scores`",
    )
    score_low: float | None = param(
        None,
        low=0.0,
        high=1.0,
        help="what the follow-up shows with this score answers; not given: the stack's `scores`",
    )

    def __post_init__(self) -> None:
        self.thresholds  # noqa: B018  refuses what does not go together

    @property
    def thresholds(self) -> Thresholds:
        """The relation's thresholds, else the defaults."""
        return DEFAULT_THRESHOLDS[self.scored].with_given(self.score_high, self.score_low)

    def of_stack(self: C, traits: OutputTraits) -> C:
        """Return the check with missing thresholds taken from the stack file.

        If the relation sets one of them, the stack's other one is moved as far as needed to keep the low one at or
        below the high one.
        """
        stack = traits.thresholds(self.scored)
        high = max(stack.high, self.score_low or 0.0) if self.score_high is None else self.score_high
        low = min(stack.low, high) if self.score_low is None else self.score_low
        return replace(self, score_high=high, score_low=low)
