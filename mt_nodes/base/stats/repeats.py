# SPDX-License-Identifier: Apache-2.0
"""Whether a failure reproduces: k of n plays, because a single play of a nondeterministic stack says little."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from mt_nodes.base.errors import UsageError

_MOST = 1000


@dataclass(frozen=True)
class Confirm:
    """How many plays of how many must fail."""

    fails: int
    plays: int

    def __str__(self) -> str:
        return f"{self.fails} of {self.plays}"

    @classmethod
    def parse(cls, text: str) -> Confirm:
        """Read ``K/N``. Raises UsageError: it is none."""
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
        confirm = cls(*map(int, found.groups())) if found else None
        if confirm is None or not 1 <= confirm.fails <= confirm.plays <= _MOST:
            raise UsageError(f"--confirm: got '{text}', expected K/N with 1 ≤ K ≤ N ≤ {_MOST}, such as 3/3 or 4/5")
        return confirm


#: What is required of a stack that failed in each of :data:`FIRST` plays, and of one that did not.
STEADY, UNSTEADY = Confirm(3, 3), Confirm(4, 5)
#: Plays of the unreduced pair, which tell the two apart.
FIRST = 5


@dataclass(frozen=True)
class Count:
    """How many plays failed, and whether that is enough."""

    failed: int
    plays: int
    enough: bool

    @property
    def mixed(self) -> bool:
        """Whether the same input both failed and held: the stack is not deterministic."""
        return 0 < self.failed < self.plays


def confirmed(fails: Callable[[], bool], ask: Confirm) -> Count:
    """Play until the outcome is certain, and no longer."""
    failed = 0
    for play in range(1, ask.plays + 1):
        failed += fails()
        if failed >= ask.fails:
            return Count(failed, play, True)
        if failed + ask.plays - play < ask.fails:
            return Count(failed, play, False)
    raise AssertionError("the last play decides")


def counted_out(fails: Callable[[], bool], plays: int) -> Count:
    """Play ``plays`` times, whatever the outcomes."""
    failed = sum(fails() for _ in range(plays))
    return Count(failed, plays, failed > 0)
