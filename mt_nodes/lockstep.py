# SPDX-License-Identifier: Apache-2.0
"""Replay in lockstep: the next bundle goes out when every arm has answered or its deadline has passed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mt_nodes.arms import Arm
from mt_nodes.effects import Effects
from mt_nodes.engine import Answer, Engine, Heard, Offer, offers
from mt_nodes.errors import InfrastructureError, NotApplicable
from mt_nodes.frames import Bundle, Episode
from mt_nodes.open_loop import OpenLoop, settled, settling_reason
from mt_nodes.outputs import Diagnostics
from mt_nodes.pipeline import Derived, MutationPipeline
from mt_nodes.relations import Suite
from mt_nodes.results import Case, Recorder
from mt_nodes.sending import Part, parted
from mt_nodes.series import NOTHING_MORE, LastWords, Series
from mt_nodes.verdict import Outcome, Pair, Verdict

HANGS_AFTER = 3
"""So many inputs in a row without an answer, and a stack that says so when it sees nothing counts as hung."""
NOT_SENT = "not sent: an earlier input of this bundle was not answered and its answer may still come"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A follow-up ready to send, or why there is none (``derived`` is None).

    Of one that sends nothing the outcome is known, too: its pair is SKIPPED.
    """

    offer: Offer
    derived: Derived | None
    outcome: Outcome | None = None
    reason: str = ""
    made_ms: float = 0.0
    #: Ids of relations that do not judge what it is answered.
    settling: frozenset[str] = frozenset()

    @property
    def baseline(self) -> Bundle | None:
        """What the source arm is given in place of the source; None: the source itself."""
        made = self.derived.baseline if self.derived else None
        return None if made is None else made.followup.first

    @classmethod
    def settles(cls, offer: Offer, settling: frozenset[str]) -> Prepared:
        """Return that the source goes out in place of the follow-up."""
        return cls(offer, None, Outcome.SETTLING, settling_reason(offer.relation), settling=settling)

    def for_source(self, source: Bundle) -> Part:
        """Return what goes to the source arm."""
        given = self.baseline or source
        return Part(given, given.changed_topics(source), source.stamp_ns, 0)

    @classmethod
    def ready(cls, offer: Offer, derived: Derived, made_ms: float) -> Prepared:
        """Return a follow-up that may go out."""
        if derived.followup.bundles:
            return cls(offer, derived, made_ms=made_ms)
        return cls(offer, derived, Outcome.SKIPPED, "the follow-up sends nothing", made_ms)


@dataclass(frozen=True, eq=False)
class Sent:
    """What went out of a follow-up: the ticket of its first bundle, and what is to go out when that is answered."""

    ticket: Any
    later: tuple[Part, ...] = ()


class Prepares(Protocol):
    """What makes follow-ups for a run."""

    def __call__(self, offer: Offer, bundle: Bundle) -> Prepared:
        """Make the follow-up of one offer, or say why there is none."""
        ...

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Look at a bundle whose pairs are done: what persists over an episode may begin with it."""
        ...


class Preparer:
    """Makes the follow-ups of a run and proves them."""

    def __init__(self, suite: Suite, seed: int) -> None:
        self._pipelines = {r.id: MutationPipeline(r.mutate, seed, r.id, r.baseline) for r in suite.all}

    def __call__(self, offer: Offer, bundle: Bundle) -> Prepared:
        """Derive the follow-up of one offer."""
        began = time.perf_counter()
        try:
            derived = self._pipelines[offer.relation.id].derive(bundle, offer.draw)
        except NotApplicable as why:
            return Prepared(offer, None, Outcome.NOT_APPLICABLE, str(why))
        made_ms = 1e3 * (time.perf_counter() - began)
        if derived.broken:
            return Prepared(offer, None, Outcome.INVALID, derived.broken, made_ms)
        return Prepared.ready(offer, derived, made_ms)

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Begin what persists over an episode, and remember its bundles, as an undisturbed run does."""
        pipeline = self._pipelines[offer.relation.id]
        pipeline.meet(bundle)
        if not pipeline.begun(bundle.episode):
            self(offer, bundle)


@dataclass
class Silence:
    """Counts inputs in a row that an arm did not answer."""

    counts: dict[str, int] = field(default_factory=dict)

    def note(self, arm: Arm, answer: Answer) -> None:
        """Take an answer in.

        Raises:
            InfrastructureError: the arm has been silent for too long to be alive.
        """
        count = self.counts.get(arm.name, 0) + 1 if answer.heard is Heard.SILENT else 0
        self.counts[arm.name] = count
        if count >= HANGS_AFTER:
            raise InfrastructureError(
                f"the stack in the {arm.name} arm runs but has not answered {count} inputs in a row ({answer.reason}); "
                "raise deadline_s, or say publishes_when_empty: false in the stack file"
            )


