# SPDX-License-Identifier: Apache-2.0
"""Speed and steering of the ego vehicle: from odometry, frames, clouds, or its stack's commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mt_nodes.data.messages import Bundle, Odometry
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, UnknownTransform
from mt_nodes.relations.checks.controls import steering_rad
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known, unknown
from mt_nodes.relations.facts.scene_motion import motion_by_clouds

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
