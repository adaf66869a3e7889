# SPDX-License-Identifier: Apache-2.0
"""Plays one episode: the world waits for the stack's command for its instant, then steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from mt_nodes.base.errors import NotApplicable, PluginError, StackCallError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import Arm
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.message_digests import sha256_of
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.relations.world_changes.change_application import WHOLE, Window
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.trace import WorldState
from mt_nodes.world.drive.trace_recording import TraceRecording
from mt_nodes.world.drive.world import World

#: Why an episode ended that the world did not end.
SILENT, UNFIT = "silent", "unfit"
BAD_COMMAND = "bad_command"
#: A stack that answers nothing for so long of the world's time will not answer any more: nobody waits for the rest.
SILENT_S = 1.0


class WorldSensors(Protocol):
    """What sees a world; see :class:`mt_nodes.runs.loop.ego_sensors.Sensors`."""

    def observe(self, state: WorldState, episode: int, index: int) -> Bundle:
        """Return what sensors see of a state, and what is told of it."""


@dataclass(frozen=True, eq=False)
class PlayedEpisode:
    """One episode as it was.

    Attributes:
        commands: what the stack answered to each row of the trace, None where nothing.
        stamp_ns: of the first instant. unanswered: rows without an answer, the reason of the first in ``silence``.
        unfit: how a pair ends of which this is the follow-up, where the tap had none that is honest; else None.
        reason: why it ended, where that is not the world's usual business.
        sent_sha256: over all that was given to the stack in place of what was seen; empty without a tap.
        answer_ms: how long each answer took.
    """

    driven: ScenarioTrace
    commands: tuple[Control | None, ...]
    stamp_ns: int
    unanswered: int = 0
    silence: str = ""
    unfit: Outcome | None = None
    reason: str = ""
    sent_sha256: str = ""
    answer_ms: tuple[float, ...] = ()

    @property
    def ended(self) -> str:
        """Why it ended."""
        return self.driven.trace.ended


@dataclass(frozen=True, eq=False)
class Side:
    """An episode of one arm: what its world was made of, how it went, and the name of its files."""

    setting: Setting
    played: PlayedEpisode
    name: str


@dataclass(eq=False)
class Player:
    """One episode in the making; :func:`play` it.

    Attributes:
        setting: what the world is made of. arm: what drives, None where nobody does: :func:`replay_observations`.
        tap: what changes the bundles on their way to the arm; None for nothing.
        period_s: between two instants at which the stack is asked.
        ends: says why an episode ends that has begun, where neither world nor stack end it; empty while it goes on.
    """

    setting: Setting
    world: World
    eyes: WorldSensors
    arm: Arm | None
    episode: int
    period_s: float = 0.1
    tap: MutationPipeline | None = None
    draw: int = 0
    window: Window = WHOLE
    ends: Callable[[World], str] = lambda world: ""
    _recording: TraceRecording = field(init=False)
    _commands: list[Control | None] = field(default_factory=list)
    _answer_ms: list[float] = field(default_factory=list)
    _sent: Any = field(default_factory=hashlib.sha256)
    _ticket: Any = None
    _state: WorldState | None = None
    _stamp_ns: int = 0
    _quiet: int = 0
    _silence: str = ""
    _unfit: tuple[Outcome, str] | None = None

    def __post_init__(self) -> None:
        self._recording = TraceRecording(self.world)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return bool(self.world.ended or self._ended)

    @property
    def _ended(self) -> str:
        if self._unfit is not None:
            return UNFIT
        if self._quiet * self.period_s >= SILENT_S - 1e-9:
            return SILENT
        return self.ends(self.world) if self._commands else ""

    def ask(self) -> None:
        """Give the stack what is seen now."""
        index, self._state = len(self._commands), self.world.state
        try:
            sent = self.look(index)
        except (NotApplicable, PluginError) as error:
            outcome = Outcome.ERROR if isinstance(error, PluginError) else Outcome.NOT_APPLICABLE
            self._unfit = (outcome, f"at {self._state.time_s:.1f} s: {error}")
            return
        if self._unfit is None and self.arm is not None:
            # Nothing of a world was ever recorded, so everything is encoded.
            self._ticket = self.arm.send(sent, frozenset(message.topic for message in sent.messages))

    def look(self, index: int) -> Bundle:
        """Return what the stack is given at the world's present state.

        Raises NotApplicable: the tap has no honest follow-up of what is seen.
        """
        bundle = self.eyes.observe(self.world.state, self.episode, index)
        self._stamp_ns = bundle.stamp_ns if index == 0 else self._stamp_ns
        if self.tap is None:
            return bundle
        first, end = self.window
        if index < first or (end is not None and index >= end):
            return self._unchanged(bundle)
        derived = self.tap.derive(bundle, self.draw)
        if derived.broken is not None:
            self._unfit = (Outcome.INVALID, f"bundle {index}: {derived.broken}")
        elif [delay_ns for delay_ns, _ in derived.followup.bundles] != [0]:
            raise NotApplicable("on the loop an input is sent once, at its own instant")
        self._sent.update(sha256_of(derived.followup.first).encode())
        return derived.followup.first

    def _unchanged(self, bundle: Bundle) -> Bundle:
        """Return what is seen where nothing is changed; what persists over an episode begins with it all the same."""
        assert self.tap is not None
        if self.tap.begun(bundle):
            self.tap.meet(bundle)
        else:
            with suppress(NotApplicable):  # what has no place now may have one when the window opens
                self.tap.derive(bundle, self.draw)
        self._sent.update(sha256_of(bundle).encode())
        return bundle

    def hear(self) -> None:
        """Wait for the command, and let the world go on by one period.

        Raises StackCallError: the stack raised an exception: without a command the drive cannot go on.
        """
        if self._ticket is None or self._state is None or self.arm is None:
            return
        answer = self.arm.wait(self._ticket)
        assert answer is not None, "without a limit an arm waits for the answer or its deadline"
        self._ticket = None
        if answer.status is AnswerStatus.FAILED:
            raise StackCallError(f"at {self._state.time_s:.1f} s: {answer.reason}")
        command = self._command(answer)
        self._commands.append(command)
        self._recording.add(self._state, command, command is not None)
        self.world.step(command, len(self._commands) * self.period_s)

    def played(self) -> PlayedEpisode:
        """Return the episode that has ended."""
        trace = self._recording.trace(self._ended)
        unfit, reason = self._unfit or (None, self.world.reason)
        return PlayedEpisode(
            ScenarioTrace(trace, self.setting.scenario),
            tuple(self._commands),
            self._stamp_ns,
            sum(command is None for command in self._commands),
            self._silence,
            unfit,
            reason,
            self._sent.hexdigest() if self.tap is not None else "",
            tuple(self._answer_ms),
        )

    def _command(self, answer: Answer) -> Control | None:
        if answer.status is AnswerStatus.ANSWERED and answer.output.control is not None:
            self._quiet = 0
            self._answer_ms += [] if answer.output.answer_ms is None else [answer.output.answer_ms]
            return answer.output.control
        self._quiet += 1
        self._silence = self._silence or answer.reason or "the answer has no command"
        return None


def play(players: Sequence[Player]) -> list[PlayedEpisode]:
    """Play episodes side by side, each in its arm, to their ends."""
    for arm in dict.fromkeys(player.arm for player in players if player.arm is not None):
        arm.begin_episode()
    while going := [player for player in players if not player.over]:
        for player in going:
            player.ask()
        for player in going:
            player.hear()
    return [player.played() for player in players]


def replay_observations(player: Player, commands: Sequence[Control | None], indices: Collection[int]) -> list[Bundle]:
    """Return what the stack was given at some rows of an episode that is driven again by its commands.

    ``player``: of an episode that has not begun. ``commands``: of each row. ``indices``: numbers of rows.
    """
    bundles = []
    for index, command in enumerate(commands):
        if index in indices:
            bundles.append(player.look(index))
        player.world.step(command, (index + 1) * player.period_s)
    return bundles
