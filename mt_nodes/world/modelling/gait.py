# SPDX-License-Identifier: Apache-2.0
"""Joints of a person who walks, stands, or sits on a bicycle.

Lengths of segments as shares of the stature: D. A. Winter, "Biomechanics and Motor Control of Human Movement", 4th ed.,
2009, figure 4.1. Angles of hip, knee and ankle over a stride follow the curves of its appendix by eye (assumed to a few
degrees), those of the arms are assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats

#: Angles in degrees over a stride from heel strike to heel strike: flexion of hip and knee, the toes up.
_PHASE = (0.0, 0.12, 0.4, 0.5, 0.6, 0.72, 0.86, 1.0)
_HIP = (25.0, 20.0, -5.0, -12.0, -8.0, 12.0, 27.0, 25.0)
_KNEE = (4.0, 18.0, 5.0, 12.0, 38.0, 60.0, 28.0, 4.0)
_TOES_UP = (4.0, -4.0, 8.0, 4.0, -18.0, -3.0, 2.0, 4.0)
#: Shares of the stature: heights above the sole of hip, shoulder, chin; half widths; lengths of segments.
_HIP_Z, _SHOULDER_Z, _HIP_Y, _SHOULDER_Y = 0.52, 0.812, 0.057, 0.096
_THIGH, _SHIN, _UPPER_ARM, _FOREARM, _HAND, _ANKLE = 0.242, 0.242, 0.178, 0.146, 0.1, 0.039


@dataclass(frozen=True, eq=False)
class Joints:
    """Places (3,) of a person's joints in metres: left and right of each limb, from the trunk outwards.

    Attributes:
        legs: for each side hip, knee, ankle, toe. arms: for each side shoulder, elbow, wrist, fingertips.
        pelvis, chest, neck, head: along the spine; head is the middle of the skull.
    """

    legs: tuple[tuple[Floats, ...], tuple[Floats, ...]]
    arms: tuple[tuple[Floats, ...], tuple[Floats, ...]]
    pelvis: Floats
    chest: Floats
    neck: Floats
    head: Floats


def beside(place: Floats, x_m: float, y_m: float, z_m: float) -> Floats:
    """Return a place (3,) moved by so much ahead, left and up."""
    return np.asarray(place + np.array([x_m, y_m, z_m]))


def walking(stature_m: float, phase: float, vigour: float = 1.0, lean_rad: float = 0.04, wide: float = 1.0) -> Joints:
    """Return the joints of a walker at a phase of the stride, 0 to 1; ``vigour`` 0 is standing still."""
    h = stature_m
    legs = tuple(_leg(h, side, (phase + (0.0 if side > 0 else 0.5)) % 1.0, vigour) for side in (1.0, -1.0))
    lift = np.array([0.0, 0.0, _ANKLE * h - min(leg[2][2] for leg in legs)])
    legs = tuple(_on_ground(tuple(joint + lift for joint in leg), 0.018 * h) for leg in legs)
    pelvis = beside(lift, 0.0, 0.0, _HIP_Z * h)
    spine = np.array([np.sin(lean_rad), 0.0, np.cos(lean_rad)])
    chest, neck = pelvis + 0.2 * h * spine, pelvis + 0.315 * h * spine
    head = neck + 0.103 * h * np.array([np.sin(lean_rad) + 0.12, 0.0, 1.0])
    shoulder = pelvis + (_SHOULDER_Z - _HIP_Z) * h * spine
    arms = tuple(
        _arm(h, side, shoulder, (phase + (0.5 if side > 0 else 0.0)) % 1.0, vigour, wide) for side in (1.0, -1.0)
    )
    return Joints(legs, arms, pelvis, chest, neck, head)  # type: ignore[arg-type]


def _on_ground(leg: tuple[Floats, ...], least_m: float) -> tuple[Floats, ...]:
    """Return a leg whose toes do not sink into the ground: the foot turns about the ankle until they stand on it."""
    ankle, toe = leg[2], leg[3].copy()
    if toe[2] < least_m:
        reach = float(np.linalg.norm(toe - ankle))
        level = np.sqrt(max(reach**2 - (ankle[2] - least_m) ** 2, 0.0))
        toe[:2] = ankle[:2] + (toe - ankle)[:2] * level / max(float(np.linalg.norm((toe - ankle)[:2])), 1e-9)
        toe[2] = least_m
    return (*leg[:3], toe)


def _leg(h: float, side: float, phase: float, vigour: float) -> tuple[Floats, ...]:
    hip, knee, toes = (np.radians(vigour * np.interp(phase, _PHASE, curve)) for curve in (_HIP, _KNEE, _TOES_UP))
    at = np.array([0.0, side * _HIP_Y * h, _HIP_Z * h])
    knee_at = at + _THIGH * h * _down(hip, side * 0.0)
    ankle = knee_at + _SHIN * h * _down(hip - knee, -side * 0.01)
    tilt = hip - knee + toes
    toe = ankle + 0.115 * h * np.array([np.cos(tilt), side * 0.12, np.sin(tilt)]) + 0.024 * h * _down(tilt, 0.0)
    return at, knee_at, ankle, toe


def _arm(h: float, side: float, shoulder: Floats, phase: float, vigour: float, wide: float) -> tuple[Floats, ...]:
    swing = vigour * np.cos(2.0 * np.pi * phase)
    at = beside(shoulder, 0.0, side * _SHOULDER_Y * h * wide, 0.0)
    upper = np.radians(3.0 + 20.0 * swing)
    bend = np.radians(12.0 + 6.0 * vigour + 12.0 * max(swing, -0.4))
    elbow = at + _UPPER_ARM * h * _down(upper, side * 0.14)
    wrist = elbow + _FOREARM * h * _down(upper + bend, side * 0.04)
    return at, elbow, wrist, wrist + 0.8 * _HAND * h * _down(upper + bend + 0.1, -side * 0.03)


def riding(
    hip_m: Floats, hands_m: tuple[Floats, Floats], feet_m: tuple[Floats, Floats], stature_m: float, lean_rad: float
) -> Joints:
    """Return the joints of a rider who sits at ``hip_m``, whose hands and feet are left and right of a vehicle.

    Knees and elbows are where two segments of their lengths reach from end to end.
    """
    h = stature_m
    spine = np.array([np.sin(lean_rad), 0.0, np.cos(lean_rad)])
    chest, neck = hip_m + 0.2 * h * spine, hip_m + 0.3 * h * spine
    head = neck + 0.1 * h * np.array([np.sin(0.6 * lean_rad) + 0.12, 0.0, 1.0])
    legs, arms = [], []
    for side, hand, foot in zip((1.0, -1.0), hands_m, feet_m, strict=True):
        hip = beside(hip_m, 0.0, side * 0.06 * h, -0.02 * h)
        ankle = beside(foot, -0.06 * h, 0.0, 0.05 * h)
        knee = _bend(hip, ankle, _THIGH * h, _SHIN * h, np.array([1.0, side * 0.12, 0.35]))
        legs.append((hip, knee, ankle, beside(foot, 0.05 * h, 0.0, 0.015 * h)))
        shoulder = hip_m + 0.29 * h * beside(spine, 0.0, side * _SHOULDER_Y * h, 0.0)
        wrist = beside(hand, -0.04, 0.0, 0.02)
        elbow = _bend(shoulder, wrist, _UPPER_ARM * h, _FOREARM * h, np.array([-0.2, side * 0.5, -0.8]))
        arms.append((shoulder, elbow, wrist, beside(hand, 0.03, 0.0, -0.01)))
    return Joints((legs[0], legs[1]), (arms[0], arms[1]), hip_m, chest, neck, head)


def _bend(start: Floats, end: Floats, first_m: float, second_m: float, towards: Floats) -> Floats:
    """Return the joint between two segments from start to end, bent ``towards`` a direction; stretched if too far."""
    way = end - start
    away = float(np.linalg.norm(way))
    along = way / away
    share = (
        (first_m**2 - second_m**2 + away**2) / (2.0 * away)
        if away < first_m + second_m
        else first_m / (first_m + second_m) * away
    )
    side = towards - (towards @ along) * along
    rise = np.sqrt(max(first_m**2 - share**2, 0.0))
    return np.asarray(start + share * along + rise * side / np.linalg.norm(side))


def _down(forward_rad: float, outward: float) -> Floats:
    """Return the unit vector (3,) down, turned forward about y, and a little to the side."""
    along = np.array([np.sin(forward_rad), outward, -np.cos(forward_rad)])
    return np.asarray(along / np.linalg.norm(along))
