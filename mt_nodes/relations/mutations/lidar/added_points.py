# SPDX-License-Identifier: Apache-2.0
"""Adds points to a cloud, and proves that nothing else changed: shared by mutations that add returns."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.cdr.outgoing import unwritten_points
from mt_nodes.data.messages import Cloud, Points
from mt_nodes.relations.mutations.lidar.angle_fields import angle_fields, proof_of_angles
from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_change, same_bytes
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, empty_returns, write_points

#: Old points are copied run by run if runs are longer than this on average, else point by point.
_RUN = 8


def free_rows(rng: np.random.Generator, cloud: Cloud, count: int) -> Rows:
    """Draw ascending rows (count,): where to insert, or which empty returns of an organised cloud to fill.

    Raises NotApplicable: an organised cloud has too few empty returns.
    """
    if not cloud.organised:
        return np.sort(rng.integers(0, len(cloud) + 1, count))
    empty = np.flatnonzero(empty_returns(cloud))
    if len(empty) < count:
        raise NotApplicable(f"organised {cloud.topic} has {len(empty)} empty returns, {count} are needed")
    return np.sort(rng.choice(empty, count, replace=False))


def with_added(cloud: Cloud, rows: Rows, xyz: Floats, intensity: Points | None) -> Cloud:
    """Return the cloud with points (n, 3) inserted before ascending ``rows`` (n,), or at those of an organised cloud.

    Fields other than coordinates, intensity, range and direction are copied from the previous point (its ring exists,
    times ascend), in an organised cloud from the empty return.
    """
    if cloud.organised:
        raw = cloud.raw.copy()
        write_points(raw.view(cloud.points.dtype), rows, xyz, intensity, cloud)
        return cloud.with_raw(raw, height=cloud.height)
    at = added_rows(cloud, rows)
    few = len(cloud) > _RUN * len(at)
    raw = _parted(cloud, at) if few else cloud.raw.take(_origins(len(cloud), at), mode="clip")
    added = cloud.raw.take(np.maximum(rows - 1, 0))
    write_points(added.view(cloud.points.dtype), slice(None), xyz, intensity, cloud)
    raw[at] = added
    return cloud.with_raw(raw)


def _parted(cloud: Cloud, at: Rows) -> Points:
    """Return points (N + n,) with those of a cloud (N,), in order, everywhere but ``at`` (n,), which is unwritten."""
    parted, old = unwritten_points(cloud, len(cloud) + len(at)), np.ones(len(cloud) + len(at), dtype=bool)
    old[at] = False
    parted[old] = cloud.raw
    return parted


def _origins(count: int, at: Rows) -> Rows:
    """Return for each of (count + n,) points its original, if those ``at`` (n,) repeat the previous one; −1: none."""
    steps = np.ones(count + len(at), dtype=np.int64)
    steps[at] = 0
    steps[:1] -= 1
    return np.cumsum(steps, out=steps)


def added_rows(cloud: Cloud, rows: Rows) -> Rows:
    """Return the rows (n,) in the new cloud of the points added at ``rows``."""
    return rows if cloud.organised else rows + np.arange(len(rows))


def proof_of_addition(old: Cloud, new: Cloud, rows: Rows) -> str | None:
    """Prove that every old point is there, in order, and that only empty returns of an organised cloud were filled."""
    if not old.organised:
        if len(new) != len(old) + len(rows):
            return f"{len(new)} points, expected {len(old)} and {len(rows)} more"
        at = added_rows(old, rows)
        if not same_bytes(np.delete(new.raw, at), old.raw):
            return "an old point was changed, moved or lost"
        return proof_of_angles(old, new, at)
    if len(np.unique(rows)) != len(rows) or not empty_returns(old)[rows].all():
        return "a point was put over an existing return"
    fields = (*"xyz", *old.echo_names, *filter(old.single, RANGE_FIELDS), *angle_fields(old))
    return proof_of_change(old, new, rows, fields) or proof_of_angles(old, new, rows)
