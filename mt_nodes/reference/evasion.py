# SPDX-License-Identifier: Apache-2.0
"""When brakes alone do not help any more: whether there is a free way past somebody, and on which side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mt_nodes.reference.following import Lead
from mt_nodes.reference.traffic import STEP_S, Body, Conflict, Traffic

#: Who comes towards the vehicle, faster than so, is evaded from so long before they meet.
TOWARDS_MPS, MEETS_S = 1.0, 2.5
#: Ways that lie nearer to each other lead past on the same side.
SIDE_M = 0.7
#: Two ways past somebody that differ by less are alike.
_ALIKE_M = 1e-6


@dataclass(frozen=True)
class Escape:
    """A way past somebody: how far to the left of the lane's middle, and how much farther until one is past.

    Whoever comes ``towards`` the vehicle is no less dangerous for its brakes.
    """

    aim_m: float
    past_m: float
    towards: bool = False

    def went_on(self, ways: Sequence[Escape], driven_m: float) -> Escape | None:
        """Return the way after it was driven on: as it is to be now, None when one is past.

        Args:
            ways: those that there are now; the one of the same side counts.
        """
        alike = [way for way in ways if abs(way.aim_m - self.aim_m) < SIDE_M]
        if alike:
            return min(alike, key=lambda way: abs(way.aim_m - self.aim_m))
        left_m = self.past_m - driven_m
        return replace(self, past_m=left_m) if left_m > 0.0 and driven_m > 0.0 else None


@dataclass(frozen=True)
class Evasion:
    """What the vehicle can do at its limits, and where it may do it.

    Attributes:
        room_m: so far from the middle of its lane it may go. spare_m: left between it and whom it passes.
        across_mps2, braking_mps2: what tyres give for each alone. late_s: until steering and brakes act.
    """

    room_m: float
    spare_m: float
    across_mps2: float
    braking_mps2: float
    late_s: float

    def too_late(self, lead: Lead, speed_mps: float) -> bool:
        """Tell whether brakes alone do not help at a speed.

        They do not stop the vehicle before somebody if v t + v² / (2 a) is more than the gap; and whoever comes towards
        it they do not stop at all.
        """
        closing = max(lead.closing_mps, 0.0)
        if _towards(lead, speed_mps):
            return lead.gap_m < closing * MEETS_S
        return closing * self.late_s + closing**2 / (2.0 * self.braking_mps2) > lead.gap_m

    def ways(self, body: Body, traffic: Traffic, conflict: Conflict) -> list[Escape]:
        """Return the ways past somebody, to the right and to the left, that can be driven and are free.

        From straight ahead one gets d aside within a time t by an acceleration of 2 d / t².
        """
        lead = conflict.lead
        arrival_s = lead.gap_m / max(lead.closing_mps, 0.1)
        column = min(round(arrival_s / STEP_S), traffic.near_m.shape[1] - 1)
        clear = body.width_m / 2.0 + self.spare_m
        aims = (float(traffic.right_m[lead.row, column]) - clear, float(traffic.left_m[lead.row, column]) + clear)
        length = float(traffic.far_m[lead.row, 0] - traffic.near_m[lead.row, 0])
        past_m = body.speed_mps * arrival_s + length + body.front_m - body.rear_m
        until_s = arrival_s + (length + body.front_m - body.rear_m) / max(body.speed_mps, 1.0)
        acts_s = max(arrival_s - self.late_s, 1e-3)
        return [
            Escape(aim, past_m, _towards(lead, body.speed_mps))
            for aim in aims
            if abs(aim) <= self.room_m
            and 2.0 * abs(aim - body.left_m) / acts_s**2 <= self.across_mps2
            and body.free(traffic, aim, self.spare_m / 2.0, until_s)
        ]


def _towards(lead: Lead, speed_mps: float) -> bool:
    return lead.closing_mps > speed_mps + TOWARDS_MPS


def shorter(ways: Sequence[Escape], left_m: float) -> Escape | None:
    """Return the way past that lies nearer to where the vehicle is.

    None where there is none, and where two are as near as each other: there is no reason for either side then.
    """
    near = sorted(ways, key=lambda way: abs(way.aim_m - left_m))
    if len(near) == 2 and abs(near[1].aim_m - left_m) - abs(near[0].aim_m - left_m) < _ALIKE_M:
        return None
    return near[0] if near else None
