# SPDX-License-Identifier: Apache-2.0
"""The kinds of runs of which a pair can be made small: how each is made again, played and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from mt_nodes.base.directories import write_whole
from mt_nodes.base.jsonl import jsonable
from mt_nodes.base.stats.repeats import Confirm
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.recorder import Progress, Recorder
from mt_nodes.engine.reduction.reduction import FILE as REDUCTION
from mt_nodes.relations.relation import Relation
from mt_nodes.runs.again.pair_request import request_of_pair, run_of_pair
from mt_nodes.runs.again.reproduce import prove
from mt_nodes.runs.loop import episode_conductor
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay import execute
from mt_nodes.runs.replay.execute import Arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.shrink.drive_moves import DriveMoves
from mt_nodes.runs.shrink.drive_player import DrivePlayer, Drives, Worlds
from mt_nodes.runs.shrink.pair_moves import PairMoves
from mt_nodes.runs.shrink.pair_player import Player, RecordablePlay, SmallerPair
from mt_nodes.runs.shrink.shrinker import Budget, Shrinker, Shrunk

#: The relation with the weakest change that still fails.
RELATION = "relation.yaml"
Tell = Callable[[int, str], None]


class ShrinkSession(Protocol):
    """A shrinking whose arms are ready."""

    @property
    def result(self) -> Shrunk[Any, Any]:
        """What came of it so far."""

    def shrink(self) -> None:
        """Make the pair small."""

    def record(self, recorder: Recorder) -> None:
        """Have a play of the smallest form recorded, if there is one."""

    def smallest(self) -> Run | ScenarioRun:
        """Return the run of the smallest form, with what is left in files of its results directory."""


@dataclass(frozen=True)
class ShrinkSettings:
    """How a pair is to be made small."""

    budget: Budget
    confirm: Confirm | None
    tell: Tell


class Subject(Protocol):
    """A violated pair of one kind of run."""

    @property
    def run(self) -> Run | ScenarioRun:
        """The run that plays the one pair again."""

    def at(self, out: Path) -> Subject:
        """Return it with another results directory."""

    def refused(self, finished: RecordedPair) -> str:
        """Say why the pair cannot be made again bit for bit; empty: it can."""

    def arms(self, ending: ExitStack) -> Arms:
        """Return arms that call the stack's callable without topics, and put their end on the stack."""

    def begin(self, arms: Arms, settings: ShrinkSettings, progress: Progress) -> ShrinkSession:
        """Return what makes it small, in arms that are ready."""


@dataclass(frozen=True, eq=False)
class ReplayPair:
    """A pair of a replay, or the one instant that evidence of `mt live` holds."""

    run: Run

    @classmethod
    def make(cls, finished: RecordedPair, transport: str, bag: str, out: Path) -> ReplayPair:
        """Look the input up.

        Raises MtError: run, bag or stack is not what it was; or of a live run nothing can be played again.
        """
        run = run_of_pair(request_of_pair(finished, transport, bag), out)
        assert isinstance(run, Run), "a pair of drives is another subject"
        return cls(run)

    def at(self, out: Path) -> ReplayPair:
        """Return it with another results directory."""
        return ReplayPair(dataclasses.replace(self.run, out=out))

    def refused(self, finished: RecordedPair) -> str:
        """Make the follow-up again, from its draws and from the seed."""
        proof = prove(self.run, finished)
        return "" if proof.same else "; ".join(proof.why) or "it came to another SHA-256"

    def arms(self, ending: ExitStack) -> Arms:
        """Return arms that call the stack's callable without topics, and put their end on the stack."""
        return execute.in_process_arms(self.run, ending)

    def begin(self, arms: Arms, settings: ShrinkSettings, progress: Progress) -> ShrinkSession:
        """Return what makes it small."""
        return _BegunReplay(self.run, Player(self.run, arms, progress), settings)


