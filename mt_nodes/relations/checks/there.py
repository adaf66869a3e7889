# SPDX-License-Identifier: Apache-2.0
"""What checks share that compare how two drives pass a place at which the follow-up's world is another."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.controls import nothing_to_judge
from mt_nodes.relations.checks.stretch import RoadStretch, stretch_of
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.driven import ScenarioTrace

PLACE, WAY = "place", "way"


@dataclass(frozen=True)
class ThereCheck(TraceCheck):
    """Base of checks of a stretch: 30 m before a place to 10 m after it, or all of the source's way.

    A source that does not come there leaves nothing to demand. Who hits what was added is no example of anything.
    """

    along: str = param(PLACE, choices=(PLACE, WAY), help="where: at what was changed, or on the whole way")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare both drives on the stretch."""
        stretch = stretch_of(source, followup, effects, whole=self.along == WAY)
        if isinstance(stretch, str):
            return nothing_to_judge(stretch)
        if run_over := sorted(set(followup.hit) & set(effects.added)):
            return Judgement(Outcome.VIOLATED, reason=f"the follow-up hits {run_over[0]}, which was added")
        return self.decide(stretch)

    @abstractmethod
    def decide(self, stretch: RoadStretch) -> Judgement:
        """Judge what both did on the stretch."""
