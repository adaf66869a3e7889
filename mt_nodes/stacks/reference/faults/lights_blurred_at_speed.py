# SPDX-License-Identifier: Apache-2.0
"""Lights that are not believed when it is fast."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.messages import SignalStates
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class LightsBlurredAtSpeed(PlannerFault):
    """Above a speed no traffic light is believed: their pictures used to be blurred then.

    Who comes to a red light slowly stops; who comes fast does not.
    """

    speed_mps: float = param(9.0, low=0.0, high=40.0, unit="m/s", help="up to which lights count")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Forget all lights when it is faster."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            if seen.odometry.speed_mps <= self.speed_mps:
                return seen
            signals = seen.signals
            return replace(seen, signals=SignalStates.make(signals.frame_id, signals.stamp_ns, (), (), ()))

        return replace(steps, look=look)
