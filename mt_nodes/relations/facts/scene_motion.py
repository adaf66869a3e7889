# SPDX-License-Identifier: Apache-2.0
"""Motion of the ego vehicle from its LiDAR alone, by registration of successive clouds.

The method is point-to-plane ICP with a robust kernel (Open3D's ``registration_icp`` with Tukey's kernel): static
surroundings outweigh moving objects. The result counts only if most of a cloud fits and two successive steps agree; in
a jam, where most of the visible scene moves along, it may still be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Control
from mt_nodes.data.transforms import EGO_FRAME, UnknownTransform, move

Floats = npt.NDArray[np.float64]

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
