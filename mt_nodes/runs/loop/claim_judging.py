# SPDX-License-Identifier: Apache-2.0
"""Judges the claims of a script on each drive through its scenario."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.recorder import Recorder
from mt_nodes.engine.summary.claim_sums import ClaimVerdict
from mt_nodes.runs.loop.episode import PlayedEpisode
from mt_nodes.world.drive.scenario import TraceClaim

if TYPE_CHECKING:
    from mt_nodes.relations.world_changes.base import Setting
    from mt_nodes.runs.loop.scenario_run import PlannedEpisode
    from mt_nodes.world.drive.driven import ScenarioTrace
    from mt_nodes.world.drive.road_map import RoadMap


class ClaimJudge:
    """Journals what becomes of the claims about each episode's own scenario, and of those on drives of follow-ups.

    ``recorder``: of the run.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def judge(self, planned: PlannedEpisode, played: PlayedEpisode, setting: Setting, of: str = "") -> None:
        """Judge the claims about a drive.

        ``setting``: that was driven through. ``of``: what the follow-up is of, a relation; empty: it is the source's
        drive. A claim does not apply to a follow-up if somebody who is in the source is not in it.
        """
        gone = {one.name for one in planned.setting.scenario.actors} - {one.name for one in setting.scenario.actors}
        for claim in planned.setting.scenario.claims:
            verdict = verdict_of(planned, claim, played.driven, setting.road)[0]
            if gone and verdict.outcome is Outcome.ERROR:
                verdict = replace(verdict, outcome=Outcome.NOT_APPLICABLE)
            self._recorder.claim(replace(verdict, claim=claim_of(planned, claim, of)))

    def fail(self, planned: PlannedEpisode, outcome: Outcome, reason: str, of: str = "") -> None:
        """Say of the claims about an episode that there is no drive to judge, unless they are judged."""
        for claim in planned.setting.scenario.claims:
            named = claim_of(planned, claim, of)
            self._recorder.claim(ClaimVerdict(planned.number, named, claim.formula, outcome, reason))


def claim_of(planned: PlannedEpisode, claim: TraceClaim, of: str = "") -> str:
    """Return the name of a claim in results, of the source's drives or of those of a relation's follow-ups."""
    return planned.claim_name(claim) + (f"@{of}" if of else "")


def verdict_of(
    planned: PlannedEpisode, claim: TraceClaim, driven: ScenarioTrace, road: RoadMap | None = None
) -> tuple[ClaimVerdict, float | None]:
    """Return what a claim comes to on a drive, and its robustness, whether or not something put it to the test.

    ``road``: that was driven on; None: the source's.
    """
    from mt_nodes.world.scenarios.language.claims import formula_of  # a parser is heavy
    from mt_nodes.world.scenarios.language.problems import ValueRefusal
    from mt_nodes.world.scenarios.temporal.robustness import judge

    named = ClaimVerdict(planned.number, planned.claim_name(claim), claim.formula, Outcome.SKIPPED, "")
    if not len(driven.trace):
        return replace(named, reason="the drive ended before its first instant"), None
    try:
        found = judge(formula_of(claim, driven.scenario), driven, planned.setting.road if road is None else road)
    except (UsageError, ValueError, ValueRefusal) as error:
        return replace(named, outcome=Outcome.ERROR, reason=str(error)), None
    if found.true is None:
        end = f"the drive ended at {driven.trace.time_s[-1]:.1f} s ({driven.trace.ended}) before that showed"
        return replace(named, reason=end), found.robustness
    if found.vacuous:
        idle = f"its condition {found.vacuous} was never true"
        return replace(named, outcome=Outcome.NOT_APPLICABLE, reason=idle), found.robustness
    margin = "" if found.margin is None else f", robustness {found.margin:.3g}"
    at = "" if found.at_s is None else f" at {found.at_s:.1f} s"
    outcome = Outcome.HOLDS if found.true else Outcome.VIOLATED
    reason = f"{'true' if found.true else 'false'}{margin}{at}"
    return replace(named, outcome=outcome, reason=reason, margin=found.margin, at_s=found.at_s), found.robustness
