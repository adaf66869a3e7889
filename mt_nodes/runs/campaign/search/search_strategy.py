# SPDX-License-Identifier: Apache-2.0
"""Which trials a search plays: halving for one strength; else samples, then every strength turned down by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mt_nodes.relations.strength import Strength
from mt_nodes.runs.campaign.search.bisection import Near, bisect, narrowed
from mt_nodes.runs.campaign.search.sampling import sample
from mt_nodes.runs.campaign.search.trial import Trial
from mt_nodes.runs.campaign.search.trial_journal import TrialJournal, TrialsSpent

#: Of the trials so many are kept for making a violation weaker.
_KEPT_FOR_LESS = 0.4


@dataclass(frozen=True)
class SearchResult:
    """How a search went.

    Attributes:
        method: ``bisection``, ``sampling``, or ``bisection, then sampling``.
        note: what is to be told of it, empty: nothing.
        spent: whether it ended because its trials were spent.
    """

    method: str
    note: str = ""
    spent: bool = False


def seek(
    played: TrialJournal, axes: Sequence[Strength], places: Sequence[bool], seed: int, tolerance: float
) -> SearchResult:
    """Play trials until the least violating change is known to the tolerance, or the trials are spent.

    Args:
        played: plays trials, and keeps them.
        axes: what is searched over. places: which of them say where, and not how much.
        seed: of the sampler.
        tolerance: of a fraction; integers are found exactly where one parameter is searched.
    """
    method, note = "sampling", ""
    try:
        if len(axes) == 1 and not places[0]:
            method = "bisection"
            found = bisect(lambda f, stage: played.play((f,), stage), near(axes[0], tolerance))
            if not found.contradiction:
                return SearchResult(method)
            method, note = "bisection, then sampling", f"stronger is not always worse: {found.contradiction}"
        _sampled(played, axes, places, seed, tolerance, note)
    except TrialsSpent:
        return SearchResult(method, note, spent=True)
    return SearchResult(method, note)


def near(axis: Strength, tolerance: float) -> Near:
    """Return when two fractions of an axis are near enough: of integers, when none lies between them."""

    def enough(low: float, high: float) -> bool:
        if axis.whole:
            return abs(axis.value(high) - axis.value(low)) <= 1
        return high - low <= tolerance

    return enough


def _sampled(
    played: TrialJournal, axes: Sequence[Strength], places: Sequence[bool], seed: int, tolerance: float, note: str
) -> None:
    sample(played.play, len(axes), seed, max(1, round((1.0 - _KEPT_FOR_LESS) * played.left)), note)
    if played.best is None:
        sample(played.play, len(axes), seed + 1, played.left)
    if played.best is not None and not all(places):
        _turned_down(played, axes, places, tolerance)


def _turned_down(played: TrialJournal, axes: Sequence[Strength], places: Sequence[bool], tolerance: float) -> None:
    """Turn all strengths of the best violation down together, then each by itself."""
    steps = [("ray", tuple(not place for place in places))]
    steps += [("axis", tuple(j == i for j in range(len(axes)))) for i, place in enumerate(places) if not place]
    for stage, turned in steps:
        best = played.best
        assert best is not None
        _along(played, best, stage, partial(_scaled, best.fractions, turned), _enough(axes, best, turned, tolerance))


def _along(played: TrialJournal, strong: Trial, stage: str, at: Callable[[float], Sequence[float]], near: Near) -> None:
    """Halve along a way from a violation (1) to a weaker change (0)."""
    weak = played.play(at(0.0), stage)
    if not weak.violated:
        narrowed(lambda t, name: played.play(at(t), name), near, stage, strong, weak)


def _scaled(fractions: Sequence[float], turned: Sequence[bool], t: float) -> tuple[float, ...]:
    return tuple(t * f if turn else f for f, turn in zip(fractions, turned, strict=True))


def _enough(axes: Sequence[Strength], trial: Trial, turned: Sequence[bool], tolerance: float) -> Near:
    """:func:`near` of all axes that are turned, of shares of a trial's fractions."""
    each = [(f, near(a, tolerance)) for a, f, turn in zip(axes, trial.fractions, turned, strict=True) if turn]
    return lambda low, high: all(enough(low * f, high * f) for f, enough in each)
