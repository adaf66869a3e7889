# SPDX-License-Identifier: Apache-2.0
"""The stack stays alive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import Flags, SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge
from mt_nodes.relations.checks.sequence import SequenceCheck


@dataclass(frozen=True)
class StillAnswers(SequenceCheck):
    """The follow-up arm is never silent for more inputs in a row than the source arm, and so many.

    Only instants at which both arms were asked count. A stack that dies ends the run by itself; this is for one that
    runs and says nothing any more, or needs long to come back to itself.
    """

    more_by_at_most: int = param(2, low=0, high=10_000, unit="inputs", help="how many more in a row are let pass")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare the longest silences."""
        both = stretch.compared
        if not both.any():
            return nothing_to_judge("there is no instant at which both arms were asked", "inputs")
        before, after = (_longest(~arm.answered[both]) for arm in (stretch.source, stretch.followup))
        reason = f"silent for at most {before} inputs in a row, now for {after}"
        return at_most(after, before + self.more_by_at_most, "inputs", reason)


def _longest(flags: Flags) -> int:
    """Return how many in a row are set at the most."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))
