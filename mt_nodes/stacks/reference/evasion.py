# SPDX-License-Identifier: Apache-2.0
"""Evasion when braking alone is not enough: possible paths, who would be hit on each, and which path to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from mt_nodes.data.lanes import ALONG, ONCOMING, OWN
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.lanes_beside import APART_M, AdjacentLane
from mt_nodes.stacks.reference.traffic import STEP_S, Conflict, EgoBody, Swing, Traffic

#: Who comes towards the vehicle, faster than so, is evaded from so long before they meet.
TOWARDS_MPS, MEETS_S = 1.0, 2.5
#: Ways that lie nearer to each other lead past on the same side.
SIDE_M = 0.7
#: Two ways past somebody that differ by less are alike.
_ALIKE_M = 1e-6
#: A lane is not taken before so long before it is too late: perhaps there will be a way in the vehicle's own, or need
#: of none. Who comes the other way is the last to be met.
LANE_WAITS_S = {OWN: inf, ALONG: 0.8, ONCOMING: 0.3}
#: Who goes faster aside has begun to.
_SWINGS_MPS = 0.3
#: The vehicle's own lane first, that of others last.
_LANES = (OWN, ALONG, ONCOMING)


@dataclass(frozen=True)
class Escape:
    """An evasive path: its offset to the left of the lane's middle, and the distance until it is past the obstacle.

    ``towards``: the obstacle comes towards the vehicle, whose brakes do not make it less dangerous.
    ``lane``: that it leads over: the vehicle's own, or one of those beside it; see :mod:`mt_nodes.data.lanes`.
    ``hits``: rows of the traffic whom one would hit there. ``waits_s``: for so long one may still wait to take it.
    """

    aim_m: float
    past_m: float
    towards: bool = False
    lane: str = OWN
    hits: tuple[int, ...] = ()
    waits_s: float = 0.0

    @property
    def slows(self) -> bool:
        """Whether to brake on this path: not once it is past, nor in an adjacent lane past oncoming traffic."""
        return not self.past and (self.lane == OWN or not self.towards)

    @property
    def past(self) -> bool:
        """Whether the obstacle is behind, so that the vehicle returns as soon as possible."""
        return self.past_m <= 0.0

    def advanced(self, ways: Sequence[Escape], driven_m: float) -> Escape | None:
        """Return the path after driving along it: updated, or None once the obstacle is past.

        ``ways``: those that there are now; the one of the same side counts, if it is free.
        """
        alike = [way for way in ways if abs(way.aim_m - self.aim_m) < SIDE_M and not way.hits]
        if alike:
            return min(alike, key=lambda way: abs(way.aim_m - self.aim_m))
        left_m = self.past_m - driven_m
        return replace(self, past_m=left_m) if left_m > 0.0 and driven_m > 0.0 else None


@dataclass(frozen=True)
class Evasion:
    """The vehicle's limits for evasion, and where it may evade.

    Attributes:
        room_m: so far from the middle of its lane it may go. spare_m: left between it and whom it passes.
        across_mps2, braking_mps2: what tyres give for each alone. late_s: until steering and brakes act.
        slowing_mps2: by which one slows down at most while one evades. full_mps2: what all brakes give, with nothing to
            spare.
    """

    room_m: float
    spare_m: float
    across_mps2: float
    braking_mps2: float
    late_s: float
    slowing_mps2: float = 0.0
    full_mps2: float = inf

    def too_late(self, lead: Lead, speed_mps: float) -> bool:
        """Tell whether braking alone is not enough at a speed.

        They do not stop the vehicle before somebody if v t + v² / (2 a) is more than the gap; and whoever comes towards
        it they do not stop at all.
        """
        return self._hits(lead, speed_mps, self.braking_mps2)

    def hopeless(self, lead: Lead, speed_mps: float) -> bool:
        """Tell whether even full braking is not enough; before that no lane of others is used."""
        return self._hits(lead, speed_mps, self.full_mps2)

    def _hits(self, lead: Lead, speed_mps: float, braking_mps2: float) -> bool:
        closing = max(lead.closing_mps, 0.0)
        if _towards(lead, speed_mps):
            return lead.gap_m < closing * MEETS_S
        return closing * self.late_s + closing**2 / (2.0 * braking_mps2) > lead.gap_m

    def ways(
        self, body: EgoBody, traffic: Traffic, conflict: Conflict, side_lanes: Sequence[AdjacentLane] = ()
    ) -> list[Escape]:
        """Return the drivable paths past an obstacle, on the right and on the left, with everybody hit on each.

        From straight ahead one gets d aside within a time t by an acceleration of 2 d / t².
        ``side_lanes``: lanes that may be taken where there is no way in one's own.
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
        towards, most_m = _towards(lead, body.speed_mps), self.across_mps2 * acts_s**2 / 2.0
        own = [
            Escape(aim, past_m, towards, hits=body.rows_hit(traffic, aim, self.spare_m / 2.0, until_s))
            for aim in aims
            if abs(aim) <= self.room_m and abs(aim - body.left_m) <= most_m
        ]
        others = []
        for lane in side_lanes:
            clear_m = body.left_m - aims[0] if lane.left_m < body.left_m else aims[1] - body.left_m
            waits_s = acts_s - sqrt(2.0 * max(clear_m, 0.0) / self.across_mps2)
            hits = self._swept(body, traffic, lane.left_m, until_s)
            others.append(Escape(lane.left_m, past_m, towards, lane.direction, hits, waits_s))
        return own + others

    def stays(self, former: Escape, body: EgoBody, traffic: Traffic, across_mps: float) -> Escape | None:
        """Return the path in an adjacent lane on which the vehicle continues although the obstacle is past.

        None as soon as its own is free, as far as is known, for a return at a speed across, and where it is there.
        """
        if former.lane == OWN or body.speed_mps <= 0.0 or abs(body.left_m) < APART_M:
            return None
        swing = Swing(body.left_m, 0.0, 4.0 * across_mps**2 / abs(body.left_m))
        hit_rows = body.rows_hit_across(traffic, swing, 0.0, self.spare_m, float(traffic.times_s[-1]))
        return replace(former, past_m=0.0) if hit_rows else None

    def stay(self, body: EgoBody, traffic: Traffic, past_m: float) -> Escape:
        """Return the path straight ahead in the vehicle's lane with full braking, with everybody hit on it.

        Who is hit is so with all who stand there, as in other lanes: that brakes spare those behind is not certain.
        ``past_m``: after which one is past them.
        """
        hits = body.rows_hit(traffic, body.left_m, self.spare_m, float(traffic.times_s[-1]), self.full_mps2)
        if hits:
            rows_hit = body.rows_hit(traffic, body.left_m, self.spare_m, past_m / max(body.speed_mps, 1.0))
            hits = tuple(sorted({*hits, *rows_hit}))
        return Escape(body.left_m, 0.0, hits=hits)

    def lane_hits(self, way: Escape, body: EgoBody, traffic: Traffic) -> Escape:
        """Return a path with everybody hit in its lane as well, in case the vehicle gets there earlier than predicted.

        Who stands in a lane that is taken counts as a whole group, not only those whom the way there touches.
        """
        rows_hit = body.rows_hit(traffic, way.aim_m, self.spare_m, way.past_m / max(body.speed_mps, 1.0))
        return replace(way, hits=tuple(sorted({*way.hits, *rows_hit})))

    def _swept(self, body: EgoBody, traffic: Traffic, to_m: float, until_s: float) -> tuple[int, ...]:
        """Return everybody hit at constant speed or while slowing down, since it is not known which it will be."""
        late_s = self.late_s if abs(body.across_mps) < _SWINGS_MPS else 0.0
        swing = Swing(body.left_m, to_m, self.across_mps2, body.across_mps, late_s)
        end_s = until_s + swing.lasts_s
        rows_hit = [
            body.rows_hit_across(traffic, swing, slows, self.spare_m, end_s) for slows in (0.0, self.slowing_mps2)
        ]
        return tuple(sorted({row for rows in rows_hit for row in rows}))


def _towards(lead: Lead, speed_mps: float) -> bool:
    return lead.closing_mps > speed_mps + TOWARDS_MPS


def nearest_free(ways: Sequence[Escape], left_m: float) -> Escape | None:
    """Return the way past on which nobody is hit: in the vehicle's own lane, else in one of its direction, else in any;
    of these the one that lies nearest to where the vehicle is.

    None where there is none: then one brakes as hard as one can, in one's lane, whoever is hit. None, too, where two
    are as good as each other: there is no reason for either side then.
    """

    def off_m(way: Escape) -> float:
        return abs(way.aim_m - left_m)

    free = [way for way in ways if not way.hits and way.waits_s < LANE_WAITS_S.get(way.lane, 0.0)]
    first = next((lane for lane in _LANES if any(way.lane == lane for way in free)), OWN)
    near = sorted((way for way in free if way.lane == first), key=off_m)
    if len(near) > 1 and off_m(near[1]) - off_m(near[0]) < _ALIKE_M:
        return None
    return near[0] if near else None
