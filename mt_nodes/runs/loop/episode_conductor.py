# SPDX-License-Identifier: Apache-2.0
"""Drives all episodes of a run: each source, and each follow-up of it, through worlds of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from mt_nodes.base.errors import InfrastructureError, NotApplicable, PluginError, StackCallError, UsageError, headline
from mt_nodes.base.seeds import generator
from mt_nodes.data.verdict import Judgement, Outcome, Verdict
from mt_nodes.engine import callable_arm
from mt_nodes.engine.arm import Arm, restart, start
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.recorder import Progress, Recorder, ResultSink
from mt_nodes.engine.summary.deaths import note_pairs
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.relations.world_changes.change_application import WHOLE, ChangedWorld
from mt_nodes.runs.loop.claim_judging import ClaimJudge
from mt_nodes.runs.loop.drive_archive import DriveArchive, DrivenPair
from mt_nodes.runs.loop.drive_judging import EpisodeJudge, without_followup
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import PlayedEpisode, Player, Side, WorldSensors, play
from mt_nodes.runs.loop.followup_world import changed
from mt_nodes.runs.loop.other_simulators import open_simulator
from mt_nodes.runs.loop.scenario_run import PlannedEpisode, ScenarioRun
from mt_nodes.runs.replay.execute import Arms, play_to_end, record_run
from mt_nodes.world.drive.external import ExternalWorld, Simulator
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.drive import PERIOD_NS, START_NS

PERIOD_S = PERIOD_NS * 1e-9


def execute(
    run: ScenarioRun, open_arms: Callable[[ExitStack], Arms], listen: Callable[[str], None], progress: Progress
) -> dict[str, Any]:
    """Drive every episode, and return the summary; whatever ends it early is in the summary and in its exit code.

    Raises UsageError: the stack cannot be started as its file says; nothing was offered. InfrastructureError: the
    results cannot be written.

    Args:
        open_arms: makes the arms (the same one twice unless the mode is ``twin``) and puts their end on the stack.
        listen: called with each journal and ledger line, as it was written.
        progress: called with each group of verdicts.
    """

    def conduct(recorder: Recorder) -> dict[str, Any]:
        def begin(ending: ExitStack) -> Callable[[], None]:
            simulator = open_simulator(run.request, ending)
            source, followup = open_arms(ending)
            start(source, followup)
            archive = DriveArchive(run, recorder, partial(player_of, run))
            claims = ClaimJudge(recorder) if run.only is None else None
            arms = (source, followup)
            return Conductor(run, recorder, archive.keep, progress, *arms, claims=claims, simulator=simulator).run

        return play_to_end(run.out, begin, recorder.death)

    return record_run(run, conduct, listen, lambda verdicts, case: None)


def in_process_arms(run: ScenarioRun, ending: ExitStack) -> Arms:
    """Return arms that call the stack's callable without topics, and put their end on the stack."""
    topics = {topic: topic for topic in run.rig.topics.values()}
    return callable_arm.in_process_arms(run.stack, topics, run.request.mode, run.out, ending)


