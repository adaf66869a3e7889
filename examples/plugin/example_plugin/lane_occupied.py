# SPDX-License-Identifier: Apache-2.0
"""A condition: an obstacle is ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.plugin import Bundle, Condition, Output, move, param


@dataclass(frozen=True)
class LaneOccupied(Condition):
    """The source has an obstacle in a corridor ahead of the ego vehicle."""

    ahead_m: float = param(40.0, low=0.0, high=300.0, unit="m", help="length of the corridor")
    half_width_m: float = param(2.0, low=0.1, high=20.0, unit="m", help="its width to either side")

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Return why the relation does not apply to this source, or None if it does."""
        detections = source.detections
        if detections is None:
            return "the source output has no detections"
        places_m = move(bundle.transforms.lookup("base_link", detections.frame_id), detections.center_m)
        ahead = (places_m[:, 0] > 0.0) & (places_m[:, 0] <= self.ahead_m)
        if (ahead & (np.abs(places_m[:, 1]) <= self.half_width_m)).any():
            return None
        return f"no obstacle within {self.ahead_m:g} m ahead and {self.half_width_m:g} m to either side"
