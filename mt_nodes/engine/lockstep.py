# SPDX-License-Identifier: Apache-2.0
"""Replay in lockstep: the next bundle goes out when every arm has answered or its deadline has passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.outputs import Diagnostics
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import Arm, restart
from mt_nodes.engine.followups import FollowupPlan, prepared_for
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.open_loop import OpenLoop
from mt_nodes.engine.pair_judge import PairJudge
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair, Progress, ResultSink, no_progress, owed
from mt_nodes.engine.send_order import NOT_SENT, Part, parted
from mt_nodes.engine.silence import Silence
from mt_nodes.engine.summary.deaths import note_pairs


@dataclass(frozen=True, eq=False)
class SentFollowup:
    """What went out of a follow-up: the ticket of its first bundle, and what is to go out when that is answered."""

    ticket: Any
    later: tuple[Part, ...] = ()


class Lockstep:
    """One run over episodes, in the modes ``twin``, ``alternate`` and ``two_pass``.

    Args:
        settings: what is played.
        recorder: knows what was judged, and takes in what is.
        answered: called with each follow-up that was answered, before its verdicts are recorded.
        progress: called with each group of verdicts.
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
        self._prepare = settings.followups()
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
            left = self._left(self._offers, bundle)
            if left:
                self._fan_out_bundle(bundle, left, source, followup)
        self._judge.end_episode()

    def _fan_out_bundle(self, bundle: Bundle, offers: Sequence[Offer], source: Arm, followup: Arm) -> None:
        with self._errors(offers[0], bundle):
            ticket = source.send(bundle, frozenset())
            ahead = self._prepare(offers[0], bundle)
            heard = self._wait(source, ticket) if source is followup else None
        quiet = heard is not None and heard.heard is not AnswerStatus.ANSWERED
        for i, offer in enumerate(offers):
            prepared, milder = ahead, None
            with self._errors(offer, bundle):
                if prepared.baseline is not None and not quiet:
                    heard = self._wait(source, ticket) if heard is None else heard
                    milder = self._milder(source, prepared, bundle, heard)
                    quiet = milder.heard is not AnswerStatus.ANSWERED
                sent = None if quiet or prepared.derived is None else self._send(followup, prepared, bundle)
                if i + 1 < len(offers):
                    # Made while the stack works on the one just sent.
                    ahead = self._prepare(offers[i + 1], bundle)
                answer, late = self._answer(followup, prepared, sent, quiet)
                heard = self._wait(source, ticket) if heard is None else heard
            # A late answer would carry the stamp of the next follow-up of this bundle and be taken for its own.
            quiet = quiet or late
            self._judge.take(prepared, bundle, milder or heard, (answer,))

    def _milder(self, source: Arm, prepared: FollowupPlan, bundle: Bundle, heard: Answer) -> Answer:
        """Give the source arm a baseline, unless an earlier answer may still come and be taken for this one's."""
        if heard.heard is not AnswerStatus.ANSWERED:
            return Answer.nothing(AnswerStatus.SKIPPED, NOT_SENT)
        return self._wait(source, prepared.for_source(bundle).send(source))

    def _twin_pass(self, episode: Episode, offer: Offer, source: Arm, followup: Arm) -> None:
        """One offer over a whole episode, both arms fresh: for a stack that remembers."""
        self._restart_unless_fresh(source, followup)
        self._begin(source, followup)
        loop = OpenLoop(offer, remembers=not self._stateless)
        for bundle in self._schedule.until_end(offer, episode):
            if not self._schedule.wants(offer, bundle):
                loop.rests(bundle, self._between(offer, bundle, source, followup))
                continue
            with self._errors(offer, bundle):
                ahead = self._prepared(offer, bundle, loop) if offer.relation.baseline else None
                ticket = ahead.for_source(bundle).send(source) if ahead else source.send(bundle, frozenset())
                # Made while the stack works on the source, unless its own input had to be made as well.
                prepared = ahead or self._prepared(offer, bundle, loop)
                answer, _ = self._answer(followup, prepared, self._send(followup, prepared, bundle))
                heard = self._wait(source, ticket)
            self._judge.take(prepared, bundle, heard, (answer,), loop)
        self._judge.end_episode((source.last_words(), followup.last_words()))

    def _prepared(self, offer: Offer, bundle: Bundle, loop: OpenLoop) -> FollowupPlan:
        return prepared_for(self._prepare, offer, bundle, loop, self._schedule.first(offer, bundle))

    def _between(self, offer: Offer, bundle: Bundle, *arms: Arm) -> list[Answer]:
        """Give arms what lies between cases, for what they remember, and return what they say."""
        self._prepare.begin(offer, bundle)
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
            heard, last_words = self._source_pass(episode, arm, offer) if offer.relation.baseline else plain
            self._restart_unless_fresh(arm)
            self._begin(arm)
            loop = OpenLoop(offer, remembers=not self._stateless)
            for bundle in self._schedule.until_end(offer, episode):
                if not self._schedule.wants(offer, bundle):
                    loop.rests(bundle, [heard[bundle.index], *self._between(offer, bundle, arm)])
                    continue
                with self._errors(offer, bundle):
                    prepared = self._prepared(offer, bundle, loop)
                    if prepared.outcome is Outcome.SETTLING and offer.relation.baseline:
                        # What the source arm was given, too: else the two would never agree.
                        sent: SentFollowup | None = SentFollowup(
                            self._prepare(offer, bundle).for_source(bundle).send(arm)
                        )
                    else:
                        sent = self._send(arm, prepared, bundle)
                    answer, _ = self._answer(arm, prepared, sent)
                self._judge.take(prepared, bundle, heard[bundle.index], (answer,), loop)
            self._judge.end_episode((last_words, arm.last_words()))

    def _source_pass(self, episode: Episode, arm: Arm, offer: Offer) -> tuple[dict[int, Answer], Diagnostics | None]:
        """Play an episode as the source arm sees it for an offer; return the answers by bundle, and the last words."""
        self._restart_unless_fresh(arm)
        self._begin(arm)
        heard = {}
        for bundle in self._schedule.until_end(offer, episode):
            with self._errors(offer, bundle):
                milder = offer.relation.baseline and self._schedule.wants(offer, bundle)
                made = self._prepare(offer, bundle) if milder else FollowupPlan(offer, None)
                heard[bundle.index] = self._wait(arm, made.for_source(bundle).send(arm))
        return heard, arm.last_words()

    def _left(self, offers: Sequence[Offer], bundle: Bundle) -> list[Offer]:
        """Return the offers that are still owed for a bundle: all of them, unless the run is a resumed one."""
        owed = [o for o in offers if self._schedule.wants(o, bundle) and not self._done(o, bundle)]
        for offer in offers:
            if offer not in owed:
                self._prepare.begin(offer, bundle)
        return owed

    def _done(self, offer: Offer, bundle: Bundle) -> bool:
        return all(self._recorder.done(pair) for pair in offer.owed(bundle))

    def _unfinished(self, episode: Episode) -> list[Offer]:
        """Return the offers of which any bundle of an episode is owed: each is fed from the beginning again."""
        about = self._schedule.about(self._offers, episode)
        return [o for o in about if owed(self._recorder, o, episode, self._schedule)]

    def _begin(self, *arms: Arm) -> None:
        for arm in dict.fromkeys(arms):
            arm.begin_episode()
        self._fresh = False

    def _restart_unless_fresh(self, *arms: Arm) -> None:
        if not self._fresh:
            restart(*arms)
            self._fresh = True

    def _send(self, arm: Arm, prepared: FollowupPlan, bundle: Bundle) -> SentFollowup | None:
        """Begin to send the follow-up; None when it sends nothing that is answered.

        Where there is none the source goes out, so that a stack's memory stays in step.
        """
        if prepared.derived is None:
            return SentFollowup(arm.send(bundle, frozenset()))
        others, parts = parted(prepared.derived.followup, bundle)
        if others is not None:
            arm.pass_by(others)
        sent = SentFollowup(parts[0].send(arm), parts[1:]) if parts else None
        # Hashed and written while the stack works on it.
        self._recorder.followup(prepared.offer, bundle, prepared.derived, prepared.made_ms)
        return sent

    def _answer(
        self, arm: Arm, prepared: FollowupPlan, sent: SentFollowup | None, quiet: bool = False
    ) -> tuple[Answer, bool]:
        """Send what is left, each when the one before is answered; return the first answer and whether any is late."""
        if sent is None:
            return Answer.nothing(AnswerStatus.SKIPPED, NOT_SENT if quiet else prepared.reason), False
        answers = [self._wait(arm, sent.ticket)]
        for part in sent.later:
            # What remembers must be given everything all the same; else late answers would be taken for these.
            if not self._stateless or answers[-1].heard in (AnswerStatus.ANSWERED, AnswerStatus.UNASKED):
                answers.append(self._wait(arm, part.send(arm)))
        return answers[0], any(answer.heard in (AnswerStatus.SILENT, AnswerStatus.SKIPPED) for answer in answers)

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