class Conductor:
    """Plays what a run owes, and has it judged and kept.

    In ``two_pass`` one instance of the stack drives the source episode, then each follow-up, started anew in between;
    in ``twin`` two instances drive side by side, and the source episode is driven again with each follow-up.

    Args:
        run: what is owed. recorder: what was judged, and takes in what is.
        keep: takes in a pair of drives; returns the verdicts that are new.
        progress: called with each group of verdicts.
        source, followup: arms, ready. fresh: whether nothing was played in them since they were started.
        claims: judges the claims about drives; None: nobody does. simulator: in which is driven; None: the own world.
    """

    def __init__(
        self,
        run: ScenarioRun,
        recorder: ResultSink,
        keep: Callable[[DrivenPair], list[Verdict]],
        progress: Progress,
        source: Arm,
        followup: Arm,
        *,
        fresh: bool = True,
        claims: ClaimJudge | None = None,
        simulator: Simulator | None = None,
    ) -> None:
        self._player = partial(player_of, run, simulator=simulator)
        self._run, self._progress, self._recorder, self._keep = run, progress, recorder, keep
        self._source, self._followup, self._fresh = source, followup, fresh
        #: Whether an episode broke off, so that what an arm was asked last is no concern of the next one.
        self._worn = False
        self._judge, self._claims = EpisodeJudge(run.stack.publishes_when_empty), claims

    def run(self) -> None:
        """Play every episode."""
        for planned in self._run.episodes:
            owed = [offer for offer in self._run.offers if not self._done(planned, offer)]
            if self._run.request.mode == "twin":
                for offer in owed:
                    self._twin(planned, offer)
            elif owed:
                self._two_pass(planned, owed)

    def _done(self, planned: PlannedEpisode, offer: Offer) -> bool:
        return all(self._recorder.done(offer.series_pair(planned.number, judge)) for judge in offer.judges)

    def _two_pass(self, planned: PlannedEpisode, owed: Sequence[Offer]) -> None:
        played = self._play(planned, owed, [partial(self._player, planned, planned.setting, self._source)])
        if played is None:
            return
        (source,) = played
        self._judge_claims(planned, source)
        before = Side(planned.setting, source, f"{planned.number}.source")
        for offer in owed:
            if (changed_world := self._changed(planned, offer, source)) is not None:
                changes = partial(self._player, planned, changed_world.setting, self._followup, offer)
                if (played := self._play(planned, [offer], [changes])) is not None:
                    self._conclude(planned, offer, changed_world, before, played[0])

    def _twin(self, planned: PlannedEpisode, offer: Offer) -> None:
        if (changed_world := self._changed(planned, offer)) is None:
            return
        players = [
            partial(self._player, planned, planned.setting, self._source),
            partial(self._player, planned, changed_world.setting, self._followup, offer),
        ]
        if (played := self._play(planned, [offer], players)) is None:
            return
        source, followup = played
        self._judge_claims(planned, source)
        name = f"{planned.number}.{offer.relation.id}.{offer.draw}.source"
        self._conclude(planned, offer, changed_world, Side(planned.setting, source, name), followup)

    def _changed(
        self, planned: PlannedEpisode, offer: Offer, source: PlayedEpisode | None = None
    ) -> ChangedWorld | None:
        """Return what the follow-up drives through; None where that is settled without a drive."""
        settled = self._judge.unpaired(source) if source is not None else None
        changed_world = None
        try:
            changed_world = (
                changed(planned, offer.relation, self._run.request.seed, offer.draw) if settled is None else None
            )
        except NotApplicable as error:
            settled = Judgement(Outcome.NOT_APPLICABLE, reason=str(error))
        except PluginError as error:
            settled = Judgement(Outcome.ERROR, reason=str(error))
        except UsageError as error:
            settled = Judgement(Outcome.INVALID, reason=str(error))
        if settled is not None:
            self._record(without_followup(offer, planned.number, START_NS, settled))
        return changed_world

    def _play(
        self, planned: PlannedEpisode, offers: Sequence[Offer], makers: Sequence[Callable[[], Player]]
    ) -> list[PlayedEpisode] | None:
        """Play episodes with fresh arms; None if the stack raised an exception, which ends these pairs.

        A stack that dies or hangs ends the run, and the pairs say so; so does a simulator that does not do its part.
        """
        players: list[Player] = []
        try:
            players += (make() for make in makers)
            arms = [player.arm for player in players if player.arm is not None]
            if self._worn or not (self._fresh or self._run.stack.stateless):
                restart(*arms)
            self._fresh = self._worn = False
            return play(players)
        except InfrastructureError as error:
            ended = Judgement(Outcome.ERROR, reason=headline(error))
            struck = [v for o in offers for v in without_followup(o, planned.number, START_NS, ended)]
            self._record(struck)
            if self._claims is not None:
                self._claims.fail(planned, Outcome.ERROR, ended.reason)
            note_pairs(error, struck)
            if not isinstance(error, StackCallError):
                raise
            self._recorder.death(error)
            self._worn = True
            return None
        finally:
            for player in players:
                player.world.close()

    def _judge_claims(
        self, planned: PlannedEpisode, played: PlayedEpisode, setting: Setting | None = None, of: str = ""
    ) -> None:
        """Judge the claims on a drive: the source's, or that of a relation's follow-up."""
        if self._claims is None:
            return
        if (settled := self._judge.unpaired(played)) is not None:
            self._claims.fail(planned, settled.outcome, settled.reason, of)
        else:
            self._claims.judge(planned, played, planned.setting if setting is None else setting, of)

    def _conclude(
        self, planned: PlannedEpisode, offer: Offer, changed_world: ChangedWorld, source: Side, followup: PlayedEpisode
    ) -> None:
        if self._run.request.claim_followups:
            of = offer.relation.id + (f".{offer.draw}" if offer.draw else "")
            self._judge_claims(planned, followup, changed_world.setting, of)
        verdicts = self._judge.judge(offer, planned.number, source.played, followup, changed_world.effects)
        after = Side(changed_world.setting, followup, f"{planned.number}.{offer.relation.id}.{offer.draw}")
        self._progress(self._keep(DrivenPair(planned, offer, changed_world, source, after, verdicts)))

    def _record(self, verdicts: Sequence[Verdict]) -> None:
        self._progress(self._recorder.verdicts(verdicts, None))


def player_of(
    run: ScenarioRun,
    planned: PlannedEpisode,
    setting: Setting,
    arm: Arm | None,
    offer: Offer | None = None,
    simulator: Simulator | None = None,
) -> Player:
    """Return what plays an episode in a setting, the source's where there is no offer.

    ``simulator``: that of the run, in which the ego drives; what drives no ego (``arm`` is None) needs none.
    Raises UsageError: the run is one in another simulator, and it is not there. InfrastructureError: it fails.
    """
    if run.request.simulator and arm is not None and simulator is None:
        raise UsageError(f"--simulator {run.request.simulator}: only whole runs and `mt reproduce` drive in it")

    def seed(what: str, number: int = 0) -> int:
        return int(generator(run.request.seed, what, planned.number, None, number).integers(2**31))

    eyes: WorldSensors = Sensors(setting.scenario, setting.road, run.rig, seed("sensors", setting.noise))
    world_seed = seed("world")
    if simulator is None:
        world = World(setting.scenario, world_seed, setting.road)
    else:
        world = ExternalWorld(setting.scenario, simulator, world_seed, setting.road)
    tap, draw = (_tap(offer.relation, run.request.seed), offer.draw) if offer else (None, 0)
    window = planned.recorded_world.window if planned.recorded_world else WHOLE
    return Player(setting, world, eyes, arm, planned.number, PERIOD_S, tap, draw, window)


def _tap(relation: Relation, seed: int) -> MutationPipeline | None:
    return MutationPipeline(relation.mutate, seed, relation.id) if relation.mutate else None