def prepared_for(prepare: Prepares, offer: Offer, bundle: Bundle, loop: OpenLoop) -> Prepared:
    """Make the follow-up of a bundle, unless the arms are to settle first: then the source goes out."""
    settling = loop.settling(bundle)
    if settling and loop.substitutes:
        prepare.begin(offer, bundle)
        return Prepared.settles(offer, settling)
    return replace(prepare(offer, bundle), settling=settling)


def headline(error: InfrastructureError) -> str:
    """What went wrong, without the tail of a log (which has wall times in it) and the advice."""
    return str(error).partition("; ")[0]


def owed(recorder: Recorder, offer: Offer, episode: Episode) -> bool:
    """Tell whether a run owes anything for an offer over an episode; unless it is a resumed one it owes all."""
    return recorder.fresh or any(not recorder.done(pair) for bundle in episode() for pair in offer.owed(bundle))


def start(*arms: Arm) -> None:
    """Start arms side by side (each once) and wait until all can answer."""
    for arm in dict.fromkeys(arms):
        arm.start()
    for arm in dict.fromkeys(arms):
        arm.ready()


def restart(*arms: Arm) -> None:
    """Start arms anew, side by side, and wait until all can answer."""
    for arm in dict.fromkeys(arms):
        arm.restart()
    for arm in dict.fromkeys(arms):
        arm.ready()


