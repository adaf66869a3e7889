# SPDX-License-Identifier: Apache-2.0
"""The suite beside a running stack: takes instants as they come, tests them in segments, judges both arms."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mt_nodes.base.errors import InfrastructureError, headline
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.scenes import Scenes
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import Arm, restart
from mt_nodes.engine.recorder import Progress, Recorder, no_progress
from mt_nodes.runs.live.attendance import LOST, Presence, always_present
from mt_nodes.runs.live.commands import Commands, RunState, Wishes
from mt_nodes.runs.live.delay import DelayLine
from mt_nodes.runs.live.live_episodes import Episodes, Start
from mt_nodes.runs.live.live_feed import Feeding, Instant
from mt_nodes.runs.live.live_followups import Maker
from mt_nodes.runs.live.live_judging import LiveJudge, nothing_missed
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.segments import Next, Phase, Rotation, Turn

#: How often answers are looked for while any are awaited, and commands while none are.
STEP_S, IDLE_S = 0.005, 0.1
#: With so many instants unanswered nothing more is tested: each keeps its clouds and images until it is judged.
MOST_OPEN = 64
NOT_OURS = "the stack is external, so we do not restart it; name a service that makes it forget (reset: in its file)"
#: What is counted of instants and instances.
COUNTED = ("instants", "tested", "settling", "skipped", "restarts", "gave_up", "lost_instances")
RESTARTED = "our instances were being restarted"


class LiveDriver:
    """One run; ``received`` and ``passes`` are called by whoever hears the input, everything else by one thread.

    Args:
        run: what to do.
        arms: the source arm and the follow-up arm; the same twice in ``alternate``.
        recorder: what keeps the results.
        commands: what is wished while it goes on.
        progress: called with each group of verdicts.
        tell: called often with the status; what it raises ends the run.
        missed: counts the inputs between two stamps that the live stack had, and we had not.
        presence: tells whether instances are there that somebody else starts and ends.
        forbidden: tells why nothing may be tested just now, empty when it may.
    """

    def __init__(
        self,
        run: LiveRun,
        arms: tuple[Arm, Arm],
        recorder: Recorder,
        commands: Commands,
        progress: Progress = no_progress,
        tell: Callable[[dict[str, Any]], None] = lambda status: None,
        missed: Callable[[int, int], int] = nothing_missed,
        presence: Callable[[], Presence] = always_present,
        forbidden: Callable[[], str] = lambda: "",
    ) -> None:
        config, stack = run.request, run.stack
        self._config, self._commands = config, commands
        self._tell, self._look, self._presence, self._forbidden = tell, presence, Presence(), forbidden
        self._wishes = commands.wishes
        self.line = DelayLine()
        self._feeding = Feeding(config.mode, arms, self.line, config.delay_s)
        self._remembers, self._can_restart = not stack.stateless, stack.forgets
        self._rotation = Rotation(run.offers, self._wishes.segments, remembers=self._remembers)
        self._maker = Maker(run, self._feeding, recorder, self._wishes.limits)
        self._judge = LiveJudge(run, recorder, progress, missed)
        self._episodes, self._scenes = Episodes(config.gap_s), Scenes()
        self._came: deque[Instant] = deque()
        self._open: deque[Instant] = deque()
        self._changed = threading.Condition()
        self._ending = False
        self._turn: Turn | None = None
        self._counts: Counter[str] = Counter()
        self._began_s = self._last_input_s = process_time_s()
        self._last: Instant | None = None

    def received(self, bundle: Bundle, wrong: str = "") -> None:
        """Take an instant in that comes now, from any one thread; what is ``wrong`` with it if it cannot be read."""
        if self._ending:
            return
        arrived_s = process_time_s()
        place = self._episodes.place(bundle.stamp_ns, arrived_s)
        named = replace(bundle, episode=place.episode, index=place.index)
        instant = self._feeding.feed(named, arrived_s, place)
        instant.wrong = wrong
        with self._changed:
            self._came.append(instant)
            self._changed.notify_all()

    def passes(self, wire: Wire) -> None:
        """Hand on a message that is no sensor's, and comes now."""
        self._feeding.forward(wire, process_time_s())

    def run(self) -> None:
        """Go on until told to stop, or until what was asked for is done; then judge what is on its way.

        Raises:
            MtError: what ended the run early; what was on its way says so.
        """
        self.line.start()
        try:
            while self.step():
                with self._changed:
                    if not self._came:
                        self._changed.wait(STEP_S if self._open else IDLE_S)
        except BaseException as error:
            self._abandon(error)
            raise
        finally:
            self.line.close()

    def step(self) -> bool:
        """Do what there is to do now; return whether there will be more."""
        if self.line.failure is not None:
            raise self.line.failure
        self._heed(self._commands.wishes)
        self._look_for_instance()
        while self._came:
            self._take(self._came.popleft())
            self._collect()
        self._collect()
        self._tell(self.status)
        if not self._ending or self.busy:
            return True
        self._judge.end_series(self._feeding.final_diagnostics())
        return False

    @property
    def busy(self) -> bool:
        """Whether anything that came is still to be answered."""
        return bool(self._came or self._open)

    @property
    def status(self) -> dict[str, Any]:
        """What is told of the run: plain values by name."""
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
            **{name: self._counts[name] for name in COUNTED},
        }

    def _heed(self, wishes: Wishes) -> None:
        before, self._wishes = self._wishes, wishes
        self._rotation.segments = wishes.segments
        self._maker.limit(wishes.limits)
        if wishes.relations != before.relations:
            self._rotation.choose(wishes.relations)
        if before.state is RunState.PAUSED and wishes.state is RunState.RUNNING:
            self._rotation.interrupted()
        lasted_s = process_time_s() - self._began_s
        over = 0.0 < self._config.duration_s <= lasted_s
        if wishes.state is RunState.STOPPING or over or self._config.enough(self._counts["instants"]):
            self._ending = True

    def _look_for_instance(self) -> None:
        """See whether the instance is there that somebody else runs; what it was given when it went is given up."""
        before, self._presence = self._presence, self._look()
        losses = self._presence.times_lost - before.times_lost
        if not losses and not (before.away and not self._presence.away):
            return
        self._collect()
        self._counts["lost_instances"] += losses
        for instant in self._open if losses else ():
            was_sent = instant.prepared is not None and any(sending.sent for sending in instant.roles[1].sendings)
            self._end(instant, Outcome.ERROR if was_sent else Outcome.SKIPPED, LOST)
            self._feeding.give_up(instant)
        if losses:
            self._open.clear()
        self._judge.forget()
        # Even one without memory: that it hears us, and we hear it, is known when it has answered.
        self._rotation.settle_anew()

    def _take(self, instant: Instant) -> None:
        """Decide what an instant is used for; its pairs are owed from now on."""
        self._last, self._last_input_s = instant, instant.arrived_s
        instant.bundle = self._scenes.placed(instant.bundle)
        if instant.place.start.breaks:
            self._begin_episode(instant)
        busy = bool(self._open)
        self._open.append(instant)
        if self._wishes.state is RunState.WAITING or self._config.enough(self._counts["instants"]):
            self._feeding.leave_out(instant)
            return
        self._counts["instants"] += 1
        instant.turn = self._turn = self._rotation.turn(instant.arrived_s)
        # By the round, too: else an even number of turns would give each relation the same roles for ever.
        instant.swapped = self._wishes.segments.swap_arms and (instant.turn.segment + instant.turn.round) % 2 == 1
        if instant.wrong:
            self._end(instant, Outcome.ERROR, f"cannot be read: {instant.wrong}")
        elif reason := self._hindered(instant, busy):
            self._feeding.leave_out(instant)
            self._end(instant, Outcome.SKIPPED, reason)
            return
        elif instant.turn.phase is Phase.SETTLING:
            self._counts["settling"] += 1
            self._maker.begin(instant, instant.turn)
        else:
            self._test(instant, instant.turn)
        self._feeding.begin(instant)

    def _hindered(self, instant: Instant, busy: bool) -> str | None:
        """Say why an instant is neither tested nor used to settle."""
        if instant.dropped:
            return RESTARTED
        if self._wishes.state is RunState.PAUSED:
            return "paused"
        if self._presence.away:
            return f"not there: {self._presence.away}"
        if why := self._forbidden():
            return f"not now: {why}"
        if instant.behind and busy:
            return "the instance was still at work on the instant before"
        if len(self._open) > MOST_OPEN:
            return f"over budget: {MOST_OPEN} instants await answers; lower deadline_s in the stack file"
        return None

    def _test(self, instant: Instant, turn: Turn) -> None:
        if reason := self._maker.refuses(instant.arrived_s):
            self._maker.begin(instant, turn)
            self._end(instant, Outcome.SKIPPED, reason)
            return
        # Whatever comes of it: a turn of which nothing can be made ends, too.
        self._rotation.tested()
        if (ended := self._maker.make(instant, turn)) is None:
            self._counts["tested"] += 1
        else:
            self._end(instant, *ended)

    def _collect(self) -> None:
        """Take answers in, in the order of the inputs."""
        while self._open and (self._feeding.through(self._open[0]) or self._feeding.overtaken(self._open)):
            self._close(self._open[0])
            if self._open:  # a restart gives up whatever is on its way
                self._open.popleft()

    def _close(self, instant: Instant) -> None:
        if instant.dropped:
            self._end(instant, Outcome.SKIPPED, RESTARTED)
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
            why += f"; {NOT_OURS}"
        self._end(instant, Outcome.SETTLING, f"the arms settle; {why}")
        if then is Next.RESTART and self._can_restart:
            self._restart()

    def _begin_episode(self, instant: Instant) -> None:
        self._judge.forget()
        self._rotation.interrupted()
        for arm in self._feeding.own:
            arm.begin_episode()
        # What came while our instances were restarted was given to none: they know of no time before it.
        known = instant.place.start is Start.BACK and not instant.dropped and not self._presence.away
        if known and self._remembers and self._can_restart:
            self._feeding.give_up(instant)
            self._restart()

    def _restart(self) -> None:
        """Start our instances anew, which takes a while; what was on its way to them is given up."""
        self.line.hold()
        with self._changed:
            for instant in self._came:
                self._feeding.give_up(instant)
        for instant in self._open:
            self._end(instant, Outcome.SKIPPED, RESTARTED)
        self._open.clear()
        restart(*self._feeding.own)
        for arm in self._feeding.own:
            arm.begin_episode()
        self._judge.forget()
        self._counts["restarts"] += 1
        self.line.release()

    def _end(self, instant: Instant, outcome: Outcome, reason: str) -> None:
        self._counts["skipped"] += outcome is Outcome.SKIPPED and instant.turn is not None and not instant.ended
        self._judge.end(instant, outcome, reason)

    def _abandon(self, error: BaseException) -> None:
        """Say of everything that was on its way why it came to nothing."""
        self._ending = True
        outcome = Outcome.SKIPPED if isinstance(error, KeyboardInterrupt) else Outcome.ERROR
        known = headline(error) if isinstance(error, InfrastructureError) else str(error) or type(error).__name__
        for instant in self._open:
            self._end(instant, outcome, "interrupted" if isinstance(error, KeyboardInterrupt) else known)
        self._judge.end_series(self._feeding.final_diagnostics())
