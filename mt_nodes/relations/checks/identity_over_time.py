# SPDX-License-Identifier: Apache-2.0
"""Whether tracks keep their ids over a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mt_nodes.base.errors import PluginError
from mt_nodes.base.params import param
from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.association import Association
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import at_most, nothing_to_judge
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleComparison
from mt_nodes.relations.checks.sequence import PairMeasure, SequenceCheck


@dataclass(frozen=True)
class TrackIdsKeptOverTime(SequenceCheck, ObstacleComparison):
    """Over a sequence, an obstacle that keeps its id in the source keeps the one that it has in the follow-up.

    Ids are names: those of the two arms need not be equal. Counted are the identity switches of CLEAR MOT, with the
    source's tracks in place of the ground truth (K. Bernardin and R. Stiefelhagen, "Evaluating Multiple Object Tracking
    Performance", EURASIP JIVP 2008): a track of the source had one id in the follow-up and has another one now, and
    what had the former id is not near any more. Reads ``tracks``, else ``detections`` with ids. Tracks are demanded
    where obstacles are; one that the follow-up loses is no switch until it comes back with another id.
    """

    measures: ClassVar[tuple[str, ...]] = ("id_switches", "continued_tracks")

    at_most_switches: int = param(0, low=0, high=1_000_000, help="identity switches in a sequence that are tolerated")

    def measure(self) -> PairMeasure:
        """Count, instant by instant, ids that were switched, and tracks that were seen before."""
        ids = _Ids(self.associate)

        def measured(source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Sequence[float]:
            numbers = [0.0, 0.0]

            def decide(compared: Comparison) -> Judgement:
                numbers[:] = ids.compare(compared)
                return at_most(numbers[0], self.at_most_switches, "switches", "of this instant")

            outputs = [o.detections if o.tracks is None else o.tracks for o in (source, followup)]
            judged = self.judge_obstacles((outputs[0], outputs[1]), effects, bundle, decide)
            if judged.outcome is Outcome.ERROR:
                raise PluginError(judged.reason)
            return numbers

        return measured

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare the number of switches with what is tolerated."""
        nothing = np.full(len(stretch), np.nan)
        switched, seen = (stretch.measured.get(name, nothing) for name in self.measures)
        switches, continued = int(np.nansum(switched)), int(np.nansum(seen))
        if not continued:
            return nothing_to_judge("no track with an id is in both outputs at two instants", "switches")
        reason = f"{switches} identity switches, {continued} times a track was seen again"
        if switches:
            first_s = float(stretch.time_s[int(np.argmax(switched > 0.0))])
            reason += f"; the first after {first_s:.1f} s"
        return at_most(switches, self.at_most_switches, "switches", reason)


@dataclass(eq=False)
class _Ids:
    """Which id of the follow-up each track of the source had when it was last in both outputs."""

    associate: Association
    _known: dict[str, str] = field(default_factory=dict)

    def compare(self, compared: Comparison) -> tuple[float, float]:
        """Return how many tracks have another id than before, and how many were seen before."""
        before, after = compared.pairs
        rows = [(a, b) for a, b in zip(before.track_id.tolist(), after.track_id.tolist(), strict=True) if a and b]
        seen = [(own, self._known[own], other) for own, other in rows if own in self._known]
        # Two obstacles may be so near that either is the partner: the former id stays, as in CLEAR MOT.
        switched = [own for own, former, other in seen if former != other and not self._is_near(compared, own, former)]
        self._known |= {own: other for own, other in rows if own not in self._known or own in switched}
        return float(len(switched)), float(len(seen))

    def _is_near(self, compared: Comparison, own: str, former: str) -> bool:
        """Whether the follow-up's track with the former id may still be the same obstacle."""
        source = compared.source.take(compared.source.track_id == own)
        return bool(len(self.associate.pair(source, compared.followup.take(compared.followup.track_id == former))[0]))
