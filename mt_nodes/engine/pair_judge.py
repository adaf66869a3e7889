# SPDX-License-Identifier: Apache-2.0
"""Judges pairs in the order of the inputs, in lockstep, at the pace of a recording and beside a live stack."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from mt_nodes.base.errors import InfrastructureError, StackCallError, headline
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer, failures
from mt_nodes.engine.open_loop import OpenLoop, settled
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair, Progress, ResultSink
from mt_nodes.engine.series import NO_DIAGNOSTICS, FinalDiagnostics, Series

#: Answers of so many former inputs must be alike in both arms before a stack that remembers is judged.
MEMORY = 5
INVENTED = "the follow-up arm has seen a video that a model invented, and may remember what never happened"
DIFFERENT = f"the arms have not both answered each of the last {MEMORY} inputs, so they may remember differently"


class MemoryGuard:
    """Turns a follow-up that was sent, and what both arms said, into verdicts, in the order of the inputs.

    Where nobody waits for answers, only what both arms remember alike is judged.
    ``stateless``: whether former inputs are of no matter to the stack. ``in_lockstep``: whether each input waits for
    the answers to the one before: then only a call that failed leaves the arms with different memories.
    """

    def __init__(self, engine: Engine, stateless: bool, in_lockstep: bool = False) -> None:
        self._engine, self._stateless, self._in_lockstep = engine, stateless, in_lockstep
        self._recent: deque[bool] = deque(maxlen=MEMORY)
        self._invented = False

    def forget(self) -> None:
        """Begin anew: the arms have, too."""
        self._recent.clear()
        self._invented = False

    def note_answers(self, source: Answer, followups: Sequence[Answer | None]) -> bool:
        """Take in an input and say whether both arms answered all of it."""
        answered = all(a is not None and a.status is AnswerStatus.ANSWERED for a in (source, *followups))
        failed = any(a is not None and a.status is AnswerStatus.FAILED for a in (source, *followups))
        self._recent.append(not failed if self._in_lockstep else answered)
        return answered

    def missed(self) -> None:
        """Note that one arm had an input that the other had not."""
        self._recent.append(False)

    @property
    def same_memory(self) -> bool:
        """Whether the arms have heard and answered the same lately."""
        return self._stateless or all(self._recent)

    def decide(
        self, prepared: FollowupPlan, bundle: Bundle, source: Answer, followups: Sequence[Answer | None]
    ) -> tuple[list[Verdict], ExecutedPair | None]:
        """Return the verdicts of a follow-up that is not yet taken in, and what they were judged by."""
        followup = next(iter(followups), None)
        if prepared.outcome is not None or prepared.derived is None or followup is None:
            outcome = prepared.outcome or Outcome.ERROR
            return self._engine.without_followup(prepared.offer, bundle, outcome, prepared.reason), None
        failed = failures((source, followup))
        if not (self.same_memory or failed):
            return self._engine.without_followup(prepared.offer, bundle, Outcome.SETTLING, DIFFERENT), None
        invented, self._invented = self._invented, self._invented or bool(prepared.derived.effects.invented)
        if invented and not (self._stateless or failed):
            return self._engine.without_followup(prepared.offer, bundle, Outcome.SETTLING, INVENTED), None
        effects, sent = prepared.derived.effects, prepared.derived.followup.bundles
        case = ExecutedPair(prepared.offer, bundle, sent[0][1], effects, source, followup, prepared.baseline, sent)
        return self._engine.judge(prepared.offer, bundle, (source, followup), effects), case


class PairJudge:
    """Judges what a loop over recordings plays, and has the verdicts recorded.

    Args:
        progress: called with those that are new.
        in_lockstep: whether each input waits for the answers to the one before, so that both arms remember alike.
        answered: called with each follow-up that was answered, before its verdicts are recorded.
    """

    def __init__(
        self,
        settings: PlaySettings,
        recorder: ResultSink,
        progress: Progress,
        *,
        in_lockstep: bool,
        answered: Callable[[ExecutedPair], None] = lambda case: None,
    ) -> None:
        self._recorder, self._progress, self._answered = recorder, progress, answered
        self._engine = Engine(settings.publishes_when_empty, settings.schedule.facts)
        self._memory = MemoryGuard(self._engine, settings.stateless, in_lockstep)
        self._cpu = settings.cpu
        self._series = Series(cpu=settings.cpu)

    def take(
        self,
        plan: FollowupPlan,
        bundle: Bundle,
        source: Answer,
        followups: Sequence[Answer | None],
        loop: OpenLoop | None = None,
    ) -> bool:
        """Judge what both arms said to an input; return whether they answered all of it.

        ``followups``: answers to each part of the follow-up, the first is judged; None of what was not sent. ``loop``:
        says who waits until the arms agree again.
        """
        relation = plan.offer.relation.id
        self._cpu.add(relation, sum(answer.cpu_s for answer in followups if answer is not None))
        with self._cpu.spent_on(relation):
            return self._take(plan, bundle, source, followups, loop)

    def _take(
        self,
        plan: FollowupPlan,
        bundle: Bundle,
        source: Answer,
        followups: Sequence[Answer | None],
        loop: OpenLoop | None,
    ) -> bool:
        verdicts, case = self._memory.decide(plan, bundle, source, followups)
        if case is not None and case.followup_answer.status is AnswerStatus.ANSWERED:
            self._answered(case)
        self.record(verdicts if case is None else settled(plan.offer, verdicts, plan.settling), case)
        if failed := failures(a for a in (source, *followups) if a is not None):
            error = StackCallError(failed)
            error.pairs = tuple(map(str, plan.offer.owed(bundle)))
            self._recorder.death(error)
        answers = source, next(iter(followups), None) or Answer.nothing(AnswerStatus.NO_ANSWER_EXPECTED, plan.reason)
        if loop is not None:
            loop.note_answers(bundle, answers, plan.settling)
        self._series.add(plan, bundle, answers)
        return self._memory.note_answers(source, followups)

    def broken_off(self, offer: Offer, bundle: Bundle, error: InfrastructureError) -> list[Verdict]:
        """Record that the stack died or hung while an offer was played, and return the verdicts."""
        struck = self._engine.broken_off(offer, bundle, headline(error))
        self.record(struck)
        return struck

    def end_episode(self, final_diagnostics: FinalDiagnostics = NO_DIAGNOSTICS) -> None:
        """Have the checks over a sequence judge the episode that has ended."""
        self._progress(self._recorder.series(self._series.end(final_diagnostics)))

    def forget(self) -> None:
        """Begin anew: the arms have, too."""
        self._memory.forget()

    def note_between(self, answers: Sequence[Answer]) -> None:
        """Take in the answers of both arms to an input of which no pair is judged."""
        self._memory.note_answers(answers[0], answers[1:])

    def record(self, verdicts: Sequence[Verdict], case: ExecutedPair | None = None) -> None:
        """Have verdicts recorded, and shown."""
        self._progress(self._recorder.verdicts(verdicts, case))
