# SPDX-License-Identifier: Apache-2.0
"""Speed and steering of the ego vehicle: from odometry, frames, clouds, or its stack's commands.

Motion of the ego vehicle from its LiDAR alone, by registration of successive clouds.

The method is point-to-plane ICP with a robust kernel (Open3D's ``registration_icp`` with Tukey's kernel): static
surroundings outweigh moving objects. The result counts only if most of a cloud fits and two successive steps agree; in
a jam, where most of the visible scene moves along, it may still be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle, Cloud, Odometry
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, UnknownTransform, move
from mt_nodes.relations.checks.controls import steering_rad
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known, unknown

#: Points used: above the road, whose rings look alike at any place, beyond the vehicle itself, and not far away.
_ABOVE_M, _NEAR_M, _FAR_M = 0.4, 3.0, 50.0
#: Numbers of randomly drawn points: for the planes, and for registration to them.
_PLANES, _LAID = 30_000, 4_000
#: Initial steps to try, in m/s forward, and decreasing correspondence distances.
_TRIED_MPS, _APART_M = (0.0, 8.0, 16.0, 25.0), (1.5, 0.5)
_NORMAL_M, _NORMAL_POINTS, _FITS_M = 0.8, 20, 0.3
#: Share of points near a plane from which a pose counts, and from which no other initial step is tried.
_FITTING, _SURELY = 0.6, 0.9
#: Limits: acceleration between two successive steps, error of a speed, and duration of a step.
_HARDEST_MPS2, _ERROR_MPS, _LONGEST_S = 10.0, 0.2, 0.5
_STEERS_MPS = 1.0


def motion_by_clouds(bundles: Sequence[Bundle]) -> Control | None:
    """Return speed and yaw rate at the middle of a case, rounded to 0.01; None if the clouds do not determine them.

    The yaw rate is NaN at speeds so low that its error would look like steering.
    """
    middle = min(max(len(bundles) // 2, 1), len(bundles) - 2)
    if len(bundles) < 3:
        return None
    clouds = [_around(bundle) for bundle in bundles[middle - 1 : middle + 2]]
    stamps = [bundle.stamp_ns * 1e-9 for bundle in bundles[middle - 1 : middle + 2]]
    steps = []
    for (before, after), (begin, end) in zip(pairwise(clouds), pairwise(stamps), strict=True):
        if before is None or after is None or not 0.0 < end - begin <= _LONGEST_S:
            return None
        if (step := _step(before, after, end - begin)) is None:
            return None
        steps.append(step)
    if abs(steps[0][0] - steps[1][0]) > _ERROR_MPS + _HARDEST_MPS2 * (stamps[2] - stamps[0]) / 2.0:
        return None
    speed, turn = np.mean(steps, axis=0).round(2).tolist()
    return Control(None, speed_mps=speed, yaw_rate_radps=turn if abs(speed) >= _STEERS_MPS else math.nan)


def _around(bundle: Bundle) -> Floats | None:
    """Return (n, 3) points of the first LiDAR in the vehicle's frame; None if there are too few."""
    if not bundle.known_clouds:
        return None
    cloud: Cloud = bundle.known_clouds[0]
    try:
        xyz = move(bundle.transforms.lookup(EGO_FRAME, cloud.frame_id), cloud.xyz)
    except UnknownTransform:
        return None
    with np.errstate(invalid="ignore"):
        away = np.hypot(xyz[:, 0], xyz[:, 1])
        points = xyz[(xyz[:, 2] > _ABOVE_M) & (away > _NEAR_M) & (away < _FAR_M) & np.isfinite(xyz[:, 2])]
    return points if len(points) > 500 else None


def _step(before: Floats, after: Floats, elapsed_s: float) -> tuple[float, float] | None:
    """Return speed and yaw rate from one cloud to the next, None if too few points fit."""
    import open3d as o3d

    target, source = _cloud(before, _PLANES), _cloud(after, _LAID)
    target.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(_NORMAL_M, _NORMAL_POINTS))
    best = None
    for speed in _TRIED_MPS:
        registered = _registered(source, target, speed * elapsed_s)
        best = registered if best is None or registered.fitness > best.fitness else best
        if best.fitness >= _SURELY:
            break
    if best is None or best.fitness < _FITTING:
        return None
    pose = np.asarray(best.transformation)
    turned = math.atan2(pose[1, 0], pose[0, 0])
    forward = math.cos(turned / 2.0) * pose[0, 3] + math.sin(turned / 2.0) * pose[1, 3]
    return float(forward) / elapsed_s, turned / elapsed_s


