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

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.engine.arm import Arm, restart
from mt_nodes.engine.followups import FollowupPlan, make_or_settle
from mt_nodes.engine.judging import Answer, Offer
from mt_nodes.engine.open_loop import OpenLoop
from mt_nodes.engine.pair_judge import PairJudge
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import Progress, Recorder, no_progress, owed
from mt_nodes.engine.send_order import Part, split_followup

#: How often, at the most, answers are looked for and time is passed on.
STEP_S = 0.005
#: A longer pause of the recording, or a step back in it, is jumped over: the next bundle comes after the pause given.
MOST_GAP_NS, JUMP_NS = 10_000_000_000, 100_000_000


@dataclass(eq=False)
class Sending:
    """One input of an arm, due at the process time ``due_s``; its ticket once sent, its answer once heard.

    Nobody answers a ``late`` piece of the input before it by itself.
    """

    arm: Arm
    part: Part
    due_s: float
    late: bool = False
    sent: bool = False
    ticket: Any = None
    answer: Answer | None = None

    def send(self) -> None:
        """Send it."""
        if self.late:
            self.part.publish_only(self.arm)
        else:
            self.ticket = self.part.begin(self.arm)
        self.sent = True

    def answered(self, until_s: float) -> bool:
        """Wait for the answer, not beyond a process time, and say whether it is there (perhaps there is none)."""
        if self.answer is None and self.sent and not self.late:
            self.answer = self.arm.wait(self.ticket, until_s)
        elif not self.sent:
            time.sleep(max(0.0, until_s - process_time_s()))
        return self.answer is not None or (self.late and self.sent)


def sendings(arm: Arm, parts: Sequence[Part], due_s: Callable[[Part], float]) -> list[Sending]:
    """Return what goes to an arm, each piece by itself, in its order."""
    pieces = [(piece, piece is not part) for part in parts for piece in (part, *part.late)]
    return [Sending(arm, piece, due_s(piece), late) for piece, late in pieces]


@dataclass(eq=False)
class Outstanding:
    """A pair whose answers are awaited: its prepared follow-up, and what is sent, that of the source arm first."""

    bundle: Bundle
    prepared: FollowupPlan
    sendings: list[Sending] = field(default_factory=list)


@dataclass(frozen=True)
class Pace:
    """When what is due: ``first_ns`` of the recording was at process time ``began_s``."""

    began_s: float
    first_ns: int
    rate: float

    def due_s(self, stamp_ns: int) -> float:
        """Return the process time of an instant of the recording."""
        return self.began_s + (stamp_ns - self.first_ns) / 1e9 / self.rate

    def now_ns(self) -> int:
        """Return the instant of the recording that has been reached."""
        return self.first_ns + int((process_time_s() - self.began_s) * self.rate * 1e9)


