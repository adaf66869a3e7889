# SPDX-License-Identifier: Apache-2.0
"""When within its sweep each point of a cloud was measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud

Floats = npt.NDArray[np.float64]
TIME_FIELDS = ("time", "t", "timestamp", "time_stamp", "offset_time")
#: A sweep takes 0.02 to 0.5 s; so the span of a time field gives its unit.
SWEEP_S = (0.02, 0.5)
_UNITS_S = (1.0, 1e-6, 1e-9)


def time_field(cloud: Cloud) -> str | None:
    """Return the name of the field with a time of each point, None where there is none."""
    return next(filter(cloud.single, TIME_FIELDS), None)


def time_unit_s(span: float) -> float | None:
    """Return the unit in seconds in which a span of a time field is a sweep; None: in none."""
    return next((unit for unit in _UNITS_S if SWEEP_S[0] <= span * unit <= SWEEP_S[1]), None)


def sweep_shares(cloud: Cloud) -> Floats | None:
    """Return when each point (N,) was measured, 0 for the begin of the sweep, 1 for its end; None where unknown."""
    name = time_field(cloud)
    if name is None or not len(cloud):
        return None
    times = cloud.points[name].astype(np.float64)
    finite = np.isfinite(times)
    if not finite.any():
        return None
    first, last = float(times[finite].min()), float(times[finite].max())
    if time_unit_s(last - first) is None:
        return None
    return np.clip(np.nan_to_num((times - first) / (last - first)), 0.0, 1.0)
