# SPDX-License-Identifier: Apache-2.0
"""Checks of a stack's answers over a sequence: rate, latency, gaps and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import ANSWER_MS, Flags, SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import at_least, at_most, nothing_to_judge
from mt_nodes.relations.checks.sequence import SequenceCheck

_PERCENTILE = 95


@dataclass(frozen=True)
class LatencyNotWorse(SequenceCheck):
    """The 95th percentile of the follow-up arm's latency is at most the source arm's times a factor plus an offset.

    Both arms share the machine, and one instance may have started later: the control of the same run shows how far they
    differ without any change. In mode ``alternate`` there is one instance; ``swap_arms`` of live runs lets two exchange
    their roles.
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


@dataclass(frozen=True)
class NoNewErrors(SequenceCheck):
    """No diagnostic status of the follow-up arm is at ERROR unless it is in the source arm, too.

    Statuses are identified by name (``diagnostic_msgs/DiagnosticStatus``); the output ``diagnostics`` of the stack file
    gives their topic. An arm without statuses leaves nothing to compare.
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


@dataclass(frozen=True)
class OutputRateNotLower(SequenceCheck):
    """The follow-up arm answers at least as many inputs per second as the source arm, less a tolerated share.

    Only instants at which both arms got an input count. Time is that of the input's stamps: in lockstep no stack has a
    deadline to meet, so a slow answer is no missing one.
    """

    tolerance_share: float = param(0.05, low=0.0, high=1.0, help="share of the source's rate that may be missing")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare the rates."""
        both, time_s = stretch.compared, stretch.time_s
        if both.sum() < 2 or np.ptp(time_s[both]) <= 0.0:
            return nothing_to_judge("fewer than two instants at which both arms were asked", "Hz")
        # As many intervals as instants, each of the mean length.
        lasted_s = np.ptp(time_s[both]) * both.sum() / (both.sum() - 1)
        before, after = (float((arm.answered & both).sum() / lasted_s) for arm in (stretch.source, stretch.followup))
        reason = f"answered {before:.2f}, now {after:.2f} inputs a second"
        return at_least(after, before * (1.0 - self.tolerance_share), "Hz", reason)


@dataclass(frozen=True)
class StillAnswers(SequenceCheck):
    """The follow-up arm's longest silence exceeds the source arm's by at most ``more`` inputs in a row.

    Only instants at which both arms got an input count. A stack that dies ends the run anyway; this check finds one
    that runs but stops answering, or takes long to recover.
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
    """Return the length of the longest run of set flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))
