# SPDX-License-Identifier: Apache-2.0
"""Thinning by arrival order once a cloud exceeds its budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class OrderDependenceOverBudget(Fault):
    """Over a budget of points only every k-th that arrives is kept.

    Points anywhere push the cloud over its budget; an obstacle of few points is left with too few, and which ones
    depends on the order of arrival.
    """

    budget: int = param(107_800, low=1, help="points up to which all are kept; the generated drive stays below")
    keep_every: int = param(4, low=2, high=1000, help="over the budget, one point in so many is kept")

    def plant(self, steps: Steps) -> Steps:
        """Thin a cloud that is over its budget."""

        def admit(cloud: Points) -> Points:
            admitted = steps.admit(cloud)
            return admitted if len(admitted) <= self.budget else admitted[:: self.keep_every]

        return replace(steps, admit=admit)
