# SPDX-License-Identifier: Apache-2.0
"""A cloud to which later ones are registered, by distances from point to plane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import MtError
from mt_nodes.base.open3d_late import open3d
from mt_nodes.data.transforms import Matrix, move

#: Only nearer points are used, one in each voxel of this size.
_REACH_M, _VOXEL_M = 50.0, 0.4
#: Normals are those of planes through so many neighbours at most, within so many metres.
_NORMAL_M, _NEIGHBOURS = 1.2, 30
#: Largest distances of pairs in the two stages of ICP, and the scale of Tukey's weights.
_PAIRS_M, _TUKEY_M, _ITERATIONS = (0.5, 0.2), 0.1, 20
#: A surface tells how far the LiDAR moved ahead if its normal's share along the way is at least this: walls along the
#: road and the ground look alike from anywhere (N. Gelfand et al., Geometrically Stable Sampling, 3DIM 2003).
_ALONG = 0.6
#: Fewest points of such surfaces, and of all that are registered with them.
_FEWEST, _LEAST_SAMPLE = 60, 1500
#: A place ahead is looked for at these changes of speed, in steps of so many metres.
_SLOWEST_MPS, _FASTEST_MPS, _STEP_M, _STEP_PAIRS_M = -5.0, 45.0, 0.25, 0.3


class LostTrack(MtError):
    """A cloud fits none before it, or does not show how far the LiDAR moved: the text says which."""


@dataclass(frozen=True, eq=False)
class Keyframe:
    """The points of a cloud for registration.

    Attributes:
        cloud: Open3D cloud of its points, one in each voxel. sample: some of them, balanced, to be registered.
        along: (n, 3) those of them that tell the motion ahead.
        upright: (m, 3) those above the ground. forward: (3,) unit vector ahead. pose: (4, 4) to the first frame.
    """

    cloud: Any
    sample: Any
    along: Floats
    upright: Floats
    forward: Floats
    pose: Matrix

    @classmethod
    def of(cls, xyz: Floats, above: Any, forward: Floats) -> Keyframe:
        """Take points (n, 3), of which those of a mask or slice are above the ground."""
        upright = _downsampled(xyz[above])
        upright.estimate_normals(open3d().geometry.KDTreeSearchParamHybrid(_NORMAL_M, _NEIGHBOURS))
        points, normals = np.asarray(upright.points), np.asarray(upright.normals)
        along = points[np.abs(normals @ forward) >= _ALONG]
        cloud = _downsampled(xyz)
        return cls(cloud, _balanced(np.asarray(cloud.points), along), along, points, forward, np.eye(4))

    def placed(self, pose: Matrix) -> Keyframe:
        """Return it at a pose (4, 4), ready for others to be registered to it."""
        self.cloud.estimate_normals(open3d().geometry.KDTreeSearchParamHybrid(_NORMAL_M, _NEIGHBOURS))
        return replace(self, pose=pose)

    def refined(self, frame: Keyframe, pose: Matrix) -> Matrix:
        """Return the pose (4, 4) of a frame in this one by point-to-plane ICP, from a guess of it."""
        registration = open3d().pipelines.registration
        estimation = registration.TransformationEstimationPointToPlane(registration.TukeyLoss(k=_TUKEY_M))
        until = registration.ICPConvergenceCriteria(1e-6, 1e-6, _ITERATIONS)
        for pairs_m in _PAIRS_M:
            result = registration.registration_icp(frame.sample, self.cloud, pairs_m, pose, estimation, until)
            pose = np.asarray(result.transformation)
        return pose

    def share_met(self, frame: Keyframe, pose: Matrix, within_m: float) -> float:
        """Return the share of a frame's points that tell its motion which have a neighbour here, at a pose (4, 4).

        Raises LostTrack: it has too few.
        """
        if len(frame.along) < _FEWEST:
            raise LostTrack(f"only {len(frame.along)} points show how far the ego moves: all else runs along its way")
        distance_m, _ = self._tree.query(move(pose, frame.along), distance_upper_bound=within_m)
        return float(np.isfinite(distance_m).mean())

    def guesses(self, frame: Keyframe, poses: Sequence[Matrix], gap_s: float) -> Iterator[Matrix]:
        """Yield poses (4, 4) of a frame in this one to begin from: those given, then the best ahead of the last."""
        yield from poses
        low_m, high_m = _SLOWEST_MPS * gap_s, _FASTEST_MPS * gap_s
        steps = (poses[-1] @ _ahead(float(step), self.forward) for step in np.arange(low_m, high_m + _STEP_M, _STEP_M))
        yield max(steps, key=lambda pose: self.share_met(frame, pose, _STEP_PAIRS_M))

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree  # slow to import, and only registration needs it

        return cKDTree(self.upright)


def _ahead(step_m: float, forward: Floats) -> Matrix:
    pose = np.eye(4)
    pose[:3, 3] = step_m * forward
    return pose


def _downsampled(xyz: Floats) -> Any:
    near = xyz[np.einsum("ij,ij->i", xyz, xyz) < _REACH_M**2]
    geometry, vector = open3d().geometry, open3d().utility.Vector3dVector
    return geometry.PointCloud(vector(near)).voxel_down_sample(_VOXEL_M)


def _balanced(points: Floats, along: Floats) -> Any:
    """Return a cloud of the points that tell the motion ahead, and twice as many of all: else walls outvote them.

    Selection by normals as in S. Rusinkiewicz, M. Levoy, Efficient Variants of the ICP Algorithm, 3DIM 2001.
    """
    every = max(1, len(points) // max(2 * len(along), _LEAST_SAMPLE))
    rows = np.concatenate([along, points[::every]])
    return open3d().geometry.PointCloud(open3d().utility.Vector3dVector(rows))
