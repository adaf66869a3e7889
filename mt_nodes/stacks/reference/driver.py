# SPDX-License-Identifier: Apache-2.0
"""A LiDAR driver: follows the vehicle ahead, brakes in emergencies, and keeps to the middle of the free lane."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from mt_nodes.base import params
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control, Diagnostics, Output, Path
from mt_nodes.stacks.reference.car_following import Following, Lead, eased
from mt_nodes.stacks.reference.faults.base import Points, named_faults
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps
from mt_nodes.stacks.reference.lane_room import Corridor
from mt_nodes.stacks.reference.tracker import NOMINAL_PERIOD_S, Tracker

_DECIMALS = 6
_KINDS = ("lidar", "driver")
_PATH_M, _PATH_STEP_M = 20.0, 1.0


@dataclass
class _Memory:
    """State of the driver between clouds; the integral is in metres times seconds.

    Without an acceleration it takes over just now, and need not ease anything.
    """

    speed_mps: float
    stamp_ns: int | None = None
    acceleration_mps2: float | None = None
    off_m: float = 0.0
    integral: float = 0.0
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, eq=False)
class Driver:
    """Commands speed and yaw rate from the obstacles of the reference tracker, cloud by cloud.

    Open loop: of its own speed it knows what it commanded, from ``start_mps`` on, over the time between stamps; how
    fast a gap shrinks it sees. Speed and steering forget: two drivers who see the same are alike again after some
    seconds. The same clouds in the same order give the same commands; after a jump of time it starts anew, as the
    tracker does, and of an instant that comes again it says what it said.
    """

    frame_id: str = param("base_link", help="frame of the points given: on the road, x forward, y left, z up")
    sees: dict[str, Any] = param({}, help="parameters of the reference tracker by which it sees")
    sure_score: float = param(0.7, low=0.0, high=1.0, help="who is seen so clearly is reckoned with at once")
    curvature_1pm: float = param(0.0, low=-0.1, high=0.1, unit="1/m", help="of its lane, positive to the left")
    half_width_m: float = param(1.0, low=0.5, high=3.0, unit="m", help="so near to its middle one is in the way")
    free_half_m: float = param(1.9, low=0.5, high=5.0, unit="m", help="room to either side that is enough")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of base_link")
    look_ahead_m: float = param(8.0, low=2.0, high=30.0, unit="m", help="where steering aims")
    far_m: float = param(20.0, low=5.0, high=60.0, unit="m", help="what stands so far ahead is not steered by yet")
    wheelbase_m: float = param(2.7, low=1.0, high=8.0, unit="m", help="between the axles")
    start_mps: float = param(8.0, low=0.0, high=40.0, unit="m/s", help="speed at which it takes over")
    cruise_mps: float = param(10.0, low=1.0, high=40.0, unit="m/s", help="speed on a free road")
    time_gap_s: float = param(1.0, low=0.3, high=5.0, unit="s", help="kept behind others")
    standstill_m: float = param(2.0, low=0.5, high=10.0, unit="m", help="kept behind others in a queue")
    acceleration_mps2: float = param(1.4, low=0.1, high=5.0, unit="m/s²", help="largest")
    braking_mps2: float = param(2.0, low=0.1, high=8.0, unit="m/s²", help="comfortable")
    emergency_s: float = param(1.5, low=0.0, high=5.0, unit="s", help="with less time to a collision it brakes fully")
    emergency_mps2: float = param(8.0, low=1.0, high=12.0, unit="m/s²", help="of all brakes")
    jerk_mps3: float = param(10.0, low=0.5, high=100.0, unit="m/s³", help="largest change of the acceleration")
    emergency_jerk_mps3: float = param(50.0, low=0.5, high=500.0, unit="m/s³", help="of all brakes")
    steadies_s: float = param(0.3, low=0.01, high=10.0, unit="s", help="time over which the free lane is averaged")
    integral_gain: float = param(0.02, low=0.0, high=1.0, help="steering in rad for a metre of offset in a second")
    forgets_s: float = param(2.0, low=0.1, high=60.0, unit="s", help="time in which the integral fades to a third")
    most_integral: float = param(2.0, low=0.0, high=100.0, help="largest integral, in metres times seconds")
    most_steering_rad: float = param(0.5, low=0.05, high=1.0, unit="rad", help="lock of the wheels")
    tells: str = param(
        "twist",
        choices=("twist", "ackermann"),
        help="speed and yaw rate; or speed, acceleration and the angle of the wheels, for messages that carry them",
    )
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, *_KINDS),
        help="names of faults to plant, or {name: {parameter: value}}; those of LiDAR stacks go to the tracker",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", *_KINDS))

    def __call__(self, points: Points, stamp_ns: int | None = None, now_ns: int | None = None) -> Output:
        """Return ``detections``, ``control`` (as ``tells`` says) and ``path`` to the middle of the free lane.

        ``diagnostics`` tell of an error where a cloud has no point.
        ``points``: (N, 4) x, y, z, intensity in ``frame_id``. ``stamp_ns``: of the cloud; without one it is taken to
        follow 0.1 s after the one before. ``now_ns``: only some faults of the tracker look at it.
        Raises ValueError: the points have another shape.
        """
        elapsed_s = self._elapsed_s(stamp_ns)
        if elapsed_s != 0.0:  # the same instant again tells nothing new
            self._memory.output = self._decided(points, stamp_ns, now_ns, elapsed_s)
        return self._steps.say(points, stamp_ns, self._memory.output)

    def reset(self) -> None:
        """Forget everything."""
        self._tracker.reset()
        self.__dict__.pop("_memory", None)

    def _decided(self, points: Points, stamp_ns: int | None, now_ns: int | None, elapsed_s: float) -> Output:
        steps = self._steps
        obstacles = self._tracker(points, stamp_ns, now_ns)
        if isinstance(obstacles, Output):  # silent by a fault of the tracker
            return obstacles
        scene = steps.look(DriverScene(points, obstacles, self._corridor.extents(obstacles)))
        speed = self._speed_mps(scene, steps.lead(scene), elapsed_s)
        off_m = self._off_m(scene, elapsed_s)
        control = self._command(speed, self._steering_rad(off_m, elapsed_s))
        health = Diagnostics({} if len(points) else {"lidar": "a cloud without a point"})
        return Output(detections=obstacles, control=control, path=self._path(off_m), diagnostics=health)

    @cached_property
    def _tracker(self) -> Tracker:
        planted = [fault for fault in self.faults if fault.stack == "lidar"]
        given = {"sure_score": self.sure_score, **self.sees, "frame_id": self.frame_id, "faults": planted}
        return params.build(Tracker, given, "sees")

    @cached_property
    def _memory(self) -> _Memory:
        return _Memory(self.start_mps)

    @cached_property
    def _corridor(self) -> Corridor:
        return Corridor(
            self.curvature_1pm, self.half_width_m, self.free_half_m, self.front_m, self.look_ahead_m, self.far_m
        )

    @cached_property
    def _following(self) -> Following:
        return Following(
            self.time_gap_s,
            self.standstill_m,
            self.acceleration_mps2,
            self.braking_mps2,
            self.emergency_s,
            self.emergency_mps2,
            self.jerk_mps3,
            self.emergency_jerk_mps3,
        )

    @cached_property
    def _steps(self) -> DriverSteps:
        corridor = self._corridor
        honest = DriverSteps(
            look=lambda scene: scene,
            lead=lambda scene: corridor.lead(scene.obstacles, scene.extents_m),
            room=lambda scene: corridor.room(scene.extents_m),
            cruise_mps=lambda scene: self.cruise_mps,
            elapsed_s=lambda elapsed_s: elapsed_s,
            after_pause=lambda integral, off_m, pause_s: 0.0,
            eased=eased,
            say=lambda cloud, stamp_ns, output: output,
        )
        planted: list[DriverFault] = [fault for fault in self.faults if fault.stack == "driver"]
        return reduce(lambda steps, fault: fault.plant(steps), planted, honest)

    def _elapsed_s(self, stamp_ns: int | None) -> float:
        """Return the time since the previous cloud; after a jump in time the driver starts anew."""
        memory = self._memory
        unknown = stamp_ns is None or memory.stamp_ns is None
        elapsed = NOMINAL_PERIOD_S if unknown else (stamp_ns - memory.stamp_ns) * 1e-9  # type: ignore[operator]
        if not 0.0 <= elapsed <= self._tracker.max_gap_s:
            memory.integral = self._steps.after_pause(memory.integral, memory.off_m, elapsed)
            memory.speed_mps, memory.acceleration_mps2, memory.off_m = self.start_mps, None, 0.0
            elapsed = NOMINAL_PERIOD_S
        memory.stamp_ns = stamp_ns
        return self._steps.elapsed_s(elapsed)

    def _speed_mps(self, scene: DriverScene, lead: Lead | None, elapsed_s: float) -> float:
        """Return the new speed: the previous one plus the acceleration."""
        memory, law = self._memory, self._following
        target_mps2 = law.wanted_mps2(memory.speed_mps, self._steps.cruise_mps(scene), lead)
        before, most = memory.acceleration_mps2, law.most_change_mps2(lead, elapsed_s)
        acceleration = target_mps2 if before is None else self._steps.eased(target_mps2, before, most)
        memory.speed_mps = max(0.0, memory.speed_mps + acceleration * elapsed_s)
        # Who stands brakes no longer.
        memory.acceleration_mps2 = acceleration if memory.speed_mps > 0.0 else max(0.0, acceleration)
        return memory.speed_mps

    def _off_m(self, scene: DriverScene, elapsed_s: float) -> float:
        """Return the offset of the middle of the free lane, positive left, smoothed because boxes beside it flicker."""
        right, left = self._steps.room(scene)
        weight = float(np.exp(-elapsed_s / self.steadies_s))
        self._memory.off_m = weight * self._memory.off_m + (1.0 - weight) * (left - right) / 2.0
        return self._memory.off_m

    def _steering_rad(self, off_m: float, elapsed_s: float) -> float:
        """Return the road-wheel angle for a path ``off_m`` to the left, by a PI controller.

        The proportional part is pure pursuit: the arc that leaves straight ahead and meets a point at distance l, y to
        the left, has curvature 2 y / l² (R. C. Coulter, Implementation of the Pure Pursuit Path Tracking Algorithm,
        Carnegie Mellon, 1992). The integral fades and is limited, so that it does not wind up where steering moves
        nothing, as in open loop.
        """
        memory = self._memory
        weight = float(np.exp(-elapsed_s / self.forgets_s))
        integral = weight * memory.integral + (1.0 - weight) * self.forgets_s * off_m
        memory.integral = float(np.clip(integral, -self.most_integral, self.most_integral))
        curvature = self.curvature_1pm + 2.0 * off_m / self.look_ahead_m**2
        steering = float(np.arctan(self.wheelbase_m * curvature)) + self.integral_gain * memory.integral
        return float(np.clip(steering, -self.most_steering_rad, self.most_steering_rad))

    def _command(self, speed_mps: float, steering_rad: float) -> Control:
        """Return the command for speed and steering, with the acceleration that leads to that speed."""
        speed = round(speed_mps, _DECIMALS)
        if self.tells == "twist":
            yaw_rate = speed_mps * float(np.tan(steering_rad)) / self.wheelbase_m
            return Control(None, speed_mps=speed, yaw_rate_radps=round(yaw_rate, _DECIMALS))
        acceleration = round(self._memory.acceleration_mps2 or 0.0, _DECIMALS)
        return Control(None, round(steering_rad, _DECIMALS), speed, acceleration)

    def _path(self, off_m: float) -> Path:
        """Return the path along the lane that shifts by ``off_m`` to the left up to the look-ahead point."""
        x = np.arange(0.0, _PATH_M + _PATH_STEP_M / 2.0, _PATH_STEP_M)
        share = np.clip(x / self.look_ahead_m, 0.0, 1.0)
        swing = share * share * (3.0 - 2.0 * share)
        slope = 6.0 * share * (1.0 - share) / self.look_ahead_m
        y = self.curvature_1pm * x * x / 2.0 + off_m * swing
        pose = np.column_stack([x, y, np.arctan(self.curvature_1pm * x + off_m * slope)])
        return Path.make(self.frame_id, None, pose.round(_DECIMALS))
