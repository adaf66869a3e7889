# SPDX-License-Identifier: Apache-2.0
"""Refuses clouds with implausible coordinates, before any computation."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud

#: A cloud in its map's frame may be a quarter of the Earth away from the origin; no place is farther away.
MOST_M = 1e7
#: A nearer point that is not the origin is neither a return nor an empty one; a thousandth of a LiDAR's resolution.
LEAST_M = 1e-6


def refuse_implausible(cloud: Cloud) -> None:
    """Refuse returns beyond :data:`MOST_M` or within :data:`LEAST_M` of the origin.

    Squares and ratios of such coordinates exceed the range of floating point, and no proof would hold. Points that are
    not finite, or at the origin, are empty returns and pass.
    Raises NotApplicable: there are such returns.
    """
    with np.errstate(all="ignore"):
        x, y, z = (np.abs(cloud.points[name], dtype=np.result_type(cloud.points[name], np.float32)) for name in "xyz")
        span = np.fmax(np.fmax(x, y, out=x), z, out=x)
    if not len(span) or (np.fmax.reduce(span) <= MOST_M and np.fmin.reduce(span) >= LEAST_M):
        return
    known = np.isfinite(cloud.points["x"]) & np.isfinite(cloud.points["y"]) & np.isfinite(cloud.points["z"])
    implausible = known & (span != 0) & ((span > MOST_M) | (span < LEAST_M))
    if count := int(implausible.sum()):
        point = [float(cloud.points[name][implausible.argmax()]) for name in "xyz"]
        raise NotApplicable(
            f"{count} of {len(cloud)} points of {cloud.topic} are at no place, the first at {point}: "
            f"expected 0, or {LEAST_M:g} to {MOST_M:g} m"
        )
