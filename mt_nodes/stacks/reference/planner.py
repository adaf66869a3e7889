# SPDX-License-Identifier: Apache-2.0
"""The closed-loop driver: follows its route and vehicles, stops for people and red lights, evades if necessary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import atan, isfinite, sin
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.lanes import ALONG, OWN, Lanes, SignalStates
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Control, Output, Path
from mt_nodes.stacks.reference.car_following import Following, eased
from mt_nodes.stacks.reference.caution import careful_mps, sighting_in
from mt_nodes.stacks.reference.evasion import Escape, Evasion, nearest_free
from mt_nodes.stacks.reference.faults.base import named_faults
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation
from mt_nodes.stacks.reference.lanes_beside import APART_M, adjacent_lanes, room_in
from mt_nodes.stacks.reference.least_harm import early, harm_of, least_harmful
from mt_nodes.stacks.reference.lights import stop_ahead
from mt_nodes.stacks.reference.planner_memory import Memory
from mt_nodes.stacks.reference.pursuit import Pursuit
from mt_nodes.stacks.reference.traffic import Conflict, EgoBody, EgoPose, Traffic, pose_of
from mt_nodes.stacks.reference.way import LanePath

_DECIMALS = 6
_KINDS = ("planner",)
#: How fast the place beside the lane's middle may change, other than to evade.
_SWAYS_MPS = 1.0
#: How hard it slows down for bends, and in which time.
_BENDS_MPS2, _BENDS_S = 3.0, 0.5
#: While it evades it aims nearer, but not over lanes, where it would go too far: seconds, least and most metres.
_EVADES, _CHANGES = (0.45, 3.5, 8.0), (0.6, 6.0, 16.0)
#: Of what tyres give, where it knows that.
_GRIP_USED = 0.85
#: In bends it leaves this much of a margin to what is comfortable.
_MARGIN = 2.0
#: Conflicts on a way past somebody are looked for as if it were there already.
_AT_ONCE_M = 0.1


@dataclass(frozen=True)
class _Decision:
    """The target acceleration, the offset to the left of the lane's middle, and whether it is an emergency."""

    acceleration_mps2: float
    aside_m: float = 0.0
    emergency: bool = False


