# SPDX-License-Identifier: Apache-2.0
"""The lane stays where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.base.wording import aside
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import at_most
from mt_nodes.relations.checks.path_geometry import Places, expected_places


@dataclass(frozen=True)
class LaneOffsetStable(Check):
    """The path's place to the left or right, ``look_ahead_m`` ahead, stays within ``tolerance_m``.

    Ahead and left are those of the path's own frame, whose origin is taken for the vehicle's. In a mirror the path is
    expected on the other side. A path that is not told any more, or ends before the look-ahead, is a violation; where
    the source has none that far there is nothing to compare.
    """

    needs: ClassVar[tuple[str, ...]] = ("path",)

    look_ahead_m: float = param(8.0, low=0.0, high=200.0, unit="m", help="how far ahead it is looked at")
    tolerance_m: float = param(0.2, low=0.001, high=10.0, unit="m", help="how far it may move to the side")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two paths at the look-ahead."""
        assert source.path is not None and followup.path is not None
        try:
            before = self._left_m(expected_places(source.path, effects, bundle))
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error), unit="m")
        after = self._left_m(followup.path.pose[:, :2])
        if before is None:
            reason = f"the source's path does not reach {self.look_ahead_m:g} m ahead"
            return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit="m")
        if after is None:
            reason = f"the follow-up's path does not reach {self.look_ahead_m:g} m ahead any more"
            return Judgement(Outcome.VIOLATED, bound=self.tolerance_m, unit="m", reason=reason, lost=1)
        reason = f"{self.look_ahead_m:g} m ahead the path is {aside(after, 3)}, expected {aside(before, 3)}"
        return at_most(abs(after - before), self.tolerance_m, "m", reason)

    def _left_m(self, places: Places) -> float | None:
        """Return how far to the left a path (K, 2) lies at the look-ahead, None where it does not go that far."""
        x, y = places.T
        ahead = np.flatnonzero((x[:-1] <= self.look_ahead_m) & (x[1:] >= self.look_ahead_m))
        if not len(ahead):
            return None
        i = int(ahead[0])
        share = (self.look_ahead_m - x[i]) / max(float(x[i + 1] - x[i]), 1e-9)
        return float(y[i] + share * (y[i + 1] - y[i]))
