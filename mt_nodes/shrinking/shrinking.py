# SPDX-License-Identifier: Apache-2.0
"""Makes a violated pair small, move by move; what still fails when it is played is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mt_nodes.campaign.strength import Strength, strengths, with_values
from mt_nodes.errors import UsageError
from mt_nodes.mutations.base import Followup
from mt_nodes.relations import Relation
from mt_nodes.shrinking.confirming import FIRST, STEADY, UNSTEADY, Confirm, Count, confirmed, counted_out
from mt_nodes.shrinking.difference import Difference
from mt_nodes.shrinking.minimal import Rows, fewest, shortest, weakest
from mt_nodes.shrinking.playing import Candidate, Played, Player, Target
from mt_nodes.shrinking.reduction import Reduction
from mt_nodes.wording import counted


class _OutOfBudget(Exception):
    """No further play is allowed."""


@dataclass(frozen=True)
class Budget:
    """How much may be played at most."""

    plays: int
    minutes: float


@dataclass(frozen=True)
class Trial:
    """One smaller form that was tried."""

    move: str
    tried: str
    failed: int
    plays: int
    failed_enough: bool


@dataclass(eq=False)
class Shrunk:
    """The smallest form so far, and how it was come to.

    Attributes:
        best: None until the pair has failed at all. played: a play of it that failed.
        first: how often the pair failed as it was. steady: whether no input has failed once and held once.
        rows: what, before, after. notes: what was left out, and why.
        followup: whether the input is still a follow-up of the relation's mutation; ``why`` not.
    """

    best: Candidate | None = None
    played: Played | None = None
    first: Count | None = None
    steady: bool = True
    trials: list[Trial] = field(default_factory=list)
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    followup: bool = True
    why: str = ""
    complete: bool = False

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        first = None if self.first is None else {"failed": self.first.failed, "plays": self.first.plays}
        return {
            "first": first,
            "deterministic_so_far": bool(first) and self.steady,
            "complete": self.complete,
            "before_after": {what: {"before": was, "after": now} for what, (was, now) in self.rows.items()},
            "is_followup_of_mutation": self.followup,
            "why": self.why,
            "notes": self.notes,
            "steps": [vars(trial) for trial in self.trials],
        }


class Shrinker:
    """Makes one pair small; :attr:`told` is the best so far at any moment, whatever ends it.

    Args:
        player: plays it. budget: what it may cost.
        confirm: how often a smaller form must fail; None: what the first plays advise.
        tell: called before each play with what is tried.
    """

    def __init__(
        self, player: Player, budget: Budget, confirm: Confirm | None, tell: Callable[[str], None] = lambda words: None
    ) -> None:
        self._player, self._budget, self._asked, self._tell = player, budget, confirm, tell
        self._until_s = time.monotonic() + 60.0 * budget.minutes
        self._failed: Played | None = None
        self.told = Shrunk()

    def shrink(self) -> None:
        """Make it as small as the budget allows.

        Raises:
            MtError: the stack died, or the bag is not the one of the run.
        """
        try:
            if not self._fails_at_all():
                return
            for move in (self._window, self._strength, self._points, self._window):
                move()
            self.told.complete = True
        except _OutOfBudget:
            spent = counted(self._player.plays, "play")
            self.told.notes.append(f"the budget is spent, after {spent}: there may be something smaller")

    @property
    def confirm(self) -> Confirm:
        """How often a smaller form must fail."""
        return self._asked or (STEADY if self.told.steady else UNSTEADY)

    def _fails_at_all(self) -> bool:
        whole, plays = self._player.whole, FIRST if self._asked is None else self._asked.plays
        first = counted_out(lambda: self._fails(whole, "the pair as it was"), plays)
        self.told.first, self.told.steady = first, first.failed == first.plays
        if first.failed:
            self.told.best, self.told.played = whole, self._failed
        return first.enough

    def _fails(self, candidate: Candidate, words: str) -> bool:
        if self._player.plays >= self._budget.plays or time.monotonic() > self._until_s:
            raise _OutOfBudget
        self._tell(words)
        played = self._player.play(candidate)
        failed = self._player.fails(played)
        if failed:
            self._failed = played
        return failed

    def _try(self, move: str, tried: str, candidate: Candidate) -> bool:
        """Play a smaller form as often as need be, and keep it if it fails often enough."""
        count = self._counted(move, tried, candidate)
        if count.enough:
            self.told.best, self.told.played = candidate, self._failed
        return count.enough

    def _counted(self, move: str, tried: str, candidate: Candidate) -> Count:
        count = confirmed(lambda: self._fails(candidate, f"{move}: {tried}"), self.confirm)
        self.told.steady = self.told.steady and not count.mixed
        self.told.trials.append(Trial(move, tried, count.failed, count.plays, count.enough))
        return count

    @property
    def _best(self) -> Candidate:
        assert self.told.best is not None, "only what fails is made small"
        return self.told.best

    def _row(self, what: str, was: str, now: str) -> None:
        self.told.rows[what] = (self.told.rows.get(what, (was,))[0], now)

    def _window(self) -> None:
        """Give the stack fewer bundles."""
        whole = self._player.pair.bundle is None
        if not whole and self._player.stateless:
            return
        was = self._best.left
        try:
            if whole:
                self._ends()
            self._begins(self._best.left.end - 1)
        finally:
            self._row("bundles", str(was.end - was.first), str(self._best.left.end - self._best.left.first))

    def _begins(self, last: int) -> None:
        """Begin as late as still fails; ``last`` is the bundle that must be in it."""
        best = self._best

        def fails(before: int) -> bool:
            left = replace(best.left, first=last - before)
            return self._try("window", counted(before + left.end - last, "bundle"), replace(best, left=left))

        shortest(last - best.left.first, fails)

    def _ends(self) -> None:
        """End as early as still fails."""
        best = self._best

        def fails(more: int) -> bool:
            left = replace(best.left, end=best.left.first + 1 + more)
            return self._try("window", counted(1 + more, "bundle"), replace(best, left=left))

        shortest(best.left.end - 1 - best.left.first, fails)

    def _strength(self) -> None:
        """Weaken each parameter that has a weak end, one after the other."""
        axes = strengths(self._best.relation) if self._player.relation.role == "relation" else ()
        if not axes:
            self.told.notes.append("strength: the relation's change has no parameter that could be weaker")
        for axis in axes:
            self._weaken(axis)

    def _weaken(self, axis: Strength) -> None:
        best = self._best

        def fails(value: float) -> bool:
            weaker = _weaker(best.relation, axis, value)
            words = f"{value:g} {axis.unit}".strip()
            return weaker is not None and self._try(axis.name, words, Candidate(weaker, best.left))

        try:
            weakest(axis, fails)
        finally:
            now = getattr(self._best.relation.mutate[axis.step], axis.parameter)
            self._row(axis.name, f"{axis.strong:g} {axis.unit}".strip(), f"{now:g} {axis.unit}".strip())

    def _points(self) -> None:
        """Leave out what the change did, atom by atom."""
        if self._player.pair.bundle is None:
            self.told.notes.append("points: the pair stands for many inputs; none of them was made smaller")
            return
        target = self._player.target(self._best.relation)
        difference = target.difference
        if difference is None or not difference.parts:
            why = "the follow-up is no single input" if difference is None else "both inputs are alike"
            self.told.notes.append(f"points: {why}, there is nothing to leave out")
            return
        atoms = len(difference.kinds)
        fails_without = self._tried_atoms(np.empty(0, dtype=np.int64), atoms, None)
        if fails_without:
            # Such as a check that asks for what the change put there: without it anything fails, and means nothing.
            self.told.notes.append(
                "points: the pair fails with an unchanged last input, too: by what its check asks of what the mutation "
                "says that it did, by what the stack remembers, or by chance; only what the mutation still vouches for "
                "was tried"
            )
        was = self._player.target(self._player.relation).difference
        try:
            fewest(np.arange(atoms), lambda kept: self._tried_atoms(kept, atoms, target if fails_without else None))
        finally:
            self._count_atoms(target, difference, was or difference)

    def _tried_atoms(self, atoms: Rows, count: int, vouched: Target | None) -> bool:
        """Try some atoms alone; ``vouched``: only where the mutation's guarantee holds of them."""
        kept = np.zeros(count, dtype=bool)
        kept[atoms] = True
        best = self._best
        smaller = replace(best, left=replace(best.left, kept=kept))
        if vouched is not None and broken_guarantee(vouched, smaller.left):
            return False
        if len(atoms):
            return self._try("points", f"{len(atoms)} of {count}", smaller)
        return self._counted("points", f"none of {count}, as a check", smaller).enough

    def _count_atoms(self, target: Target, difference: Difference, was: Difference) -> None:
        """Tell what of the difference is left, against that of the pair as it was."""
        left = self._best.left
        before, now = was.counts(), difference.counts(left.kept)
        for kind in {**before, **now}:
            self._row(kind, f"{before.get(kind, 0):,}", f"{now.get(kind, 0):,}")
        if not left.whole:
            self.told.why = broken_guarantee(target, left)
            self.told.followup = not self.told.why


def _weaker(relation: Relation, axis: Strength, value: float) -> Relation | None:
    """Return the relation with another value; None where its mutation takes it not with its other values."""
    try:
        return with_values(relation, [axis], [value])
    except (UsageError, ValueError):
        return None


def broken_guarantee(target: Target, left: Reduction) -> str:
    """Say why a reduced follow-up is none of the mutation any more, empty where it still is one."""
    made, mutations = target.prepared.derived, target.relation.mutate
    assert made is not None, "a follow-up was reduced"
    if len(mutations) != 1 or len(made.draws) != 1:
        return "the relation has several mutations in a row, which cannot be asked about their sum"
    less: Followup = left.of(made, target.difference).followup
    try:
        return mutations[0].guarantee(target.bundle, less, made.draws[0]) or ""
    except (LookupError, ValueError, TypeError, ArithmeticError) as error:
        return f"the mutation's own proof cannot read it: {type(error).__name__}"
