# SPDX-License-Identifier: Apache-2.0
"""A check: the nearest obstacle does not move away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.plugin import Bundle, Check, Effects, Judgement, Output, at_most, move, nothing_to_judge, param

#: Distance that stands for "no obstacle": further than any LiDAR sees.
NONE_M = 1000.0


@dataclass(frozen=True)
class NearestStays(Check):
    """The nearest obstacle of the follow-up is at most a little further away than the source's.

    Distances are over ground from ``base_link``. A source without an obstacle demands nothing.
    """

    tolerance_m: float = param(0.5, low=0.0, high=50.0, unit="m", help="how much further away it may be")
    beyond_m: float = param(0.0, low=0.0, high=100.0, unit="m", help="obstacles nearer than this do not count")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two distances."""
        before_m, after_m = (self._nearest_m(output, bundle) for output in (source, followup))
        if before_m == NONE_M:
            return nothing_to_judge("the source has no obstacle", unit="m")
        now = "there is none" if after_m == NONE_M else f"it is {after_m:.1f} m away"
        reason = f"the nearest obstacle was {before_m:.1f} m away, now {now}"
        return at_most(after_m, before_m + self.tolerance_m, "m", reason)

    def _nearest_m(self, output: Output, bundle: Bundle) -> float:
        detections = output.detections
        assert detections is not None, "`needs` of this check says that it reads detections"
        places_m = move(bundle.transforms.lookup("base_link", detections.frame_id), detections.center_m)
        distances_m = np.hypot(places_m[:, 0], places_m[:, 1])
        return float(distances_m[distances_m >= self.beyond_m].min(initial=NONE_M))
