# SPDX-License-Identifier: Apache-2.0
"""Checks of how two drives of the closed loop pass the place at which the follow-up's world differs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check, at_least, at_most, nothing_to_judge
from mt_nodes.relations.checks.controls import STANDS_MPS, faster_by
from mt_nodes.relations.checks.trace_check import RoadStretch, ThereCheck


@dataclass(frozen=True)
class DrivesNoFasterThere(ThereCheck):
    """Before and at the changed place the ego is no faster than the source at the same places, on average."""

    by_at_most_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="rise of the speed that is still none")

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Compare the speeds."""
        before, after = float(stretch.before_mps.mean()), float(stretch.after_mps.mean())
        reason = f"the mean speed there was {before:.2f}, is {after:.2f} m/s"
        return at_most(
            float(faster_by(stretch.before_mps, stretch.after_mps).mean()), self.by_at_most_mps, "m/s", reason
        )


@dataclass(frozen=True)
class KeepsWayThere(ThereCheck):
    """Before and at the changed place, speed and path are the source's, within tolerances: ``keep_current``.

    Speeds are compared at the same places and their differences averaged; of the lateral offsets the largest counts.
    """

    tolerance_mps: float = param(0.5, low=0.001, high=50.0, unit="m/s", help="mean difference of the speeds")
    tolerance_m: float = param(0.5, low=0.001, high=50.0, unit="m", help="largest distance beside the source's way")

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Compare speeds and ways."""
        speed = float(np.abs(stretch.after_mps - stretch.before_mps).mean())
        aside = float(np.fmax.reduce(np.abs(stretch.aside_m), initial=0.0))
        share = max(speed / self.tolerance_mps, aside / self.tolerance_m)
        reason = f"there it is {speed:.2f} m/s off the source's speed and {aside:.2f} m off its way"
        return at_most(share, 1.0, "of the tolerance", reason, detail={"off": {"m/s": speed, "m": aside}})


@dataclass(frozen=True)
class SlowsDownThere(ThereCheck):
    """Before and at the changed place the ego is slower than the source at the same places, on average: ``slow_down``.

    After a stop the speed counts as 0. If the source drives slower than ``from_mps`` already, or hardly faster than a
    limit that is new there, there is nothing to demand. Control and sham must not be faster by as much.
    """

    by_at_least_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="how much slower")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which slowing down is demanded")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return DrivesNoFasterThere(self.along, self.by_at_least_mps)

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Compare the speeds."""
        before, after = float(np.abs(stretch.before_mps).mean()), float(stretch.after_mps.mean())
        if before < self.from_mps:
            return nothing_to_judge(f"the source drives {before:.2f} m/s there, slower than {self.from_mps:g}", "m/s")
        if stretch.limit_mps > 0.0 and before - self.by_at_least_mps < stretch.limit_mps:
            speeds = f"{before:.2f} m/s there, and {stretch.limit_mps:.2f} is allowed"
            return nothing_to_judge(f"the source drives {speeds}: not {self.by_at_least_mps:g} less is asked", "m/s")
        reason = f"the mean speed there was {before:.2f}, is {after:.2f} m/s"
        fall = -float(faster_by(stretch.before_mps, stretch.after_mps).mean())
        return at_least(fall, self.by_at_least_mps, "m/s", reason)


@dataclass(frozen=True)
class StopsThere(ThereCheck):
    """Before or at the changed place the ego stops where the source drives on: ``stop``.

    Control and sham must not be faster by as much as the least demanded drop in speed.
    """

    at_most_mps: float = param(STANDS_MPS, low=0.0, high=5.0, unit="m/s", help="speed that counts as standing")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="a source that is slower somewhere need not stop")

    def __post_init__(self) -> None:
        if self.from_mps < self.at_most_mps:
            raise UsageError(f"from_mps {self.from_mps:g} is below at_most_mps {self.at_most_mps:g}")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return DrivesNoFasterThere(self.along, self.from_mps - self.at_most_mps)

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Find whether the follow-up stands anywhere."""
        before, after = (float(np.abs(mps).min()) for mps in (stretch.before_mps, stretch.after_mps))
        if before < self.from_mps:
            return nothing_to_judge(f"the source drives {before:.2f} m/s there, slower than {self.from_mps:g}", "m/s")
        return at_most(after, self.at_most_mps, "m/s", f"the least speed there was {before:.2f}, is {after:.2f} m/s")


#: A tolerance that no speed exceeds, for control and sham.
_ANY_MPS = 50.0
#: Farther to the other side than any vehicle drives.
_FAR_M = 1000.0


@dataclass(frozen=True)
class TurnThereCheck(ThereCheck):
    """Base of checks that demand a way farther to one side than the source's, at some place.

    Control and sham give no reason to turn: their way must stay within that of the source.
    """

    by_at_least_m: float = param(0.5, low=0.01, high=50.0, unit="m", help="how far beside the source's way")

    @property
    @abstractmethod
    def side(self) -> float:
        """1 to the left, -1 to the right."""

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return KeepsWayThere(self.along, _ANY_MPS, self.by_at_least_m)

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Measure how far to the side the follow-up drives."""
        off = float(np.fmax.reduce(self.side * stretch.aside_m, initial=-_FAR_M))
        where = "left" if self.side > 0 else "right"
        return at_least(off, self.by_at_least_m, "m", f"there it comes {off:+.2f} m to the {where} of the source's way")


@dataclass(frozen=True)
class TurnsLeftThere(TurnThereCheck):
    """Before or at the changed place the ego drives farther to the left than the source: ``turn_left``."""

    side = 1.0


@dataclass(frozen=True)
class TurnsRightThere(TurnThereCheck):
    """Before or at the changed place the ego drives farther to the right than the source: ``turn_right``."""

    side = -1.0