@dataclass(frozen=True, eq=False)
class Planner:
    """Drives by what a world tells: objects, odometry, a route, traffic lights; see
    :class:`~mt_nodes.data.messages.WorldMessage`.

    Everybody is predicted at constant velocity. Whoever is in its way, or will be before it has passed, is followed or
    waited for by the Intelligent Driver Model; when brakes alone do not help any more it evades within its lane, else
    over a lane beside it that is told, if that way is free, and returns as soon as its own is. Where it would hit
    somebody on every way it stays in its lane, or takes one beside it if that does less harm
    (:mod:`mt_nodes.stacks.reference.least_harm`), and does not change its mind; it brakes as hard as it can as soon as
    it is in that lane, and having hit somebody it stops for good. What lies left and what lies right is treated alike.

    The same instants in the same order give the same commands; after a jump of time it starts anew, and of an instant
    that comes again it says what it said.
    """

    wheelbase_m: float = param(2.8, low=1.0, high=8.0, unit="m", help="between the axles")
    front_m: float = param(3.8, low=0.5, high=12.0, unit="m", help="from the rear axle to the front bumper")
    rear_m: float = param(1.1, low=0.1, high=6.0, unit="m", help="from the rear axle to the rear bumper")
    width_m: float = param(1.85, low=0.5, high=3.0, unit="m", help="of the vehicle")
    cruise_mps: float = param(12.0, low=1.0, high=40.0, unit="m/s", help="speed on a free road, limits permitting")
    across_mps2: float = param(2.0, low=0.2, high=6.0, unit="m/s²", help="comfortable across the road, in bends")
    time_gap_s: float = param(1.2, low=0.3, high=5.0, unit="s", help="kept behind others")
    standstill_m: float = param(2.0, low=0.5, high=10.0, unit="m", help="kept behind others in a queue")
    acceleration_mps2: float = param(1.5, low=0.1, high=5.0, unit="m/s²", help="largest")
    braking_mps2: float = param(2.0, low=0.1, high=8.0, unit="m/s²", help="comfortable")
    emergency_s: float = param(1.5, low=0.0, high=5.0, unit="s", help="with less time to a collision it brakes fully")
    emergency_mps2: float = param(9.0, low=1.0, high=12.0, unit="m/s²", help="asked of all brakes")
    jerk_mps3: float = param(10.0, low=0.5, high=100.0, unit="m/s³", help="largest change of the acceleration")
    emergency_jerk_mps3: float = param(100.0, low=0.5, high=500.0, unit="m/s³", help="of all brakes")
    horizon_s: float = param(4.0, low=0.5, high=10.0, unit="s", help="how far ahead others are predicted")
    drifts_mps: float = param(0.3, low=0.0, high=5.0, unit="m/s", help="who moves along the way drifts aside no slower")
    full: bool = param(True, help="objects fill their boxes to the corners; otherwise they count as ellipses")
    spare_m: float = param(0.3, low=0.0, high=2.0, unit="m", help="who is nearer to its sides is in the way")
    yields_s: float = param(0.8, low=0.0, high=5.0, unit="s", help="who comes so long after it has passed is let wait")
    late_s: float = param(0.2, low=0.0, high=1.0, unit="s", help="until steering and brakes act")
    look_ahead_s: float = param(0.7, low=0.2, high=3.0, unit="s", help="where steering aims, as driving time")
    look_ahead_m: tuple[float, float] = param((4.0, 14.0), low=1.0, high=40.0, unit="m", help="at least and at most")
    room_m: float = param(0.8, low=0.0, high=4.0, unit="m", help="how far off its lane's middle it may evade in it")
    takes_lanes: bool = param(True, help="evades over lanes beside its own, too, where they are told")
    evades_mps2: float = param(5.0, low=0.5, high=10.0, unit="m/s²", help="across the road while it evades")
    evades_braking_mps2: float = param(6.0, low=0.0, high=10.0, unit="m/s²", help="along the road while it evades")
    speed_gain_1ps: float = param(
        2.0, low=0.1, high=20.0, unit="1/s", help="of the vehicle: accelerates by this times what its speed lacks"
    )
    tells: str = param(
        "twist",
        choices=("twist", "ackermann"),
        help="speed and yaw rate; or speed, acceleration and the angle of the wheels, for messages that carry them",
    )
    careful: bool = param(False, help="is slower past people and vehicles beside its way, past signs, in bad sight")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, *_KINDS),
        help="names of faults to plant, or {name: {parameter: value}}",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", *_KINDS))

    def __call__(self, inputs: Mapping[str, Any], stamp_ns: int | None = None) -> Output:
        """Return ``control`` and ``path``, where it is about to drive, in ``base_link``.

        ``inputs``: ``objects``, ``odometry``, ``route`` and, where there are lights and lanes to evade over,
        ``signals`` and ``lanes``. ``stamp_ns``: of the instant; without one it is taken to follow 0.1 s after the one
        before.
        """
        odometry: Odometry = inputs["odometry"]
        dark = SignalStates.make(odometry.frame_id, stamp_ns, (), (), ())
        lanes = inputs.get("lanes", Lanes.make(odometry.frame_id, stamp_ns))
        more = (inputs.get("signals", dark), lanes, sighting_in(inputs))
        return self.drive(Situation(inputs["objects"], odometry, inputs["route"], *more), stamp_ns)

    def drive(self, situation: Situation, stamp_ns: int | None) -> Output:
        """Return the output for a situation."""
        elapsed_s = self._memory.elapsed_s(stamp_ns)
        if elapsed_s != 0.0:  # the same instant again tells nothing new
            known = replace(situation, objects=situation.objects.take(situation.objects.finite))
            self._memory.output = self._decided(self._steps.look(known), elapsed_s)
        return self._memory.output

    def reset(self) -> None:
        """Forget everything."""
        self.__dict__.pop("_memory", None)

    @cached_property
    def _memory(self) -> Memory:
        memory: Memory = self._steps.memory(Memory())
        return memory

    @cached_property
    def _following(self) -> Following:
        usual = (self.time_gap_s, self.standstill_m, self.acceleration_mps2, self.braking_mps2)
        emergency = (self.emergency_s, self.emergency_mps2)
        return Following(*usual, *emergency, self.jerk_mps3, self.emergency_jerk_mps3)

    @property
    def _across_mps2(self) -> float:
        """The lateral acceleration that it commands while it evades."""
        grip = self._memory.grip.most_mps2
        return _GRIP_USED * grip if isfinite(grip) else self.evades_mps2

    @property
    def _evasion(self) -> Evasion:
        full_mps2 = min(self.emergency_mps2, self._memory.grip.most_mps2)
        return Evasion(
            *(self.room_m, self.spare_m / 2.0, self._across_mps2, full_mps2 * 0.8, 1.5 * self.late_s),
            *(self.evades_braking_mps2, full_mps2),
        )

    @cached_property
    def _steps(self) -> PlannerSteps:
        honest = PlannerSteps(
            look=lambda situation: situation,
            cruise_mps=lambda s, cruise_mps: careful_mps(s.objects, s.sees, cruise_mps) if self.careful else cruise_mps,
            aside_m=lambda situation: 0.0,
            reckon=lambda situation, conflicts: conflicts,
            escape=nearest_free,
            harm=harm_of,
            memory=lambda memory: memory,
            say=lambda situation, control: control,
        )
        planted: list[PlannerFault] = [fault for fault in self.faults if isinstance(fault, PlannerFault)]
        return reduce(lambda steps, fault: fault.plant(steps), planted, honest)

    def _decided(self, situation: Situation, elapsed_s: float) -> Output:
        way, ego = LanePath.of(situation.route), pose_of(situation.odometry)
        if way is None or not ego.known:  # nowhere to go, or lost: stand, wheels straight
            stand = _Decision(-self.braking_mps2)
            return Output(
                control=self._command(situation, stand, 0.0, elapsed_s), path=Path.make("base_link", None, [])
            )
        decision = self._decision(situation, ego, way, elapsed_s)
        curvature = self._pursuit.curvature_1pm(way, ego.later(self.late_s), decision.aside_m)
        control = self._command(situation, decision, curvature, elapsed_s)
        return Output(control=control, path=self._pursuit.path(way, ego, decision.aside_m))

    def _decision(self, situation: Situation, ego: EgoPose, way: LanePath, elapsed_s: float) -> _Decision:
        """Return what to do: drive on, follow, stop, evade."""
        traffic = Traffic.predicted(situation.objects, ego, way, self.horizon_s, self.drifts_mps, self.full)
        (station,), (left,) = (column.tolist() for column in way.place(np.array([[ego.x_m, ego.y_m]])))
        slowing = self._memory.acceleration_mps2 or 0.0
        across = ego.speed_mps * sin(ego.yaw_rad - float(way.heading_at(np.array([station]))[0]))
        ends = (station + self.front_m, station - self.rear_m)
        body = EgoBody(*ends, left, ego.speed_mps, slowing, self.width_m, across)
        self._memory.grip.update(ego.speed_mps, slowing, self._memory.escape is not None, elapsed_s)
        aside = self._aside_m(situation, elapsed_s)
        settles_m = self._pursuit.ahead_m(ego.speed_mps)
        if self._has_struck(body, traffic):
            aim_m = self._memory.escape.aim_m if self._memory.escape else aside
            return _Decision(-self.emergency_mps2, aim_m, True)
        conflicts = body.conflicts(traffic, aside, settles_m, self.spare_m, self.yields_s)
        late = self._late(self._steps.reckon(situation, conflicts), body)
        ways = self._ways(situation, way, traffic, body, late)
        escape, passed = self._escape(late, ways, body, elapsed_s)
        self._memory.harmful = escape is not None and bool(escape.hits)
        self._memory.stays &= late is not None
        if escape is None and late is not None and self._evasion.hopeless(late.lead, body.speed_mps):
            escape = self._least_harmful(situation, traffic, body, ways)
        if escape is None and (former := self._memory.escape) is not None:
            escape = self._evasion.stays(former, body, traffic, _SWAYS_MPS)
            if escape is None and former.lane != OWN:
                self._memory.aside_m = left
        if escape is not None:
            aside = escape.aim_m
            conflicts = body.conflicts(traffic, aside, _AT_ONCE_M, 0.0, self.yields_s)
        self._memory.escape = escape
        leads = [c.lead for c in self._steps.reckon(situation, conflicts) if c.lead.row != passed]
        if light := stop_ahead(situation.signals, way, body.front_m, ego.speed_mps, self.standstill_m):
            leads.append(light)
        law, cruise = self._following, self._steps.cruise_mps(situation, self.cruise_mps)
        allowed = way.allowed_mps(station + ego.speed_mps * self.late_s, self.across_mps2, self.braking_mps2)
        accelerations = [law.wanted_mps2(ego.speed_mps, cruise, lead) for lead in (None, *leads)]
        accelerations.append(max((allowed - ego.speed_mps) / _BENDS_S, -_BENDS_MPS2))
        if escape is not None and escape.hits:  # tyres that brake do not steer: first there, then all brakes
            accelerations = [-self.emergency_mps2 if abs(left - aside) < APART_M else -self.braking_mps2]
        elif escape is not None and escape.slows:
            accelerations.append(-self.braking_mps2 if escape.towards else -self.evades_braking_mps2)
        return _Decision(min(accelerations), aside, any(map(law.emergency, leads)))

    def _has_struck(self, body: EgoBody, traffic: Traffic) -> bool:
        """Tell whether the vehicle has hit somebody that it could not avoid."""
        memory = self._memory
        memory.struck |= memory.harmful and body.touched(traffic)
        return memory.struck

    def _least_harmful(
        self, situation: Situation, traffic: Traffic, body: EgoBody, ways: Sequence[Escape]
    ) -> Escape | None:
        """Return the adjacent lane's path that does least harm, None if the vehicle's own lane does."""
        memory, lanes = self._memory, [way for way in ways if way.lane == ALONG]
        stay = self._evasion.stay(body, traffic, max((way.past_m for way in lanes), default=0.0))
        memory.harmful = bool(stay.hits)
        if memory.stays:
            return None
        lanes = [self._evasion.lane_hits(way, body, traffic) for way in lanes]
        chosen = least_harmful(
            stay, lanes, lambda rows: self._steps.harm(situation.objects.take(np.array(rows, dtype=np.intp)))
        )
        memory.stays = chosen is stay and memory.harmful and not any(map(early, lanes))
        return None if chosen is stay else chosen

    def _late(self, conflicts: Sequence[Conflict], body: EgoBody) -> Conflict | None:
        """Return the first conflict for which braking alone is not enough."""
        late = [conflict for conflict in conflicts if self._evasion.too_late(conflict.lead, body.speed_mps)]
        return min(late, key=lambda conflict: conflict.lead.gap_m) if late else None

    def _ways(
        self, situation: Situation, way: LanePath, traffic: Traffic, body: EgoBody, late: Conflict | None
    ) -> Sequence[Escape]:
        """Return the paths past somebody, in the vehicle's lane and in adjacent ones."""
        if late is None:
            return ()
        evasion = self._evasion
        evasion = replace(evasion, room_m=min(evasion.room_m, room_in(situation.lanes, self.width_m)))
        if not (self.takes_lanes and evasion.hopeless(late.lead, body.speed_mps)):
            return evasion.ways(body, traffic, late)
        to_m = body.front_m + late.lead.gap_m + body.front_m - body.rear_m
        return evasion.ways(body, traffic, late, adjacent_lanes(situation.lanes, way, body.rear_m, to_m))

    def _escape(
        self, late: Conflict | None, ways: Sequence[Escape], body: EgoBody, elapsed_s: float
    ) -> tuple[Escape | None, int | None]:
        """Return the evasive path until the obstacle is behind, and the row of the obstacle that it certainly avoids.

        None while brakes do, and None where nobody is passed so.
        """
        former = self._memory.escape
        if former is not None and not former.past:
            escape = former.advanced(ways, body.speed_mps * elapsed_s)
        else:
            escape = None if late is None else self._steps.escape(ways, body.left_m)
        certain = late is not None and escape in ways and not (escape and escape.hits)
        return escape, late.lead.row if late is not None and certain else None

    def _aside_m(self, situation: Situation, elapsed_s: float) -> float:
        """Return the offset to the left of the lane's middle, in normal driving."""
        memory, most = self._memory, _SWAYS_MPS * elapsed_s
        memory.aside_m = eased(self._steps.aside_m(situation), memory.aside_m, most)
        return memory.aside_m

    @property
    def _pursuit(self) -> Pursuit:
        if (escape := self._memory.escape) is not None:
            return Pursuit(*(_EVADES if escape.lane == OWN else _CHANGES), self._across_mps2)
        return Pursuit(self.look_ahead_s, *self.look_ahead_m, _MARGIN * self.across_mps2)

    def _command(self, situation: Situation, decision: _Decision, curvature_1pm: float, elapsed_s: float) -> Control:
        """Return the command for an acceleration, with limited jerk, and a curvature."""
        memory, target_mps2 = self._memory, decision.acceleration_mps2
        before = memory.acceleration_mps2
        jerk = self.emergency_jerk_mps3 if decision.emergency or memory.escape else self.jerk_mps3
        acceleration = target_mps2 if before is None else eased(target_mps2, before, jerk * elapsed_s)
        present = situation.odometry.speed_mps if isfinite(situation.odometry.speed_mps) else 0.0
        # Who stands brakes no longer.
        memory.acceleration_mps2 = acceleration if present > 0.0 else max(0.0, acceleration)
        if self.tells == "ackermann":
            steering = round(atan(self.wheelbase_m * curvature_1pm), _DECIMALS)
            speed = round(max(0.0, present + acceleration * elapsed_s), _DECIMALS)
            return self._steps.say(situation, Control(None, steering, speed, round(acceleration, _DECIMALS)))
        # The speed by which the vehicle accelerates so; it holds for one period, in which its own goes on to change.
        speed = max(0.0, present + acceleration * (1.0 / self.speed_gain_1ps + elapsed_s / 2.0))
        yaw_rate = round(present * curvature_1pm, _DECIMALS)
        return self._steps.say(situation, Control(None, speed_mps=round(speed, _DECIMALS), yaw_rate_radps=yaw_rate))
