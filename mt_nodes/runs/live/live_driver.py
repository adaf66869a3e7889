# SPDX-License-Identifier: Apache-2.0
"""The suite beside a running stack: receives instants, tests them in segments, and judges both arms."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import replace
from typing import Any

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.scenes import Scenes
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import Arm, restart
from mt_nodes.engine.recorder import Progress, Recorder, no_progress
from mt_nodes.runs.live.attendance import LOST, RESTARTED, Presence
from mt_nodes.runs.live.commands import Commands, RunState, Wishes
from mt_nodes.runs.live.delay import DelayLine
from mt_nodes.runs.live.followup_workers import FollowupWorkers
from mt_nodes.runs.live.live_episodes import Episodes, Start
from mt_nodes.runs.live.live_feed import Feeding, Instant
from mt_nodes.runs.live.live_followups import Ended, Maker
from mt_nodes.runs.live.live_judging import LiveJudge, abandoned
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.live_surroundings import LiveSurroundings
from mt_nodes.runs.live.segments import EXTERNAL_STACK, Next, Phase, Rotation, Turn

#: How often answers are looked for while any are awaited, and commands while none are.
STEP_S, IDLE_S = 0.005, 0.1
#: With so many instants unanswered nothing more is tested: each keeps its clouds and images until it is judged.
MOST_UNANSWERED = 64
#: What is counted of instants and instances.
COUNTS = ("instants", "tested", "settling", "skipped", "restarts", "gave_up", "lost_instances")


class LiveDriver:
    """One run. One thread calls ``received`` and ``passes`` as input arrives, another one everything else.

    Args:
        arms: the source arm and the follow-up arm; the same twice in ``alternate``.
        recorder: what keeps the results.
        commands: what users ask for during the run.
        surroundings: what the run learns from outside, and where its status goes.
        progress: called with each group of verdicts.
        workers: processes that make follow-ups; None: all are made in this one.
    """

    def __init__(
        self,
        run: LiveRun,
        arms: tuple[Arm, Arm],
        recorder: Recorder,
        commands: Commands,
        surroundings: LiveSurroundings | None = None,
        progress: Progress = no_progress,
        workers: FollowupWorkers | None = None,
    ) -> None:
        config, stack = run.request, run.stack
        self._config, self._commands = config, commands
        self._surroundings, self._presence = surroundings or LiveSurroundings(), Presence()
        self._wishes = commands.wishes
        self.line = DelayLine()
        self._feeding = Feeding(config.mode, arms, self.line, config.delay_s)
        self._remembers, self._can_restart = not stack.stateless, stack.forgets
        self._rotation = Rotation(run.offers, self._wishes.segments, remembers=self._remembers)
        self._maker = Maker(run, self._feeding, recorder, self._wishes.limits, workers)
        self._judge = LiveJudge(run, recorder, progress, self._surroundings.missed_inputs)
        self._episodes, self._scenes = Episodes(config.gap_s), Scenes()
        self._arrived: deque[Instant] = deque()
        self._unanswered: deque[Instant] = deque()
        self._changed, self._ending = threading.Condition(), False
        self._turn: Turn | None = None
        self._counts: Counter[str] = Counter()
        self._start_s = self._last_input_s = process_time_s()
        self._last: Instant | None = None

    def received(self, bundle: Bundle, wrong: str = "") -> None:
        """Receive an instant that arrives now; ``wrong`` is the reason if it cannot be read."""
        if self._ending:
            return
        arrived_s = process_time_s()
        place = self._episodes.place(bundle.stamp_ns, arrived_s)
        named = replace(bundle, episode=place.episode, index=place.index)
        instant = self._feeding.feed(named, arrived_s, place)
        instant.wrong = wrong
        with self._changed:
            self._arrived.append(instant)
            self._changed.notify_all()

    def passes(self, wire: Wire) -> None:
        """Forward a message that is not of a sensor and arrives now."""
        self._feeding.forward(wire, process_time_s())

    def run(self) -> None:
        """Run until a stop is requested or the request is complete; then judge the instants that await answers.

        Raises MtError: the reason for an early end; instants that awaited answers record it.
        """
        self.line.start()
        try:
            while self.step():
                with self._changed:
                    self._changed.wait_for(lambda: self._arrived, STEP_S if self._unanswered else IDLE_S)
        except BaseException as error:
            self._abandon(error)
            raise
        finally:
            self.line.close()

    def step(self) -> bool:
        """Handle everything that is due; return whether the run goes on."""
        if self.line.failure is not None:
            raise self.line.failure
        self._apply_wishes(self._commands.wishes)
        self._check_presence()
        while self._arrived:
            self._take(self._arrived.popleft())
            self._collect()
        self._collect()
        self._surroundings.publish_status(self.status)
        if not self._ending or self.busy:
            return True
        self._judge.end_series(self._feeding.final_diagnostics())
        return False

    @property
    def busy(self) -> bool:
        """Whether an instant still awaits an answer."""
        return bool(self._arrived or self._unanswered)

    @property
    def status(self) -> dict[str, Any]:
        """The status of the run: plain values by name."""
        turn, place = self._turn, self._last.place if self._last else None
        silent_s = process_time_s() - self._last_input_s
        return {
            "state": self._wishes.state.value,
            "waiting_for": self._presence.away
            or (f"input, for {silent_s:.0f} s" if silent_s >= self._config.gap_s else ""),
            "relation": turn.offer.relation.id if turn else "",
            "phase": turn.phase.value if turn else "",
            "segment": turn.segment if turn else 0,
            "round": turn.round if turn else 0,
            "episode": place.episode if place else 0,
            "done": sum(self._judge.outcomes.values()),
            "violated": self._judge.outcomes[Outcome.VIOLATED.value],
            "by_arrival": self._judge.by_arrival,
            "lost": self._judge.lost,
            "lost_workers": self._maker.lost_workers,
            **{name: self._counts[name] for name in COUNTS},
        }

    def _apply_wishes(self, wishes: Wishes) -> None:
        before, self._wishes = self._wishes, wishes
        self._rotation.segments = wishes.segments
        self._maker.limit(wishes.limits)
        if wishes.relations != before.relations:
            self._rotation.choose(wishes.relations)
        if before.state is RunState.PAUSED and wishes.state is RunState.RUNNING:
            self._rotation.interrupted()
        over = 0.0 < self._config.duration_s <= process_time_s() - self._start_s
        self._ending |= wishes.state is RunState.STOPPING or over or self._config.enough(self._counts["instants"])

    def _check_presence(self) -> None:
        """Check whether an instance that somebody else runs is there; give up what it received before it was lost."""
        before, self._presence = self._presence, self._surroundings.presence()
        losses = self._presence.times_lost - before.times_lost
        if not losses and not (before.away and not self._presence.away):
            return
        self._collect()
        self._counts["lost_instances"] += losses
        for instant in self._unanswered if losses else ():
            was_sent = instant.prepared is not None and any(sending.sent for sending in instant.roles[1].sendings)
            self._end(instant, Outcome.ERROR if was_sent else Outcome.SKIPPED, LOST)
            self._feeding.give_up(instant)
        if losses:
            self._unanswered.clear()
            with self._changed:
                for instant in filter(self._feeding.reached, self._arrived):  # it went out before it was looked at
                    instant.lost = LOST
                    self._feeding.give_up(instant)
        self._judge.forget()
        # A stateless instance, too: only an answer proves that both directions of communication work.
        self._rotation.settle_anew()

    def _take(self, instant: Instant) -> None:
        """Decide what an instant is used for; from now on, each of its pairs must end in an outcome."""
        self._last, self._last_input_s = instant, instant.arrived_s
        instant.bundle = self._scenes.placed(instant.bundle)
        if instant.place.start.breaks:
            self._begin_episode(instant)
        self._unanswered.append(instant)
        if self._wishes.state is RunState.WAITING or self._config.enough(self._counts["instants"]):
            self._feeding.leave_out(instant)
            self._feeding.end(instant)
            return
        self._counts["instants"] += 1
        instant.turn = self._turn = self._rotation.turn(instant.arrived_s)
        # The round counts, too: with an even number of turns, each relation would otherwise keep the same roles.
        instant.swapped = self._wishes.segments.swap_arms and (instant.turn.segment + instant.turn.round) % 2 == 1
        if instant.wrong:
            self._end(instant, Outcome.ERROR, f"cannot be read: {instant.wrong}")
        elif reason := self._reason_to_skip(instant):
            self._end(instant, Outcome.SKIPPED, reason)
            if not self._remembers:  # one that remembers gets the source, to stay in step
                self._feeding.withhold(instant)
            return
        elif instant.turn.phase is Phase.SETTLING:
            self._counts["settling"] += 1
            self._maker.begin(instant, instant.turn)
        else:
            self._test(instant, instant.turn)
        self._feeding.begin(instant)

    def _reason_to_skip(self, instant: Instant) -> str | None:
        """Return why an instant is neither tested nor used to settle, None if it is."""
        if instant.dropped:
            return instant.lost or RESTARTED
        if self._wishes.state is RunState.PAUSED:
            return "paused"
        if self._presence.away:
            return f"not there: {self._presence.away}"
        if why := self._surroundings.refusal():
            return f"not now: {why}"
        if instant.behind and len(self._unanswered) > 1:
            return "the instance was still at work on the instant before"
        if len(self._unanswered) > MOST_UNANSWERED:
            return f"over budget: {MOST_UNANSWERED} instants await answers; lower deadline_s in the stack file"
        return None

    def _test(self, instant: Instant, turn: Turn) -> None:
        over_duty = self._surroundings.over_duty(self._wishes.limits.duty_ms_per_s)
        if reason := over_duty or self._maker.refuses(instant.arrived_s):
            self._maker.begin(instant, turn)
            self._end(instant, Outcome.SKIPPED, reason)
            if over_duty and not self._remembers:
                self._feeding.withhold(instant)
            return
        # Counted whatever the result: a turn without any follow-up must end, too.
        self._rotation.tested()
        if not self._maker.hand_over(instant, turn):
            self._note_made(instant, self._maker.make(instant, turn, newest=not self._arrived))

    def _note_made(self, instant: Instant, ended: Ended | None) -> None:
        self._counts["tested"] += ended is None
        if ended is not None:
            self._end(instant, *ended)

    def _collect(self) -> None:
        """Collect what other processes have made, and answers in the order of the inputs."""
        for made in self._maker.finished(self._ending):
            self._note_made(*made)
        while self._unanswered and (
            self._feeding.through(self._unanswered[0]) or self._feeding.overtaken(self._unanswered)
        ):
            self._close(self._unanswered[0])
            if self._unanswered:  # a restart gives up whatever is on its way
                self._unanswered.popleft()

    def _close(self, instant: Instant) -> None:
        if instant.dropped:
            self._end(instant, Outcome.SKIPPED, instant.lost or RESTARTED)
            return
        self._judge.take(instant)
        if instant.turn is not None and not instant.ended:
            self._settle(instant, instant.turn)

    def _settle(self, instant: Instant, turn: Turn) -> None:
        source, followups = instant.answers()
        agrees, why = self._judge.agreement(instant.bundle, (source, followups[0]))
        then = self._rotation.settled(turn, agrees, process_time_s())
        if then is Next.GAVE_UP:
            self._counts["gave_up"] += 1
            tried = f"{self._wishes.segments.give_up_after_restarts} restarts were of no use, and "
            why += f"; {tried if self._can_restart else ''}the next turn comes"
        elif then is Next.RESTART and not self._can_restart:
            why += f"; {EXTERNAL_STACK}"
        self._end(instant, Outcome.SETTLING, f"the arms settle; {why}")
        if then is Next.RESTART and self._can_restart:
            self._restart()

    def _begin_episode(self, instant: Instant) -> None:
        self._judge.forget()
        self._rotation.interrupted()
        self._feeding.begin_episode()
        # Instants that arrived during a restart reached no instance: a jump back in time is none for them.
        known = instant.place.start is Start.BACK and not instant.dropped and not self._presence.away
        if known and self._remembers and self._can_restart:
            self._feeding.give_up(instant)
            self._restart()

    def _restart(self) -> None:
        """Restart our instances, which takes a while; give up the instants on their way to them."""
        self.line.hold()
        with self._changed:
            for instant in self._arrived:
                self._feeding.give_up(instant)
        for instant in self._unanswered:
            self._end(instant, Outcome.SKIPPED, RESTARTED)
        self._unanswered.clear()
        restart(*self._feeding.own)
        self._feeding.begin_episode()
        self._judge.forget()
        self._counts["restarts"] += 1
        if self._commands.wishes.state is not RunState.STOPPING:  # then it may not be ready: nothing is sent to it
            self.line.release()

    def _end(self, instant: Instant, outcome: Outcome, reason: str) -> None:
        self._counts["skipped"] += outcome is Outcome.SKIPPED and instant.turn is not None and not instant.ended
        self._judge.end(instant, outcome, reason)
        self._feeding.end(instant)

    def _abandon(self, error: BaseException) -> None:
        """Record for each instant that awaits an answer why it gets none."""
        self._ending = True
        outcome, reason = abandoned(error)
        for instant in self._unanswered:
            self._end(instant, outcome, reason)
        self._judge.end_series(self._feeding.final_diagnostics())
