# SPDX-License-Identifier: Apache-2.0
"""A sensor at another pose: one that its calibration does not know of, or one that it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, Transform, TransformTree, move
from mt_nodes.relations.mutations.base import Draw, Followup
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


@dataclass(frozen=True)
class SensorRemounted(ExtrinsicShifted):
    """Turns the LiDAR on its mount and calibrates it anew: returns and transforms change, the world does not.

    p' = M p for every return in the sensor's frame, as of ``extrinsic_shifted``, and T' = T M⁻¹ for the sensor's pose
    in its parent's frame, so that T' p' = T p: in the vehicle's frame each return is where it was. A stack that reads
    the transforms must not notice; one that knows the mount by heart, or by the first message, reports everything
    displaced by M. The viewpoint is taken as unchanged, so that turns are exact and moves are for centimetres. The
    cloud's frame must have a parent; over ROS topics transforms go out as recorded, and such runs are refused.

    Guaranteed: every return of the new cloud is, by the new transform, where it was by the old one, in the parent's
    frame, within rounding; no other transform and nothing else changes.
    """

    about_transforms = True

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Nothing is random; the sensor must have a mount."""
        if _mount(bundle.transforms, cloud) is None:
            raise NotApplicable(f"no transform has '{cloud.frame_id}' of {cloud.topic} as its child frame")
        return super().draw_cloud(rng, bundle, cloud, state)

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Move every cloud and its sensor."""
        made = super().apply(bundle, draw)
        mounts = {c.frame_id: _mount(bundle.transforms, c) for c in bundle.clouds}
        back = np.linalg.inv(self.error)
        tree = bundle.transforms.extended(replace(m, matrix=m.matrix @ back) for m in mounts.values() if m is not None)
        # What is true has changed, and the stack is given what is true.
        remounted = replace(made.first, transforms=tree.given_as(tree))
        return Followup(((0, remounted),), made.effects)

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Compare transforms, clouds, and the places of all returns in the frames of the mounts."""
        broken = super().guarantee(source, followup, draw)
        if broken is not None:
            return broken
        old, new = source.transforms, followup.first.transforms
        frames = {cloud.frame_id.lstrip("/") for cloud in source.clouds}
        if {t.child for t in new.other_than(old)} != frames or {t.child for t in old.other_than(new)} != frames:
            return "other transforms changed than those of the LiDARs"
        if new.given.other_than(new) or len(new.given.transforms) != len(new.transforms):
            return "the stack is given other transforms than the new ones"
        pairs = ((cloud, followup.first.cloud(cloud.topic)) for cloud in source.clouds)
        return next((broken for a, b in pairs if (broken := self._stays(old, new, a, b))), None)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Nothing moves in the vehicle's frame."""
        return Effects()

    def _stays(self, old: TransformTree, new: TransformTree, before: Cloud, after: Cloud) -> str | None:
        was, now = _mount(old, before), _mount(new, after)
        if was is None or now is None or was.parent != now.parent:
            return f"{before.topic}: the sensor has another parent frame, or none"
        off = 0
        for at in blocks(before):
            there, here = (move(m.matrix, np.stack(columns(c, at), 1)) for m, c in ((was, before), (now, after)))
            off += int(
                (np.abs(here - there).max(axis=1) > _SLACK_M + 4.0 * _SLACK * (ranges_m(after, at) + 10.0)).sum()
            )
        return f"{before.topic}: {off} returns moved in frame '{was.parent}'" if off else None


def _mount(tree: TransformTree, cloud: Cloud) -> Transform | None:
    """Return the pose of a cloud's sensor in its parent's frame, None where it has none."""
    return next((t for t in tree.transforms if t.child == cloud.frame_id.lstrip("/")), None)
