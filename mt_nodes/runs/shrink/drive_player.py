# SPDX-License-Identifier: Apache-2.0
"""Drives one pair again and again in the closed loop, each time through other worlds, in arms that stay alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from mt_nodes.base.errors import MtError, NotApplicable
from mt_nodes.base.jsonl import jsonable
from mt_nodes.data.verdict import Verdict
from mt_nodes.engine.arm import Arm
from mt_nodes.engine.recorder import Progress, Recorder, no_progress
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.relation import Relation, Suite
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.relations.world_changes.change_application import WHOLE, ChangedWorld, Window, applied
from mt_nodes.runs.loop.drive_archive import DriveArchive, DrivenPair
from mt_nodes.runs.loop.episode_conductor import Conductor, player_of
from mt_nodes.runs.loop.followup_world import changed
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay.replay_bench import PlayResult


@dataclass(frozen=True, eq=False)
class Worlds:
    """A smaller form of a pair of drives.

    Attributes:
        relation: whose changes they are, perhaps weaker ones.
        setting: of the source. draws: of the changes.
        back, window: what is left of the changes, see
            :class:`mt_nodes.relations.world_changes.change_application.ChangedWorld`.
    """

    relation: Relation
    setting: Setting
    draws: tuple[Draw, ...]
    back: tuple[str, ...] = ()
    window: Window = WHOLE

    @cached_property
    def followup_world(self) -> ChangedWorld | None:
        """What the follow-up drives through; None where the changes cannot be made in the source's world."""
        try:
            return applied(self.setting, self.relation.scenario, self.draws, self.back, self.window)
        except (MtError, NotApplicable, LookupError, ValueError):
            return None


class Drives(PlayResult):
    """What came of driving a pair once, and all that it takes to record it."""

    def __init__(self) -> None:
        super().__init__()
        self._pairs: list[DrivenPair] = []

    def keep(self, pair: DrivenPair) -> list[Verdict]:
        """Take in a pair of drives."""
        self._pairs.append(pair)
        return self.verdicts(pair.verdicts, None)

    @property
    def rows(self) -> int:
        """How many instants the longer of both drives has."""
        sides = [side for pair in self._pairs for side in (pair.source, pair.followup)]
        return max((len(side.played.commands) for side in sides), default=0)

    def record(self, run: ScenarioRun, recorder: Recorder) -> None:
        """Have all of it recorded as drives of a run."""
        keeper = DriveArchive(run, recorder, partial(player_of, run))
        for pair in self._pairs:
            keeper.keep(pair)


class DrivePlayer:
    """Drives forms of a pair.

    ``run``: made of :func:`mt_nodes.runs.loop.drive_reproduction.reproduction_request`. ``arms``: of the source and of
    the follow-up, ready. ``progress``: called with the verdicts of every pair.
    """

    def __init__(self, run: ScenarioRun, arms: tuple[Arm, Arm], progress: Progress = no_progress) -> None:
        assert run.only is not None, "one pair is driven"
        self._run, self._arms, self._progress = run, arms, progress
        (self.planned,), (self._offer,) = run.episodes, run.offers
        self.pair, self.relation = run.only, self._offer.relation
        self.plays = 0

    @property
    def whole(self) -> Worlds:
        """The pair as it was."""
        world = self.planned.recorded_world
        assert world is not None, "the worlds are those of a finished run"
        return Worlds(self.relation, self.planned.setting, world.draws, world.back, world.window)

    def play(self, form: Worlds) -> Drives:
        """Drive through both worlds of a form, in arms as fresh as the stack needs.

        Raises InfrastructureError: the stack died.
        """
        drives = Drives()
        Conductor(self.run_of(form), drives, drives.keep, self._progress, *self._arms, fresh=not self.plays).run()
        self.plays += 1
        return drives

    def fails(self, played: Drives) -> bool:
        """Tell whether the pair was violated in a play."""
        return played.violated(self.pair)

    def run_of(self, form: Worlds) -> ScenarioRun:
        """Return the run that drives through a form."""
        assert form.followup_world is not None, "what cannot be made is not played"
        planned = replace(self.planned, setting=form.setting, recorded_world=form.followup_world)
        return replace(self._run, suite=_with(self._run.suite, form.relation), episodes=(planned,))

    def drawn(self, form: Worlds) -> tuple[Draw, ...] | None:
        """Return the draws of a form's changes from the seed, None where the changes have none of its world."""
        planned = replace(self.planned, setting=form.setting, recorded_world=None)
        try:
            return changed(planned, form.relation, self._run.request.seed, self._offer.draw).draws
        except (MtError, NotApplicable):
            return None


def same_draws(one: Sequence[Draw] | None, other: Sequence[Draw]) -> bool:
    """Tell whether draws are the same to the last digit."""
    return one is not None and bool(jsonable(one) == jsonable(other))


def _with(suite: Suite, relation: Relation) -> Suite:
    return replace(suite, relations=tuple(relation if r.id == relation.id else r for r in suite.relations))
