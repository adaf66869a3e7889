# SPDX-License-Identifier: Apache-2.0
"""Given: the stack sees where it goes."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.relations.conditions.base import Condition


@dataclass(frozen=True)
class PathReaches(Condition):
    """The source output has a path that reaches far enough ahead, in its own frame.

    Who sees no lane need not turn where that would lie elsewhere.
    """

    ahead_m: float = param(8.0, low=0.0, high=200.0, unit="m", help="how far ahead it must reach at the least")

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Look at the farthest place of the path."""
        if source.path is None or not len(source.path.pose):
            return "the source output tells no path"
        reach_m = float(source.path.pose[:, 0].max())
        if reach_m >= self.ahead_m:
            return None
        return f"the source's path reaches {reach_m:.1f} m ahead, expected at least {self.ahead_m:g} m"
