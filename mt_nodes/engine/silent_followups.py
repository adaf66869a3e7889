# SPDX-License-Identifier: Apache-2.0
"""Tells a stack that is silent about a follow-up from a machine that loses answers: by the control around it."""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

#: So rarely chance gives silence to the relation's follow-ups rather than to control, before silence counts.
ALPHA = 0.01
#: Pairs, the last ones, whose silence is compared.
REMEMBERED = 1000
#: So long a silent follow-up waits for the control after it.
WAIT_S = 10.0
NOT_COUNTED = "control beside it shows no difference, so that the machine may have lost the answer"


@dataclass(frozen=True)
class PairAnswers(Generic[T]):
    """What came of one pair: whether it was control, and which arms answered in time."""

    pair: T
    control: bool
    source: bool
    followup: bool


class SilentFollowups(Generic[T]):
    """Takes pairs in, in their order, and returns those that can be judged, each with whether its silence counts.

    Silence of the follow-up arm counts where both arms answered the control before it and the one after it, the source
    arm lost nothing in between, and the relation's follow-ups were silent more often than control, by Fisher's exact
    test.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[bool, bool]] = deque(maxlen=REMEMBERED)
        self._after_control = False
        self._silent: deque[tuple[float, T]] = deque()

    def take(self, answers: PairAnswers[T], now_s: float) -> list[tuple[T, bool]]:
        """Take a pair in at a time (monotonic)."""
        if not answers.source:
            self._after_control = False
            return [*self._settled(False), (answers.pair, False)]
        self._last.append((answers.control, answers.followup))
        if answers.control:
            self._after_control = answers.followup
            return [*self._settled(answers.followup and self._differ()), (answers.pair, False)]
        if answers.followup or not self._after_control:
            return [(answers.pair, False)]
        self._silent.append((now_s, answers.pair))
        return []

    def expire(self, now_s: float) -> list[tuple[T, bool]]:
        """Return the pairs for which no control came in time."""
        expired = []
        while self._silent and now_s - self._silent[0][0] > WAIT_S:
            expired.append((self._silent.popleft()[1], False))
        return expired

    def _settled(self, counts: bool) -> list[tuple[T, bool]]:
        settled = [(pair, counts) for _, pair in self._silent]
        self._silent.clear()
        return settled

    def _differ(self) -> bool:
        count = Counter(self._last)
        control, relation = ((count[of, False], count[of, False] + count[of, True]) for of in (True, False))
        return bool(self._silent) and excess_p(relation, control) <= ALPHA


def excess_p(relation: tuple[int, int], control: tuple[int, int]) -> float:
    """Return the one-sided exact test that the first of two proportions, each as (hits, trials), is the larger.

    Fisher's (JRSS 98, 1935): how probable so few hits of control are, or fewer, when all hits fall anywhere alike.
    """
    hits, trials = relation[0] + control[0], relation[1] + control[1]
    ways = sum(math.comb(control[1], k) * math.comb(relation[1], hits - k) for k in range(min(control[0], hits) + 1))
    return ways / math.comb(trials, hits)
