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


def seconds_of_sweep(cloud: Cloud, period_s: float = 0.1) -> Floats:
    """Return when each point (N,) was measured, in seconds from the middle of the sweep.

    From the cloud's field of times, else from the azimuth of a clockwise sweep of ``period_s`` that begins and ends
    behind, as in KITTI's clouds (A. Geiger et al., "Vision meets Robotics", IJRR 2013): straight ahead it is 0.
    """
    name = time_field(cloud)
    if name is not None and len(cloud):
        times = cloud.points[name].astype(np.float64)
        finite = np.isfinite(times)
        first, last = (float(times[finite].min()), float(times[finite].max())) if finite.any() else (0.0, 0.0)
        unit = time_unit_s(last - first)
        if unit is not None:
            return np.nan_to_num((times - (first + last) / 2.0) * unit)
    azimuth = np.arctan2(cloud.points["y"].astype(np.float32), cloud.points["x"].astype(np.float32))
    return np.nan_to_num(azimuth.astype(np.float64)) * (-period_s / (2.0 * np.pi))
