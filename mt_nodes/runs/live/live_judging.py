# SPDX-License-Identifier: Apache-2.0
"""Turns what came of instants of live input into lines of the journal: each owes its pairs, and each ends once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError, headline
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Diagnostics
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, offers
from mt_nodes.engine.pair_judge import MemoryGuard
from mt_nodes.engine.recorder import ExecutedPair, Progress, Recorder
from mt_nodes.engine.series import NO_DIAGNOSTICS, FinalDiagnostics, Series, SeriesVerdict
from mt_nodes.relations.checks.steering_checks import KeepsCurrent
from mt_nodes.runs.live.live_feed import Instant
from mt_nodes.runs.live.live_run import LiveRun
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


Answers = tuple[Answer, Answer]


def alike(source: Answer, followup: Answer, bundle: Bundle) -> bool:
    """Tell whether two commands are the same in both directions: who only may not be faster is no slower either."""
    if source.output.control is None or followup.output.control is None:
        return False
    same = KeepsCurrent().judge(source.output, followup.output, Effects(), bundle)
    return same.outcome in (Outcome.HOLDS, Outcome.NOT_APPLICABLE)


def nothing_missed(after_ns: int, before_ns: int) -> int:
    """Say that no input was missed between two stamps: where both arms have what we tap."""
    return 0


def abandoned(error: BaseException) -> tuple[Outcome, str]:
    """Return outcome and reason of what awaits an answer when an error ends the run."""
    if isinstance(error, KeyboardInterrupt):
        return Outcome.SKIPPED, "interrupted"
    return Outcome.ERROR, headline(error) if isinstance(error, InfrastructureError) else str(error) or type(
        error
    ).__name__


class LiveJudge:
    """Judges instants in their order, and writes what they owe.

    ``recorder``: what keeps the results. ``progress``: called with each group of verdicts. ``missed``: counts the
    inputs between two stamps that the live stack had, and our instance had not.
    """

    def __init__(
        self, run: LiveRun, recorder: Recorder, progress: Progress, missed: Callable[[int, int], int] = nothing_missed
    ) -> None:
        import scipy.special  # noqa: F401  rates need it, and no pair is to wait for it

        self._recorder, self._progress, self._missed = recorder, progress, missed
        self._before: Bundle | None = None
        self._engine = Engine(run.stack.publishes_when_empty)
        self._decider = MemoryGuard(self._engine, run.stack.stateless)
        self._control = offers(run.suite)[0]
        checks = [relation.check for relation in run.suite.relations if relation.check is not None]
        self._drives = any("control" in check.needs for check in checks)
        self._series = SegmentSeries()
        #: Pairs that ended, by outcome.
        self.outcomes: Counter[str] = Counter()
        #: Pairs that rest on an answer found by its arrival.
        self.by_arrival = 0
        #: Inputs of the live stack that our taps lost.
        self.lost = 0

    def forget(self) -> None:
        """Begin anew: the arms have, too."""
        self._decider.forget()

    def take(self, instant: Instant) -> None:
        """Take in what both arms said to an instant, and judge it if it was tested."""
        self._look_for_missed(instant.bundle)
        self._recorder.forget_before(instant.place.episode, instant.place.index)  # none comes again
        source, followups = instant.answers()
        turn, prepared = instant.turn, instant.prepared
        if turn is not None:
            self._judge_series(self._series.add(instant, turn, (source, followups[0])))
            if prepared is not None and not instant.ended:
                self._judge(instant, turn, prepared)
        self._decider.note_answers(source, followups)

    def _look_for_missed(self, bundle: Bundle) -> None:
        """Our instance does not remember what our taps have lost."""
        before, self._before = self._before, bundle
        if before is None or before.episode != bundle.episode:
            return
        if lost := self._missed(before.stamp_ns, bundle.stamp_ns):
            self.lost += lost
            self._decider.missed()

    def _judge(self, instant: Instant, turn: Turn, prepared: FollowupPlan) -> None:
        source, followups = instant.answers()
        try:
            verdicts, case = self._decider.decide(prepared, instant.bundle, source, followups)
        except UsageError as error:  # a transform that is not known (yet)
            self.end(instant, Outcome.ERROR, str(error))
            return
        self._record(instant, turn, verdicts, case, {r for a in (source, *followups) for r in a.by_arrival})

    def end(self, instant: Instant, outcome: Outcome, reason: str) -> None:
        """Write the lines of an instant that is not judged, if it owes any that are not written."""
        if instant.turn is None or instant.ended:
            return
        offer = instant.turn.offer
        instant.prepared = FollowupPlan(offer, None, outcome, reason)
        self._record(instant, instant.turn, self._engine.without_followup(offer, instant.bundle, outcome, reason))

    def agreement(self, bundle: Bundle, answers: Answers) -> tuple[bool | None, str]:
        """Tell whether both arms said the same of the source, by every check in use; None: one was not heard."""
        source, followup = answers
        for answer, may in (
            (source, (AnswerStatus.ANSWERED,)),
            (followup, (AnswerStatus.ANSWERED, AnswerStatus.SILENT)),
        ):
            if answer.status not in may:
                return None, answer.reason
        bad = (Outcome.VIOLATED, Outcome.ERROR, Outcome.UNPAIRED_FOLLOWUP)
        try:
            verdicts = self._engine.judge(self._control, bundle, answers, Effects())
        except UsageError as error:  # a transform that is not known (yet)
            return None, str(error)
        for verdict in verdicts:
            if verdict.outcome in bad:
                return False, f"they differ by {verdict.pair.judged_for}: {verdict.judgement.reason}"
        if self._drives and not alike(source, followup, bundle):
            return False, "they differ by their commands"
        return True, "they agree"

    def end_series(self, final_diagnostics: FinalDiagnostics) -> None:
        """Have the checks over a sequence judge what is not judged yet.

        ``final_diagnostics``: what the first and the second arm have told of errors after their last answers.
        """
        self._judge_series(self._series.end(final_diagnostics))

    def _judge_series(self, ended: Iterable[Ended]) -> None:
        for turn, series in ended:
            self._report(
                self._recorder.series([each._replace(verdict=_marked(each.verdict, turn, ())) for each in series])
            )

    def _record(
        self,
        instant: Instant,
        turn: Turn,
        verdicts: Sequence[Verdict],
        case: ExecutedPair | None = None,
        by_arrival: Iterable[str] = (),
    ) -> None:
        marked = [_marked(verdict, turn, by_arrival) for verdict in verdicts]
        self._report(self._recorder.verdicts(marked, case))
        instant.ended = True

    def _report(self, fresh: Sequence[Verdict]) -> None:
        self.outcomes.update(v.outcome.value for v in fresh)
        self.by_arrival += sum("paired_by" in v.marks for v in fresh)
        self._progress(fresh)


def _marked(verdict: Verdict, turn: Turn, by_arrival: Iterable[str]) -> Verdict:
    """Say of a verdict in which round it was given, and whether it rests on an answer found by its arrival."""
    judge = next(r for r in turn.offer.judges if r.id == verdict.pair.judged_for)
    marks: dict[str, Any] = {"round": turn.round}
    if judge.check is not None and set(by_arrival) & set(judge.check.needs):
        marks["paired_by"] = "arrival"
    return replace(verdict, marks={**marks, **verdict.marks})
