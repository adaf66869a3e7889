# SPDX-License-Identifier: Apache-2.0
"""A case played against the stack again and again, in arms that stay alive, and what came of each play."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from mt_nodes.base.errors import InfrastructureError, StackError
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.verdict import Outcome, Pair, Verdict
from mt_nodes.engine.arm import Arm, restart
from mt_nodes.engine.judging import AnswerStatus, Offer
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair, Progress, no_progress
from mt_nodes.engine.series import SeriesVerdict
from mt_nodes.relations.pipeline import DerivedFollowup
from mt_nodes.stacks.stack import Stack

#: Bundles that are kept in memory; more are read from the bag in each play.
_IN_MEMORY_BYTES = 500_000_000


class PlayResult:
    """What came of one play: its verdicts. It takes in what a run loop has to say as a recorder would.

    ``judged``: verdicts, in the order in which they came. ``late``: whether an arm owes an answer, which may still
    come.
    """

    fresh = True

    def __init__(self) -> None:
        self.collected: list[Verdict] = []
        self.late = False

    def done(self, pair: Pair) -> bool:
        """Nothing was judged before."""
        return False

    def followup(self, offer: Offer, bundle: Bundle, derived: DerivedFollowup, made_ms: float) -> None:
        """Nothing to keep: a follow-up that matters is made again."""

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> list[Verdict]:
        """Take in verdicts."""
        self.collected.extend(verdicts)
        answers = () if case is None else (case.source_answer, case.followup_answer)
        self.late = self.late or any(answer.status in (AnswerStatus.SILENT, AnswerStatus.SKIPPED) for answer in answers)
        return list(verdicts)

    def series(self, series: Sequence[SeriesVerdict]) -> list[Verdict]:
        """Take in verdicts over sequences."""
        return self.verdicts([verdict for verdict, _ in series], None)

    def death(self, error: StackError) -> None:
        """Nothing to keep: the pairs are ERROR."""

    def violated(self, pair: Pair) -> bool:
        """Tell whether a pair was violated. Raises InfrastructureError: it ended in ERROR: nobody knows."""
        outcome, why = self.outcome(pair)
        if outcome is Outcome.ERROR:
            raise InfrastructureError(why)
        return outcome is Outcome.VIOLATED

    def outcome(self, pair: Pair) -> tuple[Outcome, str]:
        """Return how a pair ended and why; one without a verdict is SKIPPED: nothing says that it holds."""
        verdicts = {v.outcome: v.judgement.reason for v in self.collected if v.pair == pair}
        first = next((o for o in (Outcome.ERROR, Outcome.VIOLATED) if o in verdicts), next(iter(verdicts), None))
        return (Outcome.SKIPPED, "it was not judged") if first is None else (first, verdicts[first])


P = TypeVar("P", bound=PlayResult)


class ReplayBench:
    """A stack and its arms, for many plays: each finds arms as fresh as the stack needs.

    A stateless stack goes on as it is, any other is started anew before each play but the first.
    ``stack``: what is under test. ``arms``: of the source and of the follow-up, ready. ``progress``: called with each
    group of verdicts, as they come.
    """

    def __init__(self, stack: Stack, arms: tuple[Arm, Arm], progress: Progress = no_progress) -> None:
        self._stack, self._arms, self._progress = stack, arms, progress
        self._worn = False
        self.plays = 0

    def play(self, played: P, settings: PlaySettings, episodes: Sequence[Episode]) -> P:
        """Play episodes once, and return ``played`` with what came of it.

        Raises InfrastructureError: the stack died.
        """
        self.plays += 1
        if self._worn:
            restart(*self._arms)
        self._worn = not self._stack.stateless
        Lockstep(settings, played, self._progress).run(episodes, *self._arms)
        # What comes late would bear the stamp of the next play, and be taken for its answer.
        self._worn = self._worn or (played.late and not self._stack.external)
        return played


class CachedEpisode:
    """The bundles of an episode, up to ``end``, read once where memory allows."""

    def __init__(self, episode: Episode, end: int | None = None) -> None:
        self._episode, self._end = episode, end
        self._cache: list[Bundle] | None = None

    def __call__(self) -> Iterator[Bundle]:
        """Open it again, as an episode is."""
        return iter(self)

    def __iter__(self) -> Iterator[Bundle]:
        if self._cache is not None:
            yield from self._cache
            return
        cache: list[Bundle] | None = []
        size = 0
        for bundle in self._episode():
            if self._end is not None and bundle.index >= self._end:
                break
            size += sum(len(wire.cdr) for wire in bundle.wires)
            if size > _IN_MEMORY_BYTES:
                cache = None
            if cache is not None:
                cache.append(bundle)
            yield bundle
        self._cache = cache
