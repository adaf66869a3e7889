# SPDX-License-Identifier: Apache-2.0
"""The ego stops at a place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import STANDS_MPS, at_most, nothing_to_judge
from mt_nodes.relations.checks.drives_no_faster_there import DrivesNoFasterThere
from mt_nodes.relations.checks.stretch import RoadStretch
from mt_nodes.relations.checks.there import ThereCheck


@dataclass(frozen=True)
class StopsThere(ThereCheck):
    """Before or at what was changed the ego comes to a stop, where the source drives on: ``stop``.

    Of control and sham it demands that the speed does not rise by as much as it must fall at the least.
    """

    at_most_mps: float = param(STANDS_MPS, low=0.0, high=5.0, unit="m/s", help="speed that counts as standing")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="a source that is slower somewhere need not stop")

    def __post_init__(self) -> None:
        if self.from_mps < self.at_most_mps:
            raise UsageError(f"from_mps {self.from_mps:g} is below at_most_mps {self.at_most_mps:g}")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return DrivesNoFasterThere(self.along, self.from_mps - self.at_most_mps)

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Look whether the follow-up stands somewhere."""
        before, after = (float(np.abs(mps).min()) for mps in (stretch.before_mps, stretch.after_mps))
        if before < self.from_mps:
            return nothing_to_judge(f"the source drives {before:.2f} m/s there, slower than {self.from_mps:g}", "m/s")
        return at_most(after, self.at_most_mps, "m/s", f"the least speed there was {before:.2f}, is {after:.2f} m/s")
