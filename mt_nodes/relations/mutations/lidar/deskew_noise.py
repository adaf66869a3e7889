# SPDX-License-Identifier: Apache-2.0
"""Sweeps that were de-skewed with a noisy pose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from mt_nodes.base.arrays import Floats, Ints, Singles
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.angle_fields import write_angles
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.lost_returns import azimuth_rad
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

_CUT = 3.0
_SLACK_M, _SLACK = 1e-4, 4e-6
_EDGE = 1e-3


@dataclass(frozen=True)
class DeskewNoisy(EachCloud):
    """Moves each slice of a sweep by its own error, as de-skewing with a noisy pose does.

    The sweep is cut into ``slices`` of azimuth, each of which gets the pose of its instant: p' = R p + t, R of a
    rotation vector and t a shift, both normal in each component and cut at three standard deviations, independent from
    slice to slice. After "motion compensation" of 3D_Corruptions_AD (Y. Dong et al., CVPR 2023: 100 slices, 2 to 10 cm
    and 0.002 to 0.01 rad), which adds its noise to the matrix of a rotation; here a rotation stays one. Guaranteed: by
    the inverse of its slice's error each return is at its old place, within rounding; nothing else changes.
    """

    shift_m: float = param(
        0.02, low=0.0, high=1.0, unit="m", neutral=0.0, help="spread of a slice's shift along an axis"
    )
    turn_deg: float = param(0.1, low=0.0, high=5.0, unit="deg", neutral=0.0, help="spread of its turn about an axis")
    slices: int = param(100, low=2, high=2000, aspect="fixed", help="poses that a sweep is de-skewed with")

    def __post_init__(self) -> None:
        if self.shift_m == self.turn_deg == 0.0:
            raise UsageError("got shift_m 0 and turn_deg 0, expected one of them not to be")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Draw a rotation vector and a shift (slices, 6) for each slice."""
        refuse_whole_numbers(cloud)
        returns(cloud)
        noise = np.clip(rng.standard_normal((self.slices, 6)), -_CUT, _CUT)
        spread = [np.radians(self.turn_deg)] * 3 + [self.shift_m] * 3
        return {"error": (noise * spread).astype(np.float32)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move every return by the error of its slice, in single precision relative to the return's own place."""
        raw, number = cloud.raw.copy(), self._slice_of(cloud)
        points = raw.view(cloud.points.dtype)
        turn = Rotation.from_rotvec(draw["error"][:, :3].astype(np.float64)).as_matrix() - np.eye(3)
        table = np.concatenate([turn, draw["error"][:, 3:, None]], axis=2).astype(np.float32)
        for at in blocks(cloud):
            self._move(points, cloud, at, table, number[at])
        return cloud.with_raw(raw, height=cloud.height)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Apply the inverse errors, by quaternions in double precision, and compare."""
        at = at_rows(old, returns(old))
        if (broken := proof_of_move(old, new, at)) is not None:
            return broken
        before, after = (np.stack(columns(cloud, at), axis=1) for cloud in (old, new))
        turn = (np.angle(before[:, 0] + 1j * before[:, 1]) / (2.0 * np.pi) + 0.5) * self.slices
        slack = _SLACK_M + _SLACK * ranges_m(old, at)
        # Right at the edge of two slices rounding decides which one it is.
        wrong = np.ones(len(before), dtype=bool)
        for by in (0.0, -_EDGE, _EDGE):
            number = np.floor(turn[wrong] + by).astype(np.int64) % self.slices
            wrong[wrong] = self._off_m(before[wrong], after[wrong], draw["error"][number]) > slack[wrong]
            if not wrong.any():
                return None
        return f"{int(wrong.sum())} returns are not where the error of their slice puts them"

    @staticmethod
    def _off_m(before: Floats, after: Floats, error: Singles) -> Floats:
        turn = Rotation.from_rotvec(error[:, :3].astype(np.float64))
        return np.asarray(np.abs(turn.inv().apply(after - error[:, 3:]) - before).max(axis=1))

    @staticmethod
    def _move(points: npt.NDArray[Any], cloud: Cloud, at: At, table: Singles, number: Ints) -> None:
        x, y, z = (np.asarray(cloud.points[name][at], dtype=np.float32) for name in "xyz")
        own = table.take(number, axis=0)
        moved = []
        for i, name in enumerate("xyz"):
            by = own[:, i, 0] * x + own[:, i, 1] * y + own[:, i, 2] * z + own[:, i, 3]
            points[name][at] = cloud.points[name][at] + by
            moved.append(points[name][at].astype(np.float64))
        squares = sum(np.square(c.astype(np.float64)) for c in (x, y, z))
        write_range_fields(points, cloud, at, np.sqrt(sum(m * m for m in moved) / squares))
        write_angles(points, cloud, at)

    def _slice_of(self, cloud: Cloud) -> Ints:
        """Return the number of each point's slice (N,), from behind to the left."""
        with np.errstate(invalid="ignore"):
            turn = (azimuth_rad(cloud) * np.float32(0.5 / np.pi) + np.float32(0.5)) * np.float32(self.slices)
            return np.asarray(np.nan_to_num(turn).astype(np.int64) % self.slices)
