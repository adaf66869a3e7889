# SPDX-License-Identifier: Apache-2.0
"""The stack plans the same path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.checks.base import Check
from mt_nodes.checks.controls import at_most, nothing_to_judge
from mt_nodes.checks.paths import DISTANCES, apart_m, expected_places, resampled
from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle
from mt_nodes.outputs import Output
from mt_nodes.params import param
from mt_nodes.transforms import UnknownTransform
from mt_nodes.verdict import Judgement, Outcome


@dataclass(frozen=True)
class PathDeviation(Check):
    """The follow-up's path lies no further from the source's than ``tolerance_m``, over the first ``horizon_m``.

    Both paths are cut at the horizon and sampled every ``step_m`` along their length. ``lateral`` leaves out of
    account how far they go: who plans to stop earlier on the same path has not left it. ``hausdorff`` counts that, as
    does ``frechet``, which also counts the order of the places. In a mirror the path is expected
    on the other side. A path that is not told any more is a violation.
    """

    needs: ClassVar[tuple[str, ...]] = ("path",)

    by: str = param("lateral", choices=DISTANCES, help="how the distance of two paths is measured")
    tolerance_m: float = param(0.5, low=0.001, high=50.0, unit="m", help="largest distance")
    horizon_m: float = param(30.0, low=1.0, high=300.0, unit="m", help="length of path that is compared")
    step_m: float = param(0.5, low=0.1, high=10.0, unit="m", help="between the places that are compared")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two paths."""
        assert source.path is not None and followup.path is not None
        before, after = source.path, followup.path
        if len(before.pose) < 2:
            return nothing_to_judge("the source tells no path", "m")
        if not len(after.pose):
            return Judgement(Outcome.VIOLATED, unit="m", lost=1, reason="no path is told any more, as the source did")
        if before.frame_id != after.frame_id:
            reason = f"the source's path is in {before.frame_id}, the follow-up's in {after.frame_id}"
            return Judgement(Outcome.ERROR, reason=reason, unit="m")
        try:
            expected = expected_places(before, effects, bundle)
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error), unit="m")
        there = resampled(after.pose[:, :2], self.horizon_m, self.step_m)
        off = apart_m(resampled(expected, self.horizon_m, self.step_m), there, self.by)
        return at_most(off, self.tolerance_m, "m", f"the paths lie {off:.3f} m apart ({self.by})")
