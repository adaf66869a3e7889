# SPDX-License-Identifier: Apache-2.0
"""The stack reports no new errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge
from mt_nodes.relations.checks.sequence import SequenceCheck


@dataclass(frozen=True)
class NoNewErrors(SequenceCheck):
    """No diagnostic status of the follow-up arm is at ERROR that was not so in the source arm, too.

    Statuses are known by their names (``diagnostic_msgs/DiagnosticStatus``); an output ``diagnostics`` of the stack
    file says where they are told. An arm that told none leaves nothing to compare.
    """

    needs: ClassVar[tuple[str, ...]] = ("diagnostics",)

    new_at_most: int = param(0, low=0, high=1000, unit="statuses", help="new errors that are let pass")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare the names."""
        before, after = stretch.source.errors, stretch.followup.errors
        if before is None or after is None:
            return nothing_to_judge("an arm told no diagnostics", "statuses")
        new = sorted(set(after) - set(before))
        reason = f"at ERROR in the follow-up alone: {', '.join(new)}" if new else "no status is at ERROR anew"
        return at_most(len(new), self.new_at_most, "statuses", reason, gained=len(new), lost=0, detail={"errors": new})
