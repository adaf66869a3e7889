# SPDX-License-Identifier: Apache-2.0
"""Episodes one after the other, for somebody who waits for nothing and says when time goes on: the simulator node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import BAD_COMMAND, SILENT
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.drive.trace import Collision
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.drive import PERIOD_NS

PERIOD_S = PERIOD_NS * 1e-9
#: Ends of an episode that a stack has to answer for.
FAILED = frozenset({"collision", "off_road", BAD_COMMAND, SILENT})


@dataclass(frozen=True)
class EpisodeEnd:
    """How an episode went."""

    number: int
    scenario: str
    why: str
    reason: str
    time_s: float
    instants: int
    unanswered: int
    collisions: tuple[Collision, ...]

    @property
    def failed(self) -> bool:
        """Whether the stack has to answer for it."""
        return self.why in FAILED

    def __str__(self) -> str:
        hits = "".join(f", hit {hit.name} ({hit.kind}) at {hit.ego_mps:.1f} m/s" for hit in self.collisions)
        because = f" ({self.reason})" if self.reason else ""
        silent = f", {self.unanswered} of {self.instants} instants without a command" if self.unanswered else ""
        return f"episode {self.number}, {self.scenario}: {self.why}{because} after {self.time_s:.1f} s{hits}{silent}"


class Simulation:
    """The episodes of a simulator; the first is there when it is made.

    Stamps go on from one episode to the next: nothing that listens ever sees time run backwards.
    ``scenarios``: played in turn. ``rig``: what the ego carries. ``seed``: of all noise. ``episodes``: how many; 0 for
    no end. ``silent_s``: a stack without a command for so long of the world's time has ended the episode.
    ``world``: of the present episode. number: of it. instant: which is to be seen next, over all episodes. ``ended``:
    those that are over.
    """

    def __init__(self, scenarios: Sequence[Scenario], rig: Rig, seed: int, episodes: int, silent_s: float) -> None:
        self._rig, self._seed, self._silent_s = rig, seed, silent_s
        numbers: Iterator[int] = islice(count(), episodes or None)
        self._to_come = ((number, scenarios[number % len(scenarios)]) for number in numbers)
        self.ended: list[EpisodeEnd] = []
        self.instant = 0
        self.next_episode()

    def next_episode(self) -> bool:
        """Set up the next episode; False where there is none."""
        if (coming := next(self._to_come, None)) is None:
            return False
        self.number, scenario = coming
        road = load_map(scenario.road)
        seeds = (generator(self._seed, what, self.number, None, 0).integers(2**31) for what in ("world", "sensors"))
        self.world = World(scenario, int(next(seeds)), road)
        self._sensors = Sensors(scenario, road, self._rig, int(next(seeds)))
        self._first, self.unanswered, self._last_command_s = self.instant, 0, 0.0
        return True

    @property
    def due_s(self) -> float:
        """The world's time of the instant that is to be seen next."""
        return (self.instant - self._first) * PERIOD_S

    @property
    def over(self) -> str:
        """Why the present episode is over, empty while it goes on."""
        silent = self.world.state.time_s - self._last_command_s >= self._silent_s - 1e-9
        return self.world.ended or (SILENT if silent else "")

    def look(self) -> Bundle:
        """Return what is seen of the instant that is due."""
        bundle = self._sensors.observe(self.world.state, self.number, self.instant)
        self.instant += 1
        return bundle

    def step(self, command: Control | None, until_s: float) -> tuple[Collision, ...]:
        """Let the world go on with a command, None for nothing new; return who was hit meanwhile."""
        before = len(self.world.collisions)
        if command is not None:
            self._last_command_s = self.world.state.time_s
        self.world.step(command, until_s)
        return self.world.collisions[before:]

    def end(self) -> EpisodeEnd:
        """Close the present episode."""
        world = self.world
        instants = self.instant - self._first
        row = (world.scenario.name, self.over, world.reason, world.state.time_s, instants, self.unanswered)
        self.ended.append(EpisodeEnd(self.number, *row, world.collisions))
        return self.ended[-1]
