# SPDX-License-Identifier: Apache-2.0
"""What checks over a sequence are given of a live run: a series for each segment, with what was told of it later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mt_nodes.data.outputs import Diagnostics
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer
from mt_nodes.engine.series import NO_DIAGNOSTICS, FinalDiagnostics, Series, SeriesVerdict
from mt_nodes.runs.live.live_feed import Instant
from mt_nodes.runs.live.segments import Phase, Turn

Ended = tuple[Turn, Sequence[SeriesVerdict]]


@dataclass(eq=False)
class _Segment:
    """One turn, as far as it lies in one episode; ``words`` were told of it since its last test, arm by arm."""

    turn: Turn
    episode: int
    swapped: bool
    series: Series = field(default_factory=lambda: Series(whole=False))
    tested: bool = False
    words: FinalDiagnostics = NO_DIAGNOSTICS

    def take_diagnostics(self, words: FinalDiagnostics) -> None:
        """Take in what the first and the second arm have told."""
        source, followup = reversed(words) if self.swapped else words
        self.words = (_joined(self.words[0], source), _joined(self.words[1], followup))

    def end(self) -> Ended:
        """Have its checks judge it."""
        return self.turn, self.series.end(self.words)


class SegmentSeries:
    """Collects instants in their order.

    Nodes tell of errors a while after what these are about, often once a second. So what is told while the arms settle
    for the next segment counts as told of the one before, and that is judged when the next test begins.
    """

    def __init__(self) -> None:
        self._now: _Segment | None = None
        self._over: _Segment | None = None

    def add(self, instant: Instant, turn: Turn, answers: tuple[Answer, Answer]) -> Iterator[Ended]:
        """Take an instant in, with the answers of the source arm and the follow-up arm; yield segments that ended."""
        now, episode = self._now, instant.place.episode
        if now is None or (now.turn.segment, now.episode) != (turn.segment, episode):
            yield from self._end_over()
            self._over, now = now, _Segment(turn, episode, instant.swapped)
            self._now = now
            if self._over is not None and self._over.episode != episode:
                yield from self._end_over()  # what is told in another episode is another's
        tests = turn.phase is Phase.TESTING
        if tests:
            now.tested = True
            yield from self._end_over()
        elif (of := now if now.tested else self._over) is not None:
            source, followup = (answer.output.diagnostics for answer in answers)
            of.take_diagnostics((followup, source) if instant.swapped else (source, followup))
        settles = FollowupPlan.settles(turn.offer, frozenset(judge.id for judge in turn.offer.sequences))
        now.series.add((instant.prepared if tests else None) or settles, instant.bundle, answers)

    def end(self, final_diagnostics: FinalDiagnostics) -> Iterator[Ended]:
        """Yield what has not ended yet; ``final_diagnostics`` are what the first and the second arm have told since."""
        now, self._now = self._now, None
        if (of := now if now is not None and now.tested else self._over) is not None:
            of.take_diagnostics(final_diagnostics)
        yield from self._end_over()
        if now is not None:
            yield now.end()

    def _end_over(self) -> Iterator[Ended]:
        over, self._over = self._over, None
        if over is not None:
            yield over.end()


def _joined(before: Diagnostics | None, after: Diagnostics | None) -> Diagnostics | None:
    if before is None or after is None:
        return before or after
    return Diagnostics({**before.errors, **after.errors})
