# SPDX-License-Identifier: Apache-2.0
"""The stack plans the same path."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge
from mt_nodes.relations.checks.path_geometry import (
    DISTANCES,
    Places,
    apart_m,
    expected_places,
    length_m,
    resampled,
    sets_out_alike,
)

#: So much of a path says which way it sets out.
_SETS_OUT_M = 2.0


@dataclass(frozen=True)
class PathDeviation(Check):
    """The follow-up's path lies no further from the source's than ``tolerance_m``, over the first ``horizon_m``.

    Both paths are cut at the horizon and sampled every ``step_m`` along their length. ``lateral`` leaves out of
    account how far they go: who plans to stop earlier on the same path has not left it, as long as the path goes for a
    step at all. ``hausdorff`` counts that, as does ``frechet``, which also counts the order of the places. In a mirror
    the path is expected on the other side. A path that is not told any more is a violation, and so is one that sets
    out the other way. A source whose path stays where it is leaves ``lateral`` nothing to compare.
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
        return self._compare(expected, after.pose[:, :2])

    def _compare(self, expected: Places, after: Places) -> Judgement:
        """Compare two paths (K, 2) of one frame."""
        source_goes, goes = (length_m(places) >= self.step_m for places in (expected, after))
        if self.by == "lateral" and not source_goes:
            return nothing_to_judge(f"the source's path is shorter than {self.step_m:g} m", "m")
        if self.by == "lateral" and not goes:
            reason = f"the path is {length_m(after):.2f} m long, shorter than {self.step_m:g} m: it stays where it is"
            return Judgement(Outcome.VIOLATED, unit="m", lost=1, reason=reason)
        before, there = (resampled(places, self.horizon_m, self.step_m) for places in (expected, after))
        if source_goes and goes and not sets_out_alike(before, there, ceil(_SETS_OUT_M / self.step_m)):
            return Judgement(Outcome.VIOLATED, unit="m", reason="the path sets out the other way")
        off = apart_m(before, there, self.by)
        return at_most(off, self.tolerance_m, "m", f"the paths lie {off:.3f} m apart ({self.by})")
