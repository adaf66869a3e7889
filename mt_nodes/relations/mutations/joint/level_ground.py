# SPDX-License-Identifier: Apache-2.0
"""The ground of a cloud as a plane."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.joint.echoes import rows_at
from mt_nodes.relations.mutations.lidar.rays import blocks, columns, ranges_m, returns
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.world.scene.placement_solver import NoRoom, ground_plane

_NEAR_M, _SAMPLE = 30.0, 4000
#: With less than this share of nearby returns on the plane, it is not the ground under the vehicle.
_LEAST_SHARE = 0.1


def plane_of(bundle: Bundle, cloud: Cloud, ego_frame_id: str, tolerance_m: float) -> Floats:
    """Return the ground (4,): its unit normal in the cloud's frame, and the height of that frame's origin over it.

    Raises NotApplicable: the nearby returns show no ground, or the sensor's mount is unknown.
    """
    rows = returns(cloud)
    near = rows[ranges_m(cloud, rows) < _NEAR_M]
    near = near[:: 1 + len(near) // _SAMPLE]
    to_ego = ego_from(bundle, cloud.frame_id, ego_frame_id, cloud.topic)
    try:
        height, slope_x, slope_y = ground_plane(move(to_ego, cloud.xyz[near].astype(np.float64)), (0.0, 0.0))
    except NoRoom as reason:
        raise NotApplicable(f"the {len(near)} returns of {cloud.topic} nearby are {reason}") from reason
    up = np.array([-slope_x, -slope_y, 1.0])
    plane = np.array([*(up @ to_ego[:3, :3]), to_ego[2, 3] - height - np.dot((slope_x, slope_y), to_ego[:2, 3])])
    plane /= np.linalg.norm(up)
    share = float(np.mean(np.abs(np.stack(columns(cloud, near)).T @ plane[:3] + plane[3]) <= tolerance_m))
    if share < _LEAST_SHARE or plane[3] <= tolerance_m:
        raise NotApplicable(
            f"no ground in {cloud.topic}: {share:.0%} of the returns within {_NEAR_M:g} m lie on a plane "
            f"{plane[3]:.2f} m below the sensor, expected {_LEAST_SHARE:.0%} and more than {tolerance_m:g} m"
        )
    return np.asarray(plane)


def on_plane(cloud: Cloud, plane: Floats, tolerance_m: float) -> tuple[Rows, Floats, Floats]:
    """Return the rows (n,) of returns on a plane (4,), their ranges and cosines of incidence (n,)."""
    parts = [_part(rows_at(cloud, at), columns(cloud, at), plane, tolerance_m) for at in blocks(cloud)]
    rows, range_m, cosine = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, range_m, cosine


def _part(
    rows: Rows, xyz: tuple[Floats, Floats, Floats], plane: Floats, tolerance_m: float
) -> tuple[Rows, Floats, Floats]:
    below_m = sum(column * along for column, along in zip(xyz, plane[:3].tolist(), strict=True))
    near = np.abs(below_m + plane[3]) <= tolerance_m
    range_m = np.sqrt(sum(column[near] ** 2 for column in xyz))
    return rows[near], range_m, np.minimum(np.abs(below_m[near]) / range_m, 1.0)
