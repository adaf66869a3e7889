# SPDX-License-Identifier: Apache-2.0
"""Plays a pair, or its source in both arms, as often as it takes, in arms that stay alive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import Arm
from mt_nodes.engine.followups import FollowupPlan, FollowupSource, RecordedFollowups
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.reduction.reduction import reducing
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import Relation
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay.replay_bench import CachedEpisode, PlayResult, ReplayBench
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.shrink.drive_player import DrivePlayer, Worlds


class PairPlays(Protocol):
    """Plays the two forms of one pair."""

    @property
    def relation(self) -> Relation:
        """Whose check judges the pair."""

    def play(self, *, control: bool) -> bool:
        """Play once; whether the pair was violated. ``control``: the source in both arms, of which nothing is judged.

        Raises InfrastructureError: the stack died.
        """

    def judge(self) -> tuple[Outcome, str]:
        """Play the pair once; how it ended, and why. Raises InfrastructureError: the stack died."""


class ReplayPlays:
    """Plays a pair of a replay from its recorded draws. ``recorded``: results of the run."""

    def __init__(self, run: Run, arms: tuple[Arm, Arm], recorded: Path) -> None:
        assert run.only is not None, "one pair is played"
        self._run, self._recorded, self._pair = run, recorded, run.only
        self._bench = ReplayBench(run.stack, arms)
        (self._offer,), (episode,) = run.offers, run.episodes
        self._tape = CachedEpisode(episode, None if run.only.bundle is None else run.only.bundle + 1)

    @property
    def relation(self) -> Relation:
        """Whose check judges the pair."""
        return self._offer.judges[0]

    def play(self, *, control: bool) -> bool:
        """Play the episode up to the pair; a stateless stack its own instant alone."""
        played = self._play(_SameInBoth(self._followups(), self._run) if control else self._followups())
        return not control and played.violated(self._pair)

    def judge(self) -> tuple[Outcome, str]:
        """Play it likewise; how the pair ended, and why."""
        return self._play(self._followups()).outcome(self._pair)

    def _play(self, source: FollowupSource) -> PlayResult:
        return self._bench.play(PlayResult(), replace(self._run.settings, source_of_followups=source), [self._tape])

    def _followups(self) -> FollowupSource:
        return RecordedFollowups(self._offer.relation, self._recorded, reducing(self._run.request))


class _SameInBoth:
    """Gives the follow-up arm what the source arm is given."""

    def __init__(self, followups: FollowupSource, run: Run) -> None:
        self._followups = followups
        control = run.suite.control
        self._same = MutationPipeline(control.mutate, run.request.seed, control.id)

    def __call__(self, offer: Offer, bundle: Bundle) -> FollowupPlan:
        """Return the source as its own follow-up, or the baseline where the relation has one."""
        derived = self._same.derive(bundle)
        if offer.relation.baseline:
            plan = self._followups(offer, bundle)
            if plan.derived is not None and plan.derived.baseline is not None:
                derived = replace(plan.derived, followup=plan.derived.baseline.followup)
        return FollowupPlan.ready(offer, derived, 0.0)

    def begin(self, offer: Offer, bundle: Bundle) -> None:
        """Look at a bundle that is not offered."""
        self._followups.begin(offer, bundle)


class DrivePlays:
    """Drives both worlds of a pair of drives, side by side."""

    def __init__(self, run: ScenarioRun, arms: tuple[Arm, Arm]) -> None:
        self._player = DrivePlayer(run, arms)
        whole = self._player.whole
        same = replace(whole.relation, scenario=(), mutate=())
        self._pair, self._control = whole, Worlds(same, whole.setting, ())

    @property
    def relation(self) -> Relation:
        """Whose check judges the pair."""
        return self._player.relation

    def play(self, *, control: bool) -> bool:
        """Drive once."""
        played = self._player.play(self._control if control else self._pair)
        return not control and self._player.fails(played)

    def judge(self) -> tuple[Outcome, str]:
        """Drive once; how the pair ended, and why."""
        return self._player.play(self._pair).outcome(self._player.pair)