class Realtime:
    """One run in the mode ``twin``: one pass over each episode for each relation, at ``rate`` times the recording."""

    def __init__(self, settings: PlaySettings, recorder: Recorder, progress: Progress = no_progress) -> None:
        import scipy.special  # noqa: F401  rates need it, and no pair is to wait for it

        self._settings, self._recorder = settings, recorder
        self._make = settings.followups()
        self._judge = PairJudge(settings, recorder, progress, in_lockstep=False)

    def run(self, episodes: Sequence[Episode], source: Arm, followup: Arm) -> None:
        """Play every episode once per offer; arms that remember, or that owe answers, are restarted between passes."""
        clean = True
        for episode in episodes:
            for offer in (o for o in self._settings.offers if owed(self._recorder, o, episode)):
                if not clean:
                    restart(source, followup)
                self._loop = OpenLoop(offer, remembers=not self._settings.stateless)
                unanswered = self._pass(episode, offer, (source, followup))
                self._judge.end_episode((source.final_diagnostics(), followup.final_diagnostics()))
                clean = self._settings.stateless and not unanswered

    def _pass(self, episode: Episode, offer: Offer, arms: tuple[Arm, Arm]) -> bool:
        for arm in arms:
            arm.begin_episode()
        self._judge.forget()
        open_pairs: deque[Outstanding] = deque()
        pace, last_ns, unanswered = None, None, False
        with self._errors(open_pairs):
            for bundle in episode():
                prepared, stamp_ns = make_or_settle(self._make, offer, bundle, self._loop), bundle.stamp_ns
                jumps = last_ns is None or not 0 <= stamp_ns - last_ns <= MOST_GAP_NS
                if pace is not None and last_ns is not None:
                    unanswered |= self._collect(open_pairs, arms, pace, last_ns + JUMP_NS if jumps else stamp_ns)
                if pace is None or jumps:
                    pace = Pace(process_time_s(), stamp_ns, self._settings.rate)
                last_ns = stamp_ns
                open_pairs.append(Outstanding(bundle, prepared))
                self._send(open_pairs, arms, pace)
            return unanswered | (pace is not None and self._collect(open_pairs, arms, pace, None))

    def _send(self, open_pairs: deque[Outstanding], arms: tuple[Arm, Arm], pace: Pace) -> None:
        """Send the last pair's source and what of its follow-up is due.

        A follow-up goes out behind what is still to go out before it, as on any reliable topic.
        """
        pair = open_pairs[-1]
        prepared, bundle = pair.prepared, pair.bundle
        whole = Part(bundle, frozenset(), bundle.stamp_ns, 0)
        others, parts = split_followup(prepared.derived.followup, bundle) if prepared.derived else (None, (whole,))
        now_s = process_time_s()
        source = Sending(arms[0], prepared.for_source(bundle), now_s)
        source.send()
        if others is not None:
            arms[1].publish_only(others)
        pair.sendings = [source, *sendings(arms[1], parts, lambda part: _due_s(part, pace, now_s))]
        _send_due(open_pairs, now_s)
        if prepared.derived:
            # Hashed and written while the stacks work on it.
            with self._settings.cpu.spent_on(prepared.offer.relation.id):
                self._recorder.followup(prepared.offer, bundle, prepared.derived, prepared.made_ms)

    def _collect(self, open_pairs: deque[Outstanding], arms: tuple[Arm, Arm], pace: Pace, until_ns: int | None) -> bool:
        """Take answers in, in order, until an instant of the recording is due; None: until nothing is outstanding.

        Meanwhile the time of both stacks goes on. Returns whether an answer is missing.
        """
        until_s = math.inf if until_ns is None else pace.due_s(until_ns)
        unanswered = False
        while open_pairs or process_time_s() < until_s < math.inf:
            now_ns = pace.now_ns()
            next_s = _send_due(open_pairs, process_time_s())
            for arm in arms:
                arm.pass_time(now_ns if until_ns is None else min(now_ns, until_ns))
            step_s = min(until_s, process_time_s() + STEP_S, next_s)
            if open_pairs and self._answered(open_pairs[0], step_s):
                unanswered |= self._close(open_pairs.popleft())
            elif process_time_s() >= until_s:
                break
            elif not open_pairs:
                # The recording's pace is the one thing here that is a matter of time.
                time.sleep(max(0.0, step_s - process_time_s()))
        return unanswered

    @contextmanager
    def _errors(self, open_pairs: deque[Outstanding]) -> Iterator[None]:
        """A stack that dies ends the run; the pairs that were on their way say so."""
        try:
            yield
        except InfrastructureError as error:
            for waiting in open_pairs:
                self._judge.broken_off(waiting.prepared.offer, waiting.bundle, error)
            raise

    def _answered(self, pair: Outstanding, until_s: float) -> bool:
        answered = [sending.answered(until_s) for sending in pair.sendings]
        return all(answered)

    def _close(self, pair: Outstanding) -> bool:
        source, *followups = (sending.answer for sending in pair.sendings if not sending.late)
        assert source is not None, "closed only when both arms are through"
        return not self._judge.take(pair.prepared, pair.bundle, source, followups, self._loop)


def _due_s(part: Part, pace: Pace, now_s: float) -> float:
    return pace.due_s(part.source_ns + part.delay_ns) if part.delay_ns else now_s


def _send_due(open_pairs: deque[Outstanding], now_s: float) -> float:
    """Send what is due, in order, and return when the next is."""
    for sending in (s for pair in open_pairs for s in pair.sendings if not s.sent):
        if sending.due_s > now_s:
            return sending.due_s
        sending.send()
    return math.inf
