# SPDX-License-Identifier: Apache-2.0
"""Base classes of closed-loop checks: they judge two drives, or the part of them near a place."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, nothing_to_judge

if TYPE_CHECKING:
    from mt_nodes.relations.world_changes.base import WorldEffects
    from mt_nodes.world.drive.driven import ScenarioTrace


class TraceCheck(Check):
    """A relation of two episodes. Subclasses are frozen dataclasses whose fields are their parameters.

    There is one verdict for a whole episode (pair ``<episode>/-/…``), by the motion of the ego and not by its commands.
    """

    needs: ClassVar[tuple[str, ...]] = ("control",)

    @abstractmethod
    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Judge two episodes of at least one row each, both of which ran to their end."""

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Return NOT_APPLICABLE: one instant is no drive."""
        return Judgement(Outcome.NOT_APPLICABLE, reason="one instant is no drive")


#: A stretch begins so far before its place and ends so far after it: rear axle of the ego, along its way. For a limit,
#: which holds from its place on, the two are swapped.
BEFORE_M, AFTER_M = 30.0, 10.0
#: An ego whose front stays farther than this from a place never reached it; a shorter way than this is no stretch.
_OFF_M, _LEAST_M = 3.0, 5.0
_STEP_M = 1.0


@dataclass(frozen=True, eq=False)
class RoadStretch:
    """Samples of the source's way, a metre apart.

    Attributes:
        at_m: (K,) distance that the source had driven. before_mps, after_mps: (K,) speeds of source and follow-up after
            that distance; after the end of a drive, its last speed: 0 after a stop.
        aside_m: (K,) lateral offset of the follow-up, positive to the left of the source; NaN where it did not come.
        rows: of the source's trace: the first on the stretch, and the one after the last.
        now: the row for which facts count: the first, or the middle of a whole way.
        limit_mps: limit that holds there in the follow-up's world only; 0 if there is none.
    """

    at_m: Floats
    before_mps: Floats
    after_mps: Floats
    aside_m: Floats
    rows: tuple[int, int]
    now: int
    limit_mps: float = 0.0


def stretch_of(
    source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects, *, whole: bool = False
) -> RoadStretch | str:
    """Return the stretch before and at the changed place of the follow-up's world, or why there is none.

    The place is that of the effects; for a moving actor, where the follow-up came nearest to it; if there is no place,
    as in control and sham, the middle of the source's way.
    ``whole``: all of the source's way instead.
    """
    end_m = float(source.way_m[-1])
    if whole:
        return _stretch(source, followup, 0.0, end_m, now_m=end_m / 2.0)
    place = _place(followup, effects)
    if place is None:
        station_m = end_m / 2.0
    else:
        away = np.hypot(*(source.places_m - place).T)
        nearest = int(np.argmin(away))
        if away[nearest] > source.scenario.ego.vehicle.front_m + _OFF_M:
            return f"the source does not come there: its way ends {away[nearest]:.0f} m off"
        station_m = float(source.way_m[nearest])
    limit_mps = effects.numbers.get("limit_mps", 0.0)
    before_m, after_m = (AFTER_M, BEFORE_M) if limit_mps else (BEFORE_M, AFTER_M)
    begin_m = max(0.0, station_m - before_m)
    return _stretch(source, followup, begin_m, min(end_m, station_m + after_m), now_m=begin_m, limit_mps=limit_mps)


def _place(followup: ScenarioTrace, effects: WorldEffects) -> Floats | None:
    if effects.at is not None:
        return np.array([effects.at.x_m, effects.at.y_m])
    columns = [i for i, name in enumerate(followup.trace.names) if name in effects.added]
    if not columns:
        return None
    actors = followup.trace.actors[:, columns, :2]
    away = np.linalg.norm(actors - followup.places_m[:, None], axis=2).min(axis=1)
    return np.asarray(followup.places_m[int(np.argmin(away))])


def _stretch(
    source: ScenarioTrace,
    followup: ScenarioTrace,
    begin_m: float,
    end_m: float,
    *,
    now_m: float,
    limit_mps: float = 0.0,
) -> RoadStretch | str:
    if end_m - begin_m < _LEAST_M:
        return f"the source drives {max(0.0, end_m - begin_m):.1f} m of it, less than {_LEAST_M:g} m"
    at_m = np.arange(begin_m, end_m + 1e-9, _STEP_M)
    before, after = (np.interp(at_m, d.way_m, d.trace.column("speed_mps")) for d in (source, followup))
    source_m, followup_m = (
        np.column_stack([np.interp(at_m, d.way_m, xy) for xy in d.places_m.T]) for d in (source, followup)
    )
    yaw = np.interp(at_m, source.way_m, np.unwrap(source.trace.column("yaw_rad")))
    off = followup_m - source_m
    aside = np.where(at_m <= followup.way_m[-1] + 1e-6, np.cos(yaw) * off[:, 1] - np.sin(yaw) * off[:, 0], np.nan)
    first, last, now = np.searchsorted(source.way_m, [begin_m, end_m, now_m]).tolist()
    return RoadStretch(at_m, before, after, aside, (first, max(first, last) + 1), now, limit_mps)


PLACE, WAY = "place", "way"


@dataclass(frozen=True)
class ThereCheck(TraceCheck):
    """Base of checks of a stretch: 30 m before a place to 10 m after it, or all of the source's way.

    A source that does not reach it leaves nothing to demand. A source that hits what was added gives no reference.
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
        """Judge both drives on the stretch."""