class _BegunReplay:
    def __init__(self, run: Run, player: Player, settings: ShrinkSettings) -> None:
        self._run = run
        tell = _telling(player, settings.tell)
        self._shrinker: Shrinker[SmallerPair, RecordablePlay] = Shrinker(
            player, settings.budget, settings.confirm, tell
        )
        self._moves = PairMoves(self._shrinker, player).all

    @property
    def result(self) -> Shrunk[SmallerPair, RecordablePlay]:
        return self._shrinker.result

    def shrink(self) -> None:
        self._shrinker.shrink(self._moves)

    def record(self, recorder: Recorder) -> None:
        if self.result.played is not None:
            self.result.played.record(recorder)

    def smallest(self) -> Run:
        out, request, best = self._run.out.resolve(), self._run.request, self._shrinker.best
        if self.result.played is not None and not self.result.played.whole:
            self.result.notes.append("the window is long: of its follow-ups only the last are recorded")
        best.left.save(out / REDUCTION)
        relations = _relations(out, best.relation, request.relations)
        final = dataclasses.replace(request, relations=relations, shrunk=str(out / REDUCTION), recorded=str(out))
        return Run.make(final, self._run.out)


@dataclass(frozen=True, eq=False)
class DrivePair:
    """A pair of drives of the closed loop."""

    run: ScenarioRun

    @classmethod
    def make(cls, finished: RecordedPair, transport: str, bag: str, out: Path) -> DrivePair:
        """Make both worlds of the ledger.

        Raises MtError: run or stack is not what it was, or the worlds cannot be made again.
        """
        run = run_of_pair(request_of_pair(finished, transport, bag), out)
        assert isinstance(run, ScenarioRun), "a pair of a replay is another subject"
        return cls(run)

    def at(self, out: Path) -> DrivePair:
        """Return it with another results directory."""
        return DrivePair(dataclasses.replace(self.run, out=out))

    def refused(self, finished: RecordedPair) -> str:
        """Both worlds were made of the ledger; whether they are driven the same way, the first plays tell."""
        return ""

    def arms(self, ending: ExitStack) -> Arms:
        """Return arms that call the stack's callable without topics, and put their end on the stack."""
        return episode_conductor.in_process_arms(self.run, ending)

    def begin(self, arms: Arms, settings: ShrinkSettings, progress: Progress) -> ShrinkSession:
        """Return what makes it small."""
        return _BegunDrives(DrivePlayer(self.run, arms, progress), self.run, settings)


class _BegunDrives:
    def __init__(self, driver: DrivePlayer, run: ScenarioRun, settings: ShrinkSettings) -> None:
        self._run, self._driver = run, driver
        tell = _telling(driver, settings.tell)
        self._shrinker: Shrinker[Worlds, Drives] = Shrinker(driver, settings.budget, settings.confirm, tell)
        self._moves = DriveMoves(self._shrinker, driver).all

    @property
    def result(self) -> Shrunk[Worlds, Drives]:
        return self._shrinker.result

    def shrink(self) -> None:
        self._shrinker.shrink(self._moves)

    def record(self, recorder: Recorder) -> None:
        if self.result.played is not None:
            self.result.played.record(self._driver.run_of(self._shrinker.best), recorder)

    def smallest(self) -> ScenarioRun:
        out, best = self._run.out.resolve(), self._shrinker.best
        relations = _relations(out, best.relation, self._run.request.relations)
        request = dataclasses.replace(self._run.request, relations=relations, recorded=str(out))
        return dataclasses.replace(self._driver.run_of(best), request=request)


def subject_of(finished: RecordedPair, transport: str, bag: str, out: Path) -> Subject:
    """Return the pair of a finished run as something that can be made small. Raises MtError: it cannot."""
    kind = DrivePair if finished.driven else ReplayPair
    return kind.make(finished, transport, bag, out)


class _Counts(Protocol):
    @property
    def plays(self) -> int: ...


def _telling(player: _Counts, tell: Tell) -> Callable[[str], None]:
    return lambda words: tell(player.plays + 1, words)


def _relations(out: Path, relation: Relation, names: tuple[str, ...]) -> tuple[str, ...]:
    """Write the smallest form's relation into its results directory, and return what names it."""
    if relation.role != "relation":
        return names
    write_relation(out / RELATION, relation)
    return (str(out / RELATION),)


def write_relation(path: Path, relation: Relation) -> None:
    """Write a relation as a file that :func:`mt_nodes.relations.relation.load_relation` reads."""
    plain = {key: value for key, value in relation.as_plain().items() if value is not None}
    write_whole(path, yaml.safe_dump(jsonable(plain), sort_keys=False, allow_unicode=True, width=120))
