# SPDX-License-Identifier: Apache-2.0
"""Calibration errors of individual beams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.angle_fields import write_angles
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.rays import (
    At,
    at_rows,
    blocks,
    columns,
    proof_of_move,
    ranges_m,
    refuse_whole_numbers,
    returns,
    write_range_fields,
)
from mt_nodes.world.scene.beams import MOST_ROWS
from mt_nodes.world.scene.scan_lines import lasers_of

_CUT = 3.0
#: Rounding of single-precision coordinates and angles, far below any beam's width.
_ANGLE_SLACK_RAD, _RANGE_SLACK = 1e-5, 1e-6
#: Least horizontal distance, for points straight above or below the sensor.
_NO_GROUND_M = 1e-9


@dataclass(frozen=True)
class BeamsMiscalibrated(EachCloud):
    """Rotates and shifts each beam by its own error in elevation, azimuth and range.

    A multi-beam LiDAR converts counts to coordinates by a table of angles and a range offset for each laser; the errors
    of that table last as long as the calibration, so they are drawn once per segment: normal, cut at three standard
    deviations. Evidence for such errors: C. Glennie, D. D. Lichti, "Static Calibration and Analysis of the Velodyne
    HDL-64E S2 for High Accuracy Mobile Scanning", Remote Sensing 2(6), 2010, whose own calibration left a third of the
    factory's residuals; the sizes here are assumed, a tenth of the beams' spacing and half of the range accuracy. With
    errors e, a, r of the beam: elevation + e, azimuth + a, range + r. Guaranteed: every return of a ring changes by the
    ring's own offsets, within rounding. A return of unknown ring stays.
    """

    elevation_sigma_deg: float = param(
        0.03, low=0.0, high=2.0, unit="deg", neutral=0.0, help="standard deviation between beams"
    )
    azimuth_sigma_deg: float = param(
        0.03, low=0.0, high=2.0, unit="deg", neutral=0.0, help="standard deviation between beams"
    )
    range_sigma_m: float = param(
        0.01, low=0.0, high=0.5, unit="m", neutral=0.0, help="standard deviation between beams"
    )

    random = False

    def __post_init__(self) -> None:
        if self.elevation_sigma_deg == self.azimuth_sigma_deg == self.range_sigma_m == 0.0:
            raise UsageError("got no error in elevation, azimuth or range, expected one at least")

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Floats:
        """Draw the calibration (256, 3): elevation, azimuth, range of each beam in standard deviations."""
        return np.clip(rng.standard_normal((MOST_ROWS, 3)), -_CUT, _CUT)

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Assign offsets to the rings: radians up, radians to the left, metres outwards, under ``offsets`` (K, 3)."""
        refuse_whole_numbers(cloud)
        sigma = [np.radians(self.elevation_sigma_deg), np.radians(self.azimuth_sigma_deg), self.range_sigma_m]
        return {"offsets": state[: len(lasers_of(cloud).rings)] * sigma}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Rotate every return by its ring's angles, from tables of their sines and cosines."""
        raw = cloud.raw.copy()
        points, beams = raw.view(cloud.points.dtype), lasers_of(cloud)
        up, left, out = _table(draw)
        tables = np.cos(up), np.sin(up), np.cos(left), np.sin(left), out
        for at in blocks(cloud):
            x, y, z = columns(cloud, at)
            cos_up, sin_up, cos_left, sin_left, out_m = (table[beams.place[at]] for table in tables)
            ground = np.sqrt(x * x + y * y)
            # A point straight above or below has no azimuth: it counts as ahead.
            x, ground = np.where(ground > 0.0, x, _NO_GROUND_M), np.maximum(ground, _NO_GROUND_M)
            # A range offset never moves a return behind the sensor.
            ratio = np.maximum(1.0 + out_m / np.sqrt(ground * ground + z * z), 0.5)
            outwards = ratio * (cos_up - sin_up * z / ground)
            points["x"][at] = outwards * (cos_left * x - sin_left * y)
            points["y"][at] = outwards * (sin_left * x + cos_left * y)
            points["z"][at] = ratio * (cos_up * z + sin_up * ground)
            write_range_fields(points, cloud, at, ratio)
            write_angles(points, cloud, at)
        return cloud.with_raw(raw, height=cloud.height)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure angles and ranges of both clouds by arc tangents, and compare their differences."""
        if (broken := proof_of_move(old, new, at_rows(old, returns(old)))) is not None:
            return broken
        sigma = [np.radians(self.elevation_sigma_deg), np.radians(self.azimuth_sigma_deg), self.range_sigma_m]
        if (np.abs(draw["offsets"]) > _CUT * np.array(sigma) + 1e-12).any():
            return "an offset drawn is beyond three standard deviations"
        place = lasers_of(old).place
        off = sum(_misplaced(old, new, at, _table(draw)[:, place[at]]) for at in blocks(old))
        return f"{off} returns are not where their beams' offsets put them" if off else None


def _table(draw: Draw) -> Floats:
    """Return the offsets (3, K + 1) by ring: up, left, outwards; the last column is zero, for an unknown ring."""
    return np.asarray(np.append(draw["offsets"], np.zeros((1, 3)), axis=0).T)


def _misplaced(old: Cloud, new: Cloud, at: At, expected: Floats) -> int:
    before, after = _measured(old, at), _measured(new, at)
    up = before[0] + expected[0]
    over = np.abs(up) > np.pi / 2.0
    # A beam rotated beyond the vertical comes down on the other side.
    up = np.where(over, np.copysign(np.pi, up) - up, up)
    off = np.abs(after[0] - up) > _ANGLE_SLACK_RAD
    aside = after[1] - before[1] - expected[1] - np.pi * over
    # Straight up, azimuth has no meaning: compare the horizontal arc.
    arc = np.abs(aside - 2.0 * np.pi * np.rint(aside / (2.0 * np.pi))) * np.cos(before[0])
    moved_m = np.maximum(before[2] + expected[2], 0.5 * before[2])
    off |= (arc > _ANGLE_SLACK_RAD) | (np.abs(after[2] - moved_m) > 1e-6 + _RANGE_SLACK * before[2])
    return int(off.sum())


def _measured(cloud: Cloud, at: At) -> tuple[Any, Any, Floats]:
    """Return elevation and azimuth in single precision and range in double, each (n,)."""
    x, y, z = (np.ascontiguousarray(cloud.points[name][at], dtype=np.float32) for name in "xyz")
    return np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x), ranges_m(cloud, at)