class Lockstep:
    """One run over episodes, in the modes ``twin``, ``alternate`` and ``two_pass``."""

    def __init__(
        self,
        suite: Suite,
        seed: int,
        recorder: Recorder,
        *,
        mode: str,
        stateless: bool,
        publishes_when_empty: bool,
        draws: int = 1,
        only: Pair | None = None,
        prepare: Prepares | None = None,
        progress: Callable[[Sequence[Verdict]], None] = lambda verdicts: None,
    ) -> None:
        self._offers = offers(suite, draws, only)
        self._prepare: Prepares = prepare or Preparer(suite, seed)
        self._engine = Engine(publishes_when_empty)
        self._recorder = recorder
        self._mode = mode
        self._stateless = stateless
        self._silence = Silence() if publishes_when_empty else None
        self._progress = progress
        self._series = Series()
        self._fresh = True

    def run(self, episodes: Sequence[Episode], source: Arm, followup: Arm) -> None:
        """Play every episode; ``source`` and ``followup`` are the same arm unless the mode is ``twin``."""
        for episode in episodes:
            if self._mode == "two_pass":
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
        for bundle in episode():
            left = self._left(self._offers, bundle)
            if left:
                self._fan_out_bundle(bundle, left, source, followup)
        self._end_series()

    def _fan_out_bundle(self, bundle: Bundle, offers: Sequence[Offer], source: Arm, followup: Arm) -> None:
        with self._errors(offers[0], bundle):
            ticket = source.send(bundle, frozenset())
            ahead = self._prepare(offers[0], bundle)
            heard = self._wait(source, ticket) if source is followup else None
        quiet = heard is not None and heard.heard is not Heard.ANSWERED
        for i, offer in enumerate(offers):
            prepared, milder = ahead, None
            with self._errors(offer, bundle):
                if prepared.baseline is not None and not quiet:
                    heard = self._wait(source, ticket) if heard is None else heard
                    milder = self._milder(source, prepared, bundle, heard)
                    quiet = milder.heard is not Heard.ANSWERED
                sent = None if quiet or prepared.derived is None else self._send(followup, prepared, bundle)
                if i + 1 < len(offers):
                    # Made while the stack works on the one just sent.
                    ahead = self._prepare(offers[i + 1], bundle)
                answer, late = self._answer(followup, prepared, sent, quiet)
                heard = self._wait(source, ticket) if heard is None else heard
            # A late answer would carry the stamp of the next follow-up of this bundle and be taken for its own.
            quiet = quiet or late
            self._close(prepared, bundle, milder or heard, answer)

    def _milder(self, source: Arm, prepared: Prepared, bundle: Bundle, heard: Answer) -> Answer:
        """Give the source arm a baseline, unless an earlier answer may still come and be taken for this one's."""
        if heard.heard is not Heard.ANSWERED:
            return Answer.nothing(Heard.SKIPPED, NOT_SENT)
        return self._wait(source, prepared.for_source(bundle).send(source))

    def _twin_pass(self, episode: Episode, offer: Offer, source: Arm, followup: Arm) -> None:
        """One offer over a whole episode, both arms fresh: for a stack that remembers."""
        self._restart_unless_fresh(source, followup)
        self._begin(source, followup)
        loop = OpenLoop(offer, remembers=not self._stateless)
        for bundle in episode():
            with self._errors(offer, bundle):
                ahead = prepared_for(self._prepare, offer, bundle, loop) if offer.relation.baseline else None
                ticket = ahead.for_source(bundle).send(source) if ahead else source.send(bundle, frozenset())
                # Made while the stack works on the source, unless its own input had to be made as well.
                prepared = ahead or prepared_for(self._prepare, offer, bundle, loop)
                answer, _ = self._answer(followup, prepared, self._send(followup, prepared, bundle))
                heard = self._wait(source, ticket)
            self._close(prepared, bundle, heard, answer, loop)
        self._end_series((source.last_words(), followup.last_words()))

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
            for bundle in episode():
                with self._errors(offer, bundle):
                    prepared = prepared_for(self._prepare, offer, bundle, loop)
                    if prepared.outcome is Outcome.SETTLING and offer.relation.baseline:
                        # What the source arm was given, too: else the two would never agree.
                        sent: Sent | None = Sent(self._prepare(offer, bundle).for_source(bundle).send(arm))
                    else:
                        sent = self._send(arm, prepared, bundle)
                    answer, _ = self._answer(arm, prepared, sent)
                self._close(prepared, bundle, heard[bundle.index], answer, loop)
            self._end_series((last_words, arm.last_words()))

    def _source_pass(self, episode: Episode, arm: Arm, offer: Offer) -> tuple[dict[int, Answer], Diagnostics | None]:
        """Play an episode as the source arm sees it for an offer; return the answers by bundle, and the last words."""
        self._restart_unless_fresh(arm)
        self._begin(arm)
        heard = {}
        for bundle in episode():
            with self._errors(offer, bundle):
                made = self._prepare(offer, bundle) if offer.relation.baseline else Prepared(offer, None)
                heard[bundle.index] = self._wait(arm, made.for_source(bundle).send(arm))
        return heard, arm.last_words()

    def _left(self, offers: Sequence[Offer], bundle: Bundle) -> list[Offer]:
        """Return the offers that are still owed for a bundle: all of them, unless the run is a resumed one."""
        owed = [o for o in offers if not all(self._recorder.done(pair) for pair in o.owed(bundle))]
        for offer in offers:
            if offer not in owed:
                self._prepare.begin(offer, bundle)
        return owed

    def _unfinished(self, episode: Episode) -> list[Offer]:
        """Return the offers of which any bundle of an episode is owed: each is fed from the beginning again."""
        return [o for o in self._offers if owed(self._recorder, o, episode)]

    def _begin(self, *arms: Arm) -> None:
        for arm in dict.fromkeys(arms):
            arm.begin_episode()
        self._fresh = False

    def _restart_unless_fresh(self, *arms: Arm) -> None:
        if not self._fresh:
            restart(*arms)
            self._fresh = True

    def _send(self, arm: Arm, prepared: Prepared, bundle: Bundle) -> Sent | None:
        """Begin to send the follow-up; None when it sends nothing that is answered.

        Where there is none the source goes out, so that a stack's memory stays in step.
        """
        if prepared.derived is None:
            return Sent(arm.send(bundle, frozenset()))
        others, parts = parted(prepared.derived.followup, bundle)
        if others is not None:
            arm.pass_by(others)
        sent = Sent(parts[0].send(arm), parts[1:]) if parts else None
        # Hashed and written while the stack works on it.
        self._recorder.followup(prepared.offer, bundle, prepared.derived, prepared.made_ms)
        return sent

    def _answer(self, arm: Arm, prepared: Prepared, sent: Sent | None, quiet: bool = False) -> tuple[Answer, bool]:
        """Send what is left, each when the one before is answered; return the first answer and whether any is late."""
        if sent is None:
            return Answer.nothing(Heard.SKIPPED, NOT_SENT if quiet else prepared.reason), False
        answers = [self._wait(arm, sent.ticket)]
        for part in sent.later:
            # What remembers must be given everything all the same; else late answers would be taken for these.
            if not self._stateless or answers[-1].heard in (Heard.ANSWERED, Heard.UNASKED):
                answers.append(self._wait(arm, part.send(arm)))
        return answers[0], any(answer.heard in (Heard.SILENT, Heard.SKIPPED) for answer in answers)

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
            self._record(self._engine.broken_off(offer, bundle, headline(error)), None)
            raise

    def _close(
        self, prepared: Prepared, bundle: Bundle, source: Answer, followup: Answer, loop: OpenLoop | None = None
    ) -> None:
        offer, answers = prepared.offer, (source, followup)
        if loop is not None:
            loop.heard(bundle, answers, prepared.settling)
        self._series.add(prepared, bundle, answers)
        if prepared.outcome is not None:
            self._record(self._engine.without_followup(offer, bundle, prepared.outcome, prepared.reason), None)
            return
        effects = prepared.derived.effects if prepared.derived else Effects()
        verdicts = settled(offer, self._engine.judge(offer, bundle, answers, effects), prepared.settling)
        sent = prepared.derived.followup.bundles if prepared.derived else ((0, bundle),)
        self._record(verdicts, Case(offer, bundle, sent[0][1], effects, source, followup, prepared.baseline, sent))

    def _end_series(self, last_words: LastWords = NOTHING_MORE) -> None:
        """Have the checks over a sequence judge the episode that has ended."""
        self._progress(self._recorder.series(self._series.end(last_words)))

    def _record(self, verdicts: Sequence[Verdict], case: Case | None) -> None:
        self._progress(self._recorder.verdicts(verdicts, case))
