# SPDX-License-Identifier: Apache-2.0
"""Makes a violated pair small, move by move; what still fails when it is played is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from mt_nodes.base.stats.repeats import FIRST, STEADY, UNSTEADY, Confirm, Count, confirmed, counted_out
from mt_nodes.base.wording import counted
from mt_nodes.relations.relation import Relation


class SmallerForm(Protocol):
    """A smaller form of a pair: a relation that may be weaker, and what is left of all else."""

    @property
    def relation(self) -> Relation:
        """Whose change it is."""


F = TypeVar("F", bound=SmallerForm)
P = TypeVar("P")


class FormPlayer(Protocol[F, P]):
    """Plays forms of one pair in the loop."""

    @property
    def plays(self) -> int:
        """How often it has played."""

    @property
    def whole(self) -> F:
        """The pair as it was."""

    def play(self, form: F) -> P:
        """Play a form once."""

    def fails(self, played: P) -> bool:
        """Tell whether the pair was violated in a play."""


class _OutOfBudget(Exception):
    """No further play is allowed."""


@dataclass(frozen=True)
class Budget:
    """How much may be played at most; ``minutes`` None: time is no limit, so that the load of the machine is none."""

    plays: int
    minutes: float | None = None


@dataclass(frozen=True)
class Trial:
    """One smaller form that was tried."""

    move: str
    tried: str
    failed: int
    plays: int
    failed_enough: bool


@dataclass(eq=False)
class Shrunk(Generic[F, P]):
    """The smallest form so far, and how it was come to.

    Attributes:
        best: None until the pair has failed at all. played: a play of it that failed.
        first: how often the pair failed as it was. steady: whether no input has failed once and held once.
        rows: what, before, after. notes: what was left out, and why.
        followup: whether the input is still a follow-up of the relation's change; ``why`` not.
        cut: which budget ended it, after how many plays, and how many it cut; None: none did.
        path: scores along the way from the source to the smallest form; None: nothing falls, or there is no such way.
        needed: returns that were added and cannot be left out, x, y, z and intensity; empty of any other change.
    """

    best: F | None = None
    played: P | None = None
    first: Count | None = None
    steady: bool = True
    trials: list[Trial] = field(default_factory=list)
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    followup: bool = True
    why: str = ""
    complete: bool = False
    cut: dict[str, Any] | None = None
    path: dict[str, Any] | None = None
    needed: list[list[float]] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        first = None if self.first is None else {"failed": self.first.failed, "plays": self.first.plays}
        return {
            "first": first,
            "deterministic_so_far": bool(first) and self.steady,
            "complete": self.complete,
            "budget": self.cut,
            "before_after": {what: {"before": was, "after": now} for what, (was, now) in self.rows.items()},
            "is_followup_of_mutation": self.followup,
            "why": self.why,
            "notes": self.notes,
            **({"needed_points": self.needed} if self.needed else {}),
            **({"score_path": self.path} if self.path else {}),
            "steps": [vars(trial) for trial in self.trials],
        }


class Shrinker(Generic[F, P]):
    """Makes one pair small; :attr:`result` is the best so far at any moment, whatever ends it.

    ``player``: plays it. ``budget``: what it may cost. ``confirm``: how often a smaller form must fail; None: what the
    first plays advise. ``tell``: called before each play with what is tried.
    """

    def __init__(
        self,
        player: FormPlayer[F, P],
        budget: Budget,
        confirm: Confirm | None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._player, self._budget, self._confirm, self._tell = player, budget, confirm, tell
        self._until_s = math.inf if budget.minutes is None else time.monotonic() + 60.0 * budget.minutes
        self._failed: P | None = None
        self.result: Shrunk[F, P] = Shrunk()

    def shrink(self, moves: Sequence[Callable[[], None]]) -> None:
        """Make it as small as the moves can and the budget allows.

        ``moves``: each tries forms that are smaller than :attr:`best`, by :meth:`tries`. One that comes again is left
        out where nothing has become smaller since.
        Raises MtError: the stack died, or the input is not that of the run.
        """
        try:
            if not self._fails_at_all():
                return
            ended: dict[Callable[[], None], F | None] = {}
            for move in moves:
                if move not in ended or ended[move] is not self.result.best:
                    move()
                    ended[move] = self.result.best
            self.result.complete = True
        except _OutOfBudget:
            self._tell_cut()

    @property
    def best(self) -> F:
        """The smallest form so far that fails."""
        assert self.result.best is not None, "only what fails is made small"
        return self.result.best

    @property
    def confirm(self) -> Confirm:
        """How often a smaller form must fail."""
        return self._confirm or (STEADY if self.result.steady else UNSTEADY)

    def tries(self, move: str, tried: str, form: F) -> bool:
        """Play a smaller form as often as need be, and keep it if it fails often enough."""
        count = self.counts(move, tried, form)
        if count.enough:
            self.result.best, self.result.played = form, self._failed
        return count.enough

    def counts(self, move: str, tried: str, form: F) -> Count:
        """Play a form as often as need be, and return how often it failed."""
        count = confirmed(lambda: self._fails(form, f"{move}: {tried}"), self.confirm)
        self.result.steady = self.result.steady and not count.mixed
        self.result.trials.append(Trial(move, tried, count.failed, count.plays, count.enough))
        return count

    def row(self, what: str, was: str, now: str) -> None:
        """Tell what something was and is now; of several times the first ``was`` counts."""
        self.result.rows[what] = (self.result.rows.get(what, (was,))[0], now)

    def note(self, words: str) -> None:
        """Tell what was left out, and why."""
        self.result.notes.append(words)

    def _fails_at_all(self) -> bool:
        whole, plays = self._player.whole, FIRST if self._confirm is None else self._confirm.plays
        first = counted_out(lambda: self._fails(whole, "the pair as it was"), plays)
        self.result.first, self.result.steady = first, first.failed == first.plays
        if first.failed:
            self.result.best, self.result.played = whole, self._failed
        return first.enough

    def _tell_cut(self) -> None:
        played, (plays, minutes) = self._player.plays, (self._budget.plays, self._budget.minutes)
        limit = "plays" if played >= plays else "minutes"
        self.result.cut = {"cut_by": limit, "plays": played, "plays_cut": plays - played}
        if limit == "plays":
            spent = f"the budget of {counted(plays, 'replay')} is used up; a larger --plays may find a smaller form"
        else:
            spent = (
                f"the budget of {minutes:g} min is used up after {played} of at most {counted(plays, 'replay')}, how "
                "many depends on the load of the machine; more --minutes may find a smaller form"
            )
        self.result.notes.append(spent)

    def play(self, form: F, words: str) -> P:
        """Play a form once."""
        if self._player.plays >= self._budget.plays or time.monotonic() > self._until_s:
            raise _OutOfBudget
        self._tell(words)
        return self._player.play(form)

    def _fails(self, form: F, words: str) -> bool:
        played = self.play(form, words)
        failed = self._player.fails(played)
        if failed:
            self._failed = played
        return failed
