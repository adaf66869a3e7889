# SPDX-License-Identifier: Apache-2.0
"""Replay at the pace of the recording: nobody waits, and what comes too late is late."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.arms import Arm
from mt_nodes.engine import Answer, Engine, Heard, Offer, offers
from mt_nodes.errors import InfrastructureError
from mt_nodes.frames import Bundle, Episode
from mt_nodes.lockstep import Prepared, Preparer, headline, owed, restart
from mt_nodes.own_time import own_time_s
from mt_nodes.relations import Suite
from mt_nodes.results import Case, Recorder
from mt_nodes.verdict import Outcome, Verdict

#: How often, at the most, answers are looked for and time is passed on.
STEP_S = 0.005
#: Answers of so many former inputs must be alike in both arms before a stack that remembers is judged.
MEMORY = 5
#: A longer pause of the recording, or a step back in it, is jumped over: the next bundle comes after the pause given.
MOST_GAP_NS, JUMP_NS = 10_000_000_000, 100_000_000


@dataclass(eq=False)
class Outstanding:
    """A pair whose answers are awaited: prepared follow-up, tickets of both arms, answers heard so far."""

    bundle: Bundle
    prepared: Prepared
    tickets: tuple[Any, Any] = (None, None)
    answers: list[Answer | None] = field(default_factory=lambda: [None, None])


@dataclass(frozen=True)
class Pace:
    """When what is due: ``first_ns`` of the recording was at own time ``began_s``."""

    began_s: float
    first_ns: int
    rate: float

    def due_s(self, stamp_ns: int) -> float:
        """Return the own time of an instant of the recording."""
        return self.began_s + (stamp_ns - self.first_ns) / 1e9 / self.rate

    def now_ns(self) -> int:
        """Return the instant of the recording that has been reached."""
        return self.first_ns + int((own_time_s() - self.began_s) * self.rate * 1e9)


class Realtime:
    """One run in the mode ``twin``: one pass over each episode for each relation, at ``rate`` times the recording."""

    def __init__(
        self,
        suite: Suite,
        seed: int,
        recorder: Recorder,
        *,
        rate: float,
        stateless: bool,
        publishes_when_empty: bool,
        draws: int = 1,
        progress: Callable[[Sequence[Verdict]], None] = lambda verdicts: None,
    ) -> None:
        self._offers = offers(suite, draws)
        self._prepare = Preparer(suite, seed)
        self._engine = Engine(publishes_when_empty)
        self._recorder = recorder
        self._rate = rate
        self._stateless = stateless
        self._progress = progress
        self._recent: deque[tuple[bool, bool]] = deque(maxlen=MEMORY)

    def run(self, episodes: Sequence[Episode], source: Arm, followup: Arm) -> None:
        """Play every episode once per offer; arms that remember, or that owe answers, are restarted between passes."""
        clean = True
        for episode in episodes:
            for offer in (o for o in self._offers if owed(self._recorder, o, episode)):
                if not clean:
                    restart(source, followup)
                unanswered = self._pass(episode, offer, (source, followup))
                clean = self._stateless and not unanswered

    def _pass(self, episode: Episode, offer: Offer, arms: tuple[Arm, Arm]) -> bool:
        for arm in arms:
            arm.begin_episode()
        self._recent.clear()
        open_pairs: deque[Outstanding] = deque()
        pace, last_ns, unanswered = None, None, False
        with self._errors(open_pairs):
            for bundle in episode():
                prepared, stamp_ns = self._prepare(offer, bundle), bundle.stamp_ns
                jumps = last_ns is None or not 0 <= stamp_ns - last_ns <= MOST_GAP_NS
                if pace is not None and last_ns is not None:
                    unanswered |= self._collect(open_pairs, arms, pace, last_ns + JUMP_NS if jumps else stamp_ns)
                if pace is None or jumps:
                    pace = Pace(own_time_s(), stamp_ns, self._rate)
                last_ns = stamp_ns
                open_pairs.append(Outstanding(bundle, prepared))
                self._send(open_pairs[-1], arms)
            return unanswered | (pace is not None and self._collect(open_pairs, arms, pace, None))

    def _send(self, pair: Outstanding, arms: tuple[Arm, Arm]) -> None:
        prepared, bundle = pair.prepared, pair.bundle
        derived = None if prepared.outcome else prepared.derived
        sent = derived.followup.first if derived else bundle
        pair.tickets = (arms[0].send(bundle, frozenset()), arms[1].send(sent, sent.changed_topics(bundle)))
        if derived:
            # Hashed and written while the stacks work on it.
            self._recorder.followup(prepared.offer, bundle, derived, prepared.made_ms)

    def _collect(self, open_pairs: deque[Outstanding], arms: tuple[Arm, Arm], pace: Pace, until_ns: int | None) -> bool:
        """Take answers in, in order, until an instant of the recording is due; None: until nothing is outstanding.

        Meanwhile the time of both stacks goes on. Returns whether an answer is missing.
        """
        until_s = math.inf if until_ns is None else pace.due_s(until_ns)
        unanswered = False
        while open_pairs or own_time_s() < until_s < math.inf:
            now_ns = pace.now_ns()
            for arm in arms:
                arm.pass_time(now_ns if until_ns is None else min(now_ns, until_ns))
            step_s = min(until_s, own_time_s() + STEP_S)
            if open_pairs and self._answered(open_pairs[0], arms, step_s):
                unanswered |= self._close(open_pairs.popleft())
            elif own_time_s() >= until_s:
                break
            elif not open_pairs:
                # The recording's pace is the one thing here that is a matter of time.
                time.sleep(max(0.0, step_s - own_time_s()))
        return unanswered

    @contextmanager
    def _errors(self, open_pairs: deque[Outstanding]) -> Iterator[None]:
        """A stack that dies ends the run; the pairs that were on their way say so."""
        try:
            yield
        except InfrastructureError as error:
            for waiting in open_pairs:
                offer, bundle = waiting.prepared.offer, waiting.bundle
                self._record(self._engine.without_followup(offer, bundle, Outcome.ERROR, headline(error)), None)
            raise

    def _answered(self, pair: Outstanding, arms: tuple[Arm, Arm], until_s: float) -> bool:
        for i, arm in enumerate(arms):
            if pair.answers[i] is None:
                pair.answers[i] = arm.wait(pair.tickets[i], until_s)
        return None not in pair.answers

    def _close(self, pair: Outstanding) -> bool:
        source, followup = pair.answers
        assert source is not None and followup is not None, "closed only when both arms are through"
        heard = (source.heard is Heard.ANSWERED, followup.heard is Heard.ANSWERED)
        same_memory = self._stateless or all(s and f for s, f in self._recent)
        self._recent.append(heard)
        prepared, bundle = pair.prepared, pair.bundle
        if prepared.outcome is not None or prepared.derived is None:
            outcome = prepared.outcome or Outcome.ERROR
            self._record(self._engine.without_followup(prepared.offer, bundle, outcome, prepared.reason), None)
        elif not same_memory:
            reason = (
                f"the arms have not both answered each of the last {MEMORY} inputs, so they may remember differently"
            )
            self._record(self._engine.without_followup(prepared.offer, bundle, Outcome.SETTLING, reason), None)
        else:
            effects = prepared.derived.effects
            case = Case(prepared.offer, bundle, prepared.derived.followup.first, effects, source, followup)
            self._record(self._engine.judge(prepared.offer, bundle, (source, followup), effects), case)
        return not all(heard)

    def _record(self, verdicts: Sequence[Verdict], case: Case | None) -> None:
        self._progress(self._recorder.verdicts(verdicts, case))
