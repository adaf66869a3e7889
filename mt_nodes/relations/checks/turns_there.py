# SPDX-License-Identifier: Apache-2.0
"""What checks share that ask for a way to one side at a place."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import at_least
from mt_nodes.relations.checks.keeps_way_there import KeepsWayThere
from mt_nodes.relations.checks.stretch import RoadStretch
from mt_nodes.relations.checks.there import ThereCheck

#: Of control and sham no speed is asked for.
_ANY_MPS = 50.0
#: Farther to the other side than anybody drives.
_FAR_M = 1000.0


@dataclass(frozen=True)
class TurnThereCheck(ThereCheck):
    """Base of checks that ask for a way to one side of the source's, by at least so much somewhere.

    Of control and sham, which give no reason to turn, it demands that the way stays within that of the source's.
    """

    by_at_least_m: float = param(0.5, low=0.01, high=50.0, unit="m", help="how far beside the source's way")

    @property
    @abstractmethod
    def side(self) -> float:
        """1 to the left, -1 to the right."""

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return KeepsWayThere(self.along, _ANY_MPS, self.by_at_least_m)

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Look how far to the side the follow-up drives."""
        off = float(np.fmax.reduce(self.side * stretch.aside_m, initial=-_FAR_M))
        where = "left" if self.side > 0 else "right"
        return at_least(off, self.by_at_least_m, "m", f"there it comes {off:+.2f} m to the {where} of the source's way")
