# SPDX-License-Identifier: Apache-2.0
"""A sensor at another pose than its calibration says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix
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

_SLACK_M, _SLACK = 1e-5, 1e-6


@dataclass(frozen=True)
class ExtrinsicShifted(EachCloud):
    """Rotates and moves all returns as a rigid body, as an uncalibrated error of the sensor's mount does.

    p' = R p + t in the sensor's frame, R = Rz(yaw) Ry(pitch) Rx(roll), for the true pose of the sensor relative to the
    calibrated one. Transforms stay, which is the error. The viewpoint is taken as unchanged: for centimetres, newly
    visible or hidden parts are below the spacing of the returns. Guaranteed: transformed back, every return is at its
    old place, within rounding. Effects, for a bundle with one cloud: the expected output moves alike.
    """

    roll_deg: float = param(0.0, low=-10.0, high=10.0, unit="deg", neutral=0.0, help="about the sensor's x axis")
    pitch_deg: float = param(
        0.0, low=-10.0, high=10.0, unit="deg", neutral=0.0, help="about its y axis, positive: nose down"
    )
    yaw_deg: float = param(
        0.5, low=-180.0, high=180.0, unit="deg", neutral=0.0, help="about its z axis, positive to the left"
    )
    x_m: float = param(0.0, low=-2.0, high=2.0, unit="m", neutral=0.0, help="ahead")
    y_m: float = param(0.0, low=-2.0, high=2.0, unit="m", neutral=0.0, help="to the left")
    z_m: float = param(0.0, low=-2.0, high=2.0, unit="m", neutral=0.0, help="up")

    random = False

    def __post_init__(self) -> None:
        if np.array_equal(self.error, np.eye(4)):
            raise UsageError("got no rotation and no translation, expected one of them")

    @property
    def error(self) -> Matrix:
        """The 4×4 matrix from true to apparent places of points."""
        matrix = np.eye(4)
        angles = [self.roll_deg, self.pitch_deg, self.yaw_deg]
        matrix[:3, :3] = Rotation.from_euler("xyz", angles, degrees=True).as_matrix()
        matrix[:3, 3] = [self.x_m, self.y_m, self.z_m]
        return matrix

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Nothing is random."""
        refuse_whole_numbers(cloud)
        returns(cloud)
        return {}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move every return."""
        raw = cloud.raw.copy()
        points = raw.view(cloud.points.dtype)
        for at in blocks(cloud):
            x, y, z = columns(cloud, at)
            moved = [a * x + b * y + c * z + shift for a, b, c, shift in self.error[:3].tolist()]
            for name, column in zip("xyz", moved, strict=True):
                points[name][at] = column
            ratio = np.sqrt(sum(m * m for m in moved) / (x * x + y * y + z * z))
            write_range_fields(points, cloud, at, np.asarray(ratio))
            write_angles(points, cloud, at)
        return cloud.with_raw(raw, height=cloud.height)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Transform the follow-up back by the inverse and compare."""
        if (broken := proof_of_move(old, new, at_rows(old, returns(old)))) is not None:
            return broken
        off = sum(self._misplaced(old, new, at) for at in blocks(old))
        return f"{off} returns are not where the shift puts them" if off else None

    def _misplaced(self, old: Cloud, new: Cloud, at: At) -> int:
        x, y, z = columns(new, at)
        slack = _SLACK_M + _SLACK * (ranges_m(new, at) + np.linalg.norm(self.error[:3, 3]))
        off = np.zeros(len(x), dtype=bool)
        for name, (a, b, c, shift) in zip("xyz", np.linalg.inv(self.error)[:3].tolist(), strict=True):
            off |= ~(np.abs(a * x + b * y + c * z + shift - old.points[name][at]) <= slack)
        return int(off.sum())

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Move the expected output alike."""
        if len(bundle.clouds) != 1:
            return Effects()
        return Effects(output_transform=self.error, output_frame_id=bundle.clouds[0].frame_id)
