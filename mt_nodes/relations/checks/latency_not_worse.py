# SPDX-License-Identifier: Apache-2.0
"""The stack answers as fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import ANSWER_MS, SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge
from mt_nodes.relations.checks.sequence import SequenceCheck

_PERCENTILE = 95


@dataclass(frozen=True)
class LatencyNotWorse(SequenceCheck):
    """The 95th percentile of the follow-up arm's answer times is at most the source arm's, times a factor, and so much.

    Both arms share the machine, and one of them may be the younger instance: how far they differ without any change
    is what control says of the same run. In mode ``alternate`` there is one instance; ``swap_arms`` of live runs lets
    two exchange their roles.
    """

    reads: ClassVar[tuple[str, ...]] = (ANSWER_MS,)

    factor: float = param(1.5, low=1.0, high=100.0, help="how many times as long")
    tolerance_ms: float = param(10.0, low=0.0, high=60_000.0, unit="ms", help="and how much longer")
    at_least_answers: int = param(20, low=1, high=1_000_000, help="of each arm; fewer say nothing of a percentile")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare the percentiles."""
        times = [arm[ANSWER_MS][np.isfinite(arm[ANSWER_MS])] for arm in (stretch.source, stretch.followup)]
        fewest = min(map(len, times))
        if fewest < self.at_least_answers:
            return nothing_to_judge(f"{fewest} answers of an arm were timed, {self.at_least_answers} are needed", "ms")
        before, after = (float(np.percentile(arm, _PERCENTILE)) for arm in times)
        reason = f"{_PERCENTILE} % of the answers took at most {before:.1f}, now {after:.1f} ms"
        return at_most(after, before * self.factor + self.tolerance_ms, "ms", reason)
