# SPDX-License-Identifier: Apache-2.0
"""Judges two episodes: what a stack did to them that is no drive, then what the check says of both drives."""

from __future__ import annotations

from mt_nodes.base.errors import PluginError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome, Verdict
from mt_nodes.engine.judging import Offer, guarded, judge_for, unmet_condition
from mt_nodes.relations.checks.trace_check import WAY, ThereCheck, TraceCheck, stretch_of
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.runs.loop.episode import BAD_COMMAND, SILENT, PlayedEpisode
from mt_nodes.world.drive.driven import ScenarioTrace


class EpisodeJudge:
    """Turns two episodes into verdicts, one for each pair of an offer.

    ``publishes_when_empty``: whether silence of the follow-up arm alone is a violation.
    """

    def __init__(self, publishes_when_empty: bool) -> None:
        self._publishes_when_empty = publishes_when_empty

    def judge(
        self, offer: Offer, episode: int, source: PlayedEpisode, followup: PlayedEpisode, effects: WorldEffects
    ) -> list[Verdict]:
        """Return the verdicts on two episodes."""
        return [
            Verdict(
                offer.series_pair(episode, judge), source.stamp_ns, self._judge(offer, judge, source, followup, effects)
            )
            for judge in offer.judges
        ]

    def unpaired(self, source: PlayedEpisode) -> Judgement | None:
        """Say what becomes of every pair of a source episode that no follow-up can be compared with, None otherwise."""
        if source.ended == BAD_COMMAND:
            return Judgement(Outcome.ERROR, reason=f"source arm: {source.reason}")
        return Judgement(Outcome.UNPAIRED_SOURCE, reason=_silence("source", source)) if source.ended == SILENT else None

    def _judge(
        self, offer: Offer, judge: Relation, source: PlayedEpisode, followup: PlayedEpisode, effects: WorldEffects
    ) -> Judgement:
        if followup.unfit is not None:
            return Judgement(followup.unfit, reason=followup.reason)
        if source.ended == followup.ended == SILENT:
            return Judgement(Outcome.UNPAIRED_BOTH, reason=_silence("source", source))
        if (alone := self.unpaired(source)) is not None:
            return alone
        if followup.ended == BAD_COMMAND:
            return Judgement(Outcome.ERROR, reason=f"follow-up arm: {followup.reason}")
        if followup.ended == SILENT:
            outcome = Outcome.VIOLATED if self._publishes_when_empty else Outcome.UNPAIRED_FOLLOWUP
            return Judgement(outcome, reason=_silence("follow-up", followup))
        try:
            relation = judge_for(offer, judge)
        except PluginError as error:
            return Judgement(Outcome.ERROR, reason=str(error))
        assert isinstance(relation.check, TraceCheck), "relations of the loop have no other check"
        return guarded(
            relation.check, "judge_drives", lambda: _checked(relation, source.driven, followup.driven, effects)
        )


def without_followup(offer: Offer, episode: int, stamp_ns: int, judgement: Judgement) -> list[Verdict]:
    """Return the verdicts of an offer that is not played."""
    return [Verdict(offer.series_pair(episode, judge), stamp_ns, judgement) for judge in offer.judges]


def _checked(judge: Relation, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
    assert isinstance(judge.check, TraceCheck), "relations of the loop have no other check"
    if judge.given and (why := _unmet(judge, source, followup, effects)):
        return Judgement(Outcome.NOT_APPLICABLE, reason=why)
    return judge.check.judge_drives(source, followup, effects)


def _unmet(judge: Relation, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> str | None:
    """Return why a relation does not apply to a drive, by what the world knows where the change is; None if it does."""
    from mt_nodes.rules.scene_drive import facts_on_stretch  # only rules have such conditions

    whole = isinstance(judge.check, ThereCheck) and judge.check.along == WAY
    stretch = stretch_of(source, followup, effects, whole=whole)
    if isinstance(stretch, str):
        return stretch
    known = Bundle(0, 0, 0, facts=facts_on_stretch(source, stretch, effects))
    return unmet_condition(judge, known, Output())


def _silence(arm: str, played: PlayedEpisode) -> str:
    at_s = played.driven.trace.time_s[-1]
    return f"{arm} arm: no command any more at {at_s:.1f} s ({played.silence})"
