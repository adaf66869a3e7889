# SPDX-License-Identifier: Apache-2.0
"""The stack drives on as before, from the first instant to the last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.command_series import PartingCheck
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge


@dataclass(frozen=True)
class KeepsCurrentThroughout(PartingCheck):
    """Steering and speed of a sequence stay the source's, but for so large a share of its instants.

    At each instant the deviation that takes up most of its tolerance counts.
    """

    but_for_share: float = param(0.0, low=0.0, high=1.0, help="share of the instants that may deviate further")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Look at how far the arms part."""
        shares = self.shares(stretch)
        known = np.isfinite(shares)
        if not known.any():
            return nothing_to_judge("no command is told by both arms", "of the tolerance")
        measured = float(np.quantile(shares[known], 1.0 - self.but_for_share, method="inverted_cdf"))
        at_s = stretch.time_s[int(np.nanargmax(shares))]
        reason = f"the arms part most at {at_s:.2f} s, by {np.nanmax(shares):.2f} of the tolerance"
        return at_most(measured, 1.0, "of the tolerance", reason)
