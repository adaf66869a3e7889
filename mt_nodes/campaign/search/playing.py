# SPDX-License-Identifier: Apache-2.0
"""Plays a relation in the loop, over and over, with arms that stay alive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mt_nodes.arms import restart
from mt_nodes.engine import Offer, offers
from mt_nodes.frames import Bundle, Episode
from mt_nodes.lockstep import Lockstep
from mt_nodes.pipeline import Derived
from mt_nodes.relations import Relation, Suite
from mt_nodes.replay import Arms
from mt_nodes.results import Case
from mt_nodes.runs import Run
from mt_nodes.schedule import Schedule
from mt_nodes.series import Judged
from mt_nodes.verdict import Pair, Verdict


class Player:
    """Plays relations on the bundles of a run, judged as in a replay; a context for many plays.

    The bundles are kept in memory: each play is given all of them. A stateless stack goes on as it is, any other is
    restarted before each play but the first.

    Args:
        run: whose bags, stack, seed and mode they are.
        arms: that were started.
        progress: called with each group of verdicts, as they come.
    """

    def __init__(
        self, run: Run, arms: Arms, progress: Callable[[Sequence[Verdict]], None] = lambda verdicts: None
    ) -> None:
        self._run, self._arms, self._progress = run, arms, progress
        self._episodes = [list(episode()) for episode in run.episodes]
        self._fresh = True

    @property
    def bundles(self) -> int:
        """How many bundles each play is given."""
        return sum(map(len, self._episodes))

    def play(self, relation: Relation, draws: int = 1) -> list[Verdict]:
        """Return the verdicts of a relation on every bundle, ``draws`` follow-ups each."""
        offered = tuple(Offer(relation, (relation,), draw) for draw in range(draws))
        return self._played(self._suite(relation), offered, self._episodes)

    def play_pair(self, relation: Relation, pair: Pair) -> list[Verdict]:
        """Return the verdicts of one pair: of the relation, or of the control that is judged by its check."""
        suite = self._suite(relation)
        found = self._played(suite, offers(suite, only=pair), self._before(relation, pair))
        return [verdict for verdict in found if verdict.pair == pair]

    def control(self, pair: Pair) -> Pair:
        """Return the pair of the control on the input of a pair."""
        return Pair(pair.episode, pair.bundle, self._run.suite.control.id, f"0@{pair.relation}")

    def _suite(self, relation: Relation) -> Suite:
        return replace(self._run.suite, relations=(relation,))

    def _before(self, relation: Relation, pair: Pair) -> list[list[Bundle]]:
        """The bundles that a pair depends on, and its own."""
        back = max((m.looks_back for m in (*relation.mutate, *relation.baseline)), default=0)
        first = (pair.bundle or 0) - back if self._run.stack.stateless else 0
        wanted = [[b for b in bundles if b.episode == pair.episode] for bundles in self._episodes]
        if pair.bundle is not None:
            wanted = [[b for b in bundles if first <= b.index <= (pair.bundle or 0)] for bundles in wanted]
        return [bundles for bundles in wanted if bundles]

    def _played(self, suite: Suite, offered: tuple[Offer, ...], episodes: Sequence[list[Bundle]]) -> list[Verdict]:
        run, stack = self._run, self._run.stack
        if not self._fresh and not stack.stateless:
            restart(*self._arms)
        self._fresh = False
        kept = _InMemory()
        traits: dict[str, Any] = {"stateless": stack.stateless, "publishes_when_empty": stack.publishes_when_empty}
        lockstep = Lockstep(
            suite,
            run.request.seed,
            kept,
            mode=run.request.mode,
            schedule=_Offered(offered),
            progress=self._progress,
            **traits,
        )
        lockstep.run([_episode(bundles) for bundles in episodes], *self._arms)
        return kept.all


def _episode(bundles: Iterable[Bundle]) -> Episode:
    def again() -> Iterator[Bundle]:
        return iter(bundles)

    return again


class _Offered(Schedule):
    """Offers nothing but these, on every bundle."""

    def __init__(self, offered: tuple[Offer, ...]) -> None:
        super().__init__()
        self._offered = offered

    def offers(self, suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
        return self._offered


class _InMemory:
    """Keeps the verdicts of one play, and nothing else."""

    fresh = True

    def __init__(self) -> None:
        self.all: list[Verdict] = []

    def followup(self, offer: Offer, bundle: Bundle, derived: Derived, made_ms: float) -> None:
        """Nothing to keep: a follow-up that matters is made again."""

    def done(self, pair: Pair) -> bool:
        return False

    def verdicts(self, verdicts: Sequence[Verdict], case: Case | None) -> list[Verdict]:
        self.all.extend(verdicts)
        return list(verdicts)

    def series(self, judged: Sequence[Judged]) -> list[Verdict]:
        return self.verdicts([verdict for verdict, _ in judged], None)
