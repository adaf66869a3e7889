# SPDX-License-Identifier: Apache-2.0
"""An obstacle's box stays where and what it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck, describe

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BoxStable(ObstacleCheck):
    """Position, yaw and size of each demanded obstacle that the follow-up shows stay within bounds.

    Where the mutation carries the scene elsewhere the box is compared with where, how turned and how large it is
    then to be expected: equivariance. Position is over ground; size is the worst of length, width and height. The yaw
    of a box nearly as wide as long says nothing and is not compared; forth and back are one unless ``headed``.
    The margin is told as the share of its bound that the worst deviation takes.
    """

    position_m: float = param(0.5, low=0.001, high=10.0, unit="m", help="farthest that a centre may move")
    yaw_rad: float = param(0.2, low=0.001, high=np.pi, unit="rad", help="most that a box may turn")
    size_m: float = param(0.5, low=0.001, high=10.0, unit="m", help="most that a side may change")
    headed: bool = param(False, help="yaw tells front from back")
    least_elongation: float = param(1.5, low=1.0, high=10.0, help="length over width from which yaw is compared")

    def decide(self, compared: Comparison) -> Judgement:
        """Find the worst deviation of all, measured by its bound."""
        before, after = compared.pairs
        if not len(before):
            return Judgement(Outcome.NOT_APPLICABLE, reason="no demanded obstacle has a partner", unit="of its bound")
        off = self._off(before, after)
        shares = np.column_stack([off[name] / bound for name, (bound, _) in self._bounds.items()])
        row, column = np.unravel_index(int(shares.argmax()), shares.shape)
        share, name = float(shares[row, column]), list(off)[column]
        bound, unit = self._bounds[name]
        worst = f"{name} of {describe(before, np.arange(len(before)) == row)} is off by {off[name][row]:.3g} {unit}"
        return Judgement(
            Outcome.VIOLATED if share > 1.0 else Outcome.HOLDS,
            measured=share,
            bound=1.0,
            margin=1.0 - share,
            unit="of its bound",
            reason=f"{worst}, the bound is {bound:g} {unit}",
            detail={
                "counts": compared.counts,
                "worst": {f"{n}_{self._bounds[n][1]}": round(float(v.max()), 4) for n, v in off.items()},
            },
        )

    @property
    def _bounds(self) -> dict[str, tuple[float, str]]:
        return {"position": (self.position_m, "m"), "yaw": (self.yaw_rad, "rad"), "size": (self.size_m, "m")}

    def _off(self, before: Detections, after: Detections) -> dict[str, Floats]:
        """Return the deviations (K,) by name."""
        period = 2.0 * np.pi if self.headed else np.pi
        turned = np.abs(np.mod(after.yaw_rad - before.yaw_rad + period / 2.0, period) - period / 2.0)
        longer = [b.size_m[:, 0] >= self.least_elongation * b.size_m[:, 1] for b in (before, after)]
        return {
            "position": np.hypot(*(after.center_m - before.center_m)[:, :2].T),
            "yaw": np.where(longer[0] & longer[1], turned, 0.0),
            "size": np.abs(after.size_m - before.size_m).max(axis=1),
        }
