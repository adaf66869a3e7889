# SPDX-License-Identifier: Apache-2.0
"""Motion of a radar from its own detections: what stands still tells how fast the sensor goes.

Source: D. Kellner, M. Barjenbruch, J. Klappstein, J. Dickmann, K. Dietmayer, Instantaneous Ego-Motion Estimation using
Doppler Radar, ITSC 2013.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.data.radar import Radar

#: Pairs of detections that are tried, and how far a range rate may be from that of a standing target.
_TRIES, _TOLERANCE_MPS = 100, 0.3
#: Fewer standing detections, or a smaller share of all, tell no motion (assumed).
_LEAST, _LEAST_SHARE = 8, 0.25


@dataclass(frozen=True, eq=False)
class SensorMotion:
    """Velocity (2,) of the sensor over the ground in m/s, ahead and to the left, and which detections (N,) stand."""

    velocity_mps: Floats
    standing: Mask


def directions(radar: Radar) -> Floats:
    """Return the horizontal parts (N, 2) of the unit vectors to the detections."""
    _, azimuth, elevation = radar.polar
    return np.column_stack([np.cos(azimuth), np.sin(azimuth)]) * np.cos(elevation)[:, None]


def sensor_motion(radar: Radar) -> SensorMotion | None:
    """Return the motion that most detections agree with: range rate = −v · direction; None where too few agree.

    The same detections give the same result: the pairs that are tried depend on their number alone.
    """
    ray, rate = directions(radar), radar.doppler_mps
    if len(ray) < _LEAST:
        return None
    pairs = np.random.default_rng(0).integers(len(ray), size=(_TRIES, 2))
    first, second = ray[pairs[:, 0]], ray[pairs[:, 1]]
    across = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    usable = np.flatnonzero(np.abs(across) > 0.1)
    a, b, c = first[usable], second[usable], across[usable]
    p, q = -rate[pairs[usable, 0]], -rate[pairs[usable, 1]]
    guesses = np.column_stack([p * b[:, 1] - q * a[:, 1], q * a[:, 0] - p * b[:, 0]]) / c[:, None]
    agree = np.abs(guesses @ ray.T + rate) <= _TOLERANCE_MPS
    if not len(agree):
        return None
    standing = agree[int(agree.sum(axis=1).argmax())]
    if standing.sum() < max(_LEAST, _LEAST_SHARE * len(ray)):
        return None
    velocity = np.linalg.lstsq(ray[standing], -rate[standing], rcond=None)[0]
    return SensorMotion(velocity, np.abs(ray @ velocity + rate) <= _TOLERANCE_MPS)
