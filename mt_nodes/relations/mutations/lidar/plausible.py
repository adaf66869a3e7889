# SPDX-License-Identifier: Apache-2.0
"""Clouds whose numbers are no coordinates: refused before anything is computed of them."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud

#: A cloud in its map's frame may be a quarter of the Earth away from the origin; what is farther is no place.
MOST_M = 1e7
#: Nearer, and not at the origin itself, is neither a return nor an empty one; a thousandth of what LiDARs resolve.
LEAST_M = 1e-6


def refuse_implausible(cloud: Cloud) -> None:
    """Make sure that returns are somewhere: neither beyond :data:`MOST_M` nor within :data:`LEAST_M` of the origin.

    Beyond these, squares and ratios of coordinates leave what floating point can hold, and no proof would hold either.
    Points that are not finite, or at the origin, are empty returns and nobody's concern here.

    Raises:
        NotApplicable: some are not.
    """
    with np.errstate(all="ignore"):
        x, y, z = (np.abs(cloud.points[name], dtype=np.result_type(cloud.points[name], np.float32)) for name in "xyz")
        span = np.fmax(np.fmax(x, y, out=x), z, out=x)
    if not len(span) or (np.fmax.reduce(span) <= MOST_M and np.fmin.reduce(span) >= LEAST_M):
        return
    known = np.isfinite(cloud.points["x"]) & np.isfinite(cloud.points["y"]) & np.isfinite(cloud.points["z"])
    astray = known & (span != 0) & ((span > MOST_M) | (span < LEAST_M))
    if count := int(astray.sum()):
        point = [float(cloud.points[name][astray.argmax()]) for name in "xyz"]
        raise NotApplicable(
            f"{count} of {len(cloud)} points of {cloud.topic} are at no place, the first at {point}: "
            f"expected 0, or {LEAST_M:g} to {MOST_M:g} m"
        )
