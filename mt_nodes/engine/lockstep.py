# SPDX-License-Identifier: Apache-2.0
"""Replay in lockstep: the next bundle goes out when every arm has answered or its deadline has passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.outputs import Diagnostics
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import Arm, restart
from mt_nodes.engine.followups import FollowupPlan, make_or_settle
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.open_loop import OpenLoop
from mt_nodes.engine.pair_judge import PairJudge
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair, Progress, ResultSink, no_progress, owed
from mt_nodes.engine.send_order import NOT_SENT, Part, split_followup
from mt_nodes.engine.silence import Silence
from mt_nodes.engine.summary.deaths import note_pairs

#: Nothing comes any more after such an answer.
_OVER = (AnswerStatus.ANSWERED, AnswerStatus.FAILED)


@dataclass(frozen=True, eq=False)
class SentFollowup:
    """What went out of a follow-up: the ticket of its first bundle, and what is to go out when that is answered."""

    ticket: Any
    later: tuple[Part, ...] = ()


class Lockstep:
    """One run over episodes, in the modes ``twin``, ``alternate`` and ``two_pass``.

    ``recorder``: knows what was judged, and takes in what is. ``answered``: called with each follow-up that was
    answered, before its verdicts are recorded. ``progress``: called with each group of verdicts.
    """

    def __init__(
        self,
        settings: PlaySettings,
        recorder: ResultSink,
        progress: Progress = no_progress,
        answered: Callable[[ExecutedPair], None] = lambda case: None,
    ) -> None:
        self._settings, self._recorder = settings, recorder
        self._schedule, self._stateless, self._offers = settings.schedule, settings.stateless, settings.offers
        self._make, self._cpu = settings.followups(), settings.cpu
        self._judge = PairJudge(settings, recorder, progress, in_lockstep=True, answered=answered)
        self._silence = Silence() if settings.publishes_when_empty else None
        self._fresh = True

    def run(self, episodes: Sequence[Episode], source: Arm, followup: Arm) -> None:
        """Play every episode; ``source`` and ``followup`` are the same arm unless the mode is ``twin``."""
        for episode in episodes:
            if self._settings.mode == "two_pass":
                self._two_pass(episode, source)
            elif self._stateless:
                self._fan_out(episode, source, followup)
            else:
                for offer in self._unfinished(episode):
                    self._twin_pass(episode, offer, source, followup)

    def _fan_out(self, episode: Episode, source: Arm, followup: Arm) -> None:
        """Several follow-ups for one source output: every offer on every bundle, one pass.

        What has a baseline gives the source arm that, too, and is judged by the answer to it.
        """
        self._begin(source, followup)
        for bundle in self._schedule.until_end(self._offers[0], episode):
            if owed_offers := self._owed_offers(bundle):
                self._fan_out_bundle(bundle, owed_offers, source, followup)
        self._judge.end_episode()

    def _fan_out_bundle(self, bundle: Bundle, offers: Sequence[Offer], source: Arm, followup: Arm) -> None:
        """Send the source, then for each offer: make the follow-up, send it, wait for both answers, judge."""
        with self._errors(offers[0], bundle):
            ticket = source.send(bundle, frozenset())
            next_plan = self._make(offers[0], bundle)
            source_answer = self._wait(source, ticket) if source is followup else None
        # A late answer would carry the stamp of the next input of this bundle and be taken for the answer to that.
        answer_missing = source_answer is not None and source_answer.status not in _OVER
        for i, offer in enumerate(offers):
            plan, baseline_answer = next_plan, None
            with self._errors(offer, bundle):
                if plan.baseline is not None and not answer_missing:
                    source_answer = source_answer or self._wait(source, ticket)
                    baseline_answer = self._baseline_answer(source, plan, bundle, source_answer)
                    answer_missing = baseline_answer.status not in _OVER
                sent = None if answer_missing or plan.derived is None else self._send(followup, plan, bundle)
                if i + 1 < len(offers):
                    # Made while the stack works on the one just sent.
                    next_plan = self._make(offers[i + 1], bundle)
                followup_answer, late = self._answer(followup, plan, sent, answer_missing)
                source_answer = source_answer or self._wait(source, ticket)
            answer_missing = answer_missing or late
            self._judge.take(plan, bundle, baseline_answer or source_answer, (followup_answer,))

    def _baseline_answer(self, source: Arm, plan: FollowupPlan, bundle: Bundle, source_answer: Answer) -> Answer:
        """Give the source arm a baseline, unless an earlier answer may still come and be taken for this one's."""
        if source_answer.status not in _OVER:
            return Answer.nothing(AnswerStatus.SKIPPED, NOT_SENT)
        return self._wait(source, plan.for_source(bundle).send(source))

    def _twin_pass(self, episode: Episode, offer: Offer, source: Arm, followup: Arm) -> None:
        """One offer over a whole episode, both arms fresh: for a stack that remembers."""
        self._restart_unless_fresh(source, followup)
        self._begin(source, followup)
        loop = OpenLoop(offer, remembers=not self._stateless)
        for bundle in self._schedule.until_end(offer, episode):
            if not self._schedule.wants(offer, bundle):
                answers = self._between(offer, bundle, source, followup)
                self._judge.note_between(answers)
                loop.rests(bundle, answers)
                continue
            with self._errors(offer, bundle):
                early_plan = self._make_or_settle(offer, bundle, loop) if offer.relation.baseline else None
                ticket = early_plan.for_source(bundle).send(source) if early_plan else source.send(bundle, frozenset())
                # Made while the stack works on the source, unless its own input had to be made as well.
                plan = early_plan or self._make_or_settle(offer, bundle, loop)
                followup_answer, _ = self._answer(followup, plan, self._send(followup, plan, bundle))
                source_answer = self._wait(source, ticket)
            self._judge.take(plan, bundle, source_answer, (followup_answer,), loop)
        self._judge.end_episode((source.final_diagnostics(), followup.final_diagnostics()))

    def _make_or_settle(self, offer: Offer, bundle: Bundle, loop: OpenLoop) -> FollowupPlan:
        return make_or_settle(self._make, offer, bundle, loop, self._schedule.first(offer, bundle))

    def _between(self, offer: Offer, bundle: Bundle, *arms: Arm) -> list[Answer]:
        """Give arms what lies between cases, for what they remember, and return what they say."""
        self._make.begin(offer, bundle)
        with self._errors(offer, bundle):
            tickets = [(arm, arm.send(bundle, frozenset())) for arm in arms]
            return [self._wait(arm, ticket) for arm, ticket in tickets]

    def _two_pass(self, episode: Episode, arm: Arm) -> None:
        """The source episode, then after a restart the episode of each offer, all in one instance.

        What has a baseline plays that in a source episode of its own.
        """
        unfinished = self._unfinished(episode)
        if not unfinished:
            return
        plain = self._source_pass(episode, arm, self._offers[0])
        for offer in unfinished:
            source = self._source_pass(episode, arm, offer) if offer.relation.baseline else plain
            self._followup_pass(episode, arm, offer, *source)

    def _followup_pass(
        self,
        episode: Episode,
        arm: Arm,
        offer: Offer,
        source_answers: Mapping[int, Answer],
        source_diagnostics: Diagnostics | None,
    ) -> None:
        """Play an episode as the follow-up arm sees it for an offer; judge it with what the source arm said."""
        self._restart_unless_fresh(arm)
        self._begin(arm)
        loop = OpenLoop(offer, remembers=not self._stateless)
        for bundle in self._schedule.until_end(offer, episode):
            source_answer = source_answers[bundle.index]
            if not self._schedule.wants(offer, bundle):
                answers = [source_answer, *self._between(offer, bundle, arm)]
                self._judge.note_between(answers)
                loop.rests(bundle, answers)
                continue
            with self._errors(offer, bundle):
                plan = self._make_or_settle(offer, bundle, loop)
                if plan.outcome is Outcome.SETTLING and offer.relation.baseline:
                    # What the source arm was given, too: else the two would never agree.
                    given = self._make(offer, bundle).for_source(bundle)
                    sent: SentFollowup | None = SentFollowup(given.send(arm))
                else:
                    sent = self._send(arm, plan, bundle)
                followup_answer, _ = self._answer(arm, plan, sent)
            self._judge.take(plan, bundle, source_answer, (followup_answer,), loop)
        self._judge.end_episode((source_diagnostics, arm.final_diagnostics()))

    def _source_pass(self, episode: Episode, arm: Arm, offer: Offer) -> tuple[dict[int, Answer], Diagnostics | None]:
        """Play an episode as the source arm sees it for an offer; return the answers by bundle, and errors since."""
        self._restart_unless_fresh(arm)
        self._begin(arm)
        answers = {}
        for bundle in self._schedule.until_end(offer, episode):
            with self._errors(offer, bundle):
                has_baseline = offer.relation.baseline and self._schedule.wants(offer, bundle)
                plan = self._make(offer, bundle) if has_baseline else FollowupPlan(offer, None)
                answers[bundle.index] = self._wait(arm, plan.for_source(bundle).send(arm))
        return answers, arm.final_diagnostics()

    def _owed_offers(self, bundle: Bundle) -> list[Offer]:
        """Return the offers that are still owed for a bundle: all of them, unless the run is a resumed one."""
        owed_offers = [o for o in self._offers if self._schedule.wants(o, bundle) and not self._done(o, bundle)]
        for offer in self._offers:
            if offer not in owed_offers:
                self._make.begin(offer, bundle)
        return owed_offers

    def _done(self, offer: Offer, bundle: Bundle) -> bool:
        return all(self._recorder.done(pair) for pair in offer.owed(bundle))

    def _unfinished(self, episode: Episode) -> list[Offer]:
        """Return the offers of which any bundle of an episode is owed: each is fed from the beginning again."""
        about = self._schedule.about(self._offers, episode)
        return [o for o in about if owed(self._recorder, o, episode, self._schedule)]

    def _begin(self, *arms: Arm) -> None:
        for arm in dict.fromkeys(arms):
            arm.begin_episode()
        self._judge.forget()
        self._fresh = False

    def _restart_unless_fresh(self, *arms: Arm) -> None:
        if not self._fresh:
            restart(*arms)
            self._fresh = True

    def _send(self, arm: Arm, plan: FollowupPlan, bundle: Bundle) -> SentFollowup | None:
        """Begin to send the follow-up; None when it sends nothing that is answered.

        Where there is none the source goes out, so that a stack's memory stays in step.
        """
        if plan.derived is None:
            return SentFollowup(arm.send(bundle, frozenset()))
        others, parts = split_followup(plan.derived.followup, bundle)
        if others is not None:
            arm.publish_only(others)
        sent = SentFollowup(parts[0].send(arm), parts[1:]) if parts else None
        # Hashed and written while the stack works on it.
        with self._cpu.spent_on(plan.offer.relation.id):
            self._recorder.followup(plan.offer, bundle, plan.derived, plan.made_ms)
        return sent

    def _answer(
        self, arm: Arm, plan: FollowupPlan, sent: SentFollowup | None, answer_missing: bool = False
    ) -> tuple[Answer, bool]:
        """Send what is left, each when the one before is answered; return the first answer and whether any is late."""
        if sent is None:
            return Answer.nothing(AnswerStatus.SKIPPED, NOT_SENT if answer_missing else plan.reason), False
        answers = [self._wait(arm, sent.ticket)]
        for part in sent.later:
            # What remembers must be given everything all the same; else late answers would be taken for these.
            if not self._stateless or answers[-1].status in (*_OVER, AnswerStatus.NO_ANSWER_EXPECTED):
                answers.append(self._wait(arm, part.send(arm)))
        return answers[0], any(answer.status in (AnswerStatus.SILENT, AnswerStatus.SKIPPED) for answer in answers)

    def _wait(self, arm: Arm, ticket: Any) -> Answer:
        answer = arm.wait(ticket)
        assert answer is not None, "without a limit an arm waits for the answer or its deadline"
        if self._silence is not None:
            self._silence.note(arm, answer)
        return answer

    @contextmanager
    def _errors(self, offer: Offer, bundle: Bundle) -> Iterator[None]:
        """A stack that dies or hangs ends the run; the pair it happened to says so."""
        try:
            yield
        except InfrastructureError as error:
            if self._schedule.wants(offer, bundle):
                note_pairs(error, self._judge.broken_off(offer, bundle, error))
            raise