def _registered(source: Any, target: Any, forward_m: float) -> Any:
    import open3d as o3d

    registration = o3d.pipelines.registration
    pose = np.eye(4)
    pose[0, 3] = forward_m
    for apart_m in _APART_M:
        kernel = registration.TukeyLoss(k=apart_m / 2.0)
        how = registration.TransformationEstimationPointToPlane(kernel)
        pose = registration.registration_icp(source, target, apart_m, pose, how).transformation
    return registration.evaluate_registration(source, target, _FITS_M, pose)


def _cloud(points: Floats, most: int) -> Any:
    import open3d as o3d

    chosen = np.sort(generator(0, "motion_by_clouds", 0, None, most).permutation(len(points))[:most])
    return o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points[chosen]))


NAMES = ("speed_kmh", "steering_rad")
_KMH_PER_MPS = 3.6
#: At or below this speed the vehicle counts as standing.
MOVING_KMH = 2.0
#: A road-wheel angle of 0.1 rad is a bend of 27 m radius, tighter than streets between junctions; 0.03 rad is one of 90
#: m, which counts as straight. Between them it may be either. An assumption.
_TURNS_RAD, _STRAIGHT_RAD = 0.1, 0.03
_FIXED_FRAMES = (MAP_FRAME, "odom")


def ego_motion(bundles: Sequence[Bundle], outputs: Sequence[Output], wheelbase_m: float) -> Facts:
    """Return ``speed_kmh`` and ``steering_rad`` at the middle of a case.

    From speed and yaw rate, steering follows from the single-track model without slip.
    """
    middle = len(bundles) // 2
    ways: tuple[tuple[str, Callable[[], Control | None]], ...] = (
        ("odometry", lambda: _odometry(bundles[middle])),
        ("the way of base_link in transforms", lambda: _moved(bundles)),
        ("LiDAR clouds laid upon each other", lambda: motion_by_clouds(bundles)),
        ("command of the stack", lambda: outputs[middle].control if middle < len(outputs) else None),
    )
    facts: Facts = {}
    for source, way in ways:
        if len(facts) < len(NAMES) and (control := way()) is not None:
            facts = first_known(facts, _facts(control, source, wheelbase_m))
    return first_known(
        facts, dict.fromkeys(NAMES, unknown(f"none of {', '.join(source for source, _ in ways)} says it"))
    )


def manoeuvre(facts: Mapping[str, Fact]) -> Facts:
    """Return whether the ego moves and turns, from speed and steering."""
    derived: Facts = {}
    speed, steering = (facts.get(name, unknown("")) for name in NAMES)
    if speed.known:
        derived["moving"] = Fact(abs(speed.value) > MOVING_KMH, speed.source)
    if steering.known and not _STRAIGHT_RAD < abs(steering.value) < _TURNS_RAD:
        heading = "straight" if abs(steering.value) <= _STRAIGHT_RAD else "left" if steering.value > 0.0 else "right"
        derived["ego_turning"] = Fact(heading != "straight", steering.source)
        derived["ego_turning_left"] = Fact(heading == "left", steering.source)
        derived["ego_turning_right"] = Fact(heading == "right", steering.source)
        derived["ego_heading"] = Fact(heading, steering.source)
    return derived


def _odometry(bundle: Bundle) -> Control | None:
    odometry = next((m.data for m in bundle.world_messages if isinstance(m.data, Odometry)), None)
    return Control(None, speed_mps=odometry.speed_mps, yaw_rate_radps=odometry.yaw_rate_radps) if odometry else None


def _facts(control: Control, source: str, wheelbase_m: float) -> Facts:
    turn = steering_rad(control, wheelbase_m)
    facts = {}
    if math.isfinite(control.speed_mps):
        facts["speed_kmh"] = Fact(_KMH_PER_MPS * control.speed_mps, source)
    if math.isfinite(turn):
        facts["steering_rad"] = Fact(turn, source)
    return facts


def _moved(bundles: Sequence[Bundle]) -> Control | None:
    """Return speed and yaw rate between the first and the last bundle, None if no transform gives the motion."""
    first, last = bundles[0], bundles[-1]
    elapsed_s = (last.stamp_ns - first.stamp_ns) * 1e-9
    moving = {t.child for b in (first, last) for t in b.transforms.transforms if not t.static}
    fixed = next((f for f in _FIXED_FRAMES if f in first.transforms.frames and f in last.transforms.frames), None)
    if elapsed_s <= 0.0 or fixed is None or not moving:
        return None
    try:
        before, after = (b.transforms.lookup(fixed, EGO_FRAME) for b in (first, last))
    except UnknownTransform:
        return None
    step = np.linalg.inv(before) @ after
    turned = math.atan2(step[1, 0], step[0, 0])
    # Along the chord, at its middle heading: forward is positive.
    forward = math.cos(turned / 2.0) * step[0, 3] + math.sin(turned / 2.0) * step[1, 3]
    return Control(None, speed_mps=float(forward) / elapsed_s, yaw_rate_radps=turned / elapsed_s)
