# SPDX-License-Identifier: Apache-2.0
"""Turns what came of instants of live input into lines of the journal: each owes its pairs, and each ends once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, offers
from mt_nodes.engine.pair_judge import MemoryGuard
from mt_nodes.engine.recorder import ExecutedPair, Progress, Recorder
from mt_nodes.engine.series import FinalDiagnostics
from mt_nodes.relations.checks.steering_checks import KeepsCurrent
from mt_nodes.runs.live.live_feed import Instant
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.segment_series import Ended, SegmentSeries
from mt_nodes.runs.live.segments import Turn

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


class LiveJudge:
    """Judges instants in their order, and writes what they owe.

    Args:
        run: what is judged.
        recorder: what keeps the results.
        progress: called with each group of verdicts.
        missed: counts the inputs between two stamps that the live stack had, and our instance had not.
    """

    def __init__(
        self, run: LiveRun, recorder: Recorder, progress: Progress, missed: Callable[[int, int], int] = nothing_missed
    ) -> None:
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
