# SPDX-License-Identifier: Apache-2.0
"""Plays relations with some values of their parameters on the bundles of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.recorder import Progress, no_progress
from mt_nodes.engine.schedule import Schedule
from mt_nodes.relations.relation import Relation, Suite
from mt_nodes.runs.replay.execute import Arms
from mt_nodes.runs.replay.replay_bench import CachedEpisode, PlayResult, ReplayBench
from mt_nodes.runs.replay.replay_run import Run


class Player:
    """Plays relations on the bundles of a run, judged as in a replay; each play is given all bundles.

    Args:
        run: whose bags, stack, seed and mode they are.
        tapes: the run's episodes.
        arms: that were started.
        progress: called with each group of verdicts, as they come.
    """

    def __init__(self, run: Run, tapes: Sequence[CachedEpisode], arms: Arms, progress: Progress = no_progress) -> None:
        self._run, self._tapes, self._bench = run, tapes, ReplayBench(run.stack, arms, progress)

    def play(self, relation: Relation, draws: int = 1) -> list[Verdict]:
        """Return the verdicts of a relation on every bundle, ``draws`` follow-ups each."""
        offered = tuple(Offer(relation, (relation,), draw) for draw in range(draws))
        return self._played(self._suite(relation), offered, self._tapes).collected

    def violates(self, relation: Relation, pair: Pair) -> bool:
        """Play one pair, of the relation or of the control that is judged by its check, and tell if it is violated."""
        suite = self._suite(relation)
        return self._played(suite, offers(suite, only=pair), self._before(relation, pair)).violated(pair)

    def control(self, pair: Pair) -> Pair:
        """Return the pair of the control on the input of a pair."""
        return Pair(pair.episode, pair.bundle, self._run.suite.control.id, f"0@{pair.relation}")

    def _suite(self, relation: Relation) -> Suite:
        return replace(self._run.suite, relations=(relation,))

    def _before(self, relation: Relation, pair: Pair) -> list[Episode]:
        """The bundles that a pair depends on, and its own."""
        back = max((m.needs_history for m in (*relation.mutate, *relation.baseline)), default=0)
        looks_back = "camera" in self._run.stack.topics and any(m.draw_history for m in relation.mutate)
        first = (pair.bundle or 0) - back if self._run.stack.stateless and not looks_back else 0
        episodes = [[b for b in tape if b.episode == pair.episode] for tape in self._tapes]
        if pair.bundle is not None:
            episodes = [[b for b in bundles if first <= b.index <= (pair.bundle or 0)] for bundles in episodes]
        return [_episode(bundles) for bundles in episodes if bundles]

    def _played(self, suite: Suite, offered: tuple[Offer, ...], episodes: Sequence[Episode]) -> PlayResult:
        settings = replace(self._run.settings, suite=suite, schedule=_Offered(offered))
        return self._bench.play(PlayResult(), settings, episodes)


def _episode(bundles: Iterable[Bundle]) -> Episode:
    def episode() -> Iterator[Bundle]:
        return iter(bundles)

    return episode


class _Offered(Schedule):
    """Offers nothing but these, on every bundle."""

    def __init__(self, offered: tuple[Offer, ...]) -> None:
        super().__init__()
        self._offered = offered

    def offers(self, suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
        return self._offered
