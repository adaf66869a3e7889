# SPDX-License-Identifier: Apache-2.0
"""When a simulated world goes on: as soon as its stack has answered, or with the clock on the wall.

Both are asked often, answer at once and never wait: :meth:`tick` returns what has to be done now.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.outputs import Control
from mt_nodes.engine.pairing import Inbox, Ticket
from mt_nodes.runs.loop.simulation import Simulation
from mt_nodes.stacks.stack import Stack
from mt_nodes.world.scene.drive import PERIOD_NS, START_NS

#: While an answer is awaited /clock goes on so often, for nodes that are driven by timers.
CLOCK_EVERY_S = 0.005
#: Between two looks at the clock on the wall the world goes on by whole steps of its physics.
PHYSICS_S = 0.01


class SimulationClock(Protocol):
    """``/clock``; see :class:`mt_nodes.nodes.bundle_publisher.ClockPublisher`."""

    def follow(self, to_ns: int) -> None:
        """Publish whole steps, not beyond an instant."""

    def tick(self, limit_ns: int) -> None:
        """Go on by one step."""


class SimulationPace(Protocol):
    """What the simulator node asks."""

    @property
    def inbox(self) -> Any:
        """Who takes the stack's outputs."""

    @property
    def late(self) -> int:
        """Instants that came later than they should have."""

    @property
    def slipped_s(self) -> float:
        """How far the world has fallen behind the clock on the wall."""

    def tick(self) -> None:
        """Do what is due."""

    def begin(self) -> None:
        """A new episode begins now."""

    def hold(self) -> None:
        """Time stands still from now on."""

    def resume(self) -> None:
        """It goes on."""


Go = Callable[[Control | None, float], None]


class LockstepPace:
    """The world waits for the command that answers its instant, or until the stack's deadline has passed.

    ``simulation``: what is played. ``stack``: how it answers. ``clock``: steps on meanwhile. ``look``: has the instant
    that is due seen. ``go``: lets the world go on.
    """

    late, slipped_s = 0, 0.0

    def __init__(
        self, simulation: Simulation, stack: Stack, clock: SimulationClock, look: Callable[[], int], go: Go
    ) -> None:
        process_time_s.start_watching()
        self.inbox = Inbox(("control",), stack.match, owes=stack.publishes_when_empty)
        self._simulation, self._clock, self._look, self._go = simulation, clock, look, go
        self._deadline_s = stack.deadline_s
        self._ticket: Ticket | None = None
        self._ticked_s = self._held_s = 0.0

    def begin(self) -> None:
        """Nobody answers any more what was asked before."""
        self.inbox.clear()
        self._ticket = None

    def hold(self) -> None:
        """Deadlines stand still, too."""
        self._held_s = process_time_s()

    def resume(self) -> None:
        """Give the stack the rest of its time."""
        if self._ticket is not None:
            self._ticket.sent_s += process_time_s() - self._held_s

    def tick(self) -> None:
        """Ask, or see whether there is an answer by now."""
        if self._ticket is None:
            # Who answers at once is heard by this thread, and so not before the ticket is there.
            self._ticket = self.inbox.expect(self._look())
            return
        now_s = process_time_s()
        answered = self.inbox.wait(self._ticket, now_s)
        if not answered and now_s < self._ticket.sent_s + self._deadline_s:
            if now_s - self._ticked_s >= CLOCK_EVERY_S:
                self._ticked_s = now_s
                self._clock.tick(self._ticket.stamp_ns + PERIOD_NS)
            return
        self.inbox.close(self._ticket)
        command = self._ticket.parts["control"][0].part if answered else None
        self._simulation.unanswered += not answered
        self._ticket = None
        self._go(command, self._simulation.due_s)


class NewestCommand:
    """Keeps the newest command: who comes later counts."""

    def __init__(self) -> None:
        self.command: Control | None = None

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Take an output in; only commands count."""
        self.command = payload.part if role == "control" else self.command

    def take(self) -> Control | None:
        """Return what came since this was asked last; None for nothing."""
        command, self.command = self.command, None
        return command


class RealtimePace:
    """The world goes on with the clock on the wall, and the newest command counts from when it came.

    An instant that takes the simulator longer to make than there is time, or that nobody got round to, is late; time
    that was lost so is not caught up: the world falls behind.
    ``slipped_s``: how far the world has fallen behind the wall, in seconds of the wall.
    ``rate``: speed of the world. ``late_s``: delay from which on an instant counts as late. ``now_s``: the clock on the
    wall. Others as of :class:`LockstepPace`.
    """

    def __init__(
        self,
        simulation: Simulation,
        rate: float,
        late_s: float,
        clock: SimulationClock,
        look: Callable[[], int],
        go: Go,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inbox = NewestCommand()
        self.late, self.slipped_s = 0, 0.0
        self._simulation, self._clock, self._look, self._go = simulation, clock, look, go
        self._rate, self._late_s, self._now_s = rate, late_s, now_s
        self.begin()
        self.hold()

    def begin(self) -> None:
        """The episode's time 0 is now."""
        self._began_s = self._now_s()
        self.inbox.take()
        self._owed, self._lost_s = False, 0.0

    def hold(self) -> None:
        """Time stands still from now on."""
        self._held_s = self._now_s()

    def resume(self) -> None:
        """It goes on where it stopped."""
        self._began_s += self._now_s() - self._held_s

    def tick(self) -> None:
        """Let the world go on as far as it is by the wall, and have it looked at where an instant is due."""
        world_s, due_s = (self._now_s() - self._began_s) * self._rate, self._simulation.due_s
        until_s = min(math.floor(world_s / PHYSICS_S + 1e-6) * PHYSICS_S, due_s)
        if until_s > self._simulation.world.state.time_s + PHYSICS_S / 2.0:
            command = self.inbox.take()
            self._owed = self._owed and command is None
            self._go(command, until_s)
        if world_s < due_s - 1e-6:
            self._clock.follow(START_NS + self._simulation.instant * PERIOD_NS - round((due_s - world_s) * 1e9))
        elif not self._simulation.over:
            self._due((world_s - due_s) / self._rate)

    def _due(self, behind_s: float) -> None:
        self.late += behind_s + self._lost_s > self._late_s
        self._simulation.unanswered += self._owed
        self._look()
        self._owed = True
        next_s = self._began_s + self._simulation.due_s / self._rate
        self._lost_s = max(0.0, self._now_s() - next_s)
        self._began_s += self._lost_s
        self.slipped_s += self._lost_s
